"""Conversion of tables to data sets of AIF360, and suppression of its warnings."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from fairall.data.features import Kind
from fairall.data.table import Table
from fairall.errors import needing

if TYPE_CHECKING:
    from aif360.datasets import StandardDataset


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress warnings of AIF360, pandas and missing optional packages."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def standard_dataset(table: Table) -> StandardDataset:
    """Convert the labelled rows of a table to AIF360's `StandardDataset`, a `BinaryLabelDataset`.

    The label is `label` (favourable: 1), the protected attribute `s` (privileged: 1, unprivileged: 0).
    Categorical features become indicators `name=code`; the others are unchanged.

    Raises:
        FairAllError: where the people are not in two groups, or AIF360 is not installed.
    """
    table.schema.require_two_groups("AIF360's StandardDataset")
    rows = table.rows(np.flatnonzero(table.labelled))
    frame = rows.x[rows.schema.names].reset_index(drop=True)
    frame = frame.assign(s=(rows.s == 1).astype(float), label=rows.label.astype(float))
    with quietly(), needing("aif360", "standard_dataset"):
        from aif360.datasets import StandardDataset

        return StandardDataset(
            frame,
            label_name="label",
            favorable_classes=[1.0],
            protected_attribute_names=["s"],
            privileged_classes=[[1.0]],
            categorical_features=[rows.schema[i].name for i in rows.schema.columns(Kind.CATEGORICAL)],
        )
