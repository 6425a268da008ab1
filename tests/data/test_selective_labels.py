"""Populations of which decisions revealed some labels, against a known truth."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import expit
from torch import Tensor

from fairall.data.dataset import TableDataset
from fairall.data.load import load_dataset
from fairall.data.prepared import PreparedData
from fairall.online.evaluation import UTILITY_ERROR, Evaluator
from fairall.online.initial_policy import DrawnPolicy, DrawnPolicyConfig
from fairall.tables.overlap import effective_sample_size

pytestmark = pytest.mark.usefixtures("in_empty_folder")
COST = 0.5
RECORDED = ["dataset.decision=decision", "dataset.propensity=propensity"]
ESTIMATED = ["dataset.decision=decision", "dataset.drop=[propensity]"]
MEANING = ["dataset.label=label", "dataset.positive=1.0", "dataset.sensitive=group", "dataset.advantaged=a"]
POLICY = np.array([1.5, -0.5])  # logits of x and z


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


def load(people: pd.DataFrame, *words: str) -> TableDataset:
    people.to_csv("people.csv", index=False)
    source = load_dataset("csv", "dataset.path=people.csv", *MEANING, *words)
    assert isinstance(source, TableDataset)
    return source


def of_scaled(data: PreparedData) -> Callable[[Tensor, Tensor], Tensor]:
    """The policy, of the features as the data set scaled them."""
    return lambda x, s: torch.tensor(expit((x.numpy() * data.scaler.scale + data.scaler.mean) @ POLICY))


@pytest.mark.whole
@pytest.mark.parametrize("words", [RECORDED, ESTIMATED])
def test_held_out_people_and_applicants_stand_for_the_population(words: list[str]) -> None:
    everybody, naive = population(200_000, seed=999), []
    accepts, advantaged = expit(everybody[["x", "z"]] @ POLICY), everybody["group"] == "a"
    utility = (accepts * (everybody["label"] - COST)).mean()
    dpu = accepts[advantaged].mean() - accepts[~advantaged].mean()
    for seed in range(5):
        data = load(selective(population(4000, seed)), *words).prepare()
        # The table is a sample of the population too, not stratified.
        of_test, of_train = (
            Evaluator(people, COST, [0]).measure_by(of_scaled(data))
            for people in (data.test, replace(data.train, stratum=None))
        )
        noise = np.hypot(of_test[UTILITY_ERROR], of_train[UTILITY_ERROR] * (len(data.train) / 4000) ** 0.5)
        assert abs(of_test["utility"] - utility) < 3 * noise
        # Everybody of the test people counts for what needs no label.
        assert abs(of_test["dpu"] - dpu) < 1.5 * np.hypot(*np.bincount(data.test.s > 0) ** -0.5)

        weight = np.asarray(data.test.label_weight)
        labelled = data.test.rows(torch.as_tensor(np.flatnonzero(weight)))
        naive.append((of_scaled(data)(labelled.x, labelled.s) * (labelled.label - COST)).mean())
        # The sizes that weights leave: fewer than the labels, and not next to none.
        assert 100 < effective_sample_size(weight) < len(labelled)

        stream = data.applicants(64, [0, 1])
        drawn = [stream.next() for _ in range(100)]
        noise = np.hypot(effective_sample_size(np.asarray(data.train.label_weight)) ** -0.5, 6400**-0.5)
        label, s = (torch.cat([vars(people)[name] for people in drawn], dim=1) for name in ("label", "s"))
        assert ((label.mean(1) - everybody["label"].mean()).abs() < 1.5 * noise).all()
        assert (s.mean(1).abs() < 3 * noise).all()
    # What the same labels say without weights.
    assert np.mean(naive) > utility + 0.03


def test_rejected_people_are_in_every_part_without_a_label() -> None:
    people = selective(population(1000, 0))
    source = load(people, *RECORDED)
    data, table, accepted = source.prepare(), source.table(), people["label"].notna()
    for part in (data.train, data.validation, data.test):
        assert part.labelled.numpy().mean() == pytest.approx(accepted.mean(), abs=0.01)
        assert not part.label[~part.labelled].any()
    # The order of the pool is random: the warm-up is in the natural proportion too.
    assert data.pool_table.labelled[:128].mean() == pytest.approx(accepted.mean(), abs=0.15)
    np.testing.assert_array_equal(table.labelled, accepted)
    np.testing.assert_allclose(np.asarray(table.label_weight), accepted / people["propensity"])


def test_without_logged_decisions_utility_is_of_the_labelled_and_says_so() -> None:
    data = load(selective(population(1000, 0)), "dataset.drop=[decision,propensity]").prepare()
    assert "are not recorded" in str(data.warnings)
    assert data.applicants(64, [0]).next().labelled.all()
    accepts_all = Evaluator(data.test, COST, [0]).measure_by(lambda x, s: torch.ones_like(s))
    expected = data.test.label[data.test.labelled].mean() - COST
    assert accepts_all["utility"].item() == pytest.approx(expected.item())


def test_known_labels_need_no_weights_and_honest_logs_no_warning() -> None:
    data = load(population(1000, 0), *RECORDED).prepare()
    assert (data.train.label_weight, data.notes, data.warnings) == (None, (), ())
    for seed in range(4):
        for words, origin in ((RECORDED, "recorded"), (ESTIMATED, "estimated")):
            data = load(selective(population(2000, seed)), *words).prepare()
            assert data.warnings == ()
            (note,) = data.notes
            weight = np.asarray(data.test.label_weight)
            size, known = effective_sample_size(weight), (weight > 0).sum()
            assert f"(π {origin})" in note
            assert f"; {known} of 300 test people, an effective sample size of {size:.0f}" in note


def test_estimated_propensities_are_those_of_the_policy_and_learnt_from_training_rows() -> None:
    people, draw = population(4000, 0), np.random.default_rng(1)
    job = draw.integers(3, size=4000)
    chance = expit(0.8 * people["x"] + 0.6 * (people["group"] == "a") + np.array([1.5, -1.0, 0.5])[job])
    people = people.assign(job=np.array(["c", "a", "b"])[job], decision=1 * (draw.random(4000) < chance))
    source = load(people, *ESTIMATED)
    # Other decisions on the rows that are held out do not change the estimate.
    others = people.assign(decision=1 - people["decision"])
    others.loc[source.splits.train] = people
    logged, again = source.table().logged, load(others, *ESTIMATED).table().logged
    assert logged
    assert again
    assert np.abs(logged.propensity - chance).mean() < 0.025
    np.testing.assert_allclose(again.propensity, logged.propensity)


def test_labels_that_no_decision_revealed_are_told_and_not_used() -> None:
    people = population(1000, 0)
    accepted = people["decision"] == 1
    otherwise = accepted.groupby(accepted).cumcount() < np.where(accepted, 7, 5)
    source = load(people.assign(label=people["label"].where(accepted != otherwise)), *RECORDED)
    notes = "\n".join(source.prepare().notes)
    assert re.search("(?ms)^5 rejected rows with a label: not used.*^7 accepted rows without a label", notes)
    assert source.table().labelled.sum() == accepted.sum() - 7


PEOPLE = population(4000, 0).assign(job=np.random.default_rng(1).choice(["some", "none", "two"], 4000))
DECISION, FEW = PEOPLE["decision"], np.arange(4000) % 50 == 0
POOR = {
    "^none of [0-9]+ rows of the advantaged group with job=none.* has a known label": (
        RECORDED,
        {"decision": DECISION.mask((PEOPLE["job"] == "none") & (PEOPLE["group"] == "a"), 0)},
    ),
    "too small to estimate utility": (
        RECORDED,
        {"propensity": PEOPLE["propensity"].mask(FEW, 1e-4), "decision": DECISION.mask(FEW, 1)},
    ),
    # Every range of x and of z has accepted people, and the estimates make them look as good as certain.
    r"adds up to 0\.[3-7]\d* times": (ESTIMATED, {"decision": 1 * (PEOPLE["x"] + PEOPLE["z"] > 0)}),
    r"adds up to 1\.9 times .* π is not that of these decisions": (
        RECORDED,
        {"propensity": np.random.default_rng(5).uniform(0.1, 0.5, 4000)},
    ),
}


@pytest.mark.parametrize("told", POOR)
def test_people_who_were_never_accepted_and_poor_weights_are_told(told: str) -> None:
    words, columns = POOR[told]
    warnings = load(selective(PEOPLE.assign(**columns)), *words).prepare().warnings
    assert str(warnings).count("known label") == told.count("known label")
    assert [warning for warning in warnings if re.search(told, warning)]


def test_a_drawn_initial_policy_knows_that_labels_were_revealed_by_others() -> None:
    class Always(DrawnPolicy):
        def acceptance(self, table: Any) -> np.ndarray:
            return np.full(len(table), 0.5)

    table = load(selective(population(4000, 0)), *RECORDED).table()
    policy = Always(DrawnPolicyConfig("", "always", random_state=0))
    propensity, x = policy.propensity(table), table.x["x"]
    assert table.logged
    np.testing.assert_array_equal(propensity, 0.5 * table.logged.propensity)
    # Weighted by it, the accepted stand for everybody: their own mean is 0.3 above.
    assert abs(np.average(x, weights=policy.decide(table) / propensity) - x.mean()) < 0.15
