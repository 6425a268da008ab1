"""The reader of new people as plain containers, as a saved policy has it in JSON."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any, TypeVar

import numpy as np

from fairall.errors import FairAllError
from fairall.tables.cells import shown
from fairall.tables.features import DISCRETE, Feature, Kind, are_counts
from fairall.tables.groups import Sensitive
from fairall.tables.people import PeopleReader

T = TypeVar("T")


def to_plain(reader: PeopleReader) -> dict[str, Any]:
    """Features with their mean, scale and range, and the sensitive attribute."""
    numbers = zip(reader.features, reader.mean, reader.scale, reader.lowest, reader.highest, strict=True)
    features = [
        asdict(one)
        | {"kind": one.kind.value, "mean": float(mean), "scale": float(scale)}
        | {"lowest": None if np.isnan(low) else low, "highest": None if np.isnan(high) else high}
        for one, mean, scale, low, high in numbers
    ]
    sensitive = None if reader.sensitive is None else asdict(reader.sensitive)
    if sensitive is not None and not sensitive["further"]:
        del sensitive["further"]
    return {"features": features, "sensitive": sensitive}


def from_plain(plain: Any) -> PeopleReader:
    """Inverse of `to_plain`, also after a round trip through JSON; `plain` may be a stranger's.

    Raises:
        FairAllError: naming what is not possible, where `plain` is nothing that `to_plain` returns.
    """
    sensitive = _of_plain("sensitive", _sensitive_of, plain.get("sensitive"))
    items = plain.get("features")
    if not isinstance(items, list) or not items:
        raise FairAllError("features must be a list with at least one feature")
    features = [_of_plain(f"features.{i}", _feature_of, item) for i, item in enumerate(items)]
    numbers = [
        _of_plain(f"features.{i}", partial(_numbers_of, feature.kind), item)
        for i, (feature, item) in enumerate(zip(features, items, strict=True))
    ]
    mean, scale, lowest, highest = np.array(numbers).T
    return PeopleReader(tuple(features), mean, scale, lowest, highest, sensitive)


def _feature_of(item: Any) -> Feature:
    """A feature; raises as `_of_plain` expects."""
    levels, missing = (tuple(map(_text, item[name])) for name in ("levels", "missing"))
    fill = None if item["fill"] is None else _number(item["fill"])
    return Feature(
        _text(item["name"]), Kind(item["kind"]), tuple(map(_number, item["codes"])), levels, fill, missing
    )


def _numbers_of(kind: Kind, item: dict[str, Any]) -> tuple[float, float, float, float]:
    """Mean, scale, smallest and largest training value of a feature; raises ValueError."""
    mean, scale = _number(item["mean"]), _number(item["scale"])
    low, high = item["lowest"], item["highest"]
    if scale <= 0:
        raise ValueError("its scale must be positive")
    if kind in DISCRETE:
        if (low, high) != (None, None):
            raise ValueError(f"it is {kind}, which has no lowest and highest value")
        return mean, scale, np.nan, np.nan
    low, high = _number(low), _number(high)
    if low > high:
        raise ValueError(f"its lowest value, {low}, is above its highest, {high}")
    if kind is Kind.COUNT and not are_counts(np.array(low)):
        raise ValueError(f"its lowest value, {low}, is not a count, a whole number from 0")
    return mean, scale, low, high


def _sensitive_of(plain: Any) -> Sensitive | None:
    """The sensitive attribute; raises ValueError, KeyError or TypeError."""
    if plain is None:
        return None
    lists = [plain[name] for name in ("advantaged", "disadvantaged")] + list(plain.get("further", []))
    groups = [tuple(map(_text, values)) for values in lists]
    if not all(groups) or len({*itertools.chain(*groups)}) < sum(len(set(values)) for values in groups):
        raise ValueError("both groups need values, and no value can be of both")
    return Sensitive(_text(plain["column"]), groups[0], groups[1], tuple(groups[2:]))


def _of_plain(key: str, build: Callable[[Any], T], plain: Any) -> T:
    """`build(plain)` of a value out of a JSON file that others may have written.

    Raises:
        FairAllError: naming the key, where `build` raises a KeyError, TypeError, ValueError or FairAllError.
    """
    try:
        return build(plain)
    except KeyError as error:
        reason = f"it lacks {error}"
    except (FairAllError, TypeError, ValueError) as error:
        reason = str(error)
    raise FairAllError(f"{key} is not possible: {shown(reason, 100)}")


def _text(value: Any) -> str:
    """A value out of JSON that must be a text; raises TypeError."""
    if not isinstance(value, str):
        raise TypeError(f"{shown(json.dumps(value))} is no text")
    return value


def _number(value: Any) -> float:
    """A value out of JSON that must be a finite number; raises TypeError."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max:
        return float(value)
    raise TypeError(f"{shown(json.dumps(value))} is not a finite number")
