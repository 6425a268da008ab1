from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairall import run
from fairall.config.compose import compose_config, typed_config
from fairall.data.features import Feature, Kind, Schema
from fairall.data.people import People, float32
from fairall.data.prepared import PreparedData
from fairall.errors import FairAllError
from fairall.models import estimators
from fairall.models import oracle as of_oracle
from fairall.models.learner import Setting
from fairall.models.logistic import EXACT, ridge
from fairall.models.oracle import CHOOSING, FOLDS, STRENGTHS, Oracle, mixed_folds, oracles, selected_strength
from fairall.runtime.randomness import SeedStreams
from tests.conftest import cache_in, imported, no_cache
from tests.models.conftest import most_within, rates_of

SCHEMA = Schema([Feature("income", Kind.REAL), Feature("town", Kind.CATEGORICAL, (0.0, 1.0, 2.0))])


def logistic_people(n: int) -> tuple[People, np.ndarray]:
    """People of a logistic population in which S = +1 is better off, and their p."""
    draw = np.random.default_rng(7)
    s = np.where(draw.uniform(size=n) < 0.6, 1.0, -1.0)
    income, town = draw.normal(size=n), draw.integers(0, 3, n)
    p = expit(1.5 * income + np.array([-1.0, 0.0, 0.7])[town] + 0.8 * s - 0.2)
    columns = np.column_stack([income, town]), s, draw.uniform(size=n) < p
    return People(*map(float32, columns)), p


def setting(cost: float = 0.5) -> Setting:
    return Setting.of(SCHEMA, typed_config("seeds=1", f"cost.value={cost}"))


def prepared(credit: PreparedData, train: People) -> PreparedData:
    """Data with these training people, and new ones for the other roles."""
    new, _ = logistic_people(1001)
    new = new.rows(torch.arange(1001).expand(len(train.s), -1)) if train.by_replicate else new
    return replace(credit, train=train, validation=new, test=new)


@pytest.mark.parametrize("cost", [0.02, 0.3, 0.8, 0.995])
def test_it_earns_what_can_be_earned_and_with_parity_what_a_linear_program_does(
    cost: float, credit: PreparedData
) -> None:
    people, p = logistic_people(6000)
    found = oracles(prepared(credit, people), setting(cost), no_cache())
    estimate = found["oracle"].log_odds(people.x, people.s).sigmoid().numpy()
    np.testing.assert_allclose(estimate, p, atol=0.06)
    rates = rates_of(np.ones_like(p), people.s.numpy())
    for name, gap in (("oracle", 1.0), ("oracle_fair", 0.0)):
        pi = found[name].propensity(people.x, people.s, SeedStreams([0], "none")).double().numpy()
        assert pi @ (estimate - cost) == pytest.approx(most_within(estimate - cost, rates, gap), abs=1e-3)
        assert np.ptp(rates @ pi) < gap + 1e-7
        assert gap == 0.0 or {*pi} <= {0.0, 1.0}


def test_runs_with_the_same_people_share_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, credit: PreparedData
) -> None:
    fits = list[int]()

    def counted(x: np.ndarray, label: np.ndarray) -> float:
        fits.append(len(label))
        return selected_strength(x, label)

    monkeypatch.setattr(of_oracle, "selected_strength", counted)
    people, _ = logistic_people(400)
    cases = (
        (people, 0.3),
        (people, 0.6),
        (people.rows(torch.arange(300)), 0.3),
        (replace(people, label=people.label.roll(1)), 0.3),
    )
    one, same, *others = (
        oracles(prepared(credit, own), setting(cost), cache_in(tmp_path))["oracle"] for own, cost in cases
    )
    assert fits == [400, 300, 400]
    assert not torch.equal(one.threshold, same.threshold)
    states = [of.fitted.state_dict()["_extra_state"] for of in (one, same, *others)]
    assert [torch.equal(states[0], of) for of in states] == [True, True, False, False]


