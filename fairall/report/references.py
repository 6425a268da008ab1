"""Accepting everybody as a reference: a row of a table, a line of a figure."""

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


def accept_all(runs: Iterable[Run], measure: str) -> dict[str, Any] | None:
    """A measure of accepting everybody, from the first run that has it.

    Args:
        runs: comparable ones.
        measure: of summary.json.

    Returns:
        `mean` and `std` over seeds, plain units; `std` None where it does not vary. None where no run has it.
    """
    return next((found for run in runs if (found := run.accept_all(measure)) is not None), None)


def with_references(
    table: Table,
    runs: Mapping[str, Sequence[Run]],
    measures: Mapping[str, str],
    about: Mapping[str, dict[str, Any]],
) -> Table:
    """A table with a last row "accept everybody" in each group whose runs have these measures.

    Args:
        table: whose first column is the number of seeds and whose others are measures.
        runs: of each group, comparable ones.
        measures: key of summary.json by name of the column, in the order of the columns.
        about: further fields of a group's records.
    """
    rows: list[Row] = []
    records = list(table.records)
    for group, own in itertools.groupby(table.rows, key=lambda row: row.group):
        rows += own
        values = {key: accept_all(runs.get(group, ()), measure) for key, measure in measures.items()}
        if not any(values.values()):
            continue
        cells = [Cell("" if one is None else plus_minus(one["mean"], one["std"])) for one in values.values()]
        rows.append(Row(group, ACCEPT_ALL, [Cell(""), *cells]))
        records += [
            dict.fromkeys(table.records[0])
            | about[group]
            | {"measure": key, "mean": one["mean"], "std": one["std"]}
            for key, one in values.items()
            if one is not None
        ]
    if len(rows) == len(table.rows):
        return table
    return replace(table, rows=rows, records=records, note=f"{table.note} {NOTE}")
