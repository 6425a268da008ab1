"""Decisions of which the best is known by FICO's tables: by amounts, and at one cost under a bound."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from fairall import run
from fairall.data.fico import Fico
from fairall.data.load import load_dataset
from fairall.display.progress import Display
from fairall.models.learner import Learner
from fairall.models.oracle import oracles
from fairall.online.training import Training
from fairall.runtime.randomness import SeedStreams
from tests.conftest import no_cache, training_of, warm_up
from tests.models.conftest import most_within, rates_of

pytestmark = pytest.mark.usefixtures("undrawn")

WORDS = [
    "dataset=fico",
    "initial_policy=lenient",
    "dataset.exposures=[500,2000,10000]",
    "dataset.gain={intercept: 400, exposure: 0.02}",
    "dataset.loss={exposure: 0.6}",
]
QUIET: dict[str, Any] = {"tracking": {"enabled": False}, "display": Display(progress_only=True)}


def cells() -> pd.DataFrame:
    """Every group, score and exposure: share of the people, P(ỹ = 1), and what they earn by `WORDS`."""
    source, exposure = load_dataset("fico"), np.array([500, 2000, 10_000])
    assert isinstance(source, Fico)
    scores = source.scores
    p, share = scores.repays[..., None], scores.group_share[:, None] * scores.share / 3
    columns = {
        "group": np.arange(2)[:, None, None],
        "score": scores.score[:, None],
        "exposure": exposure,
        "share": share[..., None],
        "p": p,
        "worth": share[..., None] * (p * (400 + 0.02 * exposure) - (1 - p) * 0.6 * exposure),
    }
    values = map(np.ravel, np.broadcast_arrays(*columns.values()))
    return pd.DataFrame(dict(zip(columns, values, strict=True)))


def best(of: pd.DataFrame, gap: float = 1.0) -> float:
    """Most that is earned by a policy whose acceptance rates differ by at most `gap` between groups."""
    return most_within(of["worth"].to_numpy(), rates_of(of["share"].to_numpy(), of["group"].to_numpy()), gap)


def of_one_cost(of: pd.DataFrame) -> float:
    """The most that is earned with one least P(ỹ = 1) for all, of whatever height."""
    return max(of["worth"][of["p"] >= cost].sum() for cost in np.linspace(0.0, 1.0, 101))


def expected(learner: Learner, of: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """What a learner's policies earn, shape (E,), and acceptance rates of the groups, shape (G, E)."""
    schema, seeds = learner.setting.schema, learner.setting.seeds
    x = torch.from_numpy((of[schema.names].to_numpy() - schema.mean) / schema.scale).float()
    s = torch.from_numpy(2.0 * of["group"].to_numpy() - 1.0).float()
    given = x.expand(len(seeds), -1, -1), s.expand(len(seeds), -1)
    pi = learner.propensity(*given, SeedStreams(seeds, "any")).double().numpy()
    return pi @ of["worth"].to_numpy(), rates_of(of["share"].to_numpy(), of["group"].to_numpy()) @ pi.T


def greedy(*words: str) -> Training:
    return training_of("model=greedy", "seeds=1", *WORDS, *words)


@pytest.mark.whole
def test_oracles_earn_nearly_the_closed_form() -> None:
    training, of = greedy("dataset.rows.pool=40000"), cells()
    found = oracles(training.data, training.learner.setting, no_cache())
    for name, gap in (("oracle", 1.0), ("oracle_fair", 0.0)):
        (earned,), rates = expected(found[name], of)
        assert earned == pytest.approx(best(of, gap), rel=0.03)
        assert np.ptp(rates) <= gap + 0.02


@pytest.mark.whole
def test_average_regret_at_one_cost_falls_as_the_root_of_time_or_faster() -> None:
    """Regret is what the best policy of the same gap earns more: neither unfairness nor chance helps."""
    # The selected learning rate, a constant one, leaves regret that no longer falls (docs/frontier.md).
    words = "model.quantile=0.5 model.learning_rate=0.001 model.members=4 seeds=2 evaluation.window=[0,40]"
    training = training_of("model=parity_ensemble", "dataset=fico", "schedule.time_steps=40", *words.split())
    learner, of, found = training.learner, cells(), []
    of["worth"] = of["share"] * (of["p"] - training.config.cost.value)
    warm_up(learner, training.decided)
    training.learn_online(40, lambda **_: None, lambda: found.append(expected(learner, of)))
    earned, rates = (np.stack(of) for of in zip(*found, strict=True))  # (T, E) and (T, G, E)
    gap, levels = np.ptp(rates, axis=1), np.linspace(0.0, 1.0, 26)
    regret = np.interp(gap, levels, [best(of, level) for level in levels]) - earned
    average = regret.mean(1).cumsum() / np.arange(1, 41)
    assert np.polyfit(np.log(np.arange(5, 40)), np.log(average[5:]), 1)[0] < -0.5


@pytest.mark.whole
@pytest.mark.parametrize("model", ["greedy", "unfairlog model.decision=deterministic"])
def test_learners_find_the_threshold_of_each_person(model: str, tmp_path: Path) -> None:
    schedule = {"time_steps": 60, "applicants": 64, "warm_up_applicants": 512}
    of_run: dict[str, Any] = {"schedule": schedule, "evaluation": {"window": [40, 60]}, "seeds": 2}
    result = run(*f"model={model}".split(), *WORDS, outputs_dir=tmp_path, **of_run, **QUIET)
    earned = result.values("mean_utility").mean()
    assert 1.1 * best(cells()) > earned > of_one_cost(cells())
    assert "utility in money per 100 people" in result.title


def test_places_go_by_the_expected_amount() -> None:
    training = greedy()
    learner, applicants = training.learner, training.world.next()
    given = applicants.x, applicants.s, SeedStreams([0], "any")
    stake, cost = learner.setting.stake_and_cost(applicants.x)
    amount = stake * (learner.log_odds(*given).sigmoid() - cost)
    torch.testing.assert_close(learner.margin(*given), amount, rtol=0, atol=1e-3)


def test_who_decides_by_one_cost_is_measured_in_money_which_rewards_of_the_environment_are(
    tmp_path: Path,
) -> None:
    pytest.importorskip("gymnasium")
    from fairall import gym

    words = (
        *WORDS,
        "dataset.decide_by=cost",
        "preset=quick",
        "schedule.time_steps=3",
        "evaluation.window=[1,3]",
    )
    of_run = run(*words, "model=accept_all", "seeds=1", outputs_dir=tmp_path, **QUIET)
    environment = gym.Lending(words=words, batch=True)
    environment.reset(seed=0)
    n = environment.simulation.config.schedule.applicants
    rewards = [environment.step(np.ones(n, dtype=np.int8))[1] for _ in range(3)]
    assert np.mean(rewards) == pytest.approx(of_run.values("effective_utility").iloc[0], rel=1e-4)
    source = load_dataset("fico", WORDS[2]).prepare()
    exposure = source.test.x[:, 1].double() * source.schema.scale[1] + source.schema.mean[1]
    earned = torch.where(source.test.label > 0, 400 + 0.02 * exposure, -0.6 * exposure)
    assert of_run.values("mean_utility").iloc[0] == pytest.approx(float(earned.mean()), rel=1e-4)
