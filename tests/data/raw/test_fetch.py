import hashlib
import random
import re
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import cast

import pytest
from filelock import FileLock

from fairall.data.raw import fetch as fetching
from fairall.data.raw.config import DownloadConfig, RawTableConfig
from fairall.data.raw.fetch import fetch
from fairall.data.raw.files import cache_folder, find, raw_file, searched_folders, verified
from fairall.errors import FairAllError

CONTENT = random.Random(0).randbytes(200_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
NAME = "people.csv"


class Site(HTTPServer):
    """Serves CONTENT on 127.0.0.1, as badly as its attributes say."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = CONTENT
        self.status: int | None = None  # instead of the file
        self.cuts = 0  # how many answers are broken off midway
        self.answers: int | None = None  # how many requests are answered at all
        self.understands_ranges = True
        self.lies_about_ranges = False
        self.requests: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/files/{NAME}"

    @property
    def ranges(self) -> list[str | None]:
        return [headers.get("Range") for headers in self.requests]


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        site = cast(Site, self.server)
        site.requests.append(dict(self.headers))
        if site.answers is not None and len(site.requests) > site.answers:
            return
        if site.status is not None:
            self.send_error(site.status)
            return
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(asked[1]) if asked and site.understands_ranges else None
        if start is not None and start >= len(site.content):
            self.send_error(416)
            return
        self._send(site, start)

    def _send(self, site: Site, start: int | None) -> None:
        if start is None:
            self.send_response(200)
        else:
            start = 0 if site.lies_about_ranges else start
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(site.content) - 1}/{len(site.content)}")
        body = site.content[start or 0 :]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if site.cuts > 0:
            site.cuts -= 1
            body = body[: len(body) // 2]
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


class Told:
    """What the progress bar hears."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int | None]] = []

    def __call__(self, arrived: int, total: int | None) -> None:
        self.calls.append((arrived, total))


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(fetching, "PAUSE", 0)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("FAIRALL_DATA", raising=False)


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "folder" / NAME


@pytest.fixture
def part(target: Path) -> Path:
    """What an earlier command has left: the first 50,000 bytes."""
    path = part_of(target)
    path.parent.mkdir()
    path.write_bytes(CONTENT[:50_000])
    return path


def part_of(target: Path) -> Path:
    return target.with_name(f"{NAME}.part")


def published(url: str) -> DownloadConfig:
    return DownloadConfig(url=url, sha256=SHA256, size=len(CONTENT), terms=None)


def raw_table(url: str, *, raw_file: str | None = None, terms: str | None = None) -> RawTableConfig:
    return RawTableConfig(
        name="folk",
        raw_file=raw_file,
        known_files=[NAME, "people.zip"],
        download=replace(published(url), terms=terms),
        accept_terms=False,
    )


def message(error: pytest.ExceptionInfo[FairAllError]) -> str:
    """The error's text, which must be one line."""
    text = str(error.value)
    assert "\n" not in text
    return text


def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_good_file(site: Site, target: Path) -> None:
    told = Told()
    assert fetch(published(site.url), target, told) == target
    assert target.read_bytes() == CONTENT
    assert not part_of(target).exists()
    assert site.requests[0]["Accept-Encoding"] == "identity"
    assert told.calls == sorted(told.calls)
    assert told.calls[-1] == (len(CONTENT), len(CONTENT))


def test_size_and_checksum_may_be_unknown(site: Site, target: Path) -> None:
    fetch(DownloadConfig(url=site.url, sha256=None, size=None, terms=None), target, Told())
    assert target.read_bytes() == CONTENT


def test_goes_on_after_a_cut(site: Site, target: Path) -> None:
    site.cuts = 1
    told = Told()
    fetch(published(site.url), target, told)
    assert target.read_bytes() == CONTENT
    first, second = site.ranges
    assert first is None
    assert second is not None
    assert 0 < int(second.removeprefix("bytes=").removesuffix("-")) <= len(CONTENT) // 2
    assert {total for _, total in told.calls} == {len(CONTENT)}


def test_always_cut_keeps_what_arrived_for_the_next_command(site: Site, target: Path) -> None:
    site.cuts = 1 + fetching.RETRIES
    with pytest.raises(FairAllError) as error:
        fetch(published(site.url), target, Told())
    assert len(site.requests) == 1 + fetching.RETRIES
    kept = part_of(target).stat().st_size
    assert len(CONTENT) // 2 < kept < len(CONTENT)  # more than one answer's
    assert f"{kept} of {len(CONTENT)} bytes" in message(error)
    assert "same command resumes" in message(error)
    assert not target.exists()

    fetch(published(site.url), target, Told())
    assert site.ranges[-1] == f"bytes={kept}-"
    assert target.read_bytes() == CONTENT


def test_server_that_vanishes_midway(site: Site, target: Path) -> None:
    site.cuts = 1
    site.answers = 1
    with pytest.raises(FairAllError, match=f"of {len(CONTENT)} bytes have arrived") as error:
        fetch(published(site.url), target, Told())
    assert "closed connection without response" in message(error)
    assert len(site.requests) == 1 + fetching.RETRIES
    assert part_of(target).exists()


def test_range_ignored(site: Site, target: Path, part: Path) -> None:
    site.understands_ranges = False
    fetch(published(site.url), target, Told())
    assert site.ranges == ["bytes=50000-"]
    assert target.read_bytes() == CONTENT


def test_another_range_than_asked_for(site: Site, target: Path, part: Path) -> None:
    site.lies_about_ranges = True
    fetch(published(site.url), target, Told())
    assert site.ranges == ["bytes=50000-", None]
    assert target.read_bytes() == CONTENT


def test_part_with_nothing_left_to_ask_for(site: Site, target: Path, part: Path) -> None:
    part.write_bytes(bytes(len(CONTENT)))
    fetch(published(site.url), target, Told())
    assert site.ranges == [f"bytes={len(CONTENT)}-", None]
    assert target.read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("content", "expected", "got"),
    [
        (CONTENT[::-1], SHA256[:12], hashlib.sha256(CONTENT[::-1]).hexdigest()[:12]),
        (CONTENT[:1000], f"expected {len(CONTENT)}", "1000 bytes"),
    ],
)
def test_another_file(site: Site, target: Path, content: bytes, expected: str, got: str) -> None:
    site.content = content
    with pytest.raises(FairAllError, match="nothing was kept") as error:
        fetch(published(site.url), target, Told())
    assert all(words in message(error) for words in (site.url, expected, got))
    assert not target.exists()
    assert not part_of(target).exists()


