"""Numbers as evaluation.json holds them."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairall.evaluate.gaps import Interval

NOTHING: dict[str, Any] = {"estimate": None, "low": None, "high": None}


def as_plain(**numbers: Any) -> dict[str, float | None]:
    """Numbers as JSON can hold them: None where not finite."""
    return {
        name: float(value) if value is not None and np.isfinite(value) else None
        for name, value in numbers.items()
    }


def interval(found: Interval, why: str | None = None) -> dict[str, Any]:
    """An estimate with its interval, or with the reason why it has none."""
    if why is not None:
        return NOTHING | as_plain(estimate=found.estimate) | {"why": why}
    return as_plain(**found._asdict())


def without(why: str | None) -> dict[str, Any]:
    """No estimate, and the reason."""
    return NOTHING | {"why": why}
