"""From `_target_` to the class it names."""

from __future__ import annotations

import inspect
import traceback
from importlib import import_module
from typing import Any

from omegaconf import DictConfig

from fairall.errors import FairAllError

# What the classes of a group are derived from, and what one is made from.
BASES = {
    "model": ("fairall.models.learner", "Learner", ("config", "setting")),
    "dataset": ("fairall.data.dataset", "Dataset", ("config",)),
    "initial_policy": ("fairall.online.initial_policy", "InitialPolicy", ("config",)),
}


def target_class(node: Any, group: str) -> Any:
    """The class that `node._target_` names, by module and name.

    Args:
        node: of the configuration.
        group: where the node is: model, dataset or initial_policy.

    Raises:
        FairAllError: where there is no such class, or it is none of the group.
    """
    target = node.get("_target_") if isinstance(node, dict | DictConfig) else node._target_
    if not target:
        raise FairAllError(
            f"{group}._target_ has no value: it names the class, as {group}._target_=module.Class"
        )
    key = f"{group}._target_={target}"
    module, _, name = str(target).rpartition(".")
    if not module:
        raise FairAllError(f"{key}: it names the class with its module, as module.Class")
    try:
        imported = import_module(module)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            reason = f"{error}; the module must be in the current folder, or installed"
            raise FairAllError(f"{key}: there is no such class ({reason})") from error
        raise FairAllError(f"{key}: {module} cannot be imported ({_where(error)})") from error
    try:
        found = getattr(imported, name)
    except AttributeError as error:
        raise FairAllError(f"{key}: there is no such class ({error})") from error
    _require_of_group(found, group, key)
    return found


def _where(error: Exception) -> str:
    """What went wrong in the file of a module, and where."""
    if isinstance(error, SyntaxError):
        file, line, reason = error.filename, error.lineno, error.msg
    else:
        frames = traceback.extract_tb(error.__traceback__)
        file, line = [(f.filename, f.lineno) for f in frames if not f.filename.startswith("<frozen")][-1]
        reason = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {reason}, {file}, line {line}"


def _require_of_group(found: Any, group: str, key: str) -> None:
    """Raises FairAllError unless `found` is a class that a run can make objects of the group from."""
    module, name, arguments = BASES[group]
    base = getattr(import_module(module), name)
    if not (inspect.isclass(found) and issubclass(found, base)):
        raise FairAllError(f"{key}: not a {module}.{name}; derive the class from that, or from one that is")
    if inspect.isabstract(found):
        lacking = ", ".join(sorted(getattr(found, "__abstractmethods__", ())))
        raise FairAllError(f"{key}: it lacks {lacking}, which every {name} has")
    try:
        inspect.signature(found).bind(*arguments)
    except TypeError as error:
        raise FairAllError(
            f"{key}: it is made from {' and '.join(arguments)}, so it begins "
            f"`def __init__(self, {', '.join(arguments)})`; its own does not take them ({error})"
        ) from error
