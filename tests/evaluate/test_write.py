"""Tables and texts of evaluations that are refused, or have many groups."""

from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from fairall.evaluate import figures
from fairall.evaluate.comparison import Comparison
from fairall.evaluate.evaluation import Evaluation, Evaluator
from fairall.evaluate.fairness import MEASURES
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.write import Shown, fairness_table, groups_table, terminal, value_table
from fairall.results.page import BASE
from fairall.results.table import latex

N = 1500
GROUPS = 10


@pytest.fixture(scope="module")
def evaluator() -> Evaluator:
    """Of a log with ten groups, numbered by size, and recorded propensities."""
    random = np.random.default_rng(1)
    score = random.normal(size=N)
    accepted = random.random(N) < 0.6
    sizes = np.arange(1, GROUPS + 1) / (GROUPS * (GROUPS + 1) / 2)
    table = pd.DataFrame({
        "score": score, "region": random.choice([f"region {i}" for i in range(GROUPS)], N, p=sizes),
        "granted": accepted.astype(int), "p": 0.6,
        "repaid": np.where(accepted, random.random(N) < 0.7, np.nan),
    })  # fmt: skip
    log = DecisionLog.of(table, decision="granted", label="repaid", sensitive="region", propensity="p")
    return Evaluator(log, outcome_model="logistic")


@pytest.fixture(scope="module")
def compared(evaluator: Evaluator) -> Shown:
    """Of two policies of one name."""
    rising = np.linspace(0.1, 0.9, N)
    both = (Evaluation(evaluator, "column", target) for target in (rising, 1.0 - rising))
    return Shown.of(Comparison(*both), Path("log.csv"))


@pytest.fixture(autouse=True)
def _style() -> Iterator[None]:
    with mpl.rc_context(BASE):
        yield


def test_policies_of_one_name_are_told_apart(compared: Shown) -> None:
    assert list(compared.plains) == ["A: column", "B: column"]
    assert {row.group for row in value_table(compared).rows} == {"A: column", "B: column", "B − A"}
    last = value_table(compared).rows[-1]
    better = compared.content["difference"]["value"]["switch_dr"]["probability_better"]
    assert last.cells[-1].ours == f"{100 * better:.0f} %"


def test_numbers_for_mlflow_are_finite(compared: Shown) -> None:
    metrics = compared.metrics()
    assert len(metrics) < 1000  # of one batch
    assert np.isfinite(list(metrics.values())).all()
    assert {name.split(".")[0] for name in metrics} == {"first", "second", "difference"}


def test_every_measure_and_group_has_a_row(compared: Shown) -> None:
    assert len(fairness_table(compared).rows) == 3 * len(MEASURES) - 1  # no difference of calibration
    assert [row.name for row in groups_table(compared).rows] == 2 * [f"region {i}" for i in range(GROUPS)]
    for table in (fairness_table(compared), groups_table(compared)):
        assert {len(row.cells) for row in table.rows} == {len(table.columns)}
        assert latex(table).isascii()


def test_figures_show_the_largest_groups(compared: Shown) -> None:
    overlap = figures.draw_overlap(compared.evaluations)
    titles = [axes.get_title() for axes in overlap.axes if axes.get_title()]
    assert len(titles) == figures.MOST_GROUPS
    assert not {"region 0", "region 1"} & set(titles)
    reliability = figures.draw_reliability(compared.plains)
    assert len(reliability.axes) == 6
    assert len(reliability.axes[0].lines) == 1 + figures.MOST_GROUPS


def test_a_refused_policy_has_bounds_only(evaluator: Evaluator) -> None:
    target = np.zeros(N)
    target[:5] = 1.0
    shown = Shown.of(Evaluation(evaluator, "few", target), Path("log.csv"))
    assert shown.refused is not None
    assert [row.name for row in value_table(shown).rows] == ["no assumption"]
    text = terminal(shown)
    assert "Evaluation of few on log.csv" in text
    assert "Sensitivity" not in text
    assert figures.draw_value(shown.plains).axes