def test_each_split_has_fits_to_all_folds_but_one_with_the_penalty_of_the_first_and_new_people_their_mean(
    tmp_path: Path, credit: PreparedData
) -> None:
    people = logistic_people(83)[0].rows(torch.arange(80).view(2, 40).repeat(2, 1))
    of_splits = [people.replicate(k) for k in range(2)]
    several = replace(setting(), seeds=[0, 1, 2, 3], splits=2)
    oracle = oracles(prepared(credit, people), several, cache_in(tmp_path))["oracle"]
    columns = [oracle.inputs.with_s(own.x, own.s).double().numpy() for own in of_splits]
    labels = [own.label.numpy() for own in of_splits]
    strengths = [selected_strength(*own) for own in zip(columns, labels, strict=True)]
    assert strengths[0] != strengths[1]  # else this test could not tell
    others = logistic_people(183)[0].rows(torch.arange(83, 183).expand(4, -1))
    new = oracle.log_odds(others.x, others.s).numpy()
    estimates = oracle.log_odds(people.x, people.s).numpy()
    for k, (x, label) in enumerate(zip(columns, labels, strict=True)):
        fold = mixed_folds(label)
        weights = []
        for number in range(FOLDS):
            own = fold == number
            *slopes, intercept = ridge(x[~own], label[~own], strengths[0])
            np.testing.assert_allclose(estimates[[k, k + 2]][:, own], [x[own] @ slopes + intercept] * 2)
            weights.append([*slopes, intercept])
        # Of a regression the mean of the log odds is that of the weights.
        *slopes, intercept = np.mean(weights, axis=0)
        columns_of_new = oracle.inputs.with_s(others.x[k], others.s[k]).double().numpy()
        np.testing.assert_allclose(new[[k, k + 2]], [columns_of_new @ slopes + intercept] * 2)


def test_parity_holds_for_new_people_where_trees_are_certain(credit: PreparedData) -> None:
    people, _ = logistic_people(9000)
    # Trees find the label exactly; those of the folds end at other log odds for people who all have label 1.
    label = (people.x[:, 0].abs() > 0.6) | (people.s < 0)
    people = replace(people, label=label.float())
    train, new = people.rows(torch.arange(3000)), people.rows(torch.arange(3000, 9000))
    found = oracles(replace(prepared(credit, train), validation=new), setting(), no_cache())["oracle_fair"]
    pi = found.propensity(new.x, new.s, SeedStreams([0], "none")).double().numpy()
    assert np.ptp(rates_of(np.ones(6000), new.s.numpy()) @ pi.ravel()) < 0.05


def test_what_it_cannot_be_fitted_to(credit: PreparedData) -> None:
    people, _ = logistic_people(50)
    one = (torch.arange(50) > 48).float()
    for changed, reason in (
        ({"label_weight": (torch.arange(50) > 9).float()}, "whose labels have to be known, two"),
        ({"label": torch.ones(50)}, "whose labels have to be known, two"),
        ({"label": one}, "whose labels have to be known, two"),
        ({"s": -torch.ones(50)}, "a group has nobody among the training rows"),
    ):
        data = prepared(credit, replace(people, **changed))
        with pytest.raises(FairAllError, match=f"model=oracle_fair.*{reason}"):
            Oracle(typed_config("model=oracle_fair").model, setting()).pretrain(
                data, no_cache(), lambda **_: None
            )


def test_nobody_who_is_remembered_is_scored_again(
    monkeypatch: pytest.MonkeyPatch, credit: PreparedData
) -> None:
    people, _ = logistic_people(300)
    new = logistic_people(340)[0].rows(torch.arange(300, 340))
    richer = new.x + torch.tensor([0.5, 0.0])
    oracle = oracles(prepared(credit, people), setting(), no_cache())["oracle"]
    before = oracle.log_odds(new.x, new.s)
    scored = list[int]()

    def counted(model: Any, x: np.ndarray) -> np.ndarray:
        scored.append(len(x))
        return estimators.log_odds(model, x)

    monkeypatch.setattr(of_oracle, "log_odds", counted)
    oracle.log_odds(people.x, people.s)  # they have the estimates of fits without them
    assert not scored
    oracle.remember([replace(new, counterfactual_x=richer)], no_cache())
    assert sum(scored) == FOLDS * 80
    stacked = oracle.log_odds(new.x.expand(3, -1, -1), new.s.expand(3, -1))
    torch.testing.assert_close(stacked, before.expand(3, -1))
    oracle.log_odds(richer, -new.s)
    assert sum(scored) == FOLDS * 80


