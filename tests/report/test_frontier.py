"""`fairall frontier`: its runs and its page; tests/mistakes.yaml has what it refuses."""

from pathlib import Path

import numpy as np
import pytest

from fairall.display.progress import Display
from fairall.report import measures
from fairall.report.frontier import draw, frontier, points
from tests.made_up import made_up

pytestmark = pytest.mark.usefixtures("undrawn")

SMALL = """
    preset=quick tracking.enabled=false seeds=2 schedule.time_steps=10 evaluation.window=[5,10]
""".split()


@pytest.mark.whole
def test_a_curve_for_each_method_and_for_the_oracle(tmp_path: Path) -> None:
    of = "model=greedy dataset=fico fairness=demographic_parity fairness.slack=0,1".split()
    runs = points([*of, *SMALL, f"outputs_dir={tmp_path}"], Display(progress_only=True))
    assert [*runs] == [
        "Greedy, fico, without",
        "Greedy, fico, slack 0",
        "Greedy, fico, slack 1",
        "knows every label, with parity, fico, slack 0",
        "knows every label, with parity, fico, slack 1",
    ]
    free, strict, none, *oracles = (run.aggregate for run in runs.values())
    assert none.loc["mean_utility", "mean"] == free.loc["mean_utility", "mean"]
    assert strict.loc["mean_dpu", "mean"] < free.loc["mean_dpu", "mean"]
    assert oracles[0].loc["mean_dpu", "mean"] < oracles[1].loc["mean_dpu", "mean"]
    table, *_ = frontier(runs, tmp_path / "page")
    assert {*runs} <= {*table.frame.index.get_level_values("name")}
    assert "utility_against_gap_1" in (tmp_path / "page/index.html").read_text()
    assert "mean_dpu" in set(table.records["measure"])


def test_a_line_joins_the_slacks_of_a_method() -> None:
    slacks = ("0", "0.2", None)
    words = [
        ("fairness=demographic_parity", f"fairness.slack={slack}") if slack else ("fairness=none",)
        for slack in slacks
    ]
    runs = {
        str(k): made_up("model=fairlog", "dataset=credit", *words[k], shift=0.1 + 0.1 * k, number=k)
        for k in range(3)
    }
    (axes,) = draw(runs, [measures("mean_utility", "mean_dpu")]).axes
    (line,) = (line for line in axes.lines if line.get_label() == "FairLog")
    expected = [
        [100 * runs[key].aggregate.loc[name, "mean"] for name in ("mean_dpu", "mean_utility")] for key in "01"
    ]
    np.testing.assert_allclose(np.asarray(line.get_xydata()), expected)
    assert [text.get_text() for text in axes.texts] == ["0", "20"]
    assert len(axes.containers) == 3  # points with intervals
