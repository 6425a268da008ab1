from dataclasses import replace
from pathlib import Path

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
from fairall.config.schema import Config
from fairall.data.dataset import dataset
from fairall.data.features import Feature, Kind, Schema
from fairall.data.load import load_dataset
from fairall.data.people import People
from fairall.data.prepared import PreparedData
from fairall.errors import FairAllError
from fairall.metrics import dpu
from fairall.models import oracle as of_oracle
from fairall.models.learner import Setting
from fairall.models.logistic import EXACT, ridge
from fairall.models.oracle import (
    CHOOSING,
    STRENGTHS,
    Oracle,
    mixed_folds,
    oracles,
    selected_strength,
)
from fairall.runtime.randomness import SeedStreams
from tests.conftest import cache_in, imported, no_cache

SCHEMA = Schema([Feature("income", Kind.REAL), Feature("town", Kind.CATEGORICAL, (0.0, 1.0, 2.0))])
NOTHING = SeedStreams([0], "none")
FIELDS = ("x", "s", "label")


def logistic_people(n: int, *, coarse: bool = False) -> tuple[People, np.ndarray]:
    """People of a logistic population in which S = +1 is better off, and their p; few kinds if `coarse`."""
    generator = np.random.default_rng(7)
    s = np.where(generator.uniform(size=n) < 0.6, 1.0, -1.0)
    income, town = generator.normal(size=n), generator.integers(0, 3, n)
    if coarse:
        income = np.sign(income)
    p = expit(1.5 * income + np.array([-1.0, 0.0, 0.7])[town] + 0.8 * s - 0.2)
    label = generator.uniform(size=n) < p
    x = torch.tensor(np.column_stack([income, town]), dtype=torch.float32)
    s_and_label = (torch.tensor(values, dtype=torch.float32) for values in (s, label))
    return People(x, *s_and_label), p


def validation_of(people: People) -> People:
    """Validation people of the same population, for each replicate of `people`."""
    new, _ = logistic_people(1001)
    return new.rows(torch.arange(1001).expand(len(people.s), -1)) if people.by_replicate else new


def setting(cost: float) -> Setting:
    config = typed_config("seeds=1", f"cost.value={cost}")
    return Setting.of(SCHEMA, config)


def cross_validated(x: np.ndarray, label: np.ndarray) -> np.ndarray:
    return ridge(x, label, selected_strength(x, label))


def accepted(oracle: Oracle, people: People) -> torch.Tensor:
    return oracle.propensity(people.x, people.s, NOTHING)


def fitted(*words: str) -> tuple[Config, Oracle, PreparedData]:
    config = typed_config(*words)
    data = dataset(config.dataset).prepare()
    learner = Oracle(config.model, Setting.of(data.schema, config))
    learner.pretrain(data, no_cache(), lambda **_: None)
    return config, learner, data


@pytest.mark.parametrize("cost", [0.3, 0.5, 0.8])
def test_it_earns_what_can_be_earned(cost: float) -> None:
    people, p = logistic_people(20_000)
    free, equal = oracles(people, validation_of(people), setting(cost), no_cache()).values()
    np.testing.assert_allclose(free.log_odds(people.x, people.s).sigmoid(), p, atol=0.03)
    best = np.maximum(p - cost, 0).mean()
    earned = (accepted(free, people).numpy() * (p - cost)).mean()
    assert earned == pytest.approx(best, abs=0.002)
    assert set(accepted(free, people).unique().tolist()) == {0.0, 1.0}
    with_parity = (accepted(equal, people).numpy() * (p - cost)).mean()
    assert with_parity < earned


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("cost", [0.02, 0.3, 0.5, 0.8, 0.995])
def test_with_parity_the_rates_are_equal_and_no_other_common_rate_earns_more(
    cost: float, coarse: bool
) -> None:
    people, _ = logistic_people(1500, coarse=coarse)
    equal = oracles(people, validation_of(people), setting(cost), no_cache())["oracle_fair"]
    decided = accepted(equal, people)
    assert dpu(decided.double().unsqueeze(0), people.s).item() < 1e-7
    p = equal.log_odds(people.x, people.s).sigmoid().numpy()
    earned = (decided.numpy() * (p - cost)).sum()
    # The best people of each group at any other rate; a person may be accepted in part.
    others = []
    for rate in np.linspace(0, 1, 101):
        total = 0.0
        for sign in (-1, 1):
            own = np.sort(p[people.s.numpy() == sign])[::-1]
            share = np.clip(rate * len(own) - np.arange(len(own)), 0, 1)
            total += (share * (own - cost)).sum()
        others.append(total)
    assert earned >= max(others) - 1e-3
    assert max(others) == pytest.approx(earned, abs=0.5)
    if coarse and cost == 0.5:
        assert ((decided > 0) & (decided < 1)).any()


