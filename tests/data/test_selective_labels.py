"""Populations of which decisions revealed some labels, against a known truth."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import expit
from torch import Tensor

from fairall import metrics
from fairall.data.dataset import TableDataset, dataset
from fairall.data.prepared import PreparedData
from fairall.online.evaluation import UTILITY_ERROR, Evaluator
from fairall.online.initial_policy import DrawnPolicy, DrawnPolicyConfig
from fairall.tables.overlap import effective_sample_size
from tests.conftest import ComposeConfig

COST = 0.5
RECORDED = ["dataset.decision=decision", "dataset.propensity=propensity"]
ESTIMATED = ["dataset.decision=decision", "dataset.drop=[propensity]"]
UNRECORDED = ["dataset.drop=[decision,propensity]"]
Load = Callable[..., TableDataset]


def population(n: int, seed: int) -> pd.DataFrame:
    """People with a known propensity of the logged decision; x decides both on it and on the label."""
    generator = np.random.default_rng(seed)
    s = generator.choice([-1, 1], n)
    x, z = generator.normal(size=n) + 0.3 * s, generator.normal(size=n)
    propensity = expit(x - 0.5 * (s == -1))
    return pd.DataFrame(
        {
            "group": np.where(s == 1, "a", "b"),
            "x": x,
            "z": z,
            "decision": (generator.random(n) < propensity).astype(int),
            "propensity": propensity,
            "label": (generator.random(n) < expit(1.2 * x + 0.5 * z)).astype(float),
        }
    )


def selective(people: pd.DataFrame) -> pd.DataFrame:
    """The same people as a log has them: with the labels of the accepted alone."""
    return people.assign(label=people["label"].where(people["decision"] == 1))


MEANING = ["dataset.label=label", "dataset.positive=1.0", "dataset.sensitive=group", "dataset.advantaged=a"]


@pytest.fixture
def load(tmp_path: Path, compose_config: ComposeConfig) -> Load:
    def loaded(people: pd.DataFrame, *words: str) -> TableDataset:
        path = tmp_path / "people.csv"
        people.to_csv(path, index=False)
        config = compose_config("dataset=csv", "dataset.path=x", *MEANING, *words).dataset
        source = dataset(replace(config, path=str(path)))
        assert isinstance(source, TableDataset)
        return source

    return loaded


def policy(x: Any, z: Any) -> Any:
    return expit(1.5 * x - 0.5 * z)


def of_scaled(data: PreparedData) -> Callable[[Tensor, Tensor], Tensor]:
    """`policy`, of the features as the data set scaled them."""

    def propensity(x: Tensor, s: Tensor) -> Tensor:
        raw = x.numpy() * data.scaler.scale + data.scaler.mean
        return torch.tensor(policy(raw[..., 0], raw[..., 1]))

    return propensity


@pytest.fixture(scope="module")
def truth() -> dict[str, float]:
    """Measures of `policy` on 200,000 people all of whose labels are known."""
    people = population(200_000, seed=999)
    accepts = policy(people["x"], people["z"])
    advantaged = people["group"] == "a"
    return {
        "utility": float((accepts * (people["label"] - COST)).mean()),
        "dpu": float(abs(accepts[advantaged].mean() - accepts[~advantaged].mean())),
        "accept_all": float(people["label"].mean() - COST),
    }


@pytest.mark.whole
@pytest.mark.parametrize("words", [RECORDED, ESTIMATED], ids=["recorded", "estimated"])
def test_held_out_people_say_what_a_policy_is_worth_in_the_population(
    words: list[str], load: Load, truth: dict[str, float]
) -> None:
    naive = []
    for seed in range(5):
        data = load(selective(population(4000, seed)), *words).prepare()
        measured = Evaluator(data.test, COST, [0]).measure_by(of_scaled(data))
        error = measured[UTILITY_ERROR].item()
        # The table is a sample of the population too, not stratified.
        train = replace(data.train, stratum=None)
        of_train = Evaluator(train, COST, [0]).measure_by(of_scaled(data))[UTILITY_ERROR].item()
        noise = np.hypot(error, of_train * np.sqrt(len(train) / 4000))
        assert abs(measured["utility"].item() - truth["utility"]) < 3 * noise

        # Everybody of the test people counts for what needs no label.
        of_groups = [(data.test.s == s).sum().item() for s in (-1, 1)]
        assert sum(of_groups) == 600
        rates = 0.5 / np.sqrt(of_groups)
        assert abs(measured["dpu"].item() - truth["dpu"]) < 3 * np.hypot(*rates)

        weight = data.test.label_weight
        assert weight is not None
        labelled = data.test.rows((weight > 0).nonzero().squeeze(-1))
        accepts = of_scaled(data)(labelled.x, labelled.s)[None]
        naive.append(metrics.utility(accepts, labelled.label, COST).item())
        # The sizes that weights leave: fewer than the labels, and not next to none.
        assert 100 < effective_sample_size(weight.numpy()) < len(labelled)
    # What the same labels say without weights.
    assert np.mean(naive) > truth["utility"] + 0.03


@pytest.mark.whole
@pytest.mark.parametrize("words", [RECORDED, ESTIMATED], ids=["recorded", "estimated"])
def test_applicants_are_the_population(words: list[str], load: Load, truth: dict[str, float]) -> None:
    for seed in range(5):
        data = load(selective(population(4000, seed)), *words).prepare()
        stream = data.applicants(64, [0, 1])
        drawn = [stream.next() for _ in range(100)]
        label = torch.cat([people.label for people in drawn], dim=1)
        weight = data.train.label_weight
        assert weight is not None
        of_table = 0.5 / np.sqrt(effective_sample_size(weight.numpy()))
        of_draws = 0.5 / np.sqrt(label.shape[1])
        found = label.mean(1) - COST
        assert ((found - truth["accept_all"]).abs() < 3 * np.hypot(of_table, of_draws)).all()
        s = torch.cat([people.s for people in drawn], dim=1)
        assert (s.mean(1).abs() < 6 * np.hypot(of_table, of_draws)).all()


def test_rejected_people_are_in_every_part_without_a_label(load: Load) -> None:
    people = selective(population(1000, 0))
    source = load(people, *RECORDED)
    data, table = source.prepare(), source.table()
    share = float(people["label"].isna().mean())
    for part in (data.train, data.validation, data.test):
        assert (~part.labelled).float().mean().item() == pytest.approx(share, abs=0.01)
        assert not part.label[~part.labelled].any()
    # The order of the pool is random: the warm-up is in the natural proportion too.
    assert (~data.pool_table.labelled[:128]).mean() == pytest.approx(share, abs=0.15)
    accepted = (people["decision"] == 1).to_numpy()
    np.testing.assert_array_equal(table.labelled, accepted)
    assert table.label_weight is not None
    np.testing.assert_allclose(table.label_weight, np.where(accepted, 1 / people["propensity"], 0))


def test_without_logged_decisions_utility_is_of_the_labelled_and_says_so(load: Load) -> None:
    data = load(selective(population(1000, 0)), *UNRECORDED).prepare()
    assert [warning for warning in data.warnings if "are not recorded" in warning]
    assert data.applicants(64, [0]).next().labelled.all()
    labelled = data.test.label[data.test.labelled]
    accepts_all = Evaluator(data.test, COST, [0]).measure_by(lambda x, s: torch.ones_like(s))
    assert accepts_all["utility"].item() == pytest.approx(labelled.mean().item() - COST)


def test_known_labels_need_no_weights_and_honest_logs_no_warning(load: Load) -> None:
    data = load(population(1000, 0), *RECORDED).prepare()
    assert data.train.label_weight is None
    assert (data.notes, data.warnings) == ((), ())
    for seed in range(4):
        for words, origin in ((RECORDED, "recorded"), (ESTIMATED, "estimated")):
            data = load(selective(population(2000, seed)), *words).prepare()
            assert data.warnings == ()
            (note,) = data.notes
            weight = data.test.label_weight
            assert weight is not None
            size, known = effective_sample_size(weight.numpy()), int((weight > 0).sum())
            assert f"(π {origin})" in note
            assert f"; {known} of 300 test people, an effective sample size of {size:.0f}" in note


def test_estimated_propensities_are_those_of_the_policy_and_learnt_from_training_rows(load: Load) -> None:
    people, draw = population(4000, 0), np.random.default_rng(1)
    job = draw.integers(3, size=4000)
    chance = expit(0.8 * people["x"] + 0.6 * (people["group"] == "a") + np.array([1.5, -1.0, 0.5])[job])
    people = people.assign(
        job=np.array(["c", "a", "b"])[job], decision=(draw.random(4000) < chance).astype(int)
    )
    source = load(people, *ESTIMATED)
    table, train = source.table(), source.splits.train
    assert table.logged is not None
    estimate, x = table.logged.propensity, people["x"]
    assert np.abs(estimate - chance).mean() < 0.025
    # The point of a propensity: weighted by it, the accepted stand for everybody.
    assert abs(np.average(x, weights=people["decision"] / estimate) - x.mean()) < 0.05
    assert abs(np.average(x, weights=people["decision"]) - x.mean()) > 0.2
    others = people.assign(
        decision=np.where(np.isin(x.index, train), people["decision"], 1 - people["decision"])
    )
    again = load(others, *ESTIMATED).table().logged
    assert again is not None
    np.testing.assert_allclose(again.propensity, estimate)


def test_labels_that_no_decision_revealed_are_told_and_not_used(load: Load) -> None:
    people = population(1000, 0)
    accepted = people["decision"] == 1
    rank = accepted.groupby(accepted).cumcount()
    known = np.where(accepted, rank >= 7, rank < 5)
    source = load(people.assign(label=people["label"].where(known)), *RECORDED)
    notes = "\n".join(source.prepare().notes)
    assert re.search("^5 rejected rows with a label: not used", notes, re.MULTILINE)
    assert re.search("^7 accepted rows without a label", notes, re.MULTILINE)
    assert source.table().labelled.sum() == accepted.sum() - 7


NEVER: dict[str, Callable[[pd.DataFrame], pd.Series]] = {
    "of the disadvantaged group": lambda people: people["group"] == "b",
    "with job=none": lambda people: people["job"] == "none",
    r"with x from -\d": lambda people: people["x"] < -1,
    "of the advantaged group with job=none": lambda people: (
        (people["job"] == "none") & (people["group"] == "a")
    ),
}


@pytest.mark.parametrize("told", NEVER)
def test_people_who_were_never_accepted_are_told(told: str, load: Load) -> None:
    people = population(2000, 0)
    people["job"] = np.random.default_rng(1).choice(["some", "none", "two"], len(people))
    people.loc[NEVER[told](people), "decision"] = 0
    data = load(selective(people), *RECORDED).prepare()
    (named,) = [warning for warning in data.warnings if warning.startswith("none of ")]
    assert re.search(f"none of [0-9]+ rows {told}.* has a known label", named)


FEW = np.arange(4000) % 50 == 0
POOR: dict[str, tuple[list[str], Callable[[pd.DataFrame], dict[str, Any]]]] = {
    "too small to estimate utility": (
        RECORDED,
        lambda people: {
            "propensity": people["propensity"].mask(FEW, 1e-4),
            "decision": people["decision"].mask(FEW, 1),
        },
    ),
    # Every range of x and of z has accepted people, and the estimates make them look as good as certain.
    r"adds up to 0\.[3-7]\d* times": (
        ESTIMATED,
        lambda people: {"decision": (people["x"] + people["z"] > 0).astype(int)},
    ),
    "π is not that of these decisions": (
        RECORDED,
        lambda people: {"propensity": np.random.default_rng(5).uniform(0.1, 0.5, len(people))},
    ),
}


@pytest.mark.parametrize("told", POOR)
def test_logs_that_give_poor_weights_are_told(told: str, load: Load) -> None:
    words, poor = POOR[told]
    people = population(4000, 0)
    warnings = load(selective(people.assign(**poor(people))), *words).prepare().warnings
    assert [warning for warning in warnings if re.search(told, warning)]


def test_a_drawn_initial_policy_knows_that_labels_were_revealed_by_others(load: Load) -> None:
    class Always(DrawnPolicy):
        def acceptance(self, table: Any) -> np.ndarray:
            return np.full(len(table), 0.5)

    table = load(selective(population(4000, 0)), *RECORDED).table()
    policy = Always(DrawnPolicyConfig("", "always", random_state=0))
    accepted, propensity = policy.decide(table), policy.propensity(table)
    assert table.logged is not None
    np.testing.assert_array_equal(propensity, 0.5 * table.logged.propensity)
    # Weighted by it, the accepted stand for everybody.
    x = table.x["x"].to_numpy()
    weight = accepted / propensity
    assert abs((weight * x).sum() / weight.sum() - x.mean()) < 0.15
    assert abs(x[accepted].mean() - x.mean()) > 0.3


def test_weighted_applicants_go_on_where_they_were(load: Load) -> None:
    data = load(selective(population(1000, 0)), *RECORDED).prepare()
    stream, other = data.applicants(64, [0, 1]), data.applicants(64, [0, 1])
    first = stream.next()
    state = stream.state_dict()
    expected = stream.next()
    other.load_state_dict(state)
    assert torch.equal(other.next().x, expected.x)
    assert not torch.equal(first.x, expected.x)
    # What a seed meets does not depend on the seeds beside it.
    assert torch.equal(data.applicants(64, [1]).next().x[0], first.x[1])
