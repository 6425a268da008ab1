"""A result: its files, its tables, and what is shown of it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pytest_regressions.file_regression import FileRegressionFixture

import fairall
from fairall.metrics import Spread
from fairall.results.terminal import print_result
from tests.made_up import lay_down, made_up

LEVELS = {"accept_all": {"mean_utility": 0.18, "mean_dpu": 0.0}, "oracle": {"mean_utility": 0.2}}


def test_a_saved_result_is_read_as_it_was(tmp_path: Path) -> None:
    look: dict[str, Any] = {"references": LEVELS, "notes": ["a note"], "warnings": ["a warning"]}
    path, made = lay_down(tmp_path, **look), made_up(**look)
    read = fairall.load_result(path.name, outputs_dir=tmp_path / "outputs")
    for name in ("per_seed", "aggregate", "references"):
        pd.testing.assert_frame_equal(getattr(read, name), getattr(made, name), check_exact=True)
    pd.testing.assert_frame_equal(read.steps, made.steps, atol=1e-6)
    assert read.to_plain() == made.to_plain()
    assert json.loads(json.dumps(made.to_plain())) == json.loads((path / "summary.json").read_text())
    assert (read.path, read.identity, read.seeds) == (path, path.name, [0, 1, 2])
    assert read.finished == (path / "DONE").stat().st_mtime


def test_values_spreads_and_curves() -> None:
    made = made_up(references=LEVELS, further={"longest_rejection": np.array([1.0, np.nan, np.inf])})
    by_hand = made.steps[made.steps["time_step"].between(4, 8)].groupby("seed")["utility"].mean()
    assert made.values("mean_utility").to_numpy() == pytest.approx(by_hand.to_numpy(), abs=1e-6)
    assert made.spread("mean_utility").mean == pytest.approx(by_hand.mean(), abs=1e-6)  # type: ignore[union-attr]
    assert made.reference("oracle", "mean_utility") == Spread(0.2, None, None)
    assert made.curve("utility").shape == (9, 3)
    assert made.curve("effective_utility").index[0] == 1
    # What seeds lack is not in means.
    assert made.values("longest_rejection").to_dict() == {0: 1.0}
    assert [seed["longest_rejection"] for seed in made.to_plain()["per_seed"]] == [1.0, None, None]
    assert made.spread("longest_rejection") is made.reference("oracle", "mean_dpu") is None
    assert made.last("no_such_measure").empty
    assert made.values("no_such_measure").empty


UNKNOWN = replace(made_up().evaluation, utility_standard_error=None, dpu_standard_error=None)
PRINTED: dict[str, dict[str, Any]] = {
    "model=fairall_I_II dataset=credit seeds=3": {"further": {"latent_s_auc": np.array([0.5, 0.6, 0.7])}},
    "model=fairlog dataset=credit seeds=3 preset=quick": {"evaluation": UNKNOWN},
}


@pytest.mark.parametrize("words", PRINTED, ids=["with the printed measures", "quick"])
def test_a_terminal_shows_every_row_beside_references_and_print(
    words: str, capsys: pytest.CaptureFixture[str], file_regression: FileRegressionFixture
) -> None:
    print_result(made_up(*words.split(), references=LEVELS, **PRINTED[words]))
    file_regression.check(capsys.readouterr().out, encoding="utf-8")