@pytest.mark.parametrize(("data_set", "gap"), [("credit", 0.02), ("synthetic", 0.2)])
def test_on_training_rows_of_a_data_set(data_set: str, gap: float) -> None:
    _, free, data = fitted(f"dataset={data_set}", "model=oracle", "seeds=2")
    _, equal, _ = fitted(f"dataset={data_set}", "model=oracle_fair", "seeds=2")
    people = data.train
    both = [dpu(accepted(one, people).double().unsqueeze(0), people.s).item() for one in (free, equal)]
    assert both[0] > gap
    assert both[1] < 1e-7
    # One fit for all seeds, in rows of any number.
    stacked = equal.propensity(people.x.expand(2, -1, -1), people.s.expand(2, -1), NOTHING)
    assert torch.equal(stacked[0], stacked[1])
    assert torch.equal(stacked[0][:7], accepted(equal, people.rows(torch.arange(7))))


def test_a_fitted_one_can_be_saved() -> None:
    people, _ = logistic_people(400, coarse=True)
    for name, oracle in oracles(people, validation_of(people), setting(0.5), no_cache()).items():
        twin = Oracle(oracle.config, setting(0.5))
        twin.load_training_state(oracle.training_state())
        assert torch.equal(accepted(twin, people), accepted(oracle, people)), name


def test_runs_with_the_same_people_share_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fits = []

    def counted(x: np.ndarray, label: np.ndarray) -> float:
        fits.append(len(x))
        return selected_strength(x, label)

    monkeypatch.setattr(of_oracle, "selected_strength", counted)
    people, _ = logistic_people(400)
    cache = cache_in(tmp_path)
    known = validation_of(people)
    first, second = (oracles(people, known, setting(cost), cache)["oracle"] for cost in (0.3, 0.6))
    assert fits == [400]
    assert torch.equal(first.weight, second.weight)
    assert not torch.equal(first.threshold, second.threshold)
    # Others, the same with a label changed, and features of another encoding have fits of their own.
    flipped = people.label.clone()
    flipped[0] = 1 - flipped[0]
    for changed in (people.rows(torch.arange(300)), replace(people, label=flipped)):
        other = oracles(changed, validation_of(changed), setting(0.3), cache)["oracle"]
        assert not torch.equal(other.weight, first.weight)
    counts = Schema([Feature("income", Kind.REAL), Feature("town", Kind.REAL)])
    of_counts = oracles(people, known, replace(setting(0.3), schema=counts), cache)["oracle"]
    assert of_counts.weight.shape[-1] == 4
    assert fits == [400, 300, 400, 400]


