"""Verified downloads."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from omegaconf import MISSING

from fairall.errors import FairAllError
from fairall.runtime.credentials import hidden

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


def fetch(download: DownloadConfig, folder: Path) -> Path:
    """Download a file to `folder`, where it appears only once complete and verified.

    A failed attempt leaves nothing behind; it is repeated from the first byte. The folder is created if
    needed; the file has the name at the end of the URL.

    Raises:
        FairAllError: if the URL is not https or names no file, the server cannot be reached, refuses or
            disconnects, the file does not match `download`, or the folder cannot be written to.
    """
    import pooch  # slow to import, rarely needed

    address = download.url or ""

    def receive(url: str, output: str, _: object) -> None:
        from tqdm import tqdm

        # Pooch's temporary file is for its owner alone; the one that replaces it follows the umask.
        Path(output).unlink()
        # Pooch replaces the total, but requires a bar that has one.
        with tqdm(desc=name, total=1, unit="B", unit_scale=True, leave=False, disable=None) as bar:
            get = pooch.HTTPDownloader(
                progressbar=bar,
                timeout=TIMEOUT,
                headers={"Accept-Encoding": "identity"},  # the bar's total is the file's size
                hooks={"response": _check},
            )
            get(url, output, None)
        size = Path(output).stat().st_size
        if download.size not in (None, size):
            raise ValueError(f"{size} bytes arrived, expected {download.size}")

    try:
        _refuse_in_the_clear(address)
        name = PurePosixPath(urlsplit(address).path).name
        if not name:
            raise ValueError("the URL must end with a file's name")
        store = pooch.create(
            folder,
            base_url="",
            registry={name: download.sha256},
            urls={name: address},
            retry_if_failed=RETRIES,
        )
        pooch.get_logger().setLevel("WARNING")  # silences its own line on each download
        print(f"fetching {hidden(address)} to {folder / name}", file=sys.stderr)
        store.fetch(name, downloader=receive)
    except (OSError, ValueError) as error:  # those of requests are OSErrors, that of a checksum a ValueError
        raise FairAllError(f"cannot fetch {hidden(address)} to {folder}: {_reason(error)}") from error
    return folder / name


def _check(response: Response, **_: object) -> None:
    """Raise the error of a response; close it, which pooch leaves to the garbage collector."""
    try:
        _refuse_in_the_clear(response.url)
        response.raise_for_status()
    except (OSError, FairAllError):
        response.close()
        raise


def _refuse_in_the_clear(url: str) -> None:
    """Raise FairAllError unless a URL, perhaps one redirected to, is https or of this machine."""
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in ("127.0.0.1", "::1", "localhost"):
        raise FairAllError(f"cannot fetch {hidden(url)}: only https is fetched")


def _reason(error: BaseException) -> str:
    """Message of the innermost error; outer ones repeat the URL and name Python objects."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    words = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(words.split()).rstrip(".")
