"""What things are called in tables and figures."""

from __future__ import annotations

from dataclasses import dataclass

METHODS = {
    "fairall_I_II": "FairAll (I+II)",
    "fairall_II": "FairAll (II)",
    "fairlab_I_II": "FairLab (I+II)",
    "fairlog": "FairLog",
    "unfairlog": "UnfairLog",
}
OPTIMAL = {"opt_fair": "OPT-FAIR", "opt_unfair": "OPT-UNFAIR"}
CONSTANT = {"accept_all": "accept everybody", "reject_all": "accept nobody", "random": "accept at random"}
DATASETS = {"compas": "COMPAS", "credit": "German Credit", "meps": "MEPS", "synthetic": "Synthetic"}
REAL = ("compas", "credit", "meps")
BASELINE = "fairlog"  # whom the paper competes with


@dataclass(frozen=True)
class Measure:
    """A column of a table.

    Attributes:
        key: of summary.json, or of metrics.csv.
        label: what it is called.
        higher: whether more is better.
    """

    key: str
    label: str
    higher: bool

    @property
    def heading(self) -> str:
        """Its label and which way is better."""
        return f"{self.label} {'↑' if self.higher else '↓'}"


EFFECTIVE = (
    Measure("effective_utility", "effective utility", higher=True),
    Measure("effective_dpu", "effective DPU", higher=False),
)
TEMPORAL = (
    Measure("tv_utility", "TV utility", higher=False),
    Measure("mean_utility", "mean utility", higher=True),
    Measure("tv_dpu", "TV DPU", higher=False),
    Measure("mean_dpu", "mean DPU", higher=False),
)
SYNTHETIC = (
    Measure("utility", "proxy utility", higher=True),
    Measure("ground_truth_utility", "ground-truth utility", higher=True),
    Measure("dpu", "DPU", higher=False),
    Measure("cfu", "CFU", higher=False),
)


def sampled(measures: tuple[Measure, ...]) -> tuple[Measure, ...]:
    """The same from drawn decisions."""
    return tuple(Measure(f"{m.key}_sampled", m.label, m.higher) for m in measures)


def method(name: str) -> str:
    """A method's name as the paper writes it; one of the user's own as it is."""
    return (METHODS | OPTIMAL | CONSTANT).get(name, name)


def dataset(name: str) -> str:
    """A data set's name as people write it."""
    return DATASETS.get(name, name)
