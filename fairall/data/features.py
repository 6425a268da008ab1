"""The features of x in column order, and how nets see them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from fairall.config.schema import NetInputs
from fairall.errors import FairAllError
from fairall.tables.features import DISCRETE, RESERVED, WHY_RESERVED, Feature, Kind

__all__ = ["DISCRETE", "Feature", "Kind", "Schema"]


class Schema(Sequence[Feature]):
    """The features of x in column order.

    Args:
        features: the D features.
        inputs: how nets see counts and categories, see `encoding.FeatureInputs`.
        mean: of each feature in the training rows, raw values and codes; by default 0.
        scale: standard deviation, likewise, positive; by default 1.
        n_groups: G, of the sensitive attribute that nets see beside the features.

    Raises:
        FairAllError: if a feature has a reserved name, or that of another.
    """

    def __init__(
        self,
        features: Sequence[Feature],
        inputs: NetInputs = NetInputs.codes,
        mean: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        n_groups: int = 2,
    ) -> None:
        self._features = tuple(features)
        self.n_groups = n_groups
        self.inputs = inputs
        self.mean = (0.0,) * len(self) if mean is None else tuple(mean)
        self.scale = (1.0,) * len(self) if scale is None else tuple(scale)
        repeated = [name for name, times in Counter(self.names).items() if times > 1]
        if repeated:
            raise FairAllError(f"{len(self)} features, of which more than one is named {repeated[0]!r}")
        for name in RESERVED:
            if name in self.names:
                raise FairAllError(f"column {name!r} {WHY_RESERVED}; rename the column or leave it out")

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self._features[index]

    def __len__(self) -> int:
        return len(self._features)

    def __iter__(self) -> Iterator[Feature]:
        return iter(self._features)

    def __repr__(self) -> str:
        more = f", {self.n_groups}" if self.n_groups > 2 else ""
        return f"Schema({list(self._features)!r}, {self.inputs.name}, {self.mean!r}, {self.scale!r}{more})"

    def measured(self, x: np.ndarray) -> Schema:
        """The same features with `mean` and `scale` of training rows x (N, D); 1 if constant."""
        std = x.std(0)
        scale = np.where(std > 0, std, 1.0)
        return Schema(self._features, self.inputs, x.mean(0).tolist(), scale.tolist(), self.n_groups)

    def seen_as(self, inputs: NetInputs) -> Schema:
        """The same features, which nets see as `inputs`."""
        return Schema(self._features, inputs, self.mean, self.scale, self.n_groups)

    def require_two_groups(self, name: str, instead: str = "") -> None:
        """Raise FairAllError where people have more than two groups, for which `name` is not made."""
        if self.n_groups > 2:
            raise FairAllError(
                f"{name} is for two groups, and the data have {self.n_groups}: {instead}choose two groups "
                "with dataset.groups=[A,B]"
            )

    @property
    def names(self) -> list[str]:
        """Column names in order."""
        return [feature.name for feature in self]

    def columns(self, kind: Kind) -> list[int]:
        """Positions of the features of a kind."""
        return [i for i, feature in enumerate(self) if feature.kind is kind]

    def encode(self, raw: pd.DataFrame) -> pd.DataFrame:
        """The features of raw rows as numbers, shape (N, D).

        Raises:
            FairAllError: if a column is missing or holds a value that its feature cannot take.
        """
        for name in self.names:
            if name not in raw:
                raise FairAllError(f"the column {name!r} is needed, and the table lacks it")
        columns = {feature.name: feature.encode(raw[feature.name]) for feature in self}
        return pd.DataFrame(columns, columns=self.names)
