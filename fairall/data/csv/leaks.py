"""Detection of columns that reveal who has a label: past decisions or their consequences."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fairall.config.words import typed
from fairall.data.cells import listed, many_values, shown
from fairall.data.csv.config import CsvConfig
from fairall.data.csv.infer import drop_typed

MOST_VALUES = 10  # of a column with more, only whether a cell is empty counts
CHANCE = 1e-6  # largest probability under chance of a column that is reported


def leaks(
    columns: pd.DataFrame, labelled: np.ndarray, config: CsvConfig, *, who: str = "has a label"
) -> list[str]:
    """Notes on columns that reveal who has a label and should not be features.

    Such a column has only values that are labelled in all rows or in none, or two values of which one is
    never labelled. An empty cell counts as a value.

    Args:
        columns: text, None where missing.
        labelled: whether the label of a row is known, shape (N,).
        config: declared roles and dropped columns, used in the proposed remedy.
        who: what is true of the `labelled` in words, for logs without labels.
    """
    if labelled.all():
        return []
    notes = (_note(columns[name], labelled, config, who) for name in columns)
    return [note for note in notes if note is not None]


def _note(column: pd.Series, labelled: np.ndarray, config: CsvConfig, who: str) -> str | None:
    value = column.to_numpy()
    if many_values(column, MOST_VALUES):
        value = column.isna().map({True: None, False: "any value"}).to_numpy()
    rows = pd.DataFrame({"value": value, "labelled": labelled})
    groups = rows.groupby("value", dropna=False, sort=True)["labelled"].agg(["sum", "size"])
    none, all_ = groups["sum"] == 0, groups["sum"] == groups["size"]
    if len(groups) < 2 or not none.any() or not ((none | all_).all() or len(groups) == 2):
        return None
    # Probability that as many rows, drawn at random, all lack a label.
    if float(np.mean(~labelled)) ** int(groups["size"][none].sum()) > CHANCE:
        return None
    name = str(column.name)
    remedy = f"leave it out ({drop_typed(name, config)})"
    if config.decision is None and len(groups) == 2 and column.notna().all():
        accepted = str(groups.index[~none][0])
        declared = f"{typed('dataset.decision', name)} {typed('dataset.accepted', accepted)}"
        remedy = f"if it is the past decision, declare it ({declared}), else {remedy}"
    return (
        f"column {name!r} reveals who {who} ({'all' if all_.any() else 'some'} with "
        f"{_values(groups[~none])}, none with {_values(groups[none])}), unknown before deciding: {remedy}"
    )


def _values(groups: pd.DataFrame) -> str:
    words = ["an empty cell" if pd.isna(value) else repr(shown(value, 20)) for value in groups.index]
    return words[0] if len(words) == 1 else listed(words, "value")
