"""The reader of new people as plain containers, as a saved policy has it in JSON."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from fairall.errors import FairAllError
from fairall.storage.stored import of_plain
from fairall.tables.cells import shown
from fairall.tables.features import DISCRETE, Feature, Kind, are_counts
from fairall.tables.groups import Sensitive
from fairall.tables.people import PeopleReader


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


@dataclass(frozen=True)
class _StoredFeature:
    """A feature (`Feature`), with the mean, scale and range of its training values."""

    name: str
    kind: Literal["real", "count", "binary", "categorical"]
    codes: Sequence[float]
    levels: Sequence[str]
    fill: float | None
    missing: Sequence[str]
    mean: float
    scale: float
    lowest: float | None
    highest: float | None


@dataclass(frozen=True)
class _StoredSensitive:
    """The sensitive attribute (`Sensitive`)."""

    column: str
    advantaged: Sequence[str]
    disadvantaged: Sequence[str]
    further: Sequence[Sequence[str]] = ()


def from_plain(plain: Mapping[str, Any]) -> PeopleReader:
    """Inverse of `to_plain` after a round trip through JSON; `plain` may be a stranger's.

    Raises:
        FairAllError: naming what is not possible, where `plain` is nothing that `to_plain` returns.
    """
    of = plain.get("sensitive")
    try:
        known = of_plain(Sequence[_StoredFeature], plain.get("features"), "features")
        sensitive = None if of is None else _sensitive(of_plain(_StoredSensitive, of, "sensitive"))
    except ValueError as error:
        raise FairAllError(shown(str(error), 100)) from error
    if not known:
        raise FairAllError("features must be a list with at least one feature")
    features = []
    for i, one in enumerate(known):
        try:
            features.append(_feature(one))
        except (FairAllError, ValueError) as error:
            raise FairAllError(f"features.{i} is not possible: {shown(str(error), 100)}") from error
    numbers = [(one.mean, one.scale, one.lowest, one.highest) for one in known]
    mean, scale, lowest, highest = np.array(numbers, dtype=float).T  # NaN for None
    return PeopleReader(tuple(features), mean, scale, lowest, highest, sensitive)


def _feature(one: _StoredFeature) -> Feature:
    """The feature; raises ValueError where its numbers do not fit its kind, FairAllError as `Feature`."""
    kind, low, high = Kind(one.kind), one.lowest, one.highest
    if one.scale <= 0:
        raise ValueError("its scale must be positive")
    if kind in DISCRETE:
        if (low, high) != (None, None):
            raise ValueError(f"it is {kind}, which has no lowest and highest value")
    elif low is None or high is None:
        raise ValueError("its lowest and highest value cannot be null")
    elif low > high:
        raise ValueError(f"its lowest value, {low}, is above its highest, {high}")
    elif kind is Kind.COUNT and not are_counts(np.array(low)):
        raise ValueError(f"its lowest value, {low}, is not a count, a whole number from 0")
    return Feature(one.name, kind, tuple(one.codes), tuple(one.levels), one.fill, tuple(one.missing))


def _sensitive(one: _StoredSensitive) -> Sensitive:
    """The sensitive attribute; raises ValueError where a group has no value, or one of another."""
    groups = [tuple(values) for values in (one.advantaged, one.disadvantaged, *one.further)]
    if not all(groups) or len({*itertools.chain(*groups)}) < sum(len(set(values)) for values in groups):
        raise ValueError("sensitive: both groups need values, and no value can be of both")
    return Sensitive(one.column, groups[0], groups[1], tuple(groups[2:]))
