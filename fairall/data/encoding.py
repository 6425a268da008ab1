"""Encoding of features as inputs of the nets."""

from __future__ import annotations

import torch
from torch import Tensor

from fairall.config.schema import NetInputs
from fairall.data.features import DISCRETE, Kind, Schema


class FeatureInputs:
    """Encode features as inputs of a net, following the schema's `inputs`.

    `codes`: a column per feature, with the codes of discrete features shifted to start at 0 as in the
    authors' code. `centred`, `standardised`: the same with training mean 0 of counts and codes, and standard
    deviation 1. `one_hot`: real features and counts first, then an indicator per code of a categorical
    feature and one for the second code of a binary one.
    """

    def __init__(self, schema: Schema) -> None:
        self.ordinal = schema.inputs is not NetInputs.one_hot
        self.origin, self.scale = torch.zeros(len(schema)), torch.ones(len(schema))
        for i, feature in enumerate(schema):
            if schema.inputs is NetInputs.codes:
                self.origin[i] = feature.codes[0] if feature.kind in DISCRETE else 0.0
            elif feature.kind is not Kind.REAL:
                self.origin[i] = schema.mean[i]
                self.scale[i] = schema.scale[i] if schema.inputs is NetInputs.standardised else 1.0
        self.numeric = [i for i, feature in enumerate(schema) if feature.kind not in DISCRETE]
        indicators = [
            (i, code)
            for i, feature in enumerate(schema)
            if feature.kind in DISCRETE
            for code in (feature.codes[1:] if len(feature.codes) == 2 else feature.codes)
        ]
        self.columns = torch.tensor([i for i, _ in indicators], dtype=torch.long)
        self.codes = torch.tensor([code for _, code in indicators])
        self.size = len(schema) if self.ordinal else len(self.numeric) + len(indicators)
        self.n_groups = schema.n_groups
        self.size_with_s = self.size + (1 if schema.n_groups == 2 else schema.n_groups)

    def __call__(self, x: Tensor) -> Tensor:
        """Encode features (..., D) as inputs (..., size)."""
        if self.ordinal:
            return (x - self.origin) / self.scale
        return torch.cat([x[..., self.numeric], (x[..., self.columns] == self.codes).to(x.dtype)], dim=-1)

    def with_s(self, x: Tensor, s: Tensor) -> Tensor:
        """Inputs of features (..., D), then of s (...), shape (..., size_with_s).

        Of two groups s is a column, of more there is an indicator per group.
        """
        return torch.cat([self(x), self._of_s(s)], dim=-1)

    def columns_with_s(self, x: Tensor, s: Tensor) -> Tensor:
        """The same with people in columns, shape (E, size_with_s, B), for x (E, B, D) and s (E, B)."""
        return torch.cat([self(x).mT, self._of_s(s).mT], dim=1)

    def _of_s(self, s: Tensor) -> Tensor:
        s = s.unsqueeze(-1)
        return s if self.n_groups == 2 else (s == torch.arange(self.n_groups)).to(s.dtype)
