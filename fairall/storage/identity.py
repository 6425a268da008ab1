"""Identity of a result: a short hash of everything that determines its numbers, the user's code included."""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import re
import sys
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fairall.config.schema import Config
from fairall.errors import FairAllError
from fairall.runtime.process import INSTALLED, numba_version
from fairall.storage.files import cache_folder, sha256_of_text, write_text

# Keys that say where results are kept, how they are shown and where the data came from, and those that add
# outputs and change no other number. The identity has the functions of the measures in place of their names,
# and whether the log of decisions is requested.
IRRELEVANT = """
    outputs_dir force checkpoint_seconds threads tracking sweep objective hyperparameters
    dataset.path dataset.raw_file dataset.known_files dataset.download dataset.accept_terms
    evaluation.measures evaluation.decisions
""".split()
# Keys that define the problem: the people, what decisions on them are worth, and how they are measured.
PROBLEM = """
    dataset cost initial_policy world evaluation protocol.effective preset seed seeds splits
    schedule.warm_up_applicants schedule.applicants schedule.time_steps
""".split()
# Folders and files of the package whose code determines the numbers of a result. Values in config/ enter an
# identity with the configuration, those in files of data/ with the data.
COMPUTING = """
    tables data nn models worlds online measuring metrics.py policy.py runtime/process.py
    runtime/randomness.py
""".split()
# Exceptions: `python -m fairall data`, downloads, whose files enter by their content, what no run imports.
NOT_COMPUTING = """
    data/describe.py data/load.py data/raw/fetch.py measuring/__init__.py online/load.py
""".split()

PACKAGE, SCRIPT = "fairall", "__main__"
SITE_PACKAGES = re.compile("/(site|dist)-packages/")  # of other environments too, which this one may include
EMPTY_FIELD = re.compile(r",? ?\w+=\[\]")  # of a syntax tree
REMEDY = "editing it makes no new run, so add force=true after that"

# Modules of the user's that were first imported during a run. An id is known before its run, so later ids of
# this process do not have them either, unless a configuration names them.
_late: set[str] = set()


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


@functools.lru_cache(maxsize=1024)
def syntax_hash(source: bytes) -> str:
    """Hash of a module's syntax tree without docstrings, layout and messages.

    That is: comments, docstrings and other strings that stand alone, layout, and the messages of exceptions.
    Empty fields are left out too, such as those that a new version of Python adds for syntax that the module
    does not use, so that the hash is the same in all versions that read the module in the same way. A file
    that is no source of Python counts by its bytes.
    """
    try:
        syntax = ast.dump(_Bare().visit(ast.parse(source)))
    except (SyntaxError, ValueError):
        syntax = repr(source)
    return sha256_of_text(EMPTY_FIELD.sub("", syntax))


