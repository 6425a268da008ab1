"""A result: its files, its tables, and what is shown of it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairall
from fairall.metrics import LATENT, Spread
from fairall.results.paper import paper_metrics
from fairall.results.terminal import noise, print_result
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
    mean, std, low, high = made.aggregate.loc["mean_utility"]
    assert made.spread("mean_utility") == Spread(mean, std, (low, high))
    assert mean == pytest.approx(by_hand.mean(), abs=1e-6)
    assert made.reference("oracle", "mean_utility") == Spread(0.2, None, None)
    assert made.curve("utility").shape == (9, 3)
    assert made.curve("effective_utility").index[0] == 1
    # What seeds lack is not in means.
    assert made.values("longest_rejection").to_dict() == {0: 1.0}
    assert [seed["longest_rejection"] for seed in made.to_plain()["per_seed"]] == [1.0, None, None]
    assert made.spread("longest_rejection") is made.reference("oracle", "mean_dpu") is None
    assert made.last("no_such_measure").empty
    assert made.values("no_such_measure").empty


def test_the_rows_of_a_run_stand_beside_references_and_print() -> None:
    further = {"latent_s_auc": np.array([0.5, 0.6, 0.7])}
    whole = made_up("model=fairall_I_II", "dataset=credit", "seeds=3", references=LEVELS, further=further)
    rows, printed = whole.summary(), paper_metrics(whole.config)
    assert set(printed) <= {name.removesuffix("_sampled") for name in rows.index}
    for name, (mean, std) in printed.items():
        assert tuple(rows.loc[name, ["paper_mean", "paper_std"]]) == (mean, std)
    assert rows.loc["mean_utility_sampled", "heading"] == "mean utility ↑"
    assert rows.loc["mean_utility", "accept_all"] == 0.18
    assert np.isnan(rows.loc["mean_dpu", "oracle"])
    assert [name for name in rows.index if name in LATENT] == ["latent_s_auc"]
    quick = made_up().summary()
    assert quick["paper_mean"].isna().all()
    assert "mean_utility_sampled" not in quick.index


def test_a_terminal_shows_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    made = made_up(references=LEVELS)
    print_result(made)
    text = capsys.readouterr().out
    for name, row in made.summary().iterrows():
        (line,) = (line for line in text.splitlines() if f" {name} " in line)
        assert f"{100 * row['mean']:.2f} ± {100 * row['std']:.2f}" in line.replace("−", "-")
    assert "18.00" in text
    assert "paper" not in text.split("└")[0]  # of which the column is empty
    assert made.title in text


def test_the_noise_of_people_says_how_many_they_are() -> None:
    made = made_up()
    assert noise(made).startswith("Measured on 150 test people with 150 labels, worth 150 equally ")
    assert "the utility a standard error of 3.1 and the DPU a standard error of 5.0, which" in noise(made)
    unknown = replace(made.evaluation, utility_standard_error=None, dpu_standard_error=None)
    assert noise(replace(made, evaluation=unknown)).endswith("equally weighted ones.")
