"""A data set as a table, before it is cut, scaled or turned into tensors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from fairall.data.features import Schema


@dataclass(frozen=True)
class Table:
    """N rows in their raw order.

    Attributes:
        schema: the D features.
        x: one column per feature, categories as their codes, shape (N, D).
        s: sensitive attribute in {−1, +1}, +1 the advantaged group, shape (N,).
        label: proxy label ỹ in {0, 1}, shape (N,).
    """

    schema: Schema
    x: pd.DataFrame
    s: np.ndarray
    label: np.ndarray

    def __len__(self) -> int:
        return len(self.x)
