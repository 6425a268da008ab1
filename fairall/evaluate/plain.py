"""Estimates and times as evaluation.json holds them."""

from __future__ import annotations

from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Nested containers as JSON holds them.

    Numbers that are not finite become None, and named tuples dicts without the fields that are None.
    """
    if hasattr(value, "_asdict"):
        value = {name: field for name, field in value._asdict().items() if field is not None}
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # of NumPy
        return plain(value.tolist())
    return None if isinstance(value, float) and not np.isfinite(value) else value


def spelt(time: Any) -> Any:
    """A time for people and JSON: a whole number as int, a date without the hour if that is 0."""
    if isinstance(time, np.datetime64):
        return str(time.astype("datetime64[s]")).replace("T", " ").removesuffix(" 00:00:00")
    return int(time) if float(time).is_integer() else float(time)
