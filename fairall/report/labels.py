"""Names of methods, data sets and measures in tables and figures."""

from __future__ import annotations

from fairall.config.choices import shown
from fairall.metrics import STANDARD, Quantity, curves, summaries

METHODS = ("fairall_I_II", "fairall_II", "fairlab_I_II", "fairlog", "unfairlog")  # of the paper
OPTIMAL = ("opt_fair", "opt_unfair")
DATASETS = {"compas": "COMPAS", "credit": "German Credit", "meps": "MEPS", "synthetic": "Synthetic"}
FURTHER_DATASETS = {"adult": "Adult", "law": "Law school", "fico": "FICO scores"}
REAL = ("compas", "credit", "meps")
BASELINE = "fairlog"  # the method that the paper compares with


def measures(*names: str) -> tuple[Quantity, ...]:
    """Measures of every run, by column of metrics.csv or key of summary.json."""
    known = {quantity.name: quantity for quantity in (*curves(STANDARD), *summaries(STANDARD))}
    return tuple(known[name] for name in names)


EFFECTIVE = measures("effective_utility", "effective_dpu")
TEMPORAL = measures("tv_utility", "mean_utility", "tv_dpu", "mean_dpu")
SYNTHETIC = measures("utility", "ground_truth_utility", "dpu", "cfu")


def method(name: str) -> str:
    """Name of a method as in its paper; unchanged for a user's own."""
    return shown(name).get("label", name)


def dataset(name: str) -> str:
    """Name of a data set as usually written."""
    return (DATASETS | FURTHER_DATASETS).get(name, name)
