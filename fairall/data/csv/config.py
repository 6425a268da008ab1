"""Configuration of a data set in a CSV file."""

from __future__ import annotations

from dataclasses import dataclass, field

from omegaconf import MISSING

from fairall.config.checks import at_least, one_of, require
from fairall.data.dataset import TableConfig
from fairall.data.features import Kind
from fairall.data.splits import SplitConfig

# Quoted twice: for the shell and for Hydra.
ONE_CHARACTER = """one character, quoted as in 'dataset.separator=";"'"""


@dataclass
class CsvSplitConfig(SplitConfig):
    """A random split, or a column with the part of each row."""

    column: str | None = MISSING


@dataclass
class CsvConfig(TableConfig):
    """Keys of a CSV file; docs/your_own_data.md describes them."""

    path: str = MISSING
    separator: str = MISSING
    text_encoding: str = MISSING
    label: str = MISSING
    positive: str = MISSING
    sensitive: str = MISSING
    advantaged: str = MISSING
    drop: list[str] = MISSING
    kinds: dict[str, str] = MISSING
    missing: list[str] = MISSING
    missing_by_default: list[str] = MISSING
    max_categories: int = MISSING
    max_count: int = MISSING
    decision: str | None = MISSING
    accepted: str = MISSING
    propensity: str | None = MISSING
    split: CsvSplitConfig = field(default_factory=CsvSplitConfig)

    @property
    def no_value(self) -> tuple[str, ...]:
        """Cell texts, without surrounding blanks, that mean a missing value."""
        words = (*self.missing_by_default, *self.missing)
        return tuple(dict.fromkeys(["", *(word.strip() for word in words)]))

    def validate(self) -> None:
        """Check kinds, separator, number of categories and lists of words."""
        super().validate()
        for column, kind in self.kinds.items():
            one_of(f"dataset.kinds.{column}", kind, tuple(Kind))
        require(len(self.separator) == 1, "dataset.separator", self.separator, ONE_CHARACTER)
        at_least("dataset.max_categories", self.max_categories, 2)
        for name in ("drop", "missing", "missing_by_default"):
            words = getattr(self, name)
            require(all(isinstance(word, str) for word in words), f"dataset.{name}", words, "a list of words")
