"""The environment of Gymnasium: its checker, the rewards of runs, our methods and an agent in it."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from fairall.errors import FairAllError
from fairall.experiment import run
from tests.conftest import LOANS

gymnasium = pytest.importorskip("gymnasium", reason="needs gymnasium: pip install -e '.[gym]'")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from fairall import gym  # noqa: E402

ID = "fairall/Lending-v0"
SMALL: dict[str, Any] = {
    "dataset": "credit",
    "preset": "quick",
    "schedule": {"time_steps": 3, "applicants": 16},
}
AT_ONCE: dict[str, Any] = {}
LATE = {"delay": {"steps": 1}}
FEW = {"capacity": {"share": 0.3}}
FALSE = {"noise": {"advantaged": {"positive": 0.2}}}
EVERYBODY = np.ones(16, dtype=np.int8)
MISTAKES = yaml.safe_load((LOANS.parent / "gym.yaml").read_text())


def made(**words: Any) -> Any:
    """A small environment of one seed."""
    return gymnasium.make(ID, **SMALL | words)


def made_vector(mode: str = "vector_entry_point", **words: Any) -> Any:
    """One of two seeds."""
    return gymnasium.make_vec(ID, num_envs=2, vectorization_mode=mode, **SMALL | words)


def episode(environment: Any, action: Any) -> list[tuple[Any, Any, dict[str, Any]]]:
    """Observations, rewards and `info` of the same action at every step; the first reward is None."""
    seen, info = environment.reset(seed=3)
    steps, over = [(seen, None, info)], False
    while not over:
        seen, reward, _, over, info = environment.step(action)
        steps.append((seen, reward, info))
    return steps


@pytest.mark.parametrize(
    ("batch", "action", "world"), product([False, True], gym.ACTIONS, [AT_ONCE, LATE, FEW, FALSE])
)
def test_gymnasium_has_nothing_to_say(batch: bool, action: str, world: dict[str, Any]) -> None:
    """`check_env` raises or, by the filter of warnings, warns where something is wrong."""
    environment = made(batch=batch, action=action, truths=True, world=world)
    check_env(environment.unwrapped, skip_render_check=True)


@pytest.mark.parametrize(("model", "world"), [("greedy", AT_ONCE), ("greedy", LATE), ("fairall_I_II", FEW)])
def test_our_methods_earn_what_a_run_says(model: str, world: dict[str, Any], tmp_path: Path) -> None:
    words = SMALL | {"world": world, "seeds": 2, "seed": 5, "evaluation": {"window": [1, 3]}}
    result = run(f"model={model}", **words, outputs_dir=tmp_path, tracking={"enabled": False})
    process = gym.warmed_up_process(f"model={model}", **words)
    environment = made_vector(batch=True, truths=True, **words)
    seen, _ = environment.reset(seed=5)
    earned = []
    for _ in range(3):
        seen, reward, _, over, info = environment.step(process.decide(gym.people_of(seen)))
        process.learn(gym.decided_of(info))
        process.taken.add(torch.as_tensor(info["accepted"]))
        earned.append((info["utility"], reward))
    assert over.all()
    utility, rewards = np.mean(earned, axis=0)
    said = pytest.approx(result.values("effective_utility").tolist(), abs=1e-7)
    assert utility == said
    assert world == LATE or rewards == said  # where every label comes at once


@pytest.mark.parametrize("world", [AT_ONCE, LATE, FEW], ids=str)
def test_one_by_one_earns_what_a_batch_does(world: dict[str, Any]) -> None:
    single, batch = (
        [reward for _, reward, _ in episode(made(world=world, batch=batch), action)[1:]]
        for batch, action in ((False, 1), (True, EVERYBODY))
    )
    assert len(single) == 3 * 16
    assert np.mean(single) == pytest.approx(np.mean(batch), abs=1e-9)
    assert world != AT_ONCE or {*single} == {0.5, -0.5}


def test_a_late_label_pays_late() -> None:
    environment = made(batch=True, world=LATE)
    (_, _, begun), (_, first, earlier), (_, second, later), _ = episode(environment, EVERYBODY)
    assert {*begun["groups"]} <= environment.unwrapped.simulation.group_names.keys()
    assert (first, earlier["due"]) == (0, ())
    (due,) = gym.decided_of(later)
    assert second == pytest.approx((due.label - 0.5).mean())
    assert "labels" not in later  # a truth, which is not asked for


def played(environment: Any, seed: Any) -> list[list[Any]]:
    """Observations, rewards, ends and seeds of the steps of three episodes of a vector."""
    environment.reset(seed=seed)
    steps = [environment.step(np.full((2, 16), 0.5, np.float32)) for _ in range(11)]
    return [
        [np.ravel(part).tolist() for part in (seen, reward, over, info["seed"])]
        for seen, reward, _, over, info in steps
    ]


def test_a_vector_is_its_environments_one_by_one_whose_later_seeds_follow_from_the_first() -> None:
    vector, single = (
        made_vector(mode, batch=True, action="probability") for mode in ("vector_entry_point", "sync")
    )
    steps = played(vector, [5, 6])
    _, rewards, over, seeds = zip(*steps, strict=True)
    assert [*over] == [[end, end] for end in (0, 0, 1, *2 * [0, 0, 0, 1])]
    assert rewards[3] == [0, 0]  # begins anew
    assert (seeds[:3], len({seed for pair in seeds for seed in pair})) == (3 * ([5, 6],), 6)
    for seed in (5, (5, 6.0), np.array([5, 6]), np.int64(5)):
        assert played(vector, seed) == steps, seed
    assert played(single, [np.int64(5), 6]) == steps
    assert [pair[1] for *_, pair in played(vector, [None, 6])] == [pair[1] for pair in seeds]


@pytest.mark.parametrize(("what", "given", "said"), MISTAKES["steps"])
def test_a_step_that_is_impossible_is_said_in_one_line(what: str, given: Any, said: str) -> None:
    vector = made_vector(action="decision" if what == "seed" else what)
    vector.reset(seed=0)
    with pytest.raises(FairAllError, match=f"^[^\n]* is not possible: it must be {said}$"):
        vector.reset(seed=given) if what == "seed" else vector.step(given)


@pytest.mark.parametrize(("words", "said"), MISTAKES["environments"])
def test_an_environment_that_is_impossible_is_said_in_one_line(words: dict[str, Any], said: str) -> None:
    with pytest.raises(FairAllError, match=f"^{said}$"):
        gym.LendingVector(**SMALL | words)


def test_an_agent_of_stable_baselines_trains() -> None:
    sb3 = pytest.importorskip("stable_baselines3", reason="needs stable-baselines3")
    environment = made()
    agent = sb3.PPO("MlpPolicy", environment, n_steps=64, batch_size=32, n_epochs=1, seed=0, device="cpu")
    seen, _ = environment.reset(seed=0)
    chosen, _ = agent.learn(256).predict(seen, deterministic=True)
    assert environment.action_space.contains(int(chosen))


def test_people_who_react_stay_within_the_space() -> None:
    environment = made(batch=True, dataset="fico", schedule={}, world={"feedback": {"people": 32}})
    space = environment.observation_space
    everybody = np.ones(len(space.low), dtype=np.int8)
    observations = [seen for seen, _, _ in episode(environment, everybody)]
    assert all(map(space.contains, observations))
    assert not np.array_equal(observations[0], observations[-1])
