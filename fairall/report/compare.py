"""Any runs side by side: their figures, what tells their configurations apart, and their curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fairall.errors import FairAllError
from fairall.identity import determining, flattened
from fairall.report import names, plots
from fairall.report.build import made, write, write_tables
from fairall.report.drawing import Drawing, save
from fairall.report.names import Measure
from fairall.report.page import comparison_page
from fairall.report.results import cell, compared
from fairall.report.runs import Run, read_run
from fairall.report.statistics import LEVEL
from fairall.report.table import Cell, Row, Table
from fairall.report.written import markdown

MEASURES = (
    *names.EFFECTIVE,
    *names.TEMPORAL,
    Measure("mean_cfu", "mean CFU", higher=False),
    Measure("mean_ground_truth_utility", "mean ground-truth utility", higher=True),
)


def compare(chosen: Sequence[str], runs_folder: Path, folder: Path) -> str:
    """Writes index.html, tables/ and figures/ on some runs; returns the tables as Markdown.

    Args:
        chosen: folders of runs, or ids beneath `runs_folder`, of which a beginning is enough.
        runs_folder: outputs/runs.
        folder: to write to.

    Raises:
        FairAllError: where there are fewer than two, or one is not there or cannot be used.
    """
    if len(chosen) < 2:
        raise FairAllError("compare needs at least two runs: folders, or ids of outputs/runs")
    paths = [_path(word, runs_folder) for word in chosen]
    repeated = next((path for path in paths if paths.count(path) > 1), None)
    if repeated is not None:
        raise FairAllError(f"{repeated} is named twice")
    runs = {str(i): _read(path) for i, path in enumerate(paths, start=1)}
    labels = {number: f"{number} {_label(run)}" for number, run in runs.items()}
    tables = [_figures(runs, labels), _apart(runs, labels)]
    drawing = Drawing(
        "curves",
        "Over time",
        "Test utility and DPU, mean over seeds with one standard deviation.",
        "Figures",
        lambda: plots.over_time(runs, plots.UTILITY_AND_DPU, labels=labels),
        [],
    )
    try:
        picture = save(drawing, folder / "figures")
        write_tables(tables, folder / "tables")
        write(folder / "index.html", comparison_page(tables, drawing, picture, made()))
    except OSError as error:
        raise FairAllError(
            f"cannot write to {folder}: {error.strerror or error}; choose another place with --out FOLDER"
        ) from error
    return "\n".join(map(markdown, tables))


def _path(word: str, runs_folder: Path) -> Path:
    """The folder of a run by its path or the beginning of its id."""
    if Path(word).is_dir():
        return Path(word).resolve()
    found = [path for path in runs_folder.glob(f"*/*/{word}*") if path.is_dir()] if "/" not in word else []
    if not found:
        raise FairAllError(f"{word}: no such run, neither a folder nor an id in {runs_folder}")
    if len(found) > 1:
        raise FairAllError(f"{word}: {len(found)} runs begin so; give more of the id")
    return found[0].resolve()


def _read(path: Path) -> Run:
    try:
        return read_run(path)
    except FairAllError as error:
        raise FairAllError(f"{path}: {error}") from error


def _label(run: Run) -> str:
    return f"{names.method(run.name('model'))}, {names.dataset(run.name('dataset'))}, {run.path.name}"


def _figures(runs: Mapping[str, Run], labels: Mapping[str, str]) -> Table:
    measures = [m for m in MEASURES if any(len(run.per_seed(m.key)) for run in runs.values())]
    first = next(iter(runs))
    columns = {
        measure: compared(
            {
                number: run.per_seed(measure.key)
                for number, run in runs.items()
                if len(run.per_seed(measure.key))
            },
            measure,
            baseline=first,
        )
        for measure in measures
    }
    rows, records = [], []
    for number, run in runs.items():
        standings = [columns[measure].get(number) for measure in measures]
        cells = [Cell(str(len(run.seeds))), *(cell(standing, None, missing=False) for standing in standings)]
        rows.append(Row("", labels[number], cells))
        records += [
            {
                "run": run.path.name,
                "measure": measure.key,
                "seeds": len(standing.values),
                "mean": float(standing.values.mean()),
                "std": standing.std,
                "p_against_first": standing.baseline.p if standing.baseline else None,
                "p_against_best_other": standing.rival.p if standing.rival else None,
            }
            for measure, standing in zip(measures, standings, strict=True)
            if standing is not None
        ]
    note = (
        "×100, mean (standard deviation over seeds). Bold: best. F: against the first run, R: against the "
        "best of the others; + significantly better, − significantly worse (two-sided Wilcoxon "
        "signed-rank test, paired "
        f"over the seeds that both have, Holm-corrected over the runs of a measure, p < {LEVEL:g})."
    )
    headings = ["seeds", *(measure.heading for measure in measures)]
    return Table("figures", "Runs side by side", note, headings, rows, "Tables", records=records)


def _apart(runs: Mapping[str, Run], labels: Mapping[str, str]) -> Table:
    """Every key of the configurations that is not the same in all of them."""
    flat = {number: flattened(determining(run.config)) for number, run in runs.items()}
    keys = list(dict.fromkeys(key for values in flat.values() for key in values))
    differing = [key for key in keys if len({repr(values.get(key)) for values in flat.values()}) > 1]
    rows = [Row("", key, [Cell(_shown(flat[number].get(key))) for number in runs]) for key in differing]
    records = [
        {"key": key} | {run.path.name: _shown(flat[number].get(key)) for number, run in runs.items()}
        for key in differing
    ]
    note = "Keys of the configuration that are not the same in all; empty where a run has no such key."
    return Table(
        "configuration", "What tells them apart", note, list(labels.values()), rows, "Tables", records=records
    )


def _shown(value: Any) -> str:
    return "" if value is None else str(value)
