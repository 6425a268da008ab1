"""Accepting everybody, as a row of a table and a line of a figure: what any method should beat."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fairall.report.table import Cell, Row, Table, plus_minus
from fairall.results.finished import Run

ACCEPT_ALL = "accept everybody"
NOTE = (
    "Accept everybody: a policy with π = 1 on the same people at the same cost, for reference, not tested; "
    "accepting nobody has 0 in every column by definition."
)


def accept_all(runs: Iterable[Run], figure: str) -> dict[str, Any] | None:
    """A figure of accepting everybody, from the first run that has it.

    Args:
        runs: comparable ones.
        figure: of summary.json.

    Returns:
        `mean` and `std` over seeds, plain units; `std` None where it does not vary. None where no run has it.
    """
    return next((found for run in runs if (found := run.accept_all(figure)) is not None), None)


def with_references(
    table: Table,
    runs: Mapping[str, Sequence[Run]],
    figures: Mapping[str, str],
    about: Mapping[str, dict[str, Any]],
) -> Table:
    """A table with a last row "accept everybody" in each group whose runs have such figures.

    Args:
        table: whose first column is the number of seeds and whose others are measures.
        runs: of each group, comparable ones.
        figures: by measure, in the order of the columns, the figure of summary.json that belongs to it.
        about: of each group, what its records hold beside measure, mean and std.
    """
    rows: list[Row] = []
    records = list(table.records)
    for group, own in itertools.groupby(table.rows, key=lambda row: row.group):
        rows += own
        found = {key: accept_all(runs.get(group, ()), figure) for key, figure in figures.items()}
        if not any(found.values()):
            continue
        cells = [Cell("" if one is None else plus_minus(one["mean"], one["std"])) for one in found.values()]
        rows.append(Row(group, ACCEPT_ALL, [Cell(""), *cells]))
        records += [
            dict.fromkeys(table.records[0])
            | about[group]
            | {"measure": key, "mean": one["mean"], "std": one["std"]}
            for key, one in found.items()
            if one is not None
        ]
    if len(rows) == len(table.rows):
        return table
    return replace(table, rows=rows, records=records, note=f"{table.note} {NOTE}")
