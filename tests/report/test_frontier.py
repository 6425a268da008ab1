"""`fairall frontier`: its runs, its page, and what it refuses."""

import csv
from pathlib import Path

import pytest

from fairall.display.progress import Display
from fairall.errors import FairAllError
from fairall.report.frontier import frontier, points

pytestmark = pytest.mark.usefixtures("undrawn")

SMALL = """
    preset=quick tracking.enabled=false seeds=2 schedule.time_steps=10 evaluation.window=[5,10]
""".split()
QUIET = Display(progress_only=True)


@pytest.mark.parametrize(
    ("rule", "gap"),
    [
        ("demographic_parity", "mean_dpu"),
        pytest.param("equal_opportunity", "mean_equal_opportunity", marks=pytest.mark.whole),
    ],
)
def test_a_curve_for_each_method_and_for_the_oracle(rule: str, gap: str, tmp_path: Path) -> None:
    of = ["model=greedy", "dataset=fico", f"fairness={rule}", "fairness.slack=0,1", f"outputs_dir={tmp_path}"]
    found = points([*of, *SMALL], QUIET)
    assert [(one.model, one.slack) for one in found] == [
        ("greedy", None),
        ("greedy", 0.0),
        ("greedy", 1.0),
        ("oracle_fair", 0.0),
        ("oracle_fair", 1.0),
    ]
    free, strict, none, *oracles = (one.result.aggregate for one in found)
    assert none.loc["mean_utility", "mean"] == free.loc["mean_utility", "mean"]
    assert strict.loc[gap, "mean"] < free.loc[gap, "mean"]
    assert oracles[0].loc[gap, "mean"] < oracles[1].loc[gap, "mean"]
    (table,) = frontier(found, tmp_path / "page")
    assert len(table.frame) == 5
    assert {path.name for path in (tmp_path / "page").iterdir()} == {"index.html", "tables", "figures"}
    text = (tmp_path / "page/tables/frontier.csv").read_text().splitlines()
    rows = list(csv.DictReader(text))
    assert {row["slack"] for row in rows} == {"", "0.0", "1.0"}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["dataset=fico"], "frontier takes model=A,B and dataset=A,B"),
        (["model=greedy", "dataset=fico", "fairness=none"], "fairness=none: a frontier is of"),
        (["model=greedy", "dataset=fico", "fairness.slack=a"], "fairness.slack=a: numbers from 0 to 1"),
        (["model=greedy", "dataset=fico", "fairness.slack=2"], "fairness.slack=2"),
        (["model=random", "dataset=fico"], "model=random has no estimate"),
    ],
)
def test_what_is_refused(words: list[str], reason: str, tmp_path: Path) -> None:
    with pytest.raises(FairAllError, match=reason):
        points([*words, "preset=quick", "tracking.enabled=false", f"outputs_dir={tmp_path}"], QUIET)
    assert not list(tmp_path.glob("runs/*/*/*/DONE"))
