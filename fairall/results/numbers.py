"""Means and intervals over seeds as text."""

from __future__ import annotations

from collections.abc import Sequence


def mean_and_std(mean: float, std: float | None, scale: int = 100, digits: int = 2) -> str:
    """A mean and its standard deviation, if there is one, as text."""
    spread = "" if std is None else f" ± {scale * std:.{digits}f}"
    return f"{scale * mean:.{digits}f}{spread}"


def interval_text(interval: Sequence[float] | None, scale: int = 100, digits: int = 2) -> str:
    """The two ends of an interval as text; empty where there is none."""
    return "" if interval is None else f"[{scale * interval[0]:.{digits}f}, {scale * interval[1]:.{digits}f}]"