@pytest.mark.parametrize("status", [404, 416, 503])
def test_status(site: Site, target: Path, status: int) -> None:
    site.status = status
    with pytest.raises(FairAllError, match=f"status {status}") as error:
        fetch(published(site.url), target, Told())
    assert site.url in message(error)
    assert "dataset.raw_file=FILE" in message(error)
    assert not part_of(target).exists()


def test_no_network(target: Path) -> None:
    port = closed_port()
    with pytest.raises(FairAllError, match=f"cannot reach 127.0.0.1:{port} ") as error:
        fetch(published(f"http://127.0.0.1:{port}/{NAME}"), target, Told())
    assert "Connection refused; " in message(error)
    assert "dataset.raw_file=FILE" in message(error)


@pytest.mark.parametrize("url", ["people.csv", "http://a..b/people.csv", "http://[a/people.csv", "http://a/"])
def test_no_url(url: str) -> None:
    with pytest.raises(FairAllError) as error:
        raw_file(raw_table(url))
    assert url in message(error)


def test_folder_that_cannot_be(site: Site, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    with pytest.raises(FairAllError, match="XDG_CACHE_HOME") as error:
        fetch(published(site.url), blocked / NAME, Told())
    assert f"cannot write to {blocked}: " in message(error)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full stands for a full disk")
def test_full_disk(site: Site, target: Path) -> None:
    target.parent.mkdir()
    part_of(target).symlink_to("/dev/full")
    with pytest.raises(FairAllError, match="No space left") as error:
        fetch(published(site.url), target, Told())
    assert f"cannot write to {target.parent}: " in message(error)


def test_two_at_once(site: Site, target: Path) -> None:
    target.parent.mkdir()
    results: list[Path] = []
    second = threading.Thread(target=lambda: results.append(fetch(published(site.url), target, Told())))
    with FileLock(target.with_name(f"{NAME}.lock")):
        second.start()
        time.sleep(0.1)
        assert not results
        target.write_bytes(CONTENT)
    second.join()
    assert results == [target]
    assert not site.requests


def test_raw_file_is_fetched_once(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    path = raw_file(raw_table(site.url))
    assert path == cache_folder("folk") / NAME
    assert path.read_bytes() == CONTENT
    captured = capsys.readouterr()
    assert captured.err == f"fetching {site.url} to {path}\n"  # no bar: that is no terminal
    assert not captured.out
    assert raw_file(raw_table(site.url)) == path
    assert len(site.requests) == 1


def test_terms_are_needed_to_fetch(site: Site) -> None:
    config = raw_table(site.url, terms="no names,\nno linking")
    with pytest.raises(FairAllError) as error:
        raw_file(config)
    for words in (NAME, "people.zip", str(cache_folder("folk")), "no names, no linking",
                  "dataset.accept_terms=true", "dataset.raw_file=FILE"):  # fmt: skip
        assert words in message(error)
    assert not site.requests

    config.accept_terms = True
    assert raw_file(config).read_bytes() == CONTENT


def test_failed_fetch_says_where_was_searched(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAIRALL_DATA", str(tmp_path / "data"))
    site.status = 404
    with pytest.raises(FairAllError, match="status 404") as error:
        raw_file(raw_table(site.url))
    for words in (*map(str, searched_folders("folk")), "dataset.raw_file=FILE", "$FAIRALL_DATA/folk"):
        assert words in message(error)


def test_search_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = raw_table("http://nowhere.invalid/people.csv")
    assert find(config) is None

    cached = tmp_path / "cache" / "fairall" / "folk" / NAME
    cached.parent.mkdir(parents=True)
    cached.touch()
    assert find(config) == cached

    data = tmp_path / "data" / "folk" / "people.zip"
    data.parent.mkdir(parents=True)
    data.touch()
    monkeypatch.setenv("FAIRALL_DATA", "")
    assert find(config) == cached
    monkeypatch.setenv("FAIRALL_DATA", str(tmp_path / "data"))
    assert find(config) == data  # the folder counts before the name
    data.with_name(NAME).touch()
    assert find(config) == data.with_name(NAME)

    given = tmp_path / "given.csv"
    given.touch()
    assert find(replace(config, raw_file=str(given))) == given


def test_cache_in_the_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert searched_folders("folk") == [tmp_path / ".cache" / "fairall" / "folk"]


def test_given_file_that_is_none(tmp_path: Path) -> None:
    for path, wrong in ((tmp_path, "is a folder"), (tmp_path / NAME, "no such file")):
        with pytest.raises(FairAllError, match=wrong) as error:
            find(raw_table("http://nowhere.invalid/people.csv", raw_file=str(path)))
        assert f"dataset.raw_file={path}" in message(error)


def test_a_file_of_ones_own_is_verified(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(CONTENT[:-1])
    config = raw_table("http://nowhere.invalid/people.csv", raw_file=str(path))
    with pytest.raises(FairAllError, match="not the published file") as error:
        raw_file(config)
    for words in (str(path), hashlib.sha256(CONTENT[:-1]).hexdigest()[:12], SHA256[:12],
                  "dataset.download.sha256=null"):  # fmt: skip
        assert words in message(error)

    config.download.sha256 = None
    assert raw_file(config) == path
    config.download.sha256 = SHA256.upper()
    path.write_bytes(CONTENT)
    assert verified(path, config) == path
