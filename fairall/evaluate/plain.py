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
        value = value.to_dict("records")
    if hasattr(value, "_asdict"):
        fields = value._asdict().items()
        value = {names.get(name, name): field for name, field in fields if field is not None}
    if isinstance(value, dict):
        return {name: plain(item, names) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, names) for item in value]
    if hasattr(value, "tolist"):  # of NumPy
        return plain(value.tolist())
    return None if isinstance(value, float) and not np.isfinite(value) else value


def spelt(time: Any) -> Any:
    """A time for people and JSON: a whole number as int, a date without the hour if that is 0."""
    if isinstance(time, np.datetime64):
        return str(time.astype("datetime64[s]")).replace("T", " ").removesuffix(" 00:00:00")
    return None if time is None else int(time) if float(time).is_integer() else float(time)