def test_each_split_has_a_fit_with_the_penalty_of_the_first(tmp_path: Path) -> None:
    of_splits = [logistic_people(n)[0].rows(torch.arange(40)) for n in (40, 41)]
    people = People(*(torch.stack([getattr(of_splits[e % 2], name) for e in range(4)]) for name in FIELDS))
    several = replace(setting(0.5), seeds=[0, 1, 2, 3], splits=2)
    oracle = oracles(people, validation_of(people), several, cache_in(tmp_path))["oracle"]
    assert not oracle.boosted
    columns = [oracle._inputs(own.x, own.s, boosted=False) for own in of_splits]
    labels = [own.label.numpy() for own in of_splits]
    strengths = [selected_strength(*own) for own in zip(columns, labels, strict=True)]
    assert strengths[0] != strengths[1]  # else this test could not tell
    for k in range(2):
        for number, weight in enumerate(oracle.weight[k]):
            rows = mixed_folds(labels[k]) != number
            known = ridge(columns[k][rows], labels[k][rows], strengths[0])
            np.testing.assert_array_equal(weight, known)
    new = logistic_people(300)[0]
    log_odds = oracle.log_odds(new.x.expand(4, -1, -1), new.s.expand(4, -1))
    assert torch.equal(log_odds[:2], log_odds[2:])
    assert not torch.equal(log_odds[0], log_odds[1])
    assert len(list((tmp_path / "oracles").glob("*.pt"))) == 1


def test_what_it_cannot_be_fitted_to() -> None:
    people, _ = logistic_people(50)
    config, data = typed_config("model=oracle_fair"), load_dataset("credit").prepare()

    def refused(train: People, reason: str) -> None:
        with pytest.raises(FairAllError, match=reason):
            Oracle(config.model, setting(0.5)).pretrain(
                replace(data, train=train, validation=train), no_cache(), lambda **_: None
            )

    weight = (torch.arange(50) > 9).float()
    refused(replace(people, label_weight=weight), "labels of all 50 training rows, and 10 are unknown")
    refused(replace(people, label=torch.ones(50)), "everybody has the same label")
    refused(replace(people, s=-torch.ones(50)), r"all training rows have s = -1")


def test_the_fit_finds_the_slopes_of_many_people_in_any_unit() -> None:
    draw = np.random.default_rng(0)
    unit = 10.0 ** np.arange(3)
    z = draw.normal(2.0, 1.0, (40_000, 3))
    label = draw.uniform(size=len(z)) < expit(0.5 + (z - 2.0) @ [1.0, -0.5, 0.0])
    weight = cross_validated(z * unit, label.astype(float))
    np.testing.assert_allclose(weight[:-1] * unit, [1.0, -0.5, 0.0], atol=0.05)
    assert weight[-1] == pytest.approx(0.5 - 2.0 + 1.0, abs=0.15)
    np.testing.assert_array_equal(weight, cross_validated(z * unit, label.astype(float)))


def test_noise_is_penalised() -> None:
    draw = np.random.default_rng(0)
    x, label = draw.normal(size=(200, 60)), (draw.uniform(size=200) < 0.5).astype(float)
    assert np.abs(cross_validated(x, label)[:-1]).max() < 0.05


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
    label = draw.uniform(size=len(x)) < expit(logit)
    if kind == "separated":
        label = x[:, 0] > 0.5
    return np.column_stack([x * 10.0 ** np.arange(-6, 6), np.full(len(x), 0.37)]), label.astype(float)


KINDS = ("usual", "indicators", "long tails", "rare", "few people", "separated")


@pytest.mark.parametrize("kind", KINDS)
def test_the_fit_minimises_the_penalised_loss(kind: str) -> None:
    x, label = simulated(kind)
    strength = selected_strength(x, label)
    weight = ridge(x, label, strength)
    scale = np.append(x.std(0)[:-1], 1.0)  # the last column is constant
    z = np.column_stack([(x - x.mean(0)) / scale, np.ones(len(x))])
    slopes = weight[:-1] * scale
    of_z = np.append(slopes, weight[-1] + weight[:-1] @ x.mean(0))
    gradient = z.T @ (expit(z @ of_z) - label) + np.append(slopes / strength, 0.0)
    assert np.abs(gradient / len(x)).max() < 1e-8


