"""The environment of Gymnasium: its checker, the rewards of runs, our methods and an agent in it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fairall.display.progress import Display
from fairall.errors import FairAllError
from fairall.experiment import run

gymnasium = pytest.importorskip("gymnasium", reason="needs gymnasium: pip install -e '.[gym]'")

from fairall import gym  # noqa: E402

SMALL: dict[str, Any] = {
    "dataset": "credit",
    "preset": "quick",
    "schedule": {"time_steps": 3, "applicants": 16},
}
ID = "fairall/Lending-v0"
WORLDS: list[dict[str, Any]] = [
    {},
    {"delay": {"steps": 2}},
    {"capacity": {"share": 0.3}},
    {"noise": {"advantaged": {"positive": 0.2}}},
]


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("action", gym.ACTIONS)
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: next(iter(world), "static"))
def test_gymnasium_has_nothing_to_say(batch: bool, action: str, world: dict[str, Any]) -> None:
    """`check_env` raises or, by the filter of warnings, warns where something is wrong."""
    from gymnasium.utils.env_checker import check_env

    made = gymnasium.make(ID, batch=batch, action=action, truths=True, world=world, **SMALL)
    check_env(made.unwrapped, skip_render_check=True)


@pytest.mark.parametrize(
    ("model", "world"),
    [("greedy", WORLDS[0]), ("fairall_I_II", WORLDS[0]), ("greedy", WORLDS[1]), ("fairall_I_II", WORLDS[2])],
    ids=["greedy", "fairall", "greedy, late labels", "fairall, few places"],
)
def test_our_methods_earn_what_a_run_says(model: str, world: dict[str, Any], tmp_path: Path) -> None:
    words = SMALL | {"world": world, "seeds": 2, "seed": 5}
    of_run = words | {"model": model, "outputs_dir": tmp_path, "tracking": {"enabled": False}}
    of_run["evaluation"] = {"window": [1, 3]}
    said = run(**of_run, display=Display(progress_only=True)).values("effective_utility")
    process = gym.warmed_up_process(**of_run)
    made = gymnasium.make_vec(ID, num_envs=2, batch=True, truths=True, **words)
    seen, _ = made.reset(seed=5)
    rewards, utilities, over = [], [], False
    while not over:
        seen, reward, _, truncated, info = made.step(process.decide(gym.people_of(seen)))
        process.learn(gym.decided_of(info))
        process.taken.add(torch.as_tensor(info["accepted"]))
        rewards.append(reward)
        utilities.append(info["utility"])
        over = truncated.all()
    assert np.mean(utilities, axis=0) == pytest.approx(said.to_numpy(), abs=1e-7)
    if not {"delay", "noise"} & world.keys():  # where every label comes at once, as it is
        assert np.mean(rewards, axis=0) == pytest.approx(said.to_numpy(), abs=1e-7)


def episode(made: Any, actions: np.ndarray, seed: int) -> tuple[list[Any], list[float]]:
    """Observations and rewards of the same action at every step."""
    seen, _ = made.reset(seed=seed)
    observations, rewards, over = [seen], [], False
    while not over:
        seen, reward, _, over, _ = made.step(actions)
        observations.append(seen)
        rewards.append(reward)
    return observations, rewards


@pytest.mark.parametrize("world", [{}, {"delay": {"steps": 1}}, {"capacity": {"share": 0.3}}], ids=str)
def test_one_by_one_earns_what_a_batch_does(world: dict[str, Any]) -> None:
    words = SMALL | {"world": world}
    _, single = episode(gymnasium.make(ID, **words), np.array(1), 3)
    _, batch = episode(gymnasium.make(ID, batch=True, **words), np.ones(16, dtype=np.int8), 3)
    assert len(single) == 3 * 16
    assert np.mean(single) == pytest.approx(np.mean(batch), abs=1e-9)
    if not world:
        assert set(single) == {0.5, -0.5}  # at once


def test_seeds_stacked_are_those_of_one_at_a_time() -> None:
    made = gymnasium.make_vec(ID, num_envs=2, action="probability", **SMALL)
    seen, info = made.reset(seed=7)
    assert info["seed"].tolist() == [7, 8]
    for e in range(2):
        (first, second, *_), rewards = episode(
            gymnasium.make(ID, action="probability", **SMALL), np.array([0.5], np.float32), 7 + e
        )
        made.reset(seed=7)
        after, reward, *_ = made.step(np.full((2, 1), 0.5, np.float32))
        np.testing.assert_array_equal(first, seen[e])
        np.testing.assert_array_equal(second, after[e])
        assert reward[e] == rewards[0]
    for _ in range(3 * 16 - 1):
        _, _, _, truncated, _ = made.step(np.full((2, 1), 0.5, np.float32))
    assert truncated.all()
    _, reward, _, truncated, info = made.step(np.full((2, 1), 0.5, np.float32))  # begins anew
    assert not truncated.any()
    assert reward.tolist() == [0, 0]
    assert set(info["seed"]) != {7, 8}


def test_a_late_label_pays_late_and_truths_are_asked_for() -> None:
    words = SMALL | {"world": {"delay": {"steps": 1}}}
    made = gymnasium.make(ID, batch=True, **words)
    _, info = made.reset(seed=0)
    assert info.keys() == {"groups", "time_step", "seed"}
    assert set(info["groups"]) <= set(made.unwrapped.simulation.group_names)
    accept = np.ones(16, dtype=np.int8)
    _, first, _, _, info = made.step(accept)
    assert (first, info["due"]) == (0, ())
    _, second, _, _, info = made.step(accept)
    (due,) = info["due"]
    assert second == pytest.approx((due["label"] - 0.5).mean())
    assert gym.decided_of(info)[0].x.shape == (1, 16, 19)
    assert "labels" not in info


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"action": "loan"}, "action='loan': one of decision, probability"),
        ({"words": "seeds=2"}, "words='seeds=2': give a list of words"),
        ({"words": 2}, "words=2: give a list of words"),
        ({"splits": 2}, "splits=2: an environment has one split of the people"),
        ({"dataset": "credits"}, "dataset=credits: no such dataset"),
    ],
)
def test_what_is_impossible_is_said_in_one_line(words: dict[str, Any], told: str) -> None:
    with pytest.raises(FairAllError) as raised:
        gymnasium.make(ID, **SMALL | words)
    assert str(raised.value).startswith(told)
    assert "\n" not in str(raised.value)


def seeds_of_episodes(made: Any, seed: Any) -> list[list[int]]:
    """Seeds of the environments of a vector in three episodes."""
    _, info = made.reset(seed=seed)
    episodes = [info["seed"].ravel().tolist()]
    while len(episodes) < 3:
        *_, info = made.step(np.ones((2, 16), dtype=np.int8))
        if (seeds := info["seed"].ravel().tolist()) != episodes[-1]:
            episodes.append(seeds)
    return episodes


def test_later_episodes_follow_from_the_seeds_of_the_first() -> None:
    made, single = (
        gymnasium.make_vec(ID, num_envs=2, vectorization_mode=mode, batch=True, **SMALL)
        for mode in ("vector_entry_point", "sync")
    )
    episodes = seeds_of_episodes(made, [5, 6])
    assert episodes[0] == [5, 6]
    for seed in (5, [5, 6], (5, 6.0), np.array([5, 6]), np.int64(5), 5.0, np.array(5)):
        assert seeds_of_episodes(made, seed) == episodes, seed
    assert seeds_of_episodes(single, [np.int64(5), 6]) == episodes
    assert [second for _, second in seeds_of_episodes(made, [None, 6])] == [second for _, second in episodes]
    for wrong in (-1, 2.5, True, "5", [5, -1], [5], [5, 6, 7]):
        with pytest.raises(FairAllError, match="seed"):
            made.reset(seed=wrong)


def test_a_seed_is_the_number_that_it_equals() -> None:
    made = gymnasium.make(ID, **SMALL)
    assert {int(made.reset(seed=seed)[1]["seed"]) for seed in (5, np.int64(5), 5.0, np.array(5))} == {5}
    for wrong in (-1, 2.5, True, "5"):
        with pytest.raises(FairAllError, match="is not possible: it must be a whole number of"):
            made.reset(seed=wrong)
    assert gym.LendingVector(2.0, **SMALL).num_envs == 2  # type: ignore[arg-type]
    with pytest.raises(FairAllError, match="num_envs=0 is not possible"):
        gym.LendingVector(0, **SMALL)


@pytest.mark.parametrize(
    ("action", "value"),
    [
        ("decision", 0.5),
        ("probability", 1.5),
        ("probability", np.nan),
        ("decision", "x"),
        ("decision", [1, 1]),
    ],
)
def test_an_action_is_a_decision_or_a_probability(action: str, value: Any) -> None:
    made = gymnasium.make(ID, action=action, **SMALL).unwrapped
    made.reset(seed=0)
    with pytest.raises(FairAllError, match="is possible"):
        made.step(np.array([value]))


def test_an_agent_of_stable_baselines_trains() -> None:
    sb3 = pytest.importorskip("stable_baselines3", reason="needs stable-baselines3")
    made = gymnasium.make(ID, **SMALL)
    agent = sb3.PPO("MlpPolicy", made, n_steps=64, batch_size=32, n_epochs=1, seed=0, device="cpu")
    agent.learn(256)
    seen, _ = made.reset(seed=0)
    assert made.action_space.contains(int(agent.predict(seen, deterministic=True)[0]))


def test_people_who_react_stay_within_the_space() -> None:
    words = {"dataset": "fico", "preset": "quick", "world": {"feedback": {"people": 32}}}
    made = gymnasium.make(ID, batch=True, **words)
    n = made.observation_space.shape[0]
    observations, _ = episode(made, np.ones(n, dtype=np.int8), 0)
    assert all(made.observation_space.contains(seen) for seen in observations)
    assert not np.array_equal(observations[0], observations[-1])
