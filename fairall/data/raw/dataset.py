"""Base class of data sets built by a recipe from a raw file, and the reader of such files."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import pandas as pd
from omegaconf import MISSING

from fairall.config.checks import check_values, one_of, optional, require
from fairall.data.dataset import TableDataset
from fairall.data.features import Feature, Kind, Schema
from fairall.data.raw.fetch import RawFileConfig, find, raw_file
from fairall.data.table import Table
from fairall.errors import FairAllError
from fairall.tables.cells import RowsError, refuse
from fairall.tables.groups import CROSS, Sensitive, join

SAS_TINY = 1e-78


Pairs: TypeAlias = dict[str, dict[str, list[str]]]
"""Lists of the words `advantaged` and `disadvantaged` by attribute."""


@dataclass
class RawTableConfig(RawFileConfig):
    """Keys of a data set built from a raw file, with a choice of groups.

    `rows`: the number that the recipe leaves of the usual groups. `sensitive`: an attribute, or several as
    race+sex; null: the first one. `groups`: words of it, a group each, of several attributes such as x+y;
    null: the two of `two_groups`, or all combinations of the words of several attributes.
    """

    rows: int | None = MISSING
    sensitive: str | None = optional()
    groups: Any = optional()
    two_groups: Pairs | None = optional()

    def __post_init__(self) -> None:
        """Have the usual groups in `groups`, where identities of runs have them."""
        if isinstance(self.groups, list):
            self.groups, self.rows = [*map(str, self.groups)], None
        elif self.groups is None and self.two_groups and CROSS in self.attribute:
            self.groups = [word for (word,) in self.words]
        elif self.groups is None:
            self.groups, self.two_groups = self.two_groups, None

    @property
    def choices(self) -> Pairs:
        """The two groups of each attribute; `groups` has those of a stored configuration."""
        return self.two_groups or self.target.pairs or self.groups

    @property
    def attribute(self) -> str:
        """The sensitive attribute."""
        return self.sensitive or next(iter(self.choices))

    @property
    def words(self) -> list[list[str]]:
        """Raw values of each group, of two S = +1 first; raises FairAllError where they are not possible."""
        choices, names = self.choices, self.attribute.split(CROSS)
        require(len({*names}) == len(names), "dataset.sensitive", self.sensitive, "of different attributes")
        for name in names:
            check_values(name, "dataset.sensitive", one_of(choices))
            allowed = "a list `advantaged` and a list `disadvantaged`"
            fits = choices[name].keys() == {"advantaged", "disadvantaged"}
            require(fits, f"dataset.two_groups.{name}", choices[name], allowed)
        both = [[choices[name]["advantaged"], choices[name]["disadvantaged"]] for name in names]
        listed = isinstance(self.groups, list)
        if listed:
            words = [[word] for word in self.groups]
        elif len(both) == 1:
            (words,) = both
        else:
            words = [[CROSS.join(values)] for values in product(*(chain(*lists) for lists in both))]
        every = [*chain(*words)]
        require(
            len(words) > 1
            and all(words)
            and len({*every}) == len(every)
            and (listed or self.groups in (None, choices)),
            "dataset.groups",
            words,
            "a list of two or more different words, such as [A,B,C]; dataset.two_groups has pairs of lists",
        )
        return words

    def validate(self) -> None:
        """Check the sensitive attribute and its groups."""
        super().validate()
        assert self.words


class RawTableDataset(TableDataset):
    """A data set built from columns of a raw file; the number of resulting rows is verified.

    Attributes:
        words: names of the raw columns of text.
        numbers: names of those that must hold numbers.
        label: column of the label among those that `recipe` returns, whose values are 0 and 1.
        good: its value for ỹ = 1.
        pairs: `two_groups` of a data set whose configuration has none.
    """

    config: RawTableConfig
    config_type = RawTableConfig
    words: ClassVar[Sequence[str]]
    numbers: ClassVar[Sequence[str]]
    label: ClassVar[str]
    good: ClassVar[int] = 1
    pairs: ClassVar[Pairs] = {}

    @abstractmethod
    def recipe(self, raw: pd.DataFrame) -> tuple[pd.DataFrame, list[Feature]]:
        """The people of all groups, and the features of the data set; may raise FairAllError.

        Those among the features that are sensitive are left out.
        """

    @classmethod
    def location(cls, config: Any) -> str:
        """Path of the raw file, or the command that fetches it."""
        if path := find(config):
            return str(path)
        command = f"python -m fairall data fetch {config.name}"
        return f"not here: {command if config.download.url else 'dataset.raw_file=FILE'}"

    def read(self, path: Path) -> pd.DataFrame:
        """The raw rows of a file; raises as `read_columns`."""
        return read_columns(path, [*self.words, *self.numbers])

    def fetch(self) -> Path:
        """The verified raw file, downloaded if not found; raises as `raw_file`."""
        return raw_file(self.config)

    def load(self) -> Table:
        """The people of the chosen groups, whose number is verified.

        Raises:
            FairAllError: where the file cannot be read, or the recipe leaves another number of rows than
                published.
        """
        path, config = self.fetch(), self.config
        raw = self.read(path)
        sensitive = Sensitive.of(config.attribute, map(sorted, config.words))
        try:
            for name in self.numbers:
                numbers = pd.to_numeric(raw[name], errors="coerce")
                refuse(raw[name], numbers.isna() & raw[name].notna(), "is no number")
                raw[name] = numbers
            people, features = self.recipe(raw)
            words = join(people, config.attribute)
            if absent := sensitive.meaning.keys() - {*words}:
                values = ", ".join(sorted({*words}))
                raise FairAllError(f"dataset.groups: no row has {min(absent)!r}; {words.name} has {values}")
            s = words.map(sensitive.meaning).dropna()
            people = people.loc[s.index]
            features = [each for each in features if each.name not in config.attribute.split(CROSS)]
            schema = Schema(features, n_groups=len(config.words), crossed=sensitive.crossed)
            label, *_ = Feature(self.label, Kind.BINARY, (0.0, 1.0)).encode(people[self.label])
            is_good = (label == self.good).astype(int)
            table = Table.fully_labelled(
                schema, schema.encode(people), s.to_numpy(dtype=int), is_good, sensitive
            )
        except RowsError as error:
            raise FairAllError(f"{path}: {error}; was the file edited?") from error
        if config.rows is not None and len(table) != config.rows:
            raise FairAllError(
                f"{path}: its recipe leaves {len(table)} rows instead of {config.rows}: truncated, edited or "
                "of other groups? Get the file again, or accept it with dataset.rows=null"
            )
        return table


def read_columns(path: Path, columns: list[str]) -> pd.DataFrame:
    """Read some columns of a raw file: .csv, SAS transport (.ssp, .xpt), or a .zip of the latter.

    Raises:
        FairAllError: if the file is not in the format of its suffix, or lacks a column.
    """
    try:
        if path.suffix.lower() == ".csv":
            raw = pd.read_csv(path, low_memory=False).filter(columns)
        else:
            with warnings.catch_warnings():
                # pandas only warns if a transport file is truncated.
                warnings.filterwarnings("error", "xport file may be corrupted")
                raw = pd.read_sas(path, format="xport").filter(columns)
            # pandas reads zero as 5.4e-79, the smallest number of the format.
            raw = raw.mask(raw.abs() < SAS_TINY, 0.0)
    except Exception as error:  # the readers raise many types
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise FairAllError(
            f"{path}: cannot be read as .csv, or as SAS transport of another suffix ({reason}): truncated? "
            "Get the file again"
        ) from error
    for name in columns:
        if name not in raw:
            raise FairAllError(f"{path}: column {name!r} is missing: is it another file, or an edited one?")
    return raw
