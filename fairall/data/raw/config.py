"""Configuration of a data set built from a raw file."""

from __future__ import annotations

from dataclasses import dataclass, field

from omegaconf import MISSING

from fairall.data.dataset import TableConfig


@dataclass
class DownloadConfig:
    """URL, checksum, size in bytes and terms of use of a raw file."""

    url: str = MISSING
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
