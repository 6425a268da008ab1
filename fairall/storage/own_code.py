"""The user's own code that a run executes: modules that are neither of this package nor installed.

Modules are found by the import statements of the modules that a configuration names, and of those that these
import, so that other modules of the process change nothing. None is executed to find it.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import itertools
import pkgutil
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from fairall.storage.identity import tree_hash

PACKAGE = "fairall"
INSTALLED = {"site-packages", "dist-packages"}
# Folders of Python's own modules.
STANDARD = [Path(sysconfig.get_path(key)).absolute() for key in ("stdlib", "platstdlib")]
# What finds or runs code by a name or a text that is computed.
DYNAMIC = {"import_module", "__import__", "run_path", "run_module", "spec_from_file_location"}
DYNAMIC_ALONE = {"exec", "eval"}  # as methods they mean something else
EVERYTHING = ".*"  # after a package: all modules in it, since `import *` takes those that `__all__` names
REMEDY = "editing it makes no new run, so add force=true after that"


@dataclass(frozen=True)
class OwnCode:
    """The user's own modules behind some objects.

    Attributes:
        hashes: name and hash of the syntax tree of each module, sorted.
        doubts: what the hashes do not tell, a sentence each.
    """

    hashes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Module:
    """A module of the user's: hash of its syntax tree or content, names of what it imports, and doubts."""

    hash: str
    imports: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


# Modules that this process has imported, as their files were when first seen. An edited file changes nothing
# in the process, until the module is reloaded and has another specification.
_imported: dict[str, tuple[object, _Module]] = {}


def own_code(named: Iterable[str], *made: object) -> OwnCode:
    """The user's modules that some objects are made by, with all that these import.

    Args:
        named: modules that are the user's own even where they are installed.
        made: functions, and objects, of which the classes count and those of all objects in them.
    """
    named = {name for name in named if _top(name) != PACKAGE}
    tops = {_top(name) for name in named}
    found: dict[str, _Module] = {}
    doubts: list[str] = []
    seen: set[str] = set()
    waiting = [part for name in (*named, *_modules_of(made)) for part in _with_packages(name)]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name.endswith(EVERYTHING):
            waiting += _inside(name.removesuffix(EVERYTHING))
        elif (module := _own_module(name, tops)) is not None:
            found[name] = module
            doubts += module.doubts
            waiting += module.imports
    hashes = sorted(f"{name} {module.hash}" for name, module in found.items())
    return OwnCode(tuple(hashes), tuple(sorted(doubts)))


def name_of(function: Callable[..., Any]) -> str:
    """The name of a function; with its module, where that is not of this package."""
    own = _top(function.__module__) != PACKAGE
    return f"{function.__module__}." * own + function.__qualname__


def _top(name: str) -> str:
    return name.partition(".")[0]


def _modules_of(made: Iterable[object]) -> set[str]:
    """Names of the modules of functions, of the classes of objects, and of those of all objects in them."""
    names: set[str] = set()
    seen: dict[int, object] = {}  # objects, so that no other one gets the id of one that is gone
    waiting = list(made)
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, str | bytes | int | float | None | ModuleType):
            continue
        seen[id(one)] = one
        if isinstance(one, FunctionType | BuiltinFunctionType):
            names.add(one.__module__ or PACKAGE)
        elif isinstance(one, type):
            names |= {ancestor.__module__ for ancestor in one.__mro__}
        elif isinstance(one, MethodType):
            waiting += [one.__func__, one.__self__]
        elif isinstance(one, functools.partial):
            waiting += [one.func, *one.args, *one.keywords.values()]
        else:
            waiting.append(type(one))
            if isinstance(one, dict):
                waiting += one.values()
            elif isinstance(one, list | tuple | set | frozenset):
                waiting += one
            waiting += getattr(one, "__dict__", {}).values()
    return {name for name in names if _top(name) != PACKAGE}


