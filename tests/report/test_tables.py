"""Values of tables against metrics.csv, recomputed without the report's code."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fairall.results.finished import collect, read_run
from scipy.stats import wilcoxon

from fairall.report import labels
from fairall.report.claims import REAL, claims_table, judge
from fairall.report.plan import Planned, with_runs
from fairall.report.tables import group_rows, hyperparameter_table, methods_table, with_references
from fairall.results.table import Row, Table
from tests.report.conftest import MakeRun, add_references, lay_down, planned

MODELS = ("fairall_I_II", "fairall_II", "fairlab_I_II", "fairlog", "unfairlog")
LOWER = ("dpu", "tv", "cfu")


@pytest.fixture(scope="module")
def requested(tmp_path_factory: pytest.TempPathFactory) -> list[Planned]:
    """The five methods on credit, as the paper runs them, each with 4 (×100) more than the one before."""
    folder = tmp_path_factory.mktemp("made_up")
    for number, model in enumerate(MODELS):
        lay_down(folder, f"model={model}", "dataset=credit", shift=0.1 + 0.04 * number, number=number)
    runs = collect(folder / "outputs" / "runs").runs
    return with_runs(planned("harsh", "dataset=credit"), runs)


def recomputed(path: Path, measure: str) -> pd.Series:
    """A figure by seed, from metrics.csv alone."""
    table = pd.read_csv(path / "metrics.csv")
    if measure.startswith("effective"):
        return table[table["time_step"] == 200].set_index("seed")[measure]
    part, _, column = measure.partition("_")
    window = table[table["time_step"].between(125, 200)].groupby("seed")[column]
    return window.mean() if part == "mean" else window.std(ddof=1)


def check(table: Table, requested: list[Planned], n_measures: int) -> None:
    assert len(table.records) == len(requested) * n_measures
    paths = {one.model: one.run.path for one in requested if one.run is not None}
    frame = pd.DataFrame(table.records)
    for measure, rows in frame.groupby("measure", sort=False):
        values = {model: recomputed(paths[model], str(measure)) for model in MODELS}
        sign = -1 if any(word in str(measure) for word in LOWER) else 1
        best = max(MODELS, key=lambda model: sign * values[model].mean())
        raw = {}
        for _, row in rows.iterrows():
            own = values[row["model"]]
            assert row["mean"] == pytest.approx(own.mean(), abs=1e-6)
            assert row["std"] == pytest.approx(own.std(ddof=1), abs=1e-6)
            assert row["seeds"] == 10
            assert row["best"] == (row["model"] == best)
            if not np.isnan(row["paper_mean"]):
                apart = (own.mean() - row["paper_mean"]) / row["paper_std"]
                assert row["difference_in_paper_std"] == pytest.approx(apart, abs=1e-3)
            if row["model"] != "fairlog":
                raw[row["model"]] = wilcoxon(own.to_numpy(), values["fairlog"].to_numpy()).pvalue
            others = [model for model in MODELS if model != row["model"]]
            assert row["rival"] == max(others, key=lambda model: sign * values[model].mean())
            assert row["better_than_rival"] == (row["model"] == best)
        previous = 0.0
        for rank, (model, p) in enumerate(sorted(raw.items(), key=lambda item: item[1])):
            previous = max(previous, min(1.0, p * (len(raw) - rank)))
            (row,) = (row for _, row in rows.iterrows() if row["model"] == model)
            assert row["p_baseline"] == pytest.approx(previous)


def test_effective_values_are_those_of_the_runs(requested: list[Planned]) -> None:
    table = methods_table("effective", requested, "harsh")
    check(table, requested, 2)
    first = table.rows[0]
    assert (first.group, first.name, first.cells[0].ours) == ("German Credit", "FairAll (I+II)", "10")
    assert first.cells[1].beside.startswith("20.3 (0.5), ")
    assert first.cells[2].beside.startswith("8.2 (1.6), ")
    assert not table.lacking.commands


@pytest.mark.parametrize("kind", ["expected", "sampled"])
def test_temporal_values_are_those_of_the_runs(kind: str, requested: list[Planned]) -> None:
    table = methods_table("temporal", requested, "harsh", kind=kind)
    check(table, requested, 4)
    # The paper prints none for UnfairLog.
    assert [cell.beside for cell in table.rows[-1].cells] == [""] * 5
    assert table.rows[0].cells[2].beside.startswith("18.8 (1.3), ")


def test_marks_say_who_is_better_beyond_chance(requested: list[Planned]) -> None:
    utility = {row.name: row.cells[1] for row in methods_table("effective", requested, "harsh").rows}
    assert utility["UnfairLog"].best
    assert "F+" in utility["UnfairLog"].marks
    assert "FairLog" not in utility["FairLog"].tests
    assert "F" not in utility["FairLog"].marks
    assert "R−" in utility["FairAll (I+II)"].marks
    assert "F−" in utility["FairAll (I+II)"].marks


def test_a_missing_run_is_missing_with_its_command(requested: list[Planned]) -> None:
    lacking = [replace(one, run=None) if one.model == "fairlog" else one for one in requested]
    table = methods_table("effective", lacking, "harsh")
    assert "FairLog" not in [row.name for row in table.rows]
    assert len(table.rows) == 4
    assert {record["model"] for record in table.records} == set(MODELS) - {"fairlog"}
    command = "python -m fairall model=fairlog dataset=credit initial_policy=harsh seeds=10"
    assert table.lacking.commands == [("FairLog on German Credit", command)]
    assert str(table.lacking) == "1 of 5 runs missing"
    assert not any("baseline" in record for record in table.records)
    none = [replace(one, run=None) for one in requested]
    assert not methods_table("effective", none, "harsh").rows
    verdicts = judge(REAL, lacking)
    claims = claims_table(verdicts, lacking, "claims", "Claims")
    assert claims.columns == ["German Credit"]
    assert not any("FairLog" in row.name.replace("UnfairLog", "") for row in claims.rows)
    assert 0 < len(claims.rows) < len(REAL)
    assert claims_table(judge(REAL, none), none, "claims", "Claims").columns == []


def test_hyperparameters_of_runs_stand_beside_those_of_the_paper(requested: list[Planned]) -> None:
    table = hyperparameter_table(requested)
    assert table.columns == ["German Credit"]
    rows = {(row.group, row.name): row.cells[0] for row in table.rows}
    assert rows["FairAll (I+II)", "clf_arch"].ours == "32×32×32"
    assert rows["FairAll (I+II)", "phase1.batch_size"].ours == "128"
    assert rows["FairLog", "lambda"].ours == "2"
    assert not any(cell.beside for cell in rows.values())
    (other,) = planned("harsh", "model=fairlog", "dataset=credit", "model.lambda_=8")
    table = hyperparameter_table([replace(other, run=requested[0].run)])
    assert [(cell.ours, cell.beside) for row in table.rows for cell in row.cells if cell.beside] == [
        ("8", "2, differs")
    ]


def test_synthetic_values_stand_beside_readings(make_run: MakeRun, tmp_path: Path) -> None:
    for number, model in enumerate(("fairall_I_II", "fairlog", "opt_fair")):
        make_run(f"model={model}", "dataset=synthetic", "seeds=10", number=number, shift=0.2)
    runs = collect(tmp_path / "outputs" / "runs").runs
    needed = [*planned("synthetic", "initial_policy=harsh"), *planned("optimal")]
    requested = with_runs(needed, runs)
    table = methods_table("synthetic", requested, "harsh", kind="expected")
    rows = {row.name: row.cells for row in table.rows}
    path = next(one.run.path for one in requested if one.model == "opt_fair" and one.run is not None)
    last = pd.read_csv(path / "metrics.csv").query("time_step == 200")["ground_truth_utility"]
    assert rows["OPT-FAIR"][2].ours == f"{100 * last.mean():.1f} ({100 * last.std():.1f})"
    assert [cell.beside for cell in rows["OPT-FAIR"]] == ["", "17", "24", "0", ""]
    assert not any(cell.best or cell.marks for cell in rows["OPT-FAIR"])
    assert list(rows) == ["FairAll (I+II)", "FairLog", "OPT-FAIR"]
    assert rows["FairLog"][3].beside == "5 to 6"
    # The optimal levels are printed with either initial policy, the methods' only with the harsh one.
    lenient = {
        row.name: row.cells for row in methods_table("synthetic", requested, "lenient", kind="sampled").rows
    }
    assert lenient["OPT-FAIR"][1].beside == "17"
    assert lenient["FairLog"][1].beside == ""


def test_accept_everybody_stands_in_its_row_and_nowhere_else(
    requested: list[Planned], make_run: MakeRun, tmp_path: Path
) -> None:
    for number, model in enumerate(MODELS):
        path = make_run(f"model={model}", "dataset=credit", shift=0.1 + 0.04 * number, number=number)
        if number > 0:  # a version of before measured the first
            add_references(
                path, effective_utility=0.9, effective_dpu=0.0, mean_utility=0.95, mean_utility_sampled=0.94
            )
    runs = collect(tmp_path / "outputs" / "runs").runs
    with_row = with_runs(requested, runs)
    for make in (
        lambda some: methods_table("effective", some, "harsh"),
        lambda some: methods_table("temporal", some, "harsh", kind="expected"),
        lambda some: methods_table("temporal", some, "harsh", kind="sampled"),
    ):
        before, after = make(requested), make(with_row)
        assert after.rows[:-1] == before.rows
        assert after.records[: len(before.records)] == before.records
        assert (after.rows[-1].group, after.rows[-1].name) == ("German Credit", "accept everybody")
        assert not any(cell.best or cell.marks or cell.beside for cell in after.rows[-1].cells)
        assert "accepting nobody has 0 in every column" in after.note
        assert "verybody" not in before.note
    shown = [cell.ours for cell in methods_table("effective", with_row, "harsh").rows[-1].cells]
    assert shown == ["", "90.0", "0.0"]
    sampled = methods_table("temporal", with_row, "harsh", kind="sampled")
    assert [cell.ours for cell in sampled.rows[-1].cells] == ["", "", "94.0", "", ""]
    (record,) = sampled.records[len(with_row) * 4 :]
    assert {name: value for name, value in record.items() if value is not None} == {
        "dataset": "credit", "model": "accept_all", "run": "accept_all", "measure": "mean_utility_sampled",
        "mean": 0.94,
    }  # fmt: skip
    assert judge(REAL, with_row) == judge(REAL, requested)


def test_who_knows_every_label_stands_below_who_accepts_everybody(make_run: MakeRun) -> None:
    path = make_run("model=fairlog", "dataset=credit")

    def made() -> tuple[list[Row], list[dict[str, Any]]]:
        return group_rows(
            "Credit", {"a": read_run(path)}, labels.EFFECTIVE, names={"a": "FairLog"}, baseline="a"
        )

    add_references(path, effective_utility=0.9, effective_dpu=0.0)
    before = made()
    add_references(path, "oracle", effective_utility=0.95, effective_dpu=0.3)
    add_references(path, "oracle_fair", effective_utility=0.92, effective_dpu=0.05)
    rows, records = made()
    assert (rows[:-2], records[:-4]) == before
    assert [(row.name, [cell.ours for cell in row.cells]) for row in rows[-3:]] == [
        ("accept everybody", ["", "90.0", "0.0"]),
        ("knows every label", ["", "95.0", "30.0"]),
        ("knows every label, with parity", ["", "92.0", "5.0"]),
    ]
    assert not any(cell.best or cell.marks for row in rows[-2:] for cell in row.cells)
    assert [record["model"] for record in records[-4:]] == ["oracle"] * 2 + ["oracle_fair"] * 2
    assert "on the people whom it was fitted to" in with_references("", rows)
    assert "every label" not in with_references("", before[0])


def test_accept_everybody_on_synthetic_data(make_run: MakeRun, tmp_path: Path) -> None:
    path = make_run("model=fairlog", "dataset=synthetic")
    add_references(path, mean_utility=0.14, mean_dpu=0.0, mean_utility_sampled=0.15)
    runs = collect(tmp_path / "outputs" / "runs").runs
    needed = [*planned("synthetic", "initial_policy=harsh"), *planned("optimal")]
    requested = with_runs(needed, runs)
    for kind, said in (("expected", ["", "14.0", "", "0.0", ""]), ("sampled", ["", "15.0", "", "", ""])):
        table = methods_table("synthetic", requested, "harsh", kind=kind)
        assert [row.name for row in table.rows] == ["FairLog", "accept everybody"]
        assert [cell.ours for cell in table.rows[-1].cells] == said
        assert not any(cell.beside for cell in table.rows[-1].cells)
