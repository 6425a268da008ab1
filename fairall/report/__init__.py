"""Comparison of runs: comparable ones side by side, with paired tests; the names of `__all__` are public."""

from importlib import import_module
from typing import Any

_NAMES = {
    "comparable": "UNTESTED",
    "comparison": "STYLES chosen_runs compare draw_over_time made",
    "labels": "dataset_label look_of measures method_label",
    "latents": "Space latent_space",
    "side_by_side": "WITH_ROW first_reference group_rows with_references",
    "statistics": "LEVEL holm paired_p standings",
}
# Imported at their first use: pandas and matplotlib take a second.
_MODULES = {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
