"""Raw files that cannot be redistributed: finding and verifying them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from omegaconf import MISSING

from fairall.data.dataset import TableConfig
from fairall.data.raw.fetch import DownloadConfig, fetch
from fairall.errors import FairAllError
from fairall.runtime.reading import why_no_file
from fairall.storage.files import cache_folder, sha256


@dataclass
class RawTableConfig(TableConfig):
    """Keys of a data set built from a raw file that cannot be redistributed."""

    raw_file: str | None = MISSING
    known_files: list[str] = MISSING
    rows: int | None = MISSING
    download: DownloadConfig = field(default_factory=DownloadConfig)
    accept_terms: bool = MISSING


def raw_file(config: RawTableConfig) -> Path:
    """The verified raw file of a data set, fetched into the cache folder if not found.

    Raises:
        FairAllError: if it is not found and fetching fails or requires accepting terms; if its checksum is
            not the published one.
    """
    return verified(find(config) or _fetched(config), config)


def find(config: RawTableConfig) -> Path | None:
    """The given file, else the first known one in the first searched folder that has one.

    Raises:
        FairAllError: where the given file is not there.
    """
    if config.raw_file is not None:
        given = Path(config.raw_file).expanduser()
        if wrong := why_no_file(given):
            raise FairAllError(f"dataset.raw_file={config.raw_file}: {wrong}; give the path of a file")
        return given
    for folder in searched_folders(config.name):
        for name in config.known_files:
            if why_no_file(folder / name) is None:
                return folder / name
    return None


def searched_folders(name: str) -> list[Path]:
    """Folders searched for the files of the data set `name`, in order."""
    data = os.environ.get("FAIRALL_DATA")
    given = [Path(data).expanduser() / name] if data else []
    return [*given, cache_folder(name)]


def verified(path: Path, config: RawTableConfig) -> Path:
    """Return `path` after comparing its checksum to the published one, if any.

    Raises:
        FairAllError: where the file cannot be read, or its checksum is another one.
    """
    expected = config.download.sha256
    if expected is None:
        return path
    try:
        got = sha256(path)
    except OSError as error:
        raise FairAllError(f"{path}: cannot be read: {error.strerror or error}") from error
    if got != expected.lower():
        raise FairAllError(
            f"{path} is not the published file (sha256 {got[:12]}..., expected {expected[:12]}...): "
            "truncated or edited; delete it to fetch it again, or accept it with "
            "dataset.download.sha256=null"
        )
    return path


def _fetched(config: RawTableConfig) -> Path:
    download = config.download
    names = " or ".join(config.known_files)
    searched = ", ".join(str(folder) for folder in searched_folders(config.name))
    if download.url is None:
        raise FairAllError(
            f"{names}: not found in {searched}; nobody may pass it on without a licence, so that it is not "
            "fetched: give a file of your own with dataset.raw_file=FILE"
        )
    if download.terms is not None and not config.accept_terms:
        raise FairAllError(
            f"{names}: not found in {searched}; dataset.accept_terms=true fetches {download.url} and says "
            f"that you accept its terms ({' '.join(download.terms.split())}); "
            "or give the file with dataset.raw_file=FILE"
        )
    try:
        return fetch(download, cache_folder(config.name))
    except FairAllError as error:
        raise FairAllError(
            f"{error}; try again, cache elsewhere with XDG_CACHE_HOME=FOLDER, or download it by hand and "
            f"give it with dataset.raw_file=FILE or as {names} in $FAIRALL_DATA/{config.name}; "
            f"searched: {searched}"
        ) from error
