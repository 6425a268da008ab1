"""Results of runs as numbers, tables, figures and pages; the names of `__all__` are public."""

from importlib import import_module
from typing import Any

_NAMES = {
    "figures": """
        BLUE COLUMN GREEN GREY LEVELS ORANGE PALETTE PURPLE STYLE
        band handles_of has_level interval legend_below level principal
    """,
    "format": "mean_interval mean_std number signed",
    "interpretable": "CAUTION QUICK marked own_name",
    "page": "PageFigure cautioned save write write_page",
    "paper": "HALF_DIGIT acceptance_rates paper_metrics paper_seeds synthetic_readings",
    "result": "REFERENCES",
    "table": """
        Cell Item Lacking Row Table frame_of print_table records_of to_csv to_latex to_markdown
    """,
    "time_left": "in_words",
}
# Imported at their first use: pandas and matplotlib take a second.
_MODULES = {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
