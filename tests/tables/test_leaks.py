"""Columns that tell the decision or the label: each has one warning, and ordinary features have none."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.random import Generator
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from fairall.errors import FairAllError
from fairall.tables.declared import Declared
from fairall.tables.roles import read

N = 1000


def people(draw: Generator, n: int = N, slope: float = 1.0) -> pd.DataFrame:
    """Applicants with decisions and labels that depend on income, and P(granted)."""
    income, sex = draw.normal(size=n), draw.choice(["f", "m"], n)
    chance = expit(slope * income + 0.3 * (sex == "m"))
    columns = {
        "income": income.round(3),
        "town": draw.choice(list("abcdef"), n),
        "owner": draw.random(n) < 0.4,
        "sex": sex,
        "granted": (draw.random(n) < chance).astype(int),
        "repaid": np.where(draw.random(n) < expit(1 + slope * income), "yes", "no"),
        "chance": chance,
    }
    return pd.DataFrame(columns)


def warned(table: pd.DataFrame, **keys: Any) -> dict[tuple[str, ...], str]:
    """Warnings on columns by their names."""
    given = {"label": "repaid", "positive": "yes", "sensitive": "sex", "decision": "granted"}
    applicants = read(table, Declared.of(**given | {"not_features": ("chance",)} | keys)).checked()
    return applicants.leaks(applicants.coded()[0])


def selected(table: pd.DataFrame, rejected: str | None = None) -> pd.DataFrame:
    """The table with the labels of rejected people unknown, or all the same."""
    return table.assign(repaid=table["repaid"].where(table["granted"] == 1, rejected))


WHOLE = people(np.random.default_rng(0))
SELECTED = selected(WHOLE)
GRANTED = WHOLE["granted"].to_numpy()
GOOD = (WHOLE["repaid"] == "yes").to_numpy()
draw = np.random.default_rng(1)
FEW = np.arange(N) < 10
DECLARED_LATER: dict[str, Any] = {"decision": None, "drop": ("granted",)}
# By what a column holds: its cells, and why it has a warning.
TELLING: dict[str, tuple[Any, str]] = {
    "a copy": (GRANTED, "decision (AUC 1.00)"),
    "words": (np.where(GRANTED, draw.choice(["a", "b"], N), "c"), "decision (AUC 1.00)"),
    "most rows": (np.where(FEW, 1 - GRANTED, GRANTED), "decision (AUC 0.99)"),
    "lower numbers": (-GRANTED - draw.random(N).round(3), "decision (AUC 1.00)"),
    "a word or nothing": (pd.Series(draw.choice(["a", "b"], N)).where(GRANTED == 1), "decision (AUC 1.00)"),
    "a number or nothing": (np.where(GRANTED, draw.normal(size=N), np.nan), "decision (AUC 1.00)"),
    "most labels": (np.where(FEW, ~GOOD, GOOD), "label (AUC 0.98)"),
    "a number behind the label": (GOOD + draw.random(N), "label (AUC 1.00)"),
}


@pytest.mark.parametrize("what", TELLING)
def test_a_column_that_tells_too_much_has_one_warning(what: str) -> None:
    cells, why = TELLING[what]
    ((names, told),) = warned(WHOLE.assign(status=cells)).items()
    assert names == ("status",)
    assert told.startswith(f"column 'status' tells the {why}")


def test_who_has_a_label_is_asked_of_the_accepted() -> None:
    """Of the accepted only open loans lack a label; of the rejected nobody has one."""
    is_open = draw.random(N) < 0.3
    told = warned(SELECTED.assign(repaid=SELECTED["repaid"].mask(is_open), status=is_open))
    assert "tells who has a label (AUC 1.00)" in told["status",]


@pytest.mark.parametrize(
    ("name", "warning"),
    [
        ("propensity", True),
        ("prob_granted", True),
        ("modelDecision", True),
        ("prior_decision", False),
        ("undecided", False),
    ],
)
def test_decisions_and_their_probabilities_are_known_by_name(name: str, warning: bool) -> None:
    assert [*warned(SELECTED.assign(**{name: draw.random(N)}))] == [(name,)] * warning


@pytest.mark.parametrize(("slope", "decimals"), [(1.0, 15), (2.0, 15), (6.0, 15), (2.0, 1)])
@pytest.mark.parametrize("name", ["model_score", "rating", "x"])
def test_scores_are_told_by_how_well_they_rank_the_decisions(name: str, slope: float, decimals: int) -> None:
    whole = people(np.random.default_rng(2), slope=slope)
    chance = whole["chance"].round(decimals)  # ties count as half
    auc = roc_auc_score(whole["granted"], chance)
    told = warned(selected(whole.drop(columns="income")).assign(**{name: chance}))
    assert len(told) == (auc >= (0.95 if name == "x" else 0.75))
    assert all(f"column {name!r} tells the decision (AUC {auc:.2f})" in line for line in told.values())


@pytest.mark.parametrize("words", [("no", "yes"), (None, "paid"), (1, 0)])
@pytest.mark.parametrize("table", [WHOLE, SELECTED], ids=["all labels", "some labels"])
def test_a_column_of_two_values_that_is_the_label_is_refused(
    table: pd.DataFrame, words: tuple[Any, Any]
) -> None:
    with pytest.raises(FairAllError, match="column 'copy' is the label in other words"):
        warned(table.assign(copy=np.array(words, dtype=object)[GOOD.astype(int)]))


@pytest.mark.parametrize("n_rejected", [3, 10])
def test_few_rejected_people_may_have_failed_by_chance(n_rejected: int) -> None:
    """Of people who repay in 70 % of cases, ten who all failed are a surprise at 1e-6 only with luck."""
    random = np.random.default_rng(0)
    table = people(random, 200)
    status = np.where(np.arange(200) >= n_rejected, random.choice(["a", "b"], 200), "c")
    table["repaid"] = np.where((random.random(200) < 0.95) & (status != "c"), "yes", "no")
    told = warned(table.assign(status=status), **DECLARED_LATER)
    assert len(told) == (n_rejected == 10)


def ordinary(random: Generator, n: int) -> pd.DataFrame:
    """A table with features of all kinds that predict decision and label moderately or not at all."""
    more: dict[str, Any] = {f"x{k}": random.normal(size=n) for k in range(3)}
    more |= {f"k{k}": random.integers(int(random.integers(2, 300)), size=n).astype(str) for k in range(6)}
    more |= {f"rare{k}": np.where(random.random(n) < 0.01 * (k + 1), "yes", "no") for k in range(8)}
    more |= {"debt": np.where(random.random(n) < 0.3, np.nan, random.lognormal(8, 1, n))}
    return people(random, n, slope=float(random.uniform(0, 1.5))).assign(**more, count=random.poisson(1, n))


def test_hardly_any_ordinary_table_has_a_warning() -> None:
    """With all labels, with selected ones, and without decisions: none of 120: fewer than 2.5 % (at 95 %)."""
    for seed in range(20):
        for n in (60, 500):
            table = ordinary(np.random.default_rng(seed), n)
            for case, keys in ((table, {}), (selected(table), {}), (table, DECLARED_LATER)):
                assert warned(case, max_categories=300, **keys) == {}


def searched(random: Generator, n: int) -> pd.DataFrame:
    """Twelve boxes of which eight are ticked after a search, in half of the tables one or more of each."""
    table = people(random, n).rename(columns={"granted": "search"})
    after = np.flatnonzero(table["search"] == 1)
    ticked = random.random((n, 12)) < random.uniform(0.05, 0.3, 12)
    ticked[:, :8] &= (table["search"] == 1).to_numpy()[:, None]
    if random.random() < 0.5:
        ticked[after, random.integers(8, size=len(after))] = True
    return table.assign(**{f"box{k}": np.where(ticked[:, k], "Y", "N") for k in range(12)})


AFTER = tuple(f"box{k}" for k in range(8))


@pytest.mark.parametrize("n", [2000, 20_000])
def test_columns_that_tell_the_decision_together_are_named(n: int) -> None:
    for seed in range(5):
        table = searched(np.random.default_rng(seed), n)
        told = warned(table, decision="search")
        assert list(told) == [AFTER]
        assert "tell the decision together" in told[AFTER]
        assert f"drop=[{', '.join(AFTER)}]" in told[AFTER]
        assert not warned(table, decision="search", drop=AFTER)
