import functools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import expit
from torch import Tensor

from fairall.data.people import Decided, People
from fairall.metrics import dpu
from fairall.models.classifier import IPSClassifier, IPSClassifierConfig
from fairall.models.fairlog import FairLog, FairLogConfig, UnfairLog
from fairall.models.learner import Setting
from fairall.models.objectives import classification_risk
from fairall.runtime.randomness import SeedStreams
from tests.conftest import ComposeConfig, warm_up
from tests.models.conftest import decided_on, nobody_of, with_features

MakePeople = Callable[[int], People]
MakeSetting = Callable[..., Setting]
FORMS = ["squared", "fairtorch"]


@pytest.fixture
def config(compose_config: ComposeConfig) -> FairLogConfig:
    model = compose_config("model=fairlog").model
    return replace(model, clf_arch=[8, 8], clf_dropout=0.0, learning_rate=0.01)


@pytest.fixture
def plain(compose_config: ComposeConfig) -> IPSClassifierConfig:
    model = compose_config("model=unfairlog").model
    return replace(model, clf_arch=[8, 8], clf_dropout=0.0, learning_rate=0.01)


@pytest.fixture
def unequal_groups() -> People:
    """Of the advantaged most pay back, of the others few; x says which is which, and a little more."""
    generator = torch.Generator().manual_seed(3)
    s = 2.0 * (torch.rand(600, generator=generator) < 0.6) - 1.0
    worth = torch.randn(600, generator=generator)
    x = torch.stack([worth + s, s + 0.3 * torch.randn(600, generator=generator)], dim=-1)
    label = (worth + 1.2 * s + 0.3 * torch.randn(600, generator=generator) > 0).float()
    return People(x, s, label)


def two_features(given: Setting) -> Setting:
    return with_features(given, "a", "b")


decided = functools.partial(decided_on, least=0.005, first=0.005)


