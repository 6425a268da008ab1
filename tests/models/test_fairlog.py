import functools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from fairall.data.people import Decided
from fairall.metrics import dpu
from fairall.models.classifier import IPSClassifier
from fairall.models.fairlog import gap_of_groups
from fairall.models.objectives import classification_risk
from tests.conftest import MakePeople
from tests.models.conftest import built, decided_on, setting_of, typed_config

FORMS = {"squared": lambda gap, share: 0.5 * gap**2, "fairtorch": lambda gap, share: 2 * (share * gap) ** 2}
decided = functools.partial(decided_on, least=0.005, first=0.005)


def small(model: str, *words: str, features: str = "abcde", **changes: Any) -> Any:
    return built(
        model, [0, 1], *words, features=features, **{"learning_rate": 0.01, "clf_dropout": 0.0, **changes}
    )


def risk_of(learner: IPSClassifier, batch: Decided) -> torch.Tensor:
    return classification_risk(learner.classifier.logit(batch.x, batch.s), batch, learner.setting)


@pytest.mark.parametrize(("form", "n_groups"), [("squared", 2), ("fairtorch", 2), ("squared", 3)])
@pytest.mark.parametrize("multiplier", [0.0, 20.0])
def test_loss_is_the_risk_and_the_penalty_on_the_gap_of_all_rows(
    multiplier: float, form: str, n_groups: int, people: MakePeople
) -> None:
    words = "model=fairlog", f"protocol.fairlog_penalty={form}", f"model.lambda_={multiplier}"
    setting, config = (
        setting_of([0, 1], *words, features="abcde", n_groups=n_groups),
        typed_config(*words).model,
    )
    learner, batch = replace(config, clf_dropout=0.0).build(setting), decided(people(44), 2)
    score = learner.score(batch.x, batch.s, learner.streams)
    gap, share = dpu(score, batch.s), (batch.s > 0).float().mean(-1)
    if n_groups > 2:
        batch = replace(batch, s=torch.arange(44.0).remainder(3).expand(2, -1))
        gap = gap_of_groups(learner.score(batch.x, batch.s, learner.streams), batch.s.long())
    assert (gap > 0.001).all()
    expected = risk_of(learner, batch) + FORMS[form](multiplier * gap, share)
    torch.testing.assert_close(learner.loss(batch), expected)


@pytest.mark.parametrize(
    ("name", "value", "minibatches", "penalised"),
    [
        ("s", 1.0, "all", False),
        ("s", -1.0, "all", False),
        ("accepted", False, "labelled", False),
        ("accepted", False, "all", True),
    ],
)
def test_which_minibatches_have_a_penalty(
    name: str, value: Any, minibatches: str, penalised: bool, people: MakePeople
) -> None:
    learner = small("fairlog", f"protocol.fairlog_minibatches={minibatches}", lambda_=100.0)
    batch = decided(people(20), 2)
    getattr(batch, name)[0] = value
    values = learner.loss(batch), risk_of(learner, batch)
    assert (values[0] > values[1]).tolist() == [penalised, True]
    weights = list(learner.parameters())
    for fair, unfair in zip(*(torch.autograd.grad(of.sum(), weights) for of in values), strict=True):
        assert fair.isfinite().all()
        assert penalised or torch.equal(fair[0], unfair[0])
    assert (fair[1] != unfair[1]).all()  # of the bias, by which groups gain differently


@pytest.mark.parametrize("bound", ["null", 100.0, 4.0])
def test_risk_is_its_closed_form(bound: Any, people: MakePeople) -> None:
    cost = 0.3
    learner = small("unfairlog", f"cost.value={cost}", f"protocol.max_ips_weight={bound}")
    batch = decided(people(30), 2)
    q = learner.score(batch.x, batch.s, learner.streams).double().numpy()
    y, pi, accepted = batch.label.numpy(), batch.propensity.numpy(), batch.accepted.numpy()
    weight = accepted * np.minimum(1 / pi, np.inf if bound == "null" else bound)
    loss = -weight * (cost * (1 - y) * np.log(1 - q) + (1 - cost) * y * np.log(q))
    np.testing.assert_allclose(learner.loss(batch).detach(), loss.sum(1) / accepted.sum(1), rtol=1e-4)
