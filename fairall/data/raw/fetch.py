"""Atomic, resumable and verified downloads."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from filelock import FileLock

from fairall.data.raw.config import DownloadConfig
from fairall.errors import FairAllError
from fairall.storage.files import sha256

if TYPE_CHECKING:
    from requests import Response

Arrived = Callable[[int, int | None], None]  # bytes received, and in total where known

CHUNK = 1 << 14  # bytes; an incomplete chunk is lost when the connection is
RETRIES = 3
PAUSE = 2.0  # seconds before each retry
TIMEOUT = (10.0, 30.0)  # seconds to connect, and between bytes
BY_HAND = "download it by hand and give it with dataset.raw_file=FILE"  # ends every message here


class _CutError(Exception):
    """The connection was lost; `total` is the announced number of bytes."""

    def __init__(self, reason: str, total: int | None) -> None:
        super().__init__(reason)
        self.total = total


class _UnreachableError(_CutError):
    """The server did not answer."""


def fetch(download: DownloadConfig, target: Path, advance: Arrived) -> Path:
    """Download a file to `target`, which appears only once complete and verified.

    An interrupted download stays in `<target>.part` and the next call resumes it. If another process is
    fetching the same file, wait for it and use its file.

    Args:
        download: URL, and expected size and checksum.
        target: destination; its folder is created.
        advance: callback with the bytes received and their total.

    Returns:
        `target`.

    Raises:
        FairAllError: if the server is unreachable, refuses, or disconnects too often; if the file does not
            match `download`; if the folder cannot be written to.
    """
    part = target.with_name(f"{target.name}.part")
    with _writing_to(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(target.with_name(f"{target.name}.lock")):
            if not target.is_file():
                _receive(download, part, advance)
                _check(download, part)
                part.replace(target)
    return target


@contextmanager
def _writing_to(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FairAllError(
            f"cannot write to {folder}: {error.strerror or error}; "
            f"choose another place with XDG_CACHE_HOME=FOLDER, or {BY_HAND}"
        ) from error


def _receive(download: DownloadConfig, part: Path, advance: Arrived) -> None:
    """Download to `part`, resuming when the connection is lost."""
    total = download.size
    reason = ""
    for attempt in range(1 + RETRIES):
        if attempt:
            time.sleep(PAUSE)
        try:
            _receive_rest(download, part, advance)
            return
        except _UnreachableError as error:
            if attempt == 0:  # after a retry the server is known to exist
                host = urlsplit(download.url).netloc
                raise FairAllError(f"cannot reach {host} for {download.url}: {error}; {BY_HAND}") from error
            reason = str(error)
        except _CutError as error:
            total = error.total or total
            reason = str(error)
    of_total = "" if total is None else f" of {total}"
    raise FairAllError(
        f"{download.url}: the connection was cut {1 + RETRIES} times, last because of {reason!r}; "
        f"{_size(part)}{of_total} bytes have arrived, and the same command resumes from there; "
        f"or {BY_HAND}"
    )


def _receive_rest(download: DownloadConfig, part: Path, advance: Arrived) -> None:
    with _answer(download.url, part) as response:
        resumed = response.status_code == 206 and _start(response) == _size(part)
        if response.status_code != 200 and not resumed:
            raise FairAllError(
                f"{download.url}: the server answers with status {response.status_code} "
                f"({response.reason}); {BY_HAND}"
            )
        arrived = _size(part) if resumed else 0
        total = _total(response, arrived)
        with part.open("ab" if resumed else "wb") as file:
            for chunk in _chunks(response, total):
                file.write(chunk)
                arrived += len(chunk)
                advance(arrived, total or download.size)
    if total is not None and arrived < total:
        raise _CutError("the server stopped sending", total)


def _answer(url: str, part: Path) -> Response:
    """Response with the rest of `part`; with the whole file if the server cannot resume."""
    have = _size(part)
    response = _get(url, have)
    elsewhere = response.status_code == 206 and _start(response) != have
    if have and (response.status_code == 416 or elsewhere):
        response.close()
        part.unlink()
        response = _get(url, 0)
    return response


def _get(url: str, start: int) -> Response:
    import requests  # slow to import, rarely needed

    # With compression, lengths and ranges would not be those of the file.
    headers = {"Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    try:
        _refuse_in_the_clear(url)
        response = requests.get(url, headers=headers, stream=True, timeout=TIMEOUT)
        for hop in (*response.history, response):
            _refuse_in_the_clear(hop.url)
        return response
    except (requests.ConnectionError, requests.Timeout) as error:
        raise _UnreachableError(_reason(error), None) from error
    except (OSError, ValueError) as error:  # for example a malformed URL
        raise FairAllError(f"cannot fetch {url}: {_reason(error)}; {BY_HAND}") from error


def _refuse_in_the_clear(url: str) -> None:
    """Raise FairAllError for plain http, except from this machine."""
    parts = urlsplit(url)
    if parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "::1", "localhost"):
        raise FairAllError(f"{url}: only https is fetched; {BY_HAND}")


def _chunks(response: Response, total: int | None) -> Iterator[bytes]:
    """Chunks of the body; errors of requests, OSErrors like those of a full disk, become `_CutError`."""
    try:
        yield from response.iter_content(CHUNK)
    except OSError as error:
        raise _CutError(_reason(error), total) from error


def _start(response: Response) -> int | None:
    """Position of the first byte of a partial response."""
    found = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return None if found is None else int(found[1])


def _total(response: Response, arrived: int) -> int | None:
    """Length of the file according to the server."""
    length = response.headers.get("Content-Length", "")
    compressed = response.headers.get("Content-Encoding", "identity") != "identity"
    return arrived + int(length) if length.isdecimal() and not compressed else None


def _check(download: DownloadConfig, part: Path) -> None:
    """Raise FairAllError and delete `part` if it does not match `download`."""
    size = _size(part)
    if download.size is not None and size != download.size:
        wrong = f"{size} bytes, expected {download.size}"
    elif download.sha256 is not None and (got := sha256(part)) != download.sha256.lower():
        wrong = f"sha256 {got[:12]}..., expected {download.sha256[:12]}..."
    else:
        return
    part.unlink()
    raise FairAllError(
        f"{download.url}: what arrived is not the published file ({wrong}) and nothing was kept; "
        f"try again, or {BY_HAND}"
    )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _reason(error: BaseException) -> str:
    """Message of the innermost error; outer ones repeat the URL and name Python objects."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    words = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(words.split())
