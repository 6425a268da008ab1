"""Identity of a result: a short hash of everything that determines its numbers."""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fairall.config.schema import Config
from fairall.errors import FairAllError
from fairall.runtime.process import numba_version
from fairall.storage.files import cache_folder, sha256_of_text, write_text

# Keys that say where results are kept, how they are shown and where the data came from.
IRRELEVANT = "outputs_dir force checkpoint_seconds threads tracking sweep objective hyperparameters".split()
# Keys that define the problem: the people, what decisions on them are worth, and how they are measured.
PROBLEM = """
    dataset cost initial_policy world evaluation protocol.effective preset seed seeds splits
    schedule.warm_up_applicants schedule.applicants schedule.time_steps
""".split()
IRRELEVANT_OF_DATASET = ("path", "raw_file", "known_files", "download", "accept_terms")
# Keys of `evaluation` that add outputs and change no other number. The identity has the functions of the
# measures in place of their names, and whether the log of decisions is requested.
FURTHER_OUTPUTS = ("measures", "decisions")
# Folders and files of the package whose code determines the numbers of a result. Values in config/ enter an
# identity with the configuration, those in files of data/ with the data.
COMPUTING = """
    tables data nn models worlds online measuring metrics.py policy.py runtime/process.py
    runtime/randomness.py
""".split()
# Exceptions: `python -m fairall data`, downloads, whose files enter by their content, what no run imports.
NOT_COMPUTING = """
    data/describe.py data/load.py data/picture.py data/raw/fetch.py measuring/__init__.py online/load.py
""".split()


@functools.cache
def code_and_versions() -> str:
    """Hash of the code that computes and of the versions of the numeric libraries beneath it."""
    versions = [version(name) for name in ("torch", "numpy", "scipy", "scikit-learn")] + [numba_version()]
    return sha256_of_text(f"{versions} {code_hash(Path(__file__).parents[1])}")


def computation_key(*parts: bytes) -> str:
    """Key of a cached result of some parts, 16 hexadecimal digits; differs by code and versions too."""
    digest = hashlib.sha256(code_and_versions().encode())
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:16]


def code_hash(package: Path) -> str:
    """Hash of the names and syntax trees of the files of `package` that compute.

    It is kept in the user's cache folder, since to parse a hundred files takes a third of a second.
    """
    sources = {path.relative_to(package).as_posix(): path.read_bytes() for path in computing_files(package)}
    made_by = Path(__file__).read_bytes(), sys.version_info  # on which syntax trees depend
    content = sha256_of_text(repr((sources, made_by)))
    with suppress(FairAllError, OSError, ValueError):
        known = (cache_folder("code") / content).read_text(encoding="ascii")
        if re.fullmatch("[0-9a-f]{64}", known):
            return known
    made = sha256_of_text("\n".join(f"{name} {syntax_hash(source)}" for name, source in sources.items()))
    with suppress(FairAllError, OSError):
        write_text(cache_folder("code") / content, made)
    return made


def syntax_hash(source: bytes) -> str:
    """Hash of a module's syntax tree without docstrings, layout and messages.

    That is: comments, docstrings and other strings that stand alone, layout, and the messages of exceptions.
    Empty fields are left out too, such as those that a new version of Python adds for syntax that the module
    does not use, so that the hash is the same in all versions that read the module in the same way.
    """
    words: list[str] = []
    _add_syntax(ast.parse(source), words)
    return sha256_of_text("\n".join(words))


def _add_syntax(node: Any, words: list[str]) -> None:
    """Append a syntax tree to `words`: name of the node, names and values of its fields."""
    if not isinstance(node, ast.AST):
        words.append(repr(node))
        return
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        node.exc.args = [x for x in node.exc.args if not (_is_text(x) or isinstance(x, ast.JoinedStr))]
    words.append(type(node).__name__)
    for name in node._fields:
        value = getattr(node, name, None)
        # The context, load or store, follows from where a name stands.
        if value is None or value == [] or name == "ctx":
            continue
        words.append(name)
        if isinstance(value, list):
            words.append("[")
            for one in value:
                if not (isinstance(one, ast.Expr) and _is_text(one.value)):
                    _add_syntax(one, words)
            words.append("]")
        else:
            _add_syntax(value, words)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def computing_files(package: Path) -> list[Path]:
    """The modules of `package` that determine the numbers of a result, sorted."""
    listed = [package / name for name in COMPUTING]
    files = {file for path in listed for file in (path.rglob("*.py") if path.is_dir() else [path])}
    return sorted(files - {package / name for name in NOT_COMPUTING})


def determining(config: dict[str, Any]) -> dict[str, Any]:
    """The part of a configuration, as plain containers, that determines a result."""
    relevant = {key: value for key, value in config.items() if key not in IRRELEVANT}
    for node, left_out in (("dataset", IRRELEVANT_OF_DATASET), ("evaluation", FURTHER_OUTPUTS)):
        relevant[node] = {key: value for key, value in config[node].items() if key not in left_out}
    return relevant


def defines_problem(key: str) -> bool:
    """Whether a key, or one beneath it, is in `PROBLEM`; all others belong to the method.

    Examples:
        >>> [defines_problem(key) for key in ("cost.value", "protocol", "protocol.kl", "model.alpha")]
        [True, True, False, False]
    """
    return any(f"{a}.".startswith(f"{b}.") for own in PROBLEM for a, b in ((key, own), (own, key)))


def configuration_key(config: Config) -> str:
    """Equal for configurations that determine equal results."""
    return json.dumps(determining(config.to_plain()), sort_keys=True, default=str)


def run_id(config: Config, data_fingerprint: str, own_code: Sequence[object] = ()) -> str:
    """Identity of a run, 12 hexadecimal digits.

    Args:
        config: of the run.
        data_fingerprint: hash of the data's content.
        own_code: names of the measures, and items of `OwnCode.hashes` of what the run executes.
    """
    determined_by = (
        configuration_key(config),
        config.evaluation.decisions,
        data_fingerprint,
        code_and_versions(),
        [*own_code],
    )
    return sha256_of_text(repr(determined_by))[:12]
