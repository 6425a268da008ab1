"""A log of decisions in a DataFrame, of which nobody is held out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from typing_extensions import override

from fairall.data.own_table import OwnTable
from fairall.data.selective_labels import total_warnings
from fairall.data.splits import Splits
from fairall.data.table import Logged, Table
from fairall.tables.applicants import Applicants
from fairall.tables.files import Cells, read_cells


class WholeLog(OwnTable):
    """Decided people, each of whom is in every part of the split: in Phase I, the warm-up, and validation.

    Without a column of decisions everybody was accepted. Without a sensitive attribute, `dataset.sensitive`
    the empty text, everybody is of the group S = +1.

    Args:
        config: node of `dataset=csv`; its path is not read.
        people: a row for each person.
        weighted: whether labels have weights, as those of a reduction, which depend on features: none of
            these then counts as one that gives the label away.
    """

    needs: ClassVar[Mapping[str, str]] = {}

    def __init__(self, config: Any, people: pd.DataFrame, *, weighted: bool = False) -> None:
        super().__init__(config)
        self.people = people
        if weighted:
            self.leaks = lambda *_: {}

    @cached_property
    @override
    def cells(self) -> Cells:
        return read_cells(self.people, replace(self.config.declared, person=""))

    @override
    def load(self) -> Table:
        """As of `OwnTable`, without a word on how a run gives keys."""
        table = self.coded(self.applicants.checked())
        everybody = np.ones(len(table), dtype=bool)
        return replace(table, logged=table.logged or Logged(everybody, everybody.astype(float)))

    @override
    def parts(self, people: Applicants, s: np.ndarray) -> Splits:
        """Everybody in each part; the pool is shuffled, since the last people of it may count most."""
        everybody = np.arange(len(people))
        shuffled = np.random.RandomState(self.config.split.random_state).permutation(everybody)
        return Splits(everybody, everybody, everybody, shuffled)

    @override
    def weighting(self, table: Table) -> tuple[list[str], list[str]]:
        """Warnings where the weights do not add up; there are no people to measure utility on."""
        return [], total_warnings(table)
