"""The reader of new people as plain containers, as a saved policy has it in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
from typing import Any

import numpy as np

from fairall.storage.stored import of_plain
from fairall.tables.features import DISCRETE, Feature
from fairall.tables.groups import Sensitive
from fairall.tables.people import PeopleReader

NUMBERS = ("mean", "scale", "lowest", "highest")  # of training values, by the attributes of `PeopleReader`


@dataclass(frozen=True, kw_only=True)
class _Numbers:
    """Numbers of the training values of a feature."""

    mean: float
    scale: float
    lowest: float | None
    highest: float | None


def to_plain(reader: PeopleReader) -> dict[str, Any]:
    """Features with their mean, scale and range, and the sensitive attribute."""
    columns = np.column_stack([getattr(reader, name) for name in NUMBERS]).astype(object)
    columns[columns != columns] = None
    features = [
        asdict(feature) | dict(zip(NUMBERS, numbers, strict=True))
        for feature, numbers in zip(reader.features, columns.tolist(), strict=True)
    ]
    return {"features": features, "sensitive": reader.sensitive and asdict(reader.sensitive)}


def from_plain(plain: Mapping[str, Any]) -> PeopleReader:
    """Inverse of `to_plain` after a round trip through JSON; `plain` may be a stranger's.

    Raises:
        ValueError: naming what is not possible, where `plain` is nothing that `to_plain` returns.
        FairAllError: likewise, where codes, levels and imputed value of a feature do not fit each other.
    """
    features = of_plain(tuple[Feature, ...], plain.get("features"), "features")
    numbers = of_plain(tuple[_Numbers, ...], plain["features"], "features")
    sensitive = of_plain(Sensitive | None, plain.get("sensitive"), "sensitive")
    if not features:
        raise ValueError("features must be a list with at least one feature")
    mean, scale, lowest, highest = np.array(list(map(astuple, numbers)), dtype=float).T  # NaN for None
    discrete = [feature.kind in DISCRETE for feature in features]
    fits = (scale > 0) & (discrete | (lowest <= highest))
    if not fits.all():
        name = features[fits.argmin()].name
        raise ValueError(f"feature {name!r}: its scale, lowest or highest value is not possible")
    if sensitive is not None:
        groups = sensitive.groups.values()
        if not all(groups) or len(sensitive.meaning) < sum(map(len, groups)):
            raise ValueError("sensitive: all groups need values, and no value can be of several")
    return PeopleReader(features, mean, scale, lowest, highest, sensitive)
