"""Configuration of a data set in a CSV file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from omegaconf import MISSING

from fairall.config.checks import at_least, groups, limited, one_of
from fairall.data.dataset import TableConfig
from fairall.data.features import Kind
from fairall.data.splits import SplitConfig

# Quoted twice: for the shell and for Hydra.
ONE_CHARACTER = """one character, quoted as in 'dataset.separator=";"'"""


def _words() -> Any:
    return limited("a list of words", lambda words: all(isinstance(word, str) for word in words))


@dataclass
class CsvSplitConfig(SplitConfig):
    """A random split, or a column with the part of each row."""

    column: str | None = MISSING


@dataclass
class CsvConfig(TableConfig):
    """Keys of a CSV file; docs/your_own_data.md describes them."""

    path: str = MISSING
    separator: str = limited(ONE_CHARACTER, lambda separator: len(separator) == 1)
    text_encoding: str = MISSING
    label: str = MISSING
    positive: str = MISSING
    sensitive: str = MISSING
    advantaged: str | None = None
    drop: list[str] = _words()
    kinds: dict[str, str] = one_of(Kind)
    missing: list[str] = _words()
    missing_by_default: list[str] = _words()
    max_categories: int = at_least(2)
    max_count: int = MISSING
    decision: str | None = MISSING
    accepted: str = MISSING
    propensity: str | None = MISSING
    groups: list[str] | None = groups()
    split: CsvSplitConfig = field(default_factory=CsvSplitConfig)

    @property
    def no_value(self) -> tuple[str, ...]:
        """Cell texts, without surrounding blanks, that mean a missing value."""
        words = (*self.missing_by_default, *self.missing)
        return tuple(dict.fromkeys(["", *(word.strip() for word in words)]))
