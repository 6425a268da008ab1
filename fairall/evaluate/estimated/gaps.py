"""Names of `estimates` as functions."""

import numpy as np

from fairall.evaluate.estimated.estimates import *  # noqa: F403
from fairall.evaluate.estimated.estimates import Estimate

interval, ends, difference_interval = Estimate.interval, Estimate.ends, Estimate.difference_interval


def gap(rates: np.ndarray) -> np.ndarray:
    """Largest rate minus smallest rate over groups, (..., G) → (...); NaN where a group's rate is NaN."""
    return rates.max(-1) - rates.min(-1)
