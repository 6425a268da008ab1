"""Estimates and times as evaluation.json holds them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

ByName = dict[str, Any]  # results by name


def plain(value: Any, names: Mapping[str, str] = MappingProxyType({})) -> Any:
    """Nested containers as JSON holds them.

    Numbers that are not finite become None, tables a list of their rows, and named tuples dicts without the
    fields that are None.

    Args:
        value: anything.
        names: other names of fields of named tuples.
    """
    if isinstance(value, pd.DataFrame):
        return plain(value.to_dict("records"), names)
    if hasattr(value, "_asdict"):
        fields = value._asdict().items()
        return {names.get(name, name): plain(one, names) for name, one in fields if one is not None}
    if isinstance(value, dict):
        return {name: plain(one, names) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one, names) for one in value]
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    if isinstance(value, np.ndarray | np.integer | np.bool_):
        return plain(value.tolist())
    return value


def spelt(time: Any) -> Any:
    """A time for people and JSON: a whole number as int, a date without the hour if that is 0."""
    if isinstance(time, np.datetime64):
        return str(time.astype("datetime64[s]")).replace("T", " ").removesuffix(" 00:00:00")
    return None if time is None else int(time) if float(time).is_integer() else float(time)
