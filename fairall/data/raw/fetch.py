"""Raw files that cannot be part of the package: where they are, and verified downloads."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from omegaconf import MISSING

from fairall.data.dataset import TableConfig
from fairall.errors import FairAllError
from fairall.runtime.credentials import hidden
from fairall.storage.files import cache_folder, sha256
from fairall.storage.stored import why_no_file

if TYPE_CHECKING:
    from requests import Response

RETRIES = 2
TIMEOUT = (10.0, 30.0)  # seconds to connect, and between bytes


@dataclass
class DownloadConfig:
    """URL, checksum, size in bytes and terms of use of a raw file; no URL where it may not be fetched."""

    url: str | None = MISSING
    sha256: str | None = MISSING
    size: int | None = MISSING
    terms: str | None = MISSING


@dataclass
class RawFileConfig(TableConfig):
    """Keys of a data set with a raw file: its path or its possible names, and where it is fetched from."""

    raw_file: str | None = MISSING
    known_files: list[str] = MISSING
    download: DownloadConfig = field(default_factory=DownloadConfig)
    accept_terms: bool = MISSING


def raw_file(config: RawFileConfig) -> Path:
    """The verified raw file of a data set, fetched into the cache folder if not found.

    Raises:
        FairAllError: where it has another checksum than the published one; where it is not found and cannot
            be fetched, or its terms are not accepted.
        OSError: where it cannot be read.
    """
    path, expected = find(config), config.download.sha256
    if path is None:
        return _fetched(config)
    if expected is not None:
        require_published(path, sha256(path), expected, "dataset.download.sha256")
    return path


def require_published(name: object, checksum: str, expected: str, key: str) -> None:
    """Raise FairAllError where a file has another checksum than the one that a key expects."""
    if checksum != expected.lower():
        raise FairAllError(
            f"{name} is not the published file (sha256 {checksum[:12]}..., expected {expected[:12]}...): "
            f"delete it to fetch it again, or accept it with {key}=null"
        )


def find(config: RawFileConfig) -> Path | None:
    """The given file, else the first known one in the first searched folder that has one.

    Raises:
        FairAllError: where the given file is not there.
    """
    if config.raw_file is not None:
        path = Path(config.raw_file).expanduser()
        if wrong := why_no_file(path):
            raise FairAllError(f"dataset.raw_file={config.raw_file}: {wrong}; give the path of a file")
        return path
    paths = (folder / name for folder in searched_folders(config.name) for name in config.known_files)
    return next(filter(Path.is_file, paths), None)


def searched_folders(name: str) -> list[Path]:
    """Folders searched for the files of the data set `name`, in order."""
    data = os.environ.get("FAIRALL_DATA")
    return [*([Path(data).expanduser() / name] if data else []), cache_folder(name)]


def _fetched(config: RawFileConfig) -> Path:
    """The raw file in the cache folder, where it appears only once complete and verified."""
    import pooch  # slow to import, rarely needed

    download, folder = config.download, cache_folder(config.name)
    searched = ", ".join(map(str, searched_folders(config.name)))
    missing = f"{' or '.join(config.known_files)}: not found in {searched}"
    if download.url is None:
        raise FairAllError(
            f"{missing}; nobody may pass it on without a licence, so that it is not fetched: give a file of "
            "your own with dataset.raw_file=FILE"
        )
    if download.terms is not None and not config.accept_terms:
        raise FairAllError(
            f"{missing}; dataset.accept_terms=true fetches {download.url} and says that you accept its terms "
            f"({' '.join(download.terms.split())}); or give the file with dataset.raw_file=FILE"
        )
    receive = pooch.HTTPDownloader(
        progressbar=sys.stderr.isatty(), timeout=TIMEOUT, hooks={"response": _check}
    )

    def receive_whole(url: str, output: str, _: object) -> None:
        # Pooch's temporary file is for its owner alone; the one that replaces it follows the umask.
        Path(output).unlink()
        receive(url, output, None)
        size = Path(output).stat().st_size
        if download.size not in (None, size):
            raise ValueError(f"{size} bytes arrived, expected {download.size}")

    try:
        _require_https(download.url)
        name = PurePosixPath(urlsplit(download.url).path).name
        if not name:
            raise ValueError("the URL must end with a file's name")
        store = pooch.create(
            folder, "", registry={name: download.sha256}, urls={name: download.url}, retry_if_failed=RETRIES
        )
        pooch.get_logger().setLevel("WARNING")  # silences its own line on each download
        print(f"fetching {hidden(download.url)} to {folder / name}", file=sys.stderr)
        return Path(store.fetch(name, downloader=receive_whole))
    except (OSError, ValueError) as error:  # those of requests are OSErrors, that of a checksum a ValueError
        reason: BaseException = error
        while reason.__context__ is not None:  # outer ones repeat the URL and name Python objects
            reason = reason.__context__
        raise FairAllError(
            f"cannot fetch {hidden(download.url)} to {folder}: {reason}; {missing}; try again, cache "
            "elsewhere with XDG_CACHE_HOME=FOLDER, or download it by hand and give it with "
            "dataset.raw_file=FILE"
        ) from error


def _check(response: Response, **_: object) -> None:
    """Raise the error of a response, perhaps a redirected one; close it, which pooch does not."""
    try:
        _require_https(response.url)
        response.raise_for_status()
    except (OSError, FairAllError):
        response.close()
        raise


def _require_https(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in ("127.0.0.1", "::1", "localhost"):
        raise FairAllError(f"cannot fetch {hidden(url)}: only https is fetched")