class _Bare(ast.NodeTransformer):
    """Removes strings that stand alone, and the messages of exceptions."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if _is_text(node.value) else self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        if isinstance(node.exc, ast.Call):
            node.exc.args = [x for x in node.exc.args if not (_is_text(x) or isinstance(x, ast.JoinedStr))]
        return self.generic_visit(node)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def computing_files(package: Path) -> list[Path]:
    """The modules of `package` that determine the numbers of a result, sorted."""
    listed = [package / name for name in COMPUTING]
    files = {file for path in listed for file in (path.rglob("*.py") if path.is_dir() else [path])}
    return sorted(files - {package / name for name in NOT_COMPUTING})


def determining(config: dict[str, Any], above: str = "") -> dict[str, Any]:
    """The part of a configuration, as plain containers, that determines a result; `above`: keys of a node."""
    return {
        key: determining(value, f"{above}{key}.") if isinstance(value, dict) else value
        for key, value in config.items()
        if f"{above}{key}" not in IRRELEVANT
    }


def defines_problem(key: str) -> bool:
    """Whether a key, or one beneath it, is in `PROBLEM`; all others belong to the method.

    Examples:
        >>> [defines_problem(key) for key in ("cost.value", "protocol", "protocol.kl", "model.alpha")]
        [True, True, False, False]
    """
    return any(f"{a}.".startswith(f"{b}.") for part in PROBLEM for a, b in ((key, part), (part, key)))


def configuration_key(config: Config) -> str:
    """Equal for configurations that determine equal results."""
    return json.dumps(determining(config.to_plain()), sort_keys=True, default=str)


def run_id(config: Config, data_fingerprint: str, code: Sequence[object] = ()) -> str:
    """Identity of a run, 12 hexadecimal digits.

    Args:
        config: of the run.
        data_fingerprint: hash of the data's content.
        code: names of the measures, and items of `OwnCode.hashes` of what the run executes.
    """
    determined_by = (
        configuration_key(config),
        config.evaluation.decisions,
        data_fingerprint,
        code_and_versions(),
        [*code],
    )
    return sha256_of_text(repr(determined_by))[:12]


@dataclass(frozen=True)
class OwnCode:
    """The user's own modules behind some objects.

    Attributes:
        hashes: of the content of each module, by its name, and the version of its package where it has one.
        doubts: what the hashes do not cover, a sentence each.
        folders: from which the modules are imported.
    """

    hashes: dict[str, str]
    doubts: list[str]
    folders: tuple[str, ...]

    def imported_since(self) -> list[str]:
        """A sentence on each own module that the process has imported since; later calls do not count it."""
        late = _loaded(self.folders) - self.hashes.keys() - _late
        _late.update(late)
        return [f"{name} was first imported during the run: {REMEDY}" for name in sorted(late)]


def own_code(named: Collection[str], *made: object) -> OwnCode:
    """The modules that some objects are from, and the user's loaded modules in the folders of these.

    Args:
        named: modules that are the user's own even where they are installed.
        made: functions, and objects, of which the classes count with their ancestors.
    """
    from_made = {part.__module__ for item in made for part in (item, *type(item).__mro__)}
    names = {*named, *map(_top, named), *filter(_is_own, from_made)}
    # Without a file are those built in, not loaded, or typed.
    modules = {name for name in names if _top(name) != PACKAGE and (_file(name) or name == SCRIPT)}
    folders = tuple(sorted({_folder(name) for name in modules if _file(name)}))
    hashes: dict[str, str] = {}
    doubts: list[str] = []
    for name in sorted(modules | (_loaded(folders) - _late)):
        path, module = Path(_file(name)), sys.modules[name]
        # The version, since the file of an installed package that is named may be an `__init__.py` alone.
        release = getattr(sys.modules.get(_top(name)), "__version__", "")
        now = f"{syntax_hash(path.read_bytes())} {release}".rstrip() if path.is_file() else ""
        # An edited file changes nothing in the process, until the module is reloaded and has another
        # specification.
        hashes[name] = vars(getattr(module, "__spec__", None) or module).setdefault("_fairall_hash", now)
        if not now:
            doubts.append(f"the code of {name} is in no file: {REMEDY}")
        elif hashes[name] != now:
            doubts.append(f"{path.name} has changed since its import: start Python anew to run it")
    return OwnCode(hashes, doubts, folders)


def _top(name: str) -> str:
    return name.partition(".")[0]


def _loaded(folders: tuple[str, ...]) -> set[str]:
    """Names of the user's loaded modules in some folders, without a script, which may only start runs."""
    names = {name for name in [*sys.modules] if _file(name).startswith(folders)}
    return {*filter(_is_own, names - {SCRIPT})}


def _folder(name: str) -> str:
    """The folder from which a module is imported, that of its outermost package."""
    depth = name.count(".") + _file(name).endswith("/__init__.py")
    return _file(name).rsplit("/", depth + 1)[0] + "/"


def _file(name: str) -> str:
    """The file of a loaded module, or nothing."""
    return getattr(sys.modules.get(name), "__file__", None) or ""


def _is_own(name: str) -> bool:
    """Whether a module is neither installed nor of Python itself or of this package."""
    return not (_file(name).startswith(INSTALLED) or SITE_PACKAGES.search(_file(name)))