@pytest.mark.parametrize("form", FORMS)
def test_without_a_multiplier_fairlog_is_unfairlog_to_the_last_digit(
    form: str, config: FairLogConfig, plain: IPSClassifierConfig, setting: MakeSetting, people: MakePeople
) -> None:
    given = setting([0, 1], f"protocol.fairlog_penalty={form}", "schedule.warm_up_epochs=3")
    crowd = people(40)
    learners: list[IPSClassifier] = [
        FairLog(replace(config, lambda_=0.0, clf_dropout=0.2), given),
        UnfairLog(replace(plain, clf_dropout=0.2), given),
    ]
    start = [parameter.detach().clone() for parameter in learners[0].parameters()]
    for learner in learners:
        warm_up(learner, decided(crowd, 2))
        for _ in range(4):
            learner.update(decided(crowd, 2))
    fair, unfair = (list(learner.parameters()) for learner in learners)
    assert all(torch.equal(a, b) for a, b in zip(fair, unfair, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(fair, start, strict=True))
    x, s = crowd.x.expand(2, -1, -1), crowd.s.expand(2, -1)
    propensities = [learner.propensity(x, s, SeedStreams([0, 1], "p")) for learner in learners]
    assert torch.equal(*propensities)


@pytest.mark.parametrize("form", FORMS)
def test_loss_is_the_risk_and_the_penalty_on_the_gap_of_all_rows(
    form: str, config: FairLogConfig, setting: MakeSetting, unequal_groups: People
) -> None:
    config = replace(config, lambda_=20.0)
    learner = FairLog(config, two_features(setting([0, 1], f"protocol.fairlog_penalty={form}")))
    batch = decided(unequal_groups, 2)
    with torch.no_grad():
        logit = learner.classifier.logit(batch.x, batch.s)
        measured = learner.loss(batch) - classification_risk(logit, batch, learner.setting)
    gap = dpu(torch.sigmoid(logit), batch.s)
    share = (batch.s > 0).float().mean(-1)
    assert (gap > 0.01).all()
    assert (share > 0.55).all()
    expected = {
        "squared": 0.5 * (config.lambda_ * gap) ** 2,
        "fairtorch": 2.0 * (config.lambda_ * share * gap) ** 2,
    }[form]
    torch.testing.assert_close(measured, expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("present", [1.0, -1.0])
def test_a_minibatch_without_one_of_the_groups_has_no_penalty(
    present: float, form: str, config: FairLogConfig, setting: MakeSetting, people: MakePeople
) -> None:
    learner = FairLog(replace(config, lambda_=100.0), setting([0, 1], f"protocol.fairlog_penalty={form}"))
    batch = decided(people(20), 2)
    batch = replace(batch, s=torch.stack([torch.full((20,), present), batch.s[1]]))
    loss = learner.loss(batch)
    risk = classification_risk(learner.classifier.logit(batch.x, batch.s), batch, learner.setting)
    assert loss[0] == risk[0]
    assert loss[1] > risk[1]
    weights = list(learner.parameters())
    of_loss, of_risk = (torch.autograd.grad(values.sum(), weights) for values in (loss, risk))
    for with_penalty, without in zip(of_loss, of_risk, strict=True):
        assert with_penalty.isfinite().all()
        torch.testing.assert_close(with_penalty[0], without[0], rtol=0, atol=0)
    # The output bias shifts the acceptance of the other replicate's groups by different amounts.
    assert (of_loss[-1][1] != of_risk[-1][1]).all()


@pytest.mark.parametrize("minibatches", ["all", "labelled"])
def test_a_minibatch_without_labels_has_a_penalty_unless_only_labelled_ones_have(
    minibatches: str, config: FairLogConfig, setting: MakeSetting, people: MakePeople
) -> None:
    given = setting([0, 1], f"protocol.fairlog_minibatches={minibatches}")
    learner = FairLog(replace(config, lambda_=100.0), given)
    batch = decided(people(20), 2)
    batch = replace(batch, accepted=torch.stack([torch.zeros(20, dtype=torch.bool), batch.accepted[1]]))
    loss = learner.loss(batch)
    risk = classification_risk(learner.classifier.logit(batch.x, batch.s), batch, learner.setting)
    assert (loss[0] > risk[0]) == (minibatches == "all")
    assert loss[1] > risk[1]


@pytest.mark.parametrize("bound", [None, 100.0, 4.0])
def test_risk_is_its_closed_form(
    bound: float | None, plain: IPSClassifierConfig, setting: MakeSetting, people: MakePeople
) -> None:
    cost = 0.3
    word = "null" if bound is None else str(bound)
    learner = UnfairLog(plain, setting([0, 1], f"cost.value={cost}", f"protocol.max_ips_weight={word}"))
    batch = decided(people(30), 2)
    with torch.no_grad():
        measured = learner.loss(batch)
        logits = learner.classifier.logit(batch.x, batch.s).double()
    for k in range(2):
        terms = []
        for row in np.flatnonzero(batch.accepted[k]):
            q, y, pi = (values[k, row].item() for values in (expit(logits), batch.label, batch.propensity))
            weight = 1 / pi if bound is None else min(1 / pi, bound)
            terms.append(-weight * (cost * (1 - y) * np.log(1 - q) + (1 - cost) * y * np.log(q)))
        assert measured[k].item() == pytest.approx(np.mean(terms), rel=1e-4)


def test_with_nobody_accepted_there_is_nothing_to_learn_but_to_treat_groups_alike(
    config: FairLogConfig, plain: IPSClassifierConfig, setting: MakeSetting, unequal_groups: People
) -> None:
    given = two_features(setting([0]))
    batch = decided(unequal_groups)
    nobody = nobody_of(batch)
    unfair, fair = UnfairLog(plain, given), FairLog(config, given)
    start = [parameter.detach().clone() for parameter in unfair.parameters()]

    def gap() -> Tensor:
        return dpu(fair.propensity(batch.x, batch.s, SeedStreams([0], "p")), batch.s)

    before = gap()
    for _ in range(10):
        unfair.update(nobody)
        fair.update(nobody)
    assert unfair.loss(nobody).tolist() == [0.0]
    assert all(torch.equal(a, b) for a, b in zip(unfair.parameters(), start, strict=True))
    assert all(parameter.isfinite().all() for parameter in fair.parameters())
    assert gap() < 0.5 * before


def dpu_after_training(learner: IPSClassifier, people: People) -> Tensor:
    rows = people.rows(torch.arange(len(people)).expand(2, -1))
    half = torch.full(rows.s.shape, 0.5)
    accepted = SeedStreams([0, 1], "decisions").uniform(len(people)) < half
    for _ in range(120):
        learner.update(Decided.reveal(rows, half, accepted))
    return dpu(learner.propensity(rows.x, rows.s, SeedStreams([0, 1], "p")), rows.s)


@pytest.mark.parametrize("form", FORMS)
def test_a_large_multiplier_makes_fairlog_treat_unequal_groups_alike(
    form: str, config: FairLogConfig, plain: IPSClassifierConfig, setting: MakeSetting, unequal_groups: People
) -> None:
    given = two_features(setting([0, 1], f"protocol.fairlog_penalty={form}"))
    assert (dpu_after_training(FairLog(replace(config, lambda_=20.0), given), unequal_groups) < 0.1).all()
    assert form != FORMS[0] or (dpu_after_training(UnfairLog(plain, given), unequal_groups) > 0.6).all()


@pytest.mark.parametrize("method", [FairLog, UnfairLog])
def test_a_deterministic_policy_accepts_from_one_half_on_whatever_the_cost(
    method: type[IPSClassifier], config: FairLogConfig, setting: MakeSetting, people: MakePeople
) -> None:
    crowd = people(60)
    given = setting([0, 1], "cost.value=0.2")
    x, s, streams = crowd.x.expand(2, -1, -1), crowd.s.expand(2, -1), SeedStreams([0, 1], "p")
    sampled = method(config, given).propensity(x, s, streams)
    decisions = method(replace(config, decision="deterministic"), given).propensity(x, s, streams)
    assert ((sampled > 0.2) & (sampled < 0.5)).any(), "people on whom a threshold of c would differ"
    assert (decisions == (sampled >= 0.5).float()).all()
    assert 0 < decisions.mean() < 1


def test_warm_up_is_as_long_as_told_and_leaves_a_fresh_optimiser(
    config: FairLogConfig, setting: MakeSetting, people: MakePeople
) -> None:
    learner = FairLog(config, setting([0], "schedule.warm_up_epochs=3"))
    told = warm_up(learner, decided(people(20)))
    assert len(told) == 3
    assert all(np.isfinite(now["loss"]) for now in told)
    assert all(steps == 0 for steps in learner.optimiser.steps)