@pytest.mark.whole
@pytest.mark.parametrize("model", ["fairlog", "fairall_I_II dataset=synthetic"])
def test_a_run_imports_what_it_needs(tmp_path: Path, model: str) -> None:
    given = f"model={model} preset=quick seeds=1 tracking.enabled=false"
    words = [*given.split(), f"outputs_dir={tmp_path}"]
    run(compose_config(*words))  # the oracle is fitted once to a data set, which needs scikit-learn
    words.append("force=true")
    code = f"sys.argv += {words}\nfrom fairall.__main__ import main; assert main() == 0"
    others = "sklearn scipy.stats mlflow optuna aif360 torch._dynamo torch._inductor sympy".split()
    assert imported(code, "numba", *others)[1] == ([] if model == "fairlog" else ["numba"])
    assert len(list(tmp_path.rglob("summary.json"))) == 1


# The regression


def simulated(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Columns in any unit, one of them constant, and labels."""
    draw = np.random.default_rng(3)
    x = draw.normal(size=(600, 12))
    logit = x @ draw.normal(size=12)
    if kind == "indicators":
        x[:, 6:] = draw.uniform(size=(600, 6)) < 0.02
    elif kind == "long tails":
        x = np.exp(2 * x)
    elif kind == "rare":
        logit -= 6
    elif kind == "few people":
        x, logit = x[:20], logit[:20]
    label = draw.uniform(size=len(x)) < expit(logit * (kind != "noise"))
    if kind == "separated":
        label = x[:, 0] > 0.5
    elif kind == "two of a label":
        label = logit >= np.sort(logit)[-2]
    return np.column_stack([x * 10.0 ** np.arange(-6, 6), np.full(len(x), 0.37)]), label.astype(float)


@pytest.mark.parametrize(
    "kind",
    ["usual", "noise", "indicators", "long tails", "rare", "few people", "separated", "two of a label"],
)
def test_strength_and_weights_are_those_of_scikit_learn(kind: str) -> None:
    x, label = simulated(kind)
    strength = selected_strength(x, label)
    model = make_pipeline(StandardScaler(), LogisticRegression(solver="newton-cholesky", tol=1e-10))
    grid = {"logisticregression__C": STRENGTHS}
    folds = min(5, *np.bincount(label.astype(int)))
    search = GridSearchCV(model, grid, scoring="neg_log_loss", cv=folds).fit(x, label)
    assert search.best_params_ == {"logisticregression__C": strength}
    scaler, logistic = search.best_estimator_
    *slopes, intercept = ridge(x, label, strength)
    np.testing.assert_allclose(slopes * scaler.scale_, logistic.coef_[0], rtol=0, atol=1e-8)
    assert intercept + slopes @ scaler.mean_ == pytest.approx(logistic.intercept_[0], abs=1e-8)


def test_rounding_of_the_loss_does_not_stop_a_fit_early() -> None:
    for seed in range(100):
        generator = np.random.default_rng(seed)
        x = np.column_stack([generator.poisson(3, 150), generator.integers(0, 2, 150)]).astype(float)
        label = (generator.random(150) < 0.4).astype(float)
        weights = ridge(x, label, 1.0, standardises=False)
        residual = expit(x @ weights[:-1] + weights[-1]) - label
        assert np.abs(np.append(x.T @ residual + weights[:-1], residual.sum())).max() <= 150 * EXACT


def test_the_strength_is_the_strongest_where_the_people_that_choose_it_have_one_label() -> None:
    x = np.random.default_rng(0).normal(size=(CHOOSING + 5, 1))
    label = (np.arange(len(x)) >= CHOOSING).astype(float)
    assert selected_strength(x, label) == STRENGTHS[0]


@pytest.mark.parametrize("rarer", [2, 3, 40])
def test_folds_have_the_same_share_of_both_labels(rarer: int) -> None:
    label = (np.arange(103) < rarer).astype(float)
    fold = mixed_folds(label)
    assert fold.max() + 1 == min(rarer, FOLDS)
    for of_label in (fold[label == 0], fold[label == 1]):
        assert np.ptp(np.bincount(of_label)) <= 1
