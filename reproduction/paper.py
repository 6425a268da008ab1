"""What the paper prints besides the measures of `fairall.results.paper_metrics`."""

from __future__ import annotations

from reproduction.words import words_of

HALF_DIGIT = 0.0005  # half a unit of the last printed digit, plain units
PAPER_SEEDS = 10  # of the printed means and standard deviations
_PRINTED = words_of("paper")


def synthetic_readings(initial_policy: str, model: str) -> dict[str, list[float]]:
    """Lowest and highest reading at t = 200 of the paper's figures on synthetic data, plain units."""
    readings = _PRINTED["synthetic"]["optimal"] | _PRINTED["synthetic"].get(initial_policy, {})
    return {measure: [end / 100 for end in ends] for measure, ends in readings.get(model, {}).items()}


def acceptance_rates(initial_policy: str, dataset: str) -> list[float]:
    """Printed acceptance rates of everybody, S = +1 and S = −1, in [0, 1]."""
    return [rate / 100 for rate in _PRINTED["acceptance"][initial_policy][dataset]]
