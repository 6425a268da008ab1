"""What changes the identity of a result, and what does not."""

import ast
import os
import re
import shutil
from pathlib import Path

import pytest

import fairall
from fairall.config.compose import typed_config
from fairall.storage import identity as identities
from fairall.storage.identity import (
    NOT_COMPUTING,
    code_and_versions,
    code_hash,
    computing_files,
    configuration_key,
    run_id,
    syntax_hash,
)

PACKAGE = Path(fairall.__file__).parent
# What computing modules import from elsewhere: values that enter the identity with the configuration, errors,
# types for annotations, files, tracking and display.
OTHER_ROOMS = {"config", "display", "errors", "results", "runtime", "storage", "tracking"}


def identity(*words: str) -> str:
    return run_id(typed_config(*words), "data")


def test_values_that_compute_change_the_identity_and_others_do_not() -> None:
    usual = identity()
    computing = """
        seed=1 seeds=3 cost.value=0.4 model.alpha=4 schedule.warm_up_epochs=9 protocol=published_code
        dataset.split.held_out=0.4 initial_policy=lenient evaluation.decisions=true
    """.split()
    assert len({usual, *map(identity, computing)}) == 1 + len(computing)
    where = ("threads=2", "outputs_dir=x", "force=true", "checkpoint_seconds=1", "tracking.enabled=false")
    assert identity(*where) == usual
    # A log of decisions is another result with the same numbers.
    with_log = typed_config("evaluation.decisions=true")
    assert configuration_key(with_log) == configuration_key(typed_config())


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package's sources, and no hash kept of them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return shutil.copytree(PACKAGE, tmp_path / "fairall", ignore=shutil.ignore_patterns("__pycache__"))


def test_changed_computation_changes_the_identity_and_other_code_keeps_it(package: Path) -> None:
    before = code_hash(package)
    assert before == code_hash(PACKAGE)
    computing = "data/splits tables/files nn/adam metrics runtime/randomness policy models/new".split()
    for name in (*computing, *"config/compose results/result storage/files data/describe errors".split()):
        path = package / f"{name}.py"
        text = path.read_text() if path.is_file() else ""
        path.write_text(f"{text}# A comment.\nCHANGED = 1\n")
        assert (code_hash(package) != before) == (name in computing), name
        path.write_text(f"{text}# A comment.\n") if text else path.unlink()
        assert code_hash(package) == before
    (package / "nn" / "bounded.py").rename(package / "nn" / "pieces.py")
    assert code_hash(package) != before


SOURCE = '''
"""A module."""
RATE = 0.1  # of learning
"""Of what comes."""

def scaled(x, by=None):
    """x times a rate."""
    if x is None:
        raise ValueError(f"{x} cannot be " "scaled")
    return x[1:] * RATE
'''


WORDS = {
    "A module.": "One module.",
    "Of what comes.": "For all.",
    "  # of learning": "",
    "\n    return": "\n\n    # The result.\n    return",
    "x[1:] * RATE": "(\n        x[1:]\n        * RATE\n    )",
    "cannot be ": "must not be ",
}
NUMBERS = {
    "0.1": "0.2",
    "x[1:]": "x[:1]",
    "by=None": "by",
    "=None": "=0",
    "* RATE": "+ RATE",
    "is None": "is not None",
    "ValueError": "KeyError",
    "RATE = ": "rate = ",
}


@pytest.mark.parametrize(("old", "new"), (WORDS | NUMBERS).items())
def test_what_can_change_a_number_is_part_of_the_identity_and_words_are_not(old: str, new: str) -> None:
    changed = SOURCE.replace(old, new)
    assert changed != SOURCE
    assert (syntax_hash(changed.encode()) == syntax_hash(SOURCE.encode())) == (old in WORDS)


@pytest.mark.usefixtures("package")
def test_the_hash_of_the_code_is_kept_where_it_can_be(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    usual = code_hash(PACKAGE)
    (kept,) = (tmp_path / "cache" / "fairall" / "code").iterdir()
    for damaged in ("", "nonsense", usual[1:], "\0" * 64):
        kept.write_text(damaged)
        assert code_hash(PACKAGE) == usual == kept.read_text()
    monkeypatch.setattr(identities, "syntax_hash", None)
    assert code_hash(PACKAGE) == usual
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    assert code_hash(PACKAGE) == usual


def test_the_hash_is_the_same_where_python_adds_empty_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = syntax_hash(SOURCE.encode())
    monkeypatch.setattr(ast.FunctionDef, "_fields", (*ast.FunctionDef._fields, "of_tomorrow"))
    monkeypatch.setattr(ast.FunctionDef, "of_tomorrow", [], raising=False)
    assert syntax_hash(SOURCE.encode()) == usual


def test_numba_and_its_absence_change_the_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = set()
    for numba in ("0.61.0", "0.61.1", None):
        monkeypatch.setattr(identities, "numba_version", lambda numba=numba: numba)
        hashes.add(code_and_versions.__wrapped__())
    assert len(hashes) == 3


def test_what_computing_modules_import_computes_too_or_is_known_not_to() -> None:
    files = computing_files(PACKAGE)
    known = {*files, *(PACKAGE / name for name in NOT_COMPUTING)}
    assert [path for path in known if not path.is_file()] == []
    for path in files:
        for module, name in re.findall(r"^ *from fairall\.(\S+) import \(?\s*(\w+)", path.read_text(), re.M):
            place = PACKAGE / module.replace(".", "/")
            possible = {place.with_suffix(".py"), place / "__init__.py", place / f"{name}.py"}
            room = module.partition(".")[0]
            assert room in OTHER_ROOMS or possible & known, (path, module)  # which is in no identity