def test_rounding_of_the_loss_does_not_stop_a_fit_early() -> None:
    for seed in range(100):
        generator = np.random.default_rng(seed)
        x = np.column_stack([generator.poisson(3, 150), generator.integers(0, 2, 150)]).astype(float)
        label = (generator.random(150) < 0.4).astype(float)
        weights = ridge(x, label, 1.0, standardises=False)
        residual = expit(x @ weights[:-1] + weights[-1]) - label
        assert np.abs(np.append(x.T @ residual + weights[:-1], residual.sum())).max() <= 150 * EXACT


@pytest.mark.parametrize("kind", KINDS)
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


@pytest.mark.parametrize("rarer", [1, 3, 40])
def test_folds_have_the_same_share_of_both_labels(rarer: int) -> None:
    label = (np.arange(103) < rarer).astype(float)
    fold = mixed_folds(label)
    assert fold.max() + 1 == min(rarer, 5)
    for of_label in (fold[label == 0], fold[label == 1]):
        sizes = np.bincount(of_label)
        assert sizes.max() - sizes.min() <= 1


def test_nobody_who_is_remembered_is_scored_again(monkeypatch: pytest.MonkeyPatch) -> None:
    people, _ = logistic_people(300)
    new = logistic_people(340)[0].rows(torch.arange(300, 340))
    richer = new.x + torch.tensor([0.5, 0.0])
    oracle = oracles(people, validation_of(people), setting(0.5), no_cache())["oracle"]
    before = oracle.log_odds(new.x, new.s)
    scored, of_fold = [], Oracle._of_fold

    def counted(self: Oracle, e: int, fold: int, x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        scored.extend(x.tolist())
        return of_fold(self, e, fold, x, s)

    monkeypatch.setattr(Oracle, "_of_fold", counted)
    oracle.log_odds(people.x, people.s)  # they have the estimates of fits without them
    assert not scored
    oracle.remember([replace(new, counterfactual_x=richer)], no_cache())
    assert sorted(scored) == sorted([*new.x.tolist(), *richer.tolist()])
    stacked = oracle.log_odds(new.x.expand(3, -1, -1), new.s.expand(3, -1))
    torch.testing.assert_close(stacked, before.expand(3, -1))
    oracle.log_odds(richer, -new.s)
    assert len(scored) == 80


@pytest.mark.whole
@pytest.mark.parametrize("model", ["fairlog", "fairall_I_II", "fairall_I_II dataset=synthetic"])
def test_a_run_imports_what_it_needs(tmp_path: Path, model: str) -> None:
    given = f"model={model} preset=quick seeds=1 tracking.enabled=false"
    words = [*given.split(), f"outputs_dir={tmp_path}"]
    run(compose_config(*words))  # the oracle is fitted once to a data set, which needs scikit-learn
    words.append("force=true")
    code = f"sys.argv += {words}\nfrom fairall.__main__ import main; assert main() == 0"
    others = "sklearn scipy.stats mlflow optuna aif360 torch._dynamo torch._inductor sympy".split()
    assert imported(code, "numba", *others)[1] == ([] if model == "fairlog" else ["numba"])
    assert len(list(tmp_path.rglob("summary.json"))) == 1


@pytest.mark.parametrize("positives", [1, 2])
def test_a_constant_column_and_few_labels_of_a_kind(positives: int) -> None:
    x = np.column_stack([np.ones(40), np.arange(40.0)])
    weight = cross_validated(x, (np.arange(40) >= 40 - positives).astype(float))
    assert np.isfinite(weight).all()
    assert weight[1] > 0


def test_the_strength_is_the_strongest_where_the_people_that_choose_it_have_one_label() -> None:
    x = np.random.default_rng(0).normal(size=(CHOOSING + 5, 1))
    label = (np.arange(len(x)) >= CHOOSING).astype(float)
    assert selected_strength(x, label) == STRENGTHS[0]
