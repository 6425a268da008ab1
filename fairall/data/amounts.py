"""What an accepted person brings with label 1 and costs with label 0, in money, known when one decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fairall.config.schema import CONSTANT
from fairall.data.features import Schema
from fairall.data.people import Decided, People
from fairall.data.prepared import PreparedData, Scaler
from fairall.data.splits import ROLES
from fairall.errors import FairAllError

LEAST = 1e-6  # of the mean g + l: a smaller gain or loss of somebody new counts as this one


@dataclass(frozen=True)
class Amounts:
    """Gain g(x) of an accepted person with label 1 and loss l(x) of one with label 0.

    Both are linear in the features, so that everything that sees a person knows them: learners, simulations
    and saved policies. With the stake g + l and the break-even probability l / (g + l) in place of 1 and c,
    a decision is worth π·(g + l)·(ỹ − l/(g + l)).

    Attributes:
        weight: of the scaled features, the constant last, rows g and l, in money, shape (2, D + 1), float64.
        unit: mean of g + l of the training people, in money.
    """

    weight: Tensor
    unit: float

    @classmethod
    def of(cls, schema: Schema, named: Mapping[str, Mapping[str, float]] | None) -> Amounts | None:
        """The amounts `Config.amounts`, if there are any, of features with the training rows' mean and scale.

        Raises:
            FairAllError: where an amount is of something that is no feature, or a feature is called as the
                constant.
        """
        if named is None:
            return None
        names = [*schema.names, CONSTANT]
        if CONSTANT in schema.names:
            raise FairAllError(
                f"dataset.gain, dataset.loss: a feature is called {CONSTANT}, which is the part that is the "
                "same for everybody; rename the column"
            )
        for key, weights in named.items():
            if unknown := [name for name in weights if name not in names]:
                raise FairAllError(
                    f"dataset.{key}: {unknown[0]!r} is no feature, and an amount has to be known when one "
                    f"decides; take {CONSTANT} or some of {', '.join(schema.names)}"
                )
        raw = [[weights.get(name, 0.0) for name in names] for weights in named.values()]
        slopes, constant = torch.tensor(raw, dtype=torch.float64).tensor_split([len(schema)], dim=1)
        mean, scale = (torch.from_numpy(values) for values in (Scaler(schema).mean, Scaler(schema).scale))
        weight = torch.cat([slopes * scale, constant + slopes @ mean.unsqueeze(-1)], dim=-1)
        of_means = slopes @ torch.tensor(schema.mean, dtype=torch.float64) + constant[:, 0]
        return cls(weight, float(of_means.sum()))

    def raw(self, x: Tensor) -> Tensor:
        """Gain and loss of scaled features x (..., D), shape (..., 2), in money, float64."""
        return x.double() @ self.weight[:, :-1].T + self.weight[:, -1]

    def decided_by(self, x: Tensor) -> Tensor:
        """The same, at least `LEAST` of the mean: somebody new may have values that no training row has."""
        return self.raw(x).clamp(min=LEAST * abs(self.unit))

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Stake g + l in money, and break-even l / (g + l), of features (..., D); shapes (...), as x."""
        gain, loss = self.decided_by(x).unbind(-1)
        return (gain + loss).to(x.dtype), (loss / (gain + loss)).to(x.dtype)

    def require_positive(self, data: PreparedData) -> None:
        """Raise FairAllError where somebody's gain or loss is not above 0."""
        for role in ROLES:
            lowest = self.raw(getattr(data, role).x).flatten(0, -2).min(0).values.tolist()
            for key, least in zip(("gain", "loss"), lowest, strict=True):
                if least <= 0.0:
                    raise FairAllError(
                        f"dataset.{key}: the least of the {role} people is {least:g}; it has to be above 0 "
                        "for everybody, so give other weights or leave out who has none"
                    )


def costs(people: People | Decided, cost: float, amounts: Amounts | None) -> dict[str, Any]:
    """`cost` and `stake` of people as measures take them (`fairall.metrics.measure`), by name."""
    if amounts is None:
        return {"cost": cost, "stake": None}
    return dict(zip(("stake", "cost"), amounts(people.x), strict=True))