def _own_module(name: str, tops: set[str]) -> _Module | None:
    """A module of the user's; None where there is none of the name, or it is not the user's."""
    spec, loaded = _specification(name), sys.modules.get(name)
    file = _file(name)
    outermost = _file(_top(name)) or file
    # What is in no file has been typed; the rest is the user's unless it is installed or of Python itself.
    is_own = outermost is None or not (
        INSTALLED & {*outermost.parts} or any(map(outermost.is_relative_to, STANDARD))
    )
    if _top(name) == PACKAGE or not (_top(name) in tops or is_own):
        return None
    if file is None and (spec is not None or loaded is None):  # none, built in, or a package without code
        return None
    content = None if file is None else _content(spec, file)
    if file is None or content is None:
        return _Module("", doubts=(f"the code of {name} is in no file; {REMEDY}",))
    now = _read(content, name, spec is not None and spec.submodule_search_locations is not None, file.name)
    if loaded is None:
        return now
    of = spec or loaded
    before, module = _imported.setdefault(name, (of, now))
    if before is not of:
        _imported[name] = of, now
        return now
    if module.hash != now.hash:
        changed = f"{file.name} has changed since this process imported it: start Python anew to run it"
        return _Module(module.hash, module.imports, (*module.doubts, changed))
    return module


def _specification(name: str) -> ModuleSpec | None:
    """Where a module is found, without importing it or the package that it is in."""
    loaded = sys.modules.get(name)
    if loaded is not None:
        return getattr(loaded, "__spec__", None)
    path = None
    if parent := name.rpartition(".")[0]:
        above = _specification(parent)
        path = above and above.submodule_search_locations
        if path is None:
            return None
    finders = (find for finder in sys.meta_path if (find := getattr(finder, "find_spec", None)))
    return next((spec for find in finders if (spec := find(name, path))), None)


def _file(name: str) -> Path | None:
    """The file of a module, which may be in a zip archive; None without one, as for a built-in module."""
    spec, loaded = _specification(name), sys.modules.get(name)
    found = getattr(loaded, "__file__", None) if spec is None else spec.origin if spec.has_location else None
    return None if found is None else Path(found).absolute()


def _inside(name: str) -> list[str]:
    """Names of the modules in a package of the user's."""
    spec = _specification(name)
    places = spec and spec.submodule_search_locations
    return [f"{name}.{one.name}" for one in pkgutil.iter_modules(places or [])]


def _content(spec: ModuleSpec | None, file: Path) -> bytes | None:
    """The file of a module, which may be in a zip archive; None where it cannot be read."""
    try:
        return file.read_bytes()
    except OSError:
        get_data = getattr(spec and spec.loader, "get_data", None)
    with suppress(OSError):
        return get_data and get_data(str(file))
    return None


@functools.lru_cache(maxsize=1024)
def _read(content: bytes, name: str, is_package: bool, file: str) -> _Module:
    """A module of some content; `file` is the name of its file."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):  # no source, or broken
        return _Module(tree_hash(ast.Constant(content)))
    package = name if is_package else name.rpartition(".")[0]
    doubts = [
        f"{file}, line {node.lineno}: runs code whose name is computed; {REMEDY}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _runs_code(node.func) and _constant(node) is None
    ]
    imports = dict.fromkeys(above for one in _imports(tree, package) for above in _with_packages(one))
    return _Module(tree_hash(tree), tuple(imports), tuple(doubts))


def _with_packages(name: str) -> Iterator[str]:
    """The packages that a module is in, from the outermost, and the module."""
    return itertools.accumulate(name.split("."), "{}.{}".format)


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    """Names of the modules that the statements of a module in `package` may import, anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute("." * node.level + (node.module or ""), package)
            if base is None:
                continue
            yield base
            for alias in node.names:
                yield f"{base}.{alias.name}"  # `EVERYTHING`, a module, or something in one
        elif isinstance(node, ast.Call) and _runs_code(node.func):
            name = _absolute(_constant(node) or "", package)
            if name is not None:
                yield name


def _runs_code(function: ast.expr) -> bool:
    """Whether a call of `function` imports or runs what its first argument says."""
    if isinstance(function, ast.Attribute):
        return function.attr in DYNAMIC
    return isinstance(function, ast.Name) and function.id in DYNAMIC | DYNAMIC_ALONE


def _constant(call: ast.Call) -> str | None:
    """The name of the module that is the first argument of a call; None where it is computed, or code."""
    match call:
        case ast.Call(
            func=ast.Attribute(attr="import_module" | "__import__")
            | ast.Name("import_module" | "__import__"),
            args=[ast.Constant(str(name)), *_],
        ):
            return name
    return None


def _absolute(name: str, package: str) -> str | None:
    """An absolute name of a module that may begin with dots; None where there is none."""
    try:
        return importlib.util.resolve_name(name, package) or None
    except ImportError:
        return None
