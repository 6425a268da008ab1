"""The class that `_target_` names."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Collection
from dataclasses import is_dataclass
from typing import Any

from fairall.config.schema import GROUPS, entry
from fairall.errors import FairAllError
from fairall.runtime.process import import_own


def target_class(node: Any, place: str) -> Any:
    """The class that `node._target_` names, whose `config_type` derives from that of its group.

    Args:
        node: a mapping, or a dataclass of the configuration.
        place: key of the node, which begins with one of `schema.GROUPS`.

    Raises:
        FairAllError: where there is no such class, or it is not of the group.
    """
    target = entry(node, "_target_")
    key = f"{place}._target_={target}"
    module, _, name = str(target or "").rpartition(".")
    if not module:
        raise FairAllError(
            f"{place}: no such key, or {place}._target_ has no value: it names the class, as module.Class"
        )
    try:
        named = getattr(import_own(module), name)
    except Exception as error:
        raise FairAllError(
            f"{key}: there is no such class ({type(error).__name__}: {error}); the module must be in the "
            "current folder, or installed, and importing it must succeed"
        ) from error
    base, config_type = GROUPS[place.partition(".")[0]], getattr(named, "config_type", None)
    if not (inspect.isclass(config_type) and issubclass(config_type, base) and is_dataclass(config_type)):
        raise FairAllError(
            f"{key}: its config_type is not a dataclass derived from {base.__module__}.{base.__name__}: "
            "derive the class from one of the same group"
        )
    if inspect.isabstract(named):
        raise FairAllError(f"{key}: it lacks {', '.join(sorted(named.__abstractmethods__))}")
    return named


def require_trusted(node: Any, group: str, modules: Collection[str]) -> None:
    """Raise FairAllError unless the class that `node._target_` names may be imported, which runs its code.

    Somebody else may have written the node. These may be imported: modules of this package whose names do
    not begin with `_`, those in `modules` or in packages there, and those that this process has imported
    already.
    """
    target = entry(node, "_target_")
    if not (isinstance(target, str) and re.fullmatch(r"\w{1,99}(\.\w{1,99}){1,9}", target)):
        raise FairAllError(f"{group}._target_ names no class as module.Class")
    module = target.rpartition(".")[0]
    trusted = f"{module}.".startswith(tuple(f"{name}." for name in modules))
    if not (trusted or module in sys.modules or re.match(r"fairall\.(?!.*\b_)", f"{module}.")):
        package = module.partition(".")[0]
        raise FairAllError(
            f"{group}._target_={target}: would run code of the module {module}, not of fairall; if you trust "
            f"who wrote {package}, name it: --trust {package}, or load_policy(..., modules=[{package!r}])"
        )
