"""Decisions of which the best is known by FICO's tables: by amounts, and at one cost under a bound."""

from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.optimize import linprog
from scipy.special import logit
from torch import Tensor

from fairall import run
from fairall.config.schema import BoundConfig, FairnessConfig, FairnessRule, ModelConfig
from fairall.data.fico import CreditScores, Fico
from fairall.data.load import load_dataset
from fairall.data.people import Decisions
from fairall.display.progress import Display
from fairall.models.fairness import FairThresholds
from fairall.models.learner import DecisionRule, FixedPolicy, Learner, Setting
from fairall.models.oracle import oracles
from fairall.models.thresholds import acceptance, fair_thresholds, merit
from fairall.online.training import Training
from fairall.runtime.randomness import SeedStreams
from tests.conftest import no_cache, training_of, warm_up

pytestmark = pytest.mark.usefixtures("undrawn")

WORDS = [
    "dataset=fico",
    "initial_policy=lenient",
    "dataset.exposures=[500,2000,10000]",
    "dataset.gain={intercept: 400, exposure: 0.02}",
    "dataset.loss={exposure: 0.6}",
]
RULES = FairnessRule.demographic_parity, FairnessRule.equal_opportunity
QUIET: dict[str, Any] = {"tracking": {"enabled": False}, "display": Display(progress_only=True)}


def tables() -> CreditScores:
    found = load_dataset("fico")
    assert isinstance(found, Fico)
    return found.scores


def cells(exposures: Sequence[float] = (500, 2000, 10_000)) -> pd.DataFrame:
    """Every group, score and exposure: share of the people, P(ỹ = 1), gain and loss by `WORDS`."""
    scores, exposure = tables(), np.array(exposures)
    columns = {
        "group": np.arange(2)[:, None, None],
        "score": scores.score[:, None],
        "exposure": exposure,
        "share": (scores.group_share[:, None] * scores.share)[..., None] / len(exposure),
        "p": scores.repays[..., None],
        "gain": 400 + 0.02 * exposure,
        "loss": 0.6 * exposure,
    }
    return pd.DataFrame(
        dict(zip(columns, map(np.ravel, np.broadcast_arrays(*columns.values())), strict=True))
    )


def worth(of: pd.DataFrame) -> np.ndarray:
    """What accepting everybody of a cell earns."""
    return (of["share"] * (of["p"] * of["gain"] - (1 - of["p"]) * of["loss"])).to_numpy()


def rates_of(of: pd.DataFrame, counted: pd.Series) -> np.ndarray:
    """Weights of the cells with which π adds up to the rates of the groups, shape (G, cells)."""
    return np.array(
        [np.where(of["group"] == g, counted, 0) / counted[of["group"] == g].sum() for g in set(of["group"])]
    )


def best(of: pd.DataFrame, gap: float = 1.0, *, true_positives: bool = False) -> float:
    """Greatest worth of a policy whose rates differ by at most `gap` between groups, by a linear program."""
    rates = rates_of(of, of["share"] * of["p"] if true_positives else of["share"])
    gaps = [one - other for one, other in permutations(rates, 2)]
    solved = linprog(-worth(of), A_ub=gaps, b_ub=[gap] * len(gaps), bounds=(0.0, 1.0))
    assert solved.success
    return float(-solved.fun)


def of_one_cost(of: pd.DataFrame) -> float:
    """The most that is earned with one least P(ỹ = 1) for all, of whatever height."""
    return max(worth(of)[of["p"] >= cost].sum() for cost in np.linspace(0.0, 1.0, 101))


