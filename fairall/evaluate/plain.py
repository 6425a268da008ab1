"""Estimates as evaluation.json holds them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd


def plain(value: Any) -> Any:
    """Nested containers as JSON holds them.

    Numbers that are not finite become None, tables a list of their rows, and named tuples dicts without the
    fields that are None.
    """
    if isinstance(value, pd.DataFrame):
        return plain(value.to_dict("records"))
    if hasattr(value, "_asdict"):
        return {name: plain(one) for name, one in value._asdict().items() if one is not None}
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    if isinstance(value, np.ndarray | np.integer | np.bool_):
        return plain(value.tolist())
    return value
