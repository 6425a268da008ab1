"""The process that a command runs in; and public names of packages that are imported at their first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def imported_lazily(package: str, names: Mapping[str, str]) -> tuple[list[str], Callable[[str], Any]]:
    """`__all__` and `__getattr__` of a package.

    Args:
        package: its `__name__`.
        names: by module of the package, its public names with spaces between them.
    """
    modules = {name: f"{package}.{module}" for module, some in names.items() for name in some.split()}

    def attribute(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)

    return sorted(modules), attribute
