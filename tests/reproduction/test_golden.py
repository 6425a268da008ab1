"""Tables of the report, leaderboard and compare of made-up runs, as they were once found right."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from fairall.display import PageTable, to_csv
from fairall.report import compare
from reproduction.board import BASELINE, RIVAL, board
from reproduction.leaderboard_tables import care_table, standings_table, task_table, versus_table
from reproduction.plan import LEADERBOARD, plan
from reproduction.report import contents
from tests.reproduction.collection import results

pytestmark = pytest.mark.whole

GOLDEN = Path(__file__).parent / "golden"
WORDS = ["dataset=credit,compas,synthetic", "model=fairall_I_II,fairall_II,fairlog,unfairlog,opt_fair"]
BOARD = [
    "model=fairall_I_II,fairlog,greedy,adopt",
    "dataset=credit,compas",
    "initial_policy=harsh",
    "hparams=${model}/${dataset}",
    "seeds=10",
    "splits=1",
]
COMPARED = (0, 6, 2, 15)  # places in the collection


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, PageTable]:
    """All tables by key."""
    runs = results()
    own = contents(runs, WORDS)
    found = [item for item in own.items if isinstance(item, PageTable)]
    assert {one.sweep for one in own.splits} == {"paper_splits"}
    by_key = {run.key: run for run in runs}
    tasks = board([replace(one, run=by_key.get(one.key)) for one in plan(LEADERBOARD[:1], BOARD)], {}, {})
    found += [standings_table(tasks), task_table(tasks, "credit")]
    found += [versus_table(tasks, BASELINE, RIVAL), care_table(tasks)]
    chosen = {str(i): runs[place] for i, place in enumerate(COMPARED, start=1)}
    beside = compare(chosen, tmp_path_factory.mktemp("compared"))
    return {one.key: one for one in [*found, *(replace(one, key=f"compare_{one.key}") for one in beside)]}


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.csv")), ids=lambda path: path.stem)
def test_the_numbers_are_the_same(path: Path, tables: Mapping[str, PageTable]) -> None:
    golden = pd.read_csv(path)
    table = pd.read_csv(io.StringIO(to_csv(tables[path.stem])))
    # metrics.csv, from which the golden ones were read, has seven digits.
    pd.testing.assert_frame_equal(table, golden, check_dtype=False, rtol=1e-5, atol=1e-7)
