"""Comparison of runs: measures, configuration keys that differ, and curves over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairall.errors import FairAllError
from fairall.metrics import Quantity
from fairall.report import labels
from fairall.report.build import made, write, write_tables
from fairall.report.comparable import RULE, Group, difference, grouped, marked
from fairall.report.figure import ReportFigure, save
from fairall.report.figures import BAND, EVERYBODY, UTILITY_AND_DPU, draw_over_time
from fairall.report.page import comparison_page
from fairall.report.references import with_references
from fairall.report.statistics import LEVEL
from fairall.report.table import Cell, Row, Table
from fairall.report.tables import Standing, cell, compared
from fairall.report.written import markdown
from fairall.results.finished import Run, read_run
from fairall.storage.identity import determining, flattened

MEASURES = (
    *labels.EFFECTIVE,
    *labels.TEMPORAL,
    *labels.measures("mean_cfu", "mean_ground_truth_utility"),
)


def compare(chosen: Sequence[str], runs_folder: Path, folder: Path) -> str:
    """Write index.html, tables/ and figures/ on some runs; return the tables as Markdown.

    Runs are grouped by `comparable.conditions`. The best is marked, and tests are made, within a group.

    Args:
        chosen: folders of runs, or ids beneath `runs_folder`, of which a beginning is enough. Lock files,
            which lie beside the folders and match a shell's `*` too, are ignored.
        runs_folder: outputs/runs.
        folder: to write to.

    Raises:
        FairAllError: where there are fewer than two, or one is missing or not usable.
    """
    words = [word for word in chosen if not _is_lock(word)]
    if len(words) < 2:
        raise FairAllError("compare needs at least two runs: folders, or ids of outputs/runs")
    paths = [_path(word, runs_folder) for word in words]
    repeated = next((path for path in paths if paths.count(path) > 1), None)
    if repeated is not None:
        raise FairAllError(f"{repeated} is named twice")
    runs = {str(i): _read(path) for i, path in enumerate(paths, start=1)}
    labels = {number: marked(f"{number} {_label(run)}", run) for number, run in runs.items()}
    groups = grouped(runs)
    chosen_measures = [*MEASURES, *_further(runs.values())]
    known = [one for one in chosen_measures if any(len(run.per_seed(one.name)) for run in runs.values())]
    tables = [_side_by_side(groups, labels, [one for one in known if one in MEASURES])]
    if further := [one for one in known if one not in MEASURES]:
        further_table = _side_by_side(groups, labels, further)
        tables.append(replace(further_table, key="further", title="Further measures"))
    tables.append(_configurations(runs, labels))
    figure = ReportFigure(
        "curves",
        "Over time",
        f"Test utility and DPU, a row per group of comparable runs. {BAND} {EVERYBODY}",
        "Figures",
        lambda: draw_over_time(runs, UTILITY_AND_DPU, labels=labels),
        [],
    )
    try:
        picture = save(figure, folder / "figures")
        write_tables(tables, folder / "tables")
        write(folder / "index.html", comparison_page(tables, figure, picture, made()))
    except OSError as error:
        raise FairAllError(
            f"cannot write to {folder}: {error.strerror or error}; choose another place with --out FOLDER"
        ) from error
    return "\n".join(map(markdown, tables))


def _is_lock(word: str) -> bool:
    path = Path(word)
    return path.suffix == ".lock" and path.is_file()


def _path(word: str, runs_folder: Path) -> Path:
    """The folder of a run by its path or the beginning of its id."""
    if Path(word).is_dir():
        return Path(word).resolve()
    if Path(word).exists():
        raise FairAllError(f"{word}: a file, not the folder of a run")
    matches = [path for path in runs_folder.glob(f"*/*/{word}*") if path.is_dir()] if "/" not in word else []
    if not matches:
        raise FairAllError(f"{word}: no such run, neither a folder nor an id in {runs_folder}")
    if len(matches) > 1:
        raise FairAllError(f"{word}: {len(matches)} runs have ids that begin so; give more of the id")
    return matches[0].resolve()


def _read(path: Path) -> Run:
    if not any((path / name).exists() for name in ("config.yaml", "DONE")):
        raise FairAllError(f"{path}: not the folder of a run, which is outputs/runs/METHOD/DATASET/ID")
    try:
        return read_run(path)
    except FairAllError as error:
        raise FairAllError(f"{path}: {error}") from error


def _label(run: Run) -> str:
    return f"{labels.method(run.name('model'))}, {run.path.name}"


def _further(runs: Iterable[Run]) -> list[Quantity]:
    """Temporal means of the policy's measures that the first table does not show."""
    listed = {one.name: one.mean() for run in runs for one in run.measures if one.of == "policy"}
    return [measure for measure in listed.values() if measure.name not in {one.name for one in MEASURES}]


def _side_by_side(groups: Sequence[Group], labels: Mapping[str, str], measures: Sequence[Quantity]) -> Table:
    rows, records = [], []
    for group in groups:
        columns = {measure: _standings(group, measure) for measure in measures}
        for number, run in group.runs.items():
            standings = [columns[measure].get(number) for measure in measures]
            cells = [Cell(str(len(run.seeds))), *(cell(one, None, missing=False) for one in standings)]
            rows.append(Row(group.title, labels[number], cells))
            records += [
                _record(group, run, measure, standing)
                for measure, standing in zip(measures, standings, strict=True)
                if standing is not None
            ]
    note = (
        f"{difference(groups)} ×100, mean (standard deviation over seeds). Bold: best of its group. F: "
        "against the group's first run, R: against the best of its others; + significantly better, "
        "− significantly worse (two-sided Wilcoxon signed-rank test, paired over seeds, "
        f"Holm-corrected over the runs of a group and measure, p < {LEVEL:g}). {RULE}"
    )
    table = Table(
        "measures",
        "Runs side by side",
        note.strip(),
        ["seeds", *(measure.heading for measure in measures)],
        rows,
        "Tables",
        records=records,
    )
    return with_references(
        table,
        {group.title: list(group.runs.values()) for group in groups},
        {measure.name: measure.name for measure in measures},
        {group.title: {"group": group.title, "run": "accept_all"} for group in groups},
    )


def _standings(group: Group, measure: Quantity) -> dict[str, Standing]:
    """Standings of a group's runs that have a measure, against the first run of the group."""
    values = {number: run.per_seed(measure.name) for number, run in group.runs.items()}
    known = {number: series for number, series in values.items() if len(series)}
    return compared(known, measure, baseline=next(iter(group.runs)))


def _record(group: Group, run: Run, measure: Quantity, standing: Standing) -> dict[str, Any]:
    """A line of the CSV; plain units."""
    return {
        "group": group.title,
        "run": run.path.name,
        "measure": measure.name,
        "seeds": len(standing.values),
        "mean": float(standing.values.mean()),
        "std": standing.std,
        "p_against_first": standing.baseline.p if standing.baseline else None,
        "p_against_best_other": standing.rival.p if standing.rival else None,
    }


def _configurations(runs: Mapping[str, Run], labels: Mapping[str, str]) -> Table:
    """Table of the configuration keys that differ between runs."""
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
        "configuration",
        "Differences in configuration",
        note,
        list(labels.values()),
        rows,
        "Tables",
        records=records,
    )


def _shown(value: Any) -> str:
    return "" if value is None else str(value)
