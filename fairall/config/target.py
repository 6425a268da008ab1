"""The class that `_target_` names."""

from __future__ import annotations

import inspect
import re
import sys
import traceback
from collections.abc import Collection, Sequence
from dataclasses import is_dataclass
from importlib import import_module
from typing import Any

from omegaconf import DictConfig

from fairall.errors import FairAllError
from fairall.runtime.process import import_own

# By group the base class of its classes, imported when needed, and the arguments they are made from.
BASES = {
    "model": ("fairall.models.learner", "Learner", ("config", "setting")),
    "dataset": ("fairall.data.dataset", "Dataset", ("config",)),
    "initial_policy": ("fairall.online.initial_policy", "InitialPolicy", ("config",)),
    "world": ("fairall.worlds.part", "Part", ("config", "setting")),
}


def target_class(node: Any, place: str) -> Any:
    """The class that `node._target_` names; `place`, the key of the node, begins with a group of `BASES`.

    Raises:
        FairAllError: where there is no such class, or it is not of the group.
    """
    target = node.get("_target_") if isinstance(node, dict | DictConfig) else getattr(node, "_target_", None)
    if not target or target == "???":
        raise FairAllError(
            f"{place}._target_ has no value: it names the class, as {place}._target_=module.Class"
        )
    key = f"{place}._target_={target}"
    module, _, name = str(target).rpartition(".")
    if not module:
        raise FairAllError(f"{key}: it names the class with its module, as module.Class")
    try:
        found = getattr(import_own(module), name)
    except Exception as error:
        missing = isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}.")
        if missing or (isinstance(error, AttributeError) and module in sys.modules):
            where = "; the module must be in the current folder, or installed" * missing
            raise FairAllError(f"{key}: there is no such class ({error}{where})") from error
        raise FairAllError(f"{key}: {module} cannot be imported ({_where(error)})") from error
    if problem := _unfit(found, *BASES[place.partition(".")[0]]):
        raise FairAllError(f"{key}: {problem}")
    return found


def _unfit(found: Any, module: str, name: str, arguments: Sequence[str]) -> str:
    """Why `found` is no class derived from `name` in `module` and made from `arguments`; empty if it is."""
    base = getattr(import_module(module), name)
    if not (inspect.isclass(found) and issubclass(found, base)):
        return f"not a {module}.{name}; derive the class from that, or from one that is"
    if inspect.isabstract(found):
        lacking = sorted(getattr(found, "__abstractmethods__", ()))
        return f"it lacks {', '.join(lacking)}, which every {name} has"
    try:
        inspect.signature(found).bind(*arguments)
    except TypeError as error:
        made = f"`def __init__(self, {', '.join(arguments)})`"
        return f"it is made from {' and '.join(arguments)}, so it begins {made} ({error})"
    declared, of_base = getattr(found, "config_type", None), base.config_type
    if not (inspect.isclass(declared) and issubclass(declared, of_base) and is_dataclass(declared)):
        return f"its config_type is not a dataclass derived from {of_base.__module__}.{of_base.__name__}"
    return ""


def require_trusted(node: Any, group: str, modules: Collection[str]) -> None:
    """Raise FairAllError unless the class that `node._target_` names may be imported, which runs its code.

    Somebody else may have written the node. These may be imported: modules of the group's own room of this
    package, those in `modules` or in packages there, and those that this process has imported already.
    """
    target = node.get("_target_") if isinstance(node, dict) else None
    if not (isinstance(target, str) and re.fullmatch(r"\w{1,99}(\.\w{1,99}){1,9}", target)):
        raise FairAllError(f"{group}._target_ names no class as module.Class")
    module = target.rpartition(".")[0]
    room = BASES[group][0].rpartition(".")[0]
    own = module.startswith(f"{room}.") and not any(part.startswith("_") for part in module.split("."))
    named = any(module == one or module.startswith(f"{one}.") for one in modules)
    if not (own or named or module in sys.modules):
        package = module.partition(".")[0]
        raise FairAllError(
            f"{group}._target_={target}: would run code of the module {module}, not of fairall; if you trust "
            f"who wrote {package}, name it: --trust {package}, or load_policy(..., modules=[{package!r}])"
        )


def _where(error: Exception) -> str:
    """Type, message, file and line of an error raised by an import."""
    if isinstance(error, SyntaxError):
        file, line, reason = error.filename, error.lineno, error.msg
    else:
        frames = traceback.extract_tb(error.__traceback__)
        file, line = [(f.filename, f.lineno) for f in frames if not f.filename.startswith("<frozen")][-1]
        reason = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {reason}, {file}, line {line}"
