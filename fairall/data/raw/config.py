"""Configuration of a data set built from a raw file."""

from __future__ import annotations

from dataclasses import dataclass, field

from omegaconf import MISSING

from fairall.config.checks import one_of, require
from fairall.data.dataset import TableConfig


@dataclass
class DownloadConfig:
    """URL, checksum, size in bytes and terms of use of a raw file; no URL where it may not be fetched."""

    url: str | None = MISSING
    sha256: str | None = MISSING
    size: int | None = MISSING
    terms: str | None = MISSING


@dataclass
class RawTableConfig(TableConfig):
    """Keys of a data set built from a raw file that cannot be redistributed."""

    raw_file: str | None = MISSING
    known_files: list[str] = MISSING
    rows: int | None = MISSING
    download: DownloadConfig = field(default_factory=DownloadConfig)
    accept_terms: bool = MISSING


@dataclass
class GroupsConfig:
    """Raw values of a sensitive attribute that mean S = +1 and S = −1; people with others are left out."""

    advantaged: list[str] = MISSING
    disadvantaged: list[str] = MISSING


@dataclass
class GroupedTableConfig(RawTableConfig):
    """Keys of a data set with a choice of sensitive attribute; `groups` has one entry for each."""

    sensitive: str = MISSING
    groups: dict[str, GroupsConfig] = MISSING

    def validate(self) -> None:
        """See `DatasetConfig.validate`."""
        super().validate()
        one_of("dataset.sensitive", self.sensitive, list(self.groups))
        for name, groups in self.groups.items():
            key = f"dataset.groups.{name}"
            for side, values in (("advantaged", groups.advantaged), ("disadvantaged", groups.disadvantaged)):
                require(len(values) > 0, f"{key}.{side}", values, "at least one value")
            both = sorted(set(groups.advantaged) & set(groups.disadvantaged))
            require(not both, f"{key}.disadvantaged", both, "values that are not advantaged")
