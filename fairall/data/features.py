"""The features of x in column order, and how nets see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from fairall.config.schema import NetInputs
from fairall.errors import FairAllError
from fairall.tables.features import DISCRETE, RESERVED, WHY_RESERVED, Feature, Kind

__all__ = ["DISCRETE", "Feature", "FeatureInputs", "Kind", "Schema"]

BLOCK_COLUMNS = 16


@dataclass(eq=False, repr=False)
class Schema(Sequence[Feature]):
    """The features of x in column order.

    Attributes:
        features: the D features.
        inputs: how nets see counts and categories, see `FeatureInputs`.
        mean: of each feature in the training rows, raw values and codes; by default 0.
        scale: standard deviation, likewise, positive; by default 1.
        n_groups: G, of the sensitive attribute that nets see beside the features.
        crossed: the values of each of more than two groups, where these are combinations of values of
            several attributes (`Sensitive.crossed`); else none.

    Raises:
        FairAllError: if a feature has a reserved name, or that of another.
    """

    features: Sequence[Feature]
    inputs: NetInputs = NetInputs.codes
    mean: Sequence[float] = ()
    scale: Sequence[float] = ()
    n_groups: int = 2
    crossed: Sequence[Sequence[str]] = ()

    def __post_init__(self) -> None:
        """Complete what is left out, and check the names."""
        self.mean = tuple(self.mean) or (0.0,) * len(self)
        self.scale = tuple(self.scale) or (1.0,) * len(self)
        self.crossed = tuple(map(tuple, self.crossed))
        names = pd.Index(self.names)
        for name in names[names.duplicated()]:
            raise FairAllError(f"{len(self)} features, of which more than one is named {name!r}")
        for name in names.intersection(RESERVED):
            raise FairAllError(f"column {name!r} {WHY_RESERVED}; rename the column or leave it out")

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self.features[index]

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        more = f", {self.n_groups}" if self.n_groups > 2 else ""
        more += f", {self.crossed}" if self.crossed else ""
        return f"Schema({list(self.features)!r}, {self.inputs.name}, {self.mean!r}, {self.scale!r}{more})"

    def measured(self, x: np.ndarray, rows: np.ndarray | slice = slice(None)) -> Schema:
        """The same features with `mean` and `scale` of the training `rows` of x (N, D); 1 if constant."""
        # Blocks of columns need less memory. They have two or more: numpy adds up one in another order.
        blocks = np.array_split(x, len(self) // BLOCK_COLUMNS + 1, axis=1)
        mean, std = np.hstack([(part.mean(0), part.std(0)) for part in (block[rows] for block in blocks)])
        return replace(self, mean=mean.tolist(), scale=np.where(std > 0, std, 1.0).tolist())

    def seen_as(self, inputs: NetInputs) -> Schema:
        """The same features, which nets see as `inputs`."""
        return replace(self, inputs=inputs)

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
        return [feature.name for feature in self.features]

    def columns(self, kind: Kind) -> list[int]:
        """Positions of the features of a kind."""
        return [i for i, feature in enumerate(self.features) if feature.kind is kind]

    def encode(self, raw: pd.DataFrame) -> pd.DataFrame:
        """The features of raw rows as numbers, shape (N, D).

        Raises:
            FairAllError: if a column is missing or holds a value that its feature cannot take.
        """
        for name in self.names:
            if name not in raw:
                raise FairAllError(f"the column {name!r} is needed, and the table lacks it")
        return pd.DataFrame({feature.name: feature.encode(raw[feature.name])[0] for feature in self.features})


class FeatureInputs:
    """Encode features as inputs of a net, following the schema's `inputs`.

    `codes`: a column per feature, with the codes of discrete features shifted to start at 0 as in the
    authors' code. `centred`, `standardised`: the same with training mean 0 of counts and codes, and standard
    deviation 1. `one_hot`: real features and counts first, then an indicator per code of a categorical
    feature and one for the second code of a binary one.
    """

    def __init__(self, schema: Schema) -> None:
        self.ordinal = schema.inputs is not NetInputs.one_hot
        real = torch.tensor([feature.kind is Kind.REAL for feature in schema])
        first = [feature.codes[0] if feature.codes else 0.0 for feature in schema]
        mean, scale = torch.tensor([schema.mean, schema.scale])
        as_codes, standardised = (schema.inputs is way for way in (NetInputs.codes, NetInputs.standardised))
        self.origin = torch.tensor(first) if as_codes else torch.where(real, 0.0, mean)
        self.scale = torch.where(real, 1.0, scale) if standardised else torch.ones(len(schema))
        self.numeric = [i for i, feature in enumerate(schema) if not feature.codes]
        shown = [feature.codes[1:] if len(feature.codes) == 2 else feature.codes for feature in schema]
        self.columns = torch.tensor([i for i, codes in enumerate(shown) for _ in codes], dtype=torch.long)
        self.codes = torch.tensor([*chain(*shown)])
        self.size = len(schema) if self.ordinal else len(self.numeric) + len(self.codes)
        self.n_groups = schema.n_groups
        self.indicators = torch.eye(schema.n_groups)
        if schema.crossed:
            values = pd.get_dummies(pd.DataFrame(schema.crossed))
            self.indicators = torch.tensor(values.to_numpy(), dtype=torch.float32)
        self.size_with_s = self.size + (1 if schema.n_groups == 2 else self.indicators.shape[1])

    def __call__(self, x: Tensor) -> Tensor:
        """Encode features (..., D) as inputs (..., size)."""
        if self.ordinal:
            return (x - self.origin) / self.scale
        return torch.cat([x[..., self.numeric], (x[..., self.columns] == self.codes).to(x.dtype)], dim=-1)

    def with_s(self, x: Tensor, s: Tensor) -> Tensor:
        """Inputs of features (..., D), then of s (...), shape (..., size_with_s).

        Of two groups s is a column, of more there is an indicator per group, or, where groups are
        combinations of attributes, one per value of each attribute: weights are then a sum of embeddings.
        """
        return torch.cat([self(x), self.of_s(s)], dim=-1)

    def columns_with_s(self, x: Tensor, s: Tensor) -> Tensor:
        """The same with people in columns, shape (E, size_with_s, B), for x (E, B, D) and s (E, B)."""
        return torch.cat([self(x).mT, self.of_s(s).mT], dim=1)

    def of_s(self, s: Tensor) -> Tensor:
        """Inputs of s (...) alone, shape (..., size_with_s − size)."""
        s = s.unsqueeze(-1)
        if self.n_groups == 2:
            return s
        return (s == torch.arange(self.n_groups)).to(s.dtype) @ self.indicators.to(s.dtype)
