"""Names of methods, data sets and measures in tables and figures."""

from __future__ import annotations

from fairall.config.choices import shown
from fairall.display.style import GREY
from fairall.metrics import STANDARD, Quantity, curves, summaries

DATASETS = {
    "compas": "COMPAS",
    "credit": "German Credit",
    "meps": "MEPS",
    "synthetic": "Synthetic",
    "adult": "Adult",
    "law": "Law school",
    "fico": "FICO scores",
}


def measures(*names: str) -> tuple[Quantity, ...]:
    """Measures of every run, by column of metrics.csv or key of summary.json."""
    known = {quantity.name: quantity for quantity in (*curves(STANDARD), *summaries(STANDARD))}
    return tuple(known[name] for name in names)


def method_label(name: str) -> str:
    """Name of a method as in its paper; unchanged for a user's own."""
    return shown(name).get("label", name)


def dataset_label(name: str) -> str:
    """Name of a data set as usually written; unchanged for a user's own."""
    return DATASETS.get(name, name)


def look_of(method: str) -> dict[str, str]:
    """Colour and mark of a method's point."""
    known = shown(method)
    return {"color": known.get("colour", GREY), "marker": known.get("mark", "o")}
