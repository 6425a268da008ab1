import hashlib
import os
import random
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pooch
import pytest

from fairall.data.raw.fetch import (
    RETRIES,
    DownloadConfig,
    RawFileConfig,
    find,
    raw_file,
)
from fairall.errors import FairAllError
from fairall.storage.files import cache_folder
from tests.conftest import typed

CONTENT = random.Random(0).randbytes(200_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
NAME = "people.csv"


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,0.0.0.0")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("FAIRALL_DATA", raising=False)


@pytest.fixture
def site() -> Iterator[SimpleNamespace]:
    """What a server on 127.0.0.1 does, and was asked for.

    The first answer leads to `location`, and so many answers as `cuts` are broken off midway.
    """
    made = SimpleNamespace(content=CONTENT, status=200, location="", cuts=0, requests=[])

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.requests.append(self.path)
            content, made.location, location = made.content, "", made.location
            self.send_response(302 if location else made.status)
            self.send_header("Location", location)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            made.cuts -= 1
            self.wfile.write(content[: 100_000 if made.cuts >= 0 else None])

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made.port = server.server_port
        made.url = f"http://127.0.0.1:{made.port}/files/{NAME}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield made
        server.shutdown()


def folk(url: str, **changed: Any) -> RawFileConfig:
    download = DownloadConfig(url, SHA256, len(CONTENT), None)
    config = RawFileConfig(
        name="folk", raw_file=None, known_files=[NAME, "people.zip"], download=download, accept_terms=False
    )
    return replace(config, **changed)


def refused(config: RawFileConfig) -> str:
    """The message, one line, of a file that is not to be had; nothing is left of it."""
    with pytest.raises(FairAllError, match=r"^[^\n]+$") as error:
        raw_file(config)
    assert not list(cache_folder("folk").glob("*"))
    return str(error.value)


def test_a_good_file_is_fetched_by_four_at_once_and_found_then(site: SimpleNamespace) -> None:
    umask = os.umask(0o027)
    try:
        with ThreadPoolExecutor(4) as pool:
            (path,) = {*pool.map(raw_file, [folk(site.url)] * 4)}
    finally:
        os.umask(umask)
    assert [*cache_folder("folk").iterdir()] == [path]
    assert path.read_bytes() == CONTENT
    assert path.stat().st_mode & 0o777 == 0o640
    site.requests.clear()
    assert raw_file(folk(site.url)) == path  # verified
    assert not site.requests


def test_begins_again_after_a_cut_a_few_times(site: SimpleNamespace) -> None:
    site.cuts = 1 + RETRIES
    told = f"to {cache_folder('folk')}: .*100000 bytes read, 100000 more expected.*dataset.raw_file=FILE"
    assert re.search(told, refused(folk(site.url)))
    assert len(site.requests) == 1 + RETRIES
    site.cuts = RETRIES
    assert raw_file(folk(site.url)).read_bytes() == CONTENT
    assert len(site.requests) == 2 * (1 + RETRIES)


def test_ctrl_c_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: object, url: str, output: str, store: object) -> None:
        Path(output).write_bytes(CONTENT[:1000])
        raise KeyboardInterrupt

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        raw_file(folk("https://nowhere.invalid/people.csv"))
    assert not list(cache_folder("folk").iterdir())


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"content": CONTENT[::-1]}, hashlib.sha256(CONTENT[::-1]).hexdigest()),
        ({"content": CONTENT[:1000]}, "1000 bytes arrived, expected 200000"),
        ({"status": 404}, "404 "),
        ({"status": 503}, "503 "),
        ({"url": "http://127.0.0.1:9/people.csv"}, "Connection refused"),
        ({"url": "people.csv"}, "only https"),
        ({"url": "http://a..b/people.csv"}, "only https"),
        ({"url": "http://[a/people.csv"}, "Invalid IPv6 URL"),
        ({"url": "https://a/"}, "must end with a file's name"),
    ],
)
def test_what_cannot_be_fetched(site: SimpleNamespace, sent: dict[str, Any], said: str) -> None:
    vars(site).update(sent)
    message = refused(folk(site.url))
    assert f"cannot fetch {site.url}" in message
    assert said in message


def test_redirection_in_the_clear(site: SimpleNamespace) -> None:
    site.location = location = f"http://0.0.0.0:{site.port}/{NAME}"  # this machine, not known as such
    assert f"cannot fetch {location}: only https" in refused(folk(site.url))


def test_folder_that_cannot_be(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, site: SimpleNamespace
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    message = refused(folk(site.url))
    assert re.search("file/fairall/folk: .*Not a directory.*XDG_CACHE_HOME=FOLDER", message)


def test_the_command_fetches_once(site: SimpleNamespace, tmp_path: Path) -> None:
    words = [
        f"dataset.download.{key}={value}" for key, value in vars(folk(site.url).download).items() if value
    ]
    path = cache_folder("compas") / NAME
    for downloads in (1, 0):
        ended = typed("data", "fetch", "compas", f"dataset.known_files=[{NAME}]", *words, cwd=tmp_path)
        # No bar: that is no terminal.
        told = f"fetching {site.url} to {path}\n" * downloads
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"compas: {path}\n", told)


def test_terms_are_needed_to_fetch(site: SimpleNamespace) -> None:
    config = folk(site.url)
    config.download.terms = "no names,\nno linking"
    message = refused(config)
    for words in ("people.zip", "no names, no linking", "dataset.accept_terms=true", "dataset.raw_file=FILE"):
        assert words in message
    assert not site.requests
    assert raw_file(replace(config, accept_terms=True)).read_bytes() == CONTENT


def test_search_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config, data = folk("http://nowhere.invalid/people.csv"), tmp_path / "data"
    monkeypatch.setenv("FAIRALL_DATA", "")
    assert find(config) is None
    monkeypatch.setenv("FAIRALL_DATA", str(data))
    nowhere = replace(config, download=DownloadConfig(None, None, None, None))
    assert f"not found in {data / 'folk'}, {tmp_path / 'cache'}" in refused(nowhere)
    # The last one counts: the folder before the name, and a given file before all.
    for name in (f"cache/fairall/folk/{NAME}", "data/folk/people.zip", f"data/folk/{NAME}", "given.csv"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        config.raw_file = str(path) if name == "given.csv" else None
        assert find(config) == path


def test_a_file_of_ones_own_is_verified(tmp_path: Path) -> None:
    path = tmp_path / NAME
    config = folk("http://nowhere.invalid/people.csv", raw_file=str(path))
    path.write_bytes(CONTENT[:-1])
    said = refused(config)
    assert re.search(rf"{path} is not the .* expected {SHA256[:12]}\.\.\.\): .*download.sha256=null", said)
    for content, expected in ((CONTENT[:-1], None), (CONTENT, SHA256.upper())):
        path.write_bytes(content)
        config.download.sha256 = expected
        assert raw_file(config) == path