def expected(learner: Learner, of: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Worth of a learner's policies, shape (E,), and acceptance rates of the groups, shape (G, E)."""
    schema, seeds = learner.setting.schema, learner.setting.seeds
    x = torch.from_numpy((of[schema.names].to_numpy() - schema.mean) / schema.scale).float()
    s = torch.from_numpy(2.0 * of["group"].to_numpy() - 1.0).float()
    given = x.expand(len(seeds), -1, -1), s.expand(len(seeds), -1)
    pi = learner.propensity(*given, SeedStreams(seeds, "any")).double().numpy()
    return pi @ worth(of), rates_of(of, of["share"]) @ pi.T


class Knowing(FixedPolicy):
    """Knows P(ỹ = 1 | score, s) of FICO, and accepts where it pays."""

    takes_amounts = estimates_label = True

    def __init__(self, setting: Setting) -> None:
        super().__init__(ModelConfig(name="knowing"), setting)
        self.rule = DecisionRule(setting.cost, drawn=False, amounts=setting.amounts)

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        scores, schema = tables(), self.setting.schema
        known = x[..., 0].double() * schema.scale[0] + schema.mean[0]
        repays = [torch.from_numpy(np.interp(known, scores.score, row)) for row in scores.repays]
        return torch.where(s > 0, repays[1], repays[0])


def greedy(*words: str) -> Training:
    return training_of("model=greedy", "seeds=1", *WORDS, *words)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("slack", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_nothing_that_keeps_the_bound_earns_more_money(rule: FairnessRule, slack: float, seed: int) -> None:
    draw = np.random.default_rng(seed)
    n, group = 60, draw.permutation(np.arange(60) % 3)
    p, stake, cost = draw.beta(1.0 + group, 2.0), draw.lognormal(0.0, 1.0, n), draw.uniform(0.1, 0.9, n)
    log_odds, stakes, of_people = (torch.from_numpy(of) for of in (logit(p), stake, cost))
    bound = BoundConfig(rule, slack)
    chosen = fair_thresholds(log_odds, torch.from_numpy(group), 3, bound, of_people, stake=stakes)
    true_positives = rule is FairnessRule.equal_opportunity
    ordered = merit(log_odds, stakes, of_people, true_positives=true_positives)
    pi = acceptance(ordered, chosen.threshold[group], chosen.tied_share[group]).numpy()
    people = pd.DataFrame(
        {"group": group, "share": 1.0, "p": p, "gain": stake * (1 - cost), "loss": stake * cost}
    )
    assert pi @ worth(people) == pytest.approx(best(people, slack, true_positives=true_positives), abs=1e-6)
    assert np.ptp(rates_of(people, people["p"] if true_positives else people["share"]) @ pi) <= slack + 1e-9
    if slack == 1.0:
        assert (pi == (p >= cost)).all()


def test_who_knows_the_probabilities_earns_the_closed_form() -> None:
    (earned,), _ = expected(Knowing(greedy().learner.setting), cells())
    closed = worth(cells()).clip(min=0).sum()
    assert earned == pytest.approx(closed, rel=1e-5)
    assert best(cells()) == pytest.approx(closed)
    assert of_one_cost(cells()) < 0.95 * closed


@pytest.mark.parametrize("rule", RULES)
def test_thresholds_of_a_window_earn_nearly_the_best_at_equal_rates(rule: FairnessRule) -> None:
    training = greedy("dataset.rows={pool: 40000, validation: 10, test: 10}")
    bound = FairnessConfig(rule=rule, slack=0.0, blind=False, window=40000)
    learner = FairThresholds(bound, Knowing(training.learner.setting))
    learner.pretrain(training.data, no_cache(), lambda **_: None)
    learner.choose()
    (earned,), rates = expected(learner, cells())
    true_positives = rule is FairnessRule.equal_opportunity
    assert earned == pytest.approx(best(cells(), 0.0, true_positives=true_positives), rel=0.02)
    assert earned < best(cells())
    if not true_positives:
        assert rates[0] == pytest.approx(rates[1], abs=0.02)


def test_oracles_earn_nearly_the_closed_form() -> None:
    training = greedy("dataset.rows.pool=40000")
    data, setting = training.data, training.learner.setting
    found = oracles(data.train, data.validation, setting, no_cache())
    for name, gap in (("oracle", 1.0), ("oracle_fair", 0.0)):
        (earned,), rates = expected(found[name], cells())
        assert earned == pytest.approx(best(cells(), gap), rel=0.03)
    assert rates[0] == pytest.approx(rates[1], abs=0.02)


@pytest.mark.parametrize("model", ["greedy", "ensemble", "unfairlog model.decision=deterministic"])
def test_learners_find_the_threshold_of_each_person(model: str, tmp_path: Path) -> None:
    schedule = {"time_steps": 60, "applicants": 64, "warm_up_applicants": 512}
    of_run: dict[str, Any] = {"schedule": schedule, "evaluation": {"window": [40, 60]}, "seeds": 2}
    result = run(*f"model={model}".split(), *WORDS, outputs_dir=tmp_path, **of_run, **QUIET)
    earned = result.values("mean_utility").mean()
    assert 1.1 * best(cells()) > earned > of_one_cost(cells())
    assert "utility in money per 100 people" in result.title


def test_places_go_to_those_of_greatest_expected_amount() -> None:
    training = greedy("world.capacity.share=0.25", "world.capacity.rule=top")
    learner, people = training.learner, training.world.next()
    given = people.x, people.s, SeedStreams([0], "any")
    p, everybody = learner.log_odds(*given).sigmoid(), torch.ones_like(people.s)
    stake, cost = learner.setting.stake_and_cost(people.x)
    amount = stake * (p - cost)
    wanted = Decisions(everybody, everybody > 0, margin=learner.margin(*given))
    taken = training.world.admit(people, wanted).accepted
    assert 0 < taken.sum() < taken.numel()
    assert amount[taken].min() >= amount[~taken].max() - 1e-3
    assert not torch.equal(taken, p >= p[taken].min())  # the order of p is another one


def test_who_decides_by_one_cost_is_measured_in_money(tmp_path: Path) -> None:
    words = "model=fairall_I_II", "preset=quick", *WORDS[:3]
    in_money = *WORDS[3:], "dataset.decide_by=cost"
    one, other = (run(*words, *more, outputs_dir=tmp_path, **QUIET) for more in ((), in_money))
    for name in ("effective_dpu", "mean_dpu", "mean_acceptance"):
        np.testing.assert_array_equal(one.values(name), other.values(name))
    everybody = other.reference("accept_all", "mean_utility")
    assert everybody is not None
    source = load_dataset("fico", WORDS[2]).prepare()
    exposure = source.test.x[:, 1].double() * source.schema.scale[1] + source.schema.mean[1]
    earned = torch.where(source.test.label > 0, 400 + 0.02 * exposure, -0.6 * exposure)
    assert everybody.mean == pytest.approx(float(earned.mean()), rel=1e-4)


def test_rewards_of_the_environment_are_the_money_of_a_run(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    from fairall import gym

    words = (*WORDS, "preset=quick", "schedule.time_steps=3", "evaluation.window=[1,3]")
    of_run = run(*words, "model=accept_all", "seeds=1", outputs_dir=tmp_path, **QUIET)
    environment = gym.Lending(words=words, batch=True)
    environment.reset(seed=0)
    n = environment.simulation.config.schedule.applicants
    rewards = [environment.step(np.ones(n, dtype=np.int8))[1] for _ in range(3)]
    assert np.mean(rewards) == pytest.approx(of_run.values("effective_utility").iloc[0], rel=1e-4)


@pytest.mark.whole
def test_average_regret_at_one_cost_falls_as_the_root_of_time_or_faster() -> None:
    """Regret is what the best policy of the same gap earns more: neither unfairness nor chance helps."""
    # The selected learning rate, a constant one, leaves regret that no longer falls (docs/frontier.md).
    words = "model.quantile=0.5", "model.learning_rate=0.0003", "schedule.time_steps=120", "seeds=3"
    training = training_of("model=parity_ensemble", "dataset=fico", *words, "evaluation.window=[0,120]")
    learner, cost, tables = training.learner, training.config.cost.value, []
    people = cells([1.0]).assign(gain=1 - cost, loss=cost)
    warm_up(learner, training.decided)
    training.learn_online(120, lambda **_: None, lambda: tables.append(expected(learner, people)))
    earned, rates = (np.stack(of) for of in zip(*tables, strict=True))  # (T, E) and (T, G, E)
    gap, levels = np.ptp(rates, axis=1), np.linspace(0.0, 1.0, 201)
    regret = np.interp(gap, levels, [best(people, level) for level in levels]) - earned
    assert (regret > -1e-4).all()
    average = regret.mean(1).cumsum() / np.arange(1, 121)
    slope = np.polyfit(np.log(np.arange(10, 120)), np.log(average[10:]), 1)[0]
    assert slope < -0.5
    assert gap[60:].mean() < 0.08
