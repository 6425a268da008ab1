"""The user's own code that a run executes: loaded modules that are neither of this package nor installed."""

from __future__ import annotations

import functools
import hashlib
import re
import sys
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairall.runtime.terminal import INSTALLED
from fairall.storage.identity import syntax_hash

PACKAGE, SCRIPT = "fairall", "__main__"
SITE_PACKAGES = re.compile("/(site|dist)-packages/")  # of other environments too, which this one may include
REMEDY = "editing it makes no new run, so add force=true after that"

# Modules that were first imported during a run. An id is known before its run, so later ids of this process
# do not have them either, unless a configuration names them.
_late: set[str] = set()


@dataclass(frozen=True)
class OwnCode:
    """The user's own modules behind some objects.

    Attributes:
        hashes: of the syntax tree of each module, by its name.
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
        return sorted(map(_not_counted, late))


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
    folders: set[str] = set()
    for name in modules:
        file = Path(_file(name))
        depth = name.count(".") + (file.stem == "__init__")  # in its packages
        folders.update(f"{folder}/".replace("//", "/") for folder in file.parents[depth : depth + 1])
    hashes: dict[str, str] = {}
    doubts: list[str] = []
    for name in sorted(modules | _loaded(tuple(folders))):
        if name in _late - modules:
            doubts.append(_not_counted(name))
            continue
        file, module, now = Path(_file(name)), sys.modules[name], ""
        try:
            now = _content_hash(file.read_bytes())
        except OSError:
            doubts.append(f"the code of {name} is in no file; {REMEDY}")
        # An edited file changes nothing in the process, until the module is reloaded and has another
        # specification.
        hashes[name] = vars(getattr(module, "__spec__", None) or module).setdefault("_fairall_hash", now)
        if hashes[name] != now:
            changed = "has changed since this process imported it: start Python anew to run it"
            doubts.append(f"{file.name} {changed}")
    return OwnCode(hashes, doubts, tuple(folders))


def name_of(function: Callable[..., Any]) -> str:
    """The name of a function; with its module, where that is not of this package."""
    own = _top(function.__module__) != PACKAGE
    return f"{function.__module__}." * own + function.__qualname__


def _top(name: str) -> str:
    return name.partition(".")[0]


def _not_counted(name: str) -> str:
    return f"{name} was first imported during a run, so that no id has it; {REMEDY}"


def _loaded(folders: tuple[str, ...]) -> set[str]:
    """Names of the user's loaded modules in some folders, without a script, which may only start runs."""
    names = {name for name in [*sys.modules] if _file(name).startswith(folders)}
    return {*filter(_is_own, names - {SCRIPT})}


def _file(name: str) -> str:
    """The file of a loaded module, or nothing."""
    return getattr(sys.modules.get(name), "__file__", None) or ""


def _is_own(name: str) -> bool:
    """Whether a module is neither installed nor of Python itself or of this package."""
    file = _file(name)
    return not (file.startswith(INSTALLED) or SITE_PACKAGES.search(file))


@functools.lru_cache(maxsize=1024)
def _content_hash(content: bytes) -> str:
    """Hash of the syntax tree of a module, or of the bytes of what is no source or is broken."""
    with suppress(SyntaxError, ValueError):
        return syntax_hash(content)
    return hashlib.sha256(content).hexdigest()
