"""Decisions by amounts: closed forms on FICO's tables, simulations, and equal amounts as one cost."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from scipy.special import logit
from torch import Tensor

from fairall import run
from fairall.config.schema import BoundConfig, FairnessConfig, FairnessRule, ModelConfig
from fairall.data.fico import CreditScores, Fico
from fairall.data.load import load_dataset
from fairall.data.people import Decided, Decisions
from fairall.display.progress import Display
from fairall.models.fairness import FairThresholds
from fairall.models.learner import DecisionRule, Learner, Setting
from fairall.models.oracle import oracles
from fairall.models.thresholds import acceptance, fair_thresholds, merit
from fairall.policy import Policy
from fairall.runtime.randomness import SeedStreams
from tests.conftest import no_cache, training_of

pytestmark = pytest.mark.usefixtures("undrawn")

EXPOSURES = [500.0, 2000.0, 10000.0]
GAINS, LOSSES = (400.0, 0.02), (0.0, 0.6)  # constant, and per unit of exposure
WORDS = [
    "dataset=fico",
    "initial_policy=lenient",
    "dataset.exposures=[500,2000,10000]",
    "dataset.gain={intercept: 400, exposure: 0.02}",
    "dataset.loss={exposure: 0.6}",
]
RULES = FairnessRule.demographic_parity, FairnessRule.equal_opportunity
QUIET: dict[str, Any] = {"tracking": {"enabled": False}, "display": Display(progress_only=True)}


@pytest.fixture(scope="module")
def scores() -> CreditScores:
    found = load_dataset("fico")
    assert isinstance(found, Fico)
    return found.scores


def cells(scores: CreditScores) -> tuple[np.ndarray, ...]:
    """Share of people, P(ỹ = 1), gain, loss and group of every group, score and exposure, flat."""
    exposure = np.array(EXPOSURES)
    share = scores.group_share[:, None, None] * scores.share[:, :, None] * np.full(3, 1 / 3)
    shape = share.shape
    of_cells = (
        share,
        np.broadcast_to(scores.repays[:, :, None], shape),
        np.broadcast_to(GAINS[0] + GAINS[1] * exposure, shape),
        np.broadcast_to(LOSSES[0] + LOSSES[1] * exposure, shape),
        np.broadcast_to(np.arange(2)[:, None, None], shape),
    )
    return tuple(values.ravel() for values in of_cells)


def best(scores: CreditScores, rule: FairnessRule) -> float:
    """Greatest expected money per person, without a bound or with equal rates of the groups.

    Without a bound Σ share·max(0, p·g − (1 − p)·l); with one a linear program in π of the cells.
    """
    share, p, gain, loss, group = cells(scores)
    worth = share * (p * gain - (1 - p) * loss)
    if rule is FairnessRule.none:
        return float(worth.clip(min=0).sum())
    counted = share * p if rule is FairnessRule.equal_opportunity else share
    rates = [np.where(group == g, counted, 0.0) / counted[group == g].sum() for g in (0, 1)]
    solved = linprog(-worth, A_eq=[rates[1] - rates[0]], b_eq=[0.0], bounds=(0.0, 1.0))
    assert solved.success
    return float(-solved.fun)


class Knowing(Learner):
    """Knows P(ỹ = 1 | score, s) of FICO, and accepts where it pays."""

    takes_amounts = True

    def __init__(self, setting: Setting, scores: CreditScores) -> None:
        super().__init__(ModelConfig(name="knowing"), setting)
        self.scores = scores
        self.rule = DecisionRule(setting.cost, drawn=False, amounts=setting.amounts)

    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        return {}

    def update(self, decided: Decided) -> None:
        pass

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        score = x[..., 0].double() * self.setting.schema.scale[0] + self.setting.schema.mean[0]
        levels = torch.tensor(self.scores.score)
        level = (score.unsqueeze(-1) - levels).abs().argmin(-1)
        repays = torch.tensor(self.scores.repays)
        return torch.where(s > 0, repays[1][level], repays[0][level])


def expected(learner: Learner, scores: CreditScores) -> tuple[float, np.ndarray]:
    """Money per person of a policy on all cells by their shares, and acceptance rates of the groups."""
    share, p, gain, loss, group = cells(scores)
    raw = np.stack([np.tile(np.repeat(scores.score, 3), 2), np.tile(EXPOSURES, 2 * len(scores.score))], -1)
    schema = learner.setting.schema
    x = torch.from_numpy((raw - schema.mean) / schema.scale).float().unsqueeze(0)
    s = torch.from_numpy(2.0 * group - 1.0).float().unsqueeze(0)
    pi = learner.propensity(x, s, SeedStreams([0], "any"))[0].double().numpy()
    rates = np.array([(share * pi)[group == g].sum() / share[group == g].sum() for g in (0, 1)])
    return float((share * pi * (p * gain - (1 - p) * loss)).sum()), rates


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("slack", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_nothing_that_keeps_the_bound_earns_more_money(rule: FairnessRule, slack: float, seed: int) -> None:
    draw = np.random.default_rng(seed)
    n, group = 60, draw.permutation(np.arange(60) % 3)
    p, stake, cost = draw.beta(1.0 + group, 2.0), draw.lognormal(0.0, 1.0, n), draw.uniform(0.1, 0.9, n)
    log_odds, stakes, of_people = (torch.from_numpy(of) for of in (logit(p), stake, cost))
    chosen = fair_thresholds(
        log_odds, torch.from_numpy(group), 3, BoundConfig(rule, slack), of_people, stake=stakes
    )
    true_positives = rule is FairnessRule.equal_opportunity
    ordered = merit(log_odds, stakes, of_people, true_positives=true_positives)
    pi = acceptance(ordered, chosen.threshold[group], chosen.tied_share[group]).numpy()
    counted = p if true_positives else np.ones(n)
    rates = [np.where(group == g, counted, 0.0) / counted[group == g].sum() for g in range(3)]
    gaps = [a - b for a in rates for b in rates if a is not b]
    solved = linprog(-stake * (p - cost), A_ub=gaps, b_ub=[slack] * len(gaps), bounds=(0.0, 1.0))
    assert (pi * stake * (p - cost)).sum() == pytest.approx(-solved.fun, abs=1e-6)
    assert np.ptp([of @ pi for of in rates]) <= slack + 1e-9
    if slack == 1.0:
        assert (pi == (p >= cost)).all()


def test_who_knows_the_probabilities_earns_the_closed_form(scores: CreditScores) -> None:
    training = training_of("model=greedy", "seeds=1", *WORDS)
    setting = training.learner.setting
    knowing = Knowing(setting, scores)
    assert expected(knowing, scores)[0] == pytest.approx(best(scores, FairnessRule.none), rel=1e-5)
    # One cost for all, of whatever height, earns less than the closed form.
    of_one_cost = [
        float((share * (p >= c) * (p * gain - (1 - p) * loss)).sum())
        for share, p, gain, loss, _ in [cells(scores)]
        for c in np.linspace(0.0, 1.0, 101)
    ]
    assert max(of_one_cost) < 0.95 * best(scores, FairnessRule.none)


@pytest.mark.parametrize("rule", RULES)
def test_thresholds_of_a_window_earn_nearly_the_best_at_equal_rates(
    scores: CreditScores, rule: FairnessRule
) -> None:
    training = training_of(
        "model=greedy", "seeds=1", "dataset.rows={pool: 40000, validation: 10, test: 10}", *WORDS
    )
    setting = training.learner.setting
    bound = FairnessConfig(rule=rule, slack=0.0, blind=False, window=40000)
    learner = FairThresholds(bound, Knowing(setting, scores))
    learner.pretrain(training.data, no_cache(), lambda **_: None)
    learner.choose()
    earned, rates = expected(learner, scores)
    assert earned == pytest.approx(best(scores, rule), rel=0.02)
    assert earned < best(scores, FairnessRule.none)
    if rule is FairnessRule.demographic_parity:
        assert rates[0] == pytest.approx(rates[1], abs=0.02)


def test_oracles_earn_nearly_the_closed_form(scores: CreditScores) -> None:
    training = training_of("model=greedy", "seeds=1", "dataset.rows.pool=40000", *WORDS)
    data, setting = training.data, training.learner.setting
    found = oracles(data.train, data.validation, setting, no_cache())
    for name, rule in (("oracle", FairnessRule.none), ("oracle_fair", FairnessRule.demographic_parity)):
        earned, rates = expected(found[name], scores)
        assert earned == pytest.approx(best(scores, rule), rel=0.03)
    assert rates[0] == pytest.approx(rates[1], abs=0.02)


@pytest.mark.parametrize("model", ["greedy", "ensemble", "unfairlog model.decision=deterministic"])
def test_learners_find_the_threshold_of_each_person(model: str, scores: CreditScores, tmp_path: Path) -> None:
    schedule = {"time_steps": 60, "applicants": 64, "warm_up_applicants": 512}
    of_run: dict[str, Any] = {"schedule": schedule, "evaluation": {"window": [40, 60]}, "seeds": 2}
    result = run(*f"model={model}".split(), *WORDS, outputs_dir=tmp_path, **of_run, **QUIET)
    earned = result.values("mean_utility").mean()
    blind = [
        float((share * (p >= c) * (p * gain - (1 - p) * loss)).sum())
        for share, p, gain, loss, _ in [cells(scores)]
        for c in np.linspace(0.0, 1.0, 101)
    ]
    assert 1.1 * best(scores, FairnessRule.none) > earned > max(blind)
    assert "utility in money per 100 people" in result.title


@pytest.mark.parametrize(
    "model",
    ["accept_all", "oracle", "oracle_fair", "greedy", "ensemble", "parity_ensemble", "fairlog", "unfairlog"],
)
def test_equal_amounts_are_one_cost(model: str, tmp_path: Path) -> None:
    words = [f"model={model}", "dataset=credit", "preset=quick"]
    amounts = ["dataset.gain={intercept: 70}", "dataset.loss={intercept: 30}"]
    one, other = (
        run(*words, *further, outputs_dir=tmp_path, **QUIET)
        for further in (["cost=fixed", "cost.value=0.3"], amounts)
    )
    for name in ("effective_utility", "mean_utility"):
        np.testing.assert_allclose(other.values(name), 100 * one.values(name), rtol=1e-3, atol=1e-3)
    for name in ("effective_dpu", "mean_dpu", "mean_acceptance"):
        np.testing.assert_allclose(other.values(name), one.values(name), atol=1e-4)


def test_places_go_to_those_of_greatest_expected_amount() -> None:
    training = training_of(
        "model=greedy", "seeds=1", "world.capacity.share=0.25", "world.capacity.rule=top", *WORDS
    )
    learner, world = training.learner, training.world
    people = world.next()
    streams = SeedStreams([0], "any")
    p = learner.log_odds(people.x, people.s, streams).sigmoid()
    assert learner.setting.amounts is not None
    stake, cost = learner.setting.amounts(people.x)
    amount = stake * (p - cost)
    everybody = torch.ones_like(people.s)
    wanted = Decisions(everybody, everybody > 0, margin=learner.margin(people.x, people.s, streams))
    taken = world.admit(people, wanted).accepted
    assert 0 < taken.sum() < taken.numel()
    assert amount[taken].min() >= amount[~taken].max() - 1e-3 * stake.mean()
    assert not torch.equal(taken, p >= p[taken].min())  # the order of p is another one


def test_a_saved_policy_decides_by_amounts(tmp_path: Path) -> None:
    result = run("model=greedy", "preset=quick", *WORDS, outputs_dir=tmp_path, **QUIET)
    assert result.path is not None
    policy = Policy.load(result.path / "policy")
    people = load_dataset("fico", *WORDS[2:]).table().x.head(500)
    people = people.assign(race=np.where(np.arange(500) % 2, "white", "black"))
    p = policy.encoded_label_probability(*policy.encoded(people))
    pi = policy.propensity(people)
    gain = GAINS[0] + GAINS[1] * people["exposure"].to_numpy()
    loss = LOSSES[0] + LOSSES[1] * people["exposure"].to_numpy()
    far = np.abs(p - loss / (gain + loss)) > 1e-5
    assert far.mean() > 0.9
    assert ((p >= loss / (gain + loss)) == (pi > 0.5))[far].all()
    assert 0.0 < pi.mean() < 1.0


def test_who_decides_by_one_cost_is_measured_in_money(tmp_path: Path) -> None:
    words, further = (
        ("model=fairall_I_II", "preset=quick", *WORDS[:3]),
        (*WORDS[3:], "dataset.decide_by=cost"),
    )
    of_cost, in_money = (run(*words, *more, outputs_dir=tmp_path, **QUIET) for more in ((), further))
    for name in ("effective_dpu", "mean_dpu", "mean_acceptance"):
        np.testing.assert_array_equal(of_cost.values(name), in_money.values(name))
    everybody = in_money.reference("accept_all", "mean_utility")
    assert everybody is not None
    source = load_dataset("fico", *WORDS[2:]).prepare()
    exposure = source.test.x[:, 1].double() * source.schema.scale[1] + source.schema.mean[1]
    earned = torch.where(source.test.label > 0, GAINS[0] + GAINS[1] * exposure, -LOSSES[1] * exposure)
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
