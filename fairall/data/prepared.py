"""Prepared data of a run: scaled people by role, and what their acceptance brings and costs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from fairall.config.schema import CONSTANT, ScalerRows
from fairall.data.features import Kind, Schema
from fairall.data.people import Decided, Draw, DrawnApplicants, Dynamics, People, RecycledApplicants
from fairall.data.splits import ROLES
from fairall.data.table import Table
from fairall.errors import FairAllError

if TYPE_CHECKING:
    from fairall.tables.people import PeopleReader

FURTHEST = 100.0  # training standard deviations; larger outliers would dominate squared errors
BLOCK = 2048  # people scaled at once, for less memory
FEWEST = 20  # people of a group without a warning
LEAST = 1e-6  # of the mean g + l: a smaller gain or loss of somebody new counts as this one


@dataclass(frozen=True)
class Scaler:
    """Standardisation of real features with outliers clipped to ±`FURTHEST`; others are unchanged.

    Attributes:
        schema: the D features, with mean and scale of the rows to standardise by.
        rows: which rows these are: those of training, or with `each_file` those of a file (`of_file`).
    """

    schema: Schema
    rows: ScalerRows = ScalerRows.training_rows

    @cached_property
    def real(self) -> np.ndarray:
        """Which features are real, shape (D,), bool."""
        return np.array([feature.kind is Kind.REAL for feature in self.schema])

    @cached_property
    def mean(self) -> np.ndarray:
        """Mean of real features, 0 for others, shape (D,)."""
        return np.where(self.real, self.schema.mean, 0.0)

    @cached_property
    def scale(self) -> np.ndarray:
        """Standard deviation of real features, 1 for those that do not vary and for others, shape (D,)."""
        return np.where(self.real, self.schema.scale, 1.0)

    def of_file(self, x: np.ndarray) -> Scaler:
        """The scaler of a file of people with features x (N, D): this one, or one fitted on x."""
        return self if self.rows is ScalerRows.training_rows else Scaler(self.schema.measured(x))

    def transform(self, x: np.ndarray) -> Tensor:
        """Scale features (N, ..., D), in blocks of N; float32."""
        scaled, limit = np.empty(x.shape, np.float32), np.where(self.real, FURTHEST, np.inf)
        blocks = (np.array_split(values, len(x) // BLOCK + 1) for values in (x, scaled))
        for raw, block in zip(*blocks, strict=True):
            block[...] = np.clip((raw - self.mean) / self.scale, -limit, limit)
        return torch.from_numpy(scaled)

    def transform_file(self, x: np.ndarray) -> Tensor:
        """Scale the features (N, D) of a file of people by its `of_file`; float32.

        With `each_file` the lowest code in the file becomes the first of a discrete feature, and others
        follow: the authors' code prepares every file like this.
        """
        scaled = self.of_file(x).transform(x)
        if self.rows is ScalerRows.each_file:
            for i, (feature, lowest) in enumerate(zip(self.schema, x.min(0), strict=True)):
                if feature.codes and lowest > feature.codes[0]:
                    position = np.searchsorted(feature.codes, x[:, i])
                    scaled[:, i] = torch.tensor(feature.codes)[position - position.min()]
        return scaled


@dataclass(frozen=True)
class PreparedData:
    """People of a run, by role.

    Attributes:
        scaler: of the training rows.
        train: applicants of Phase II; with `draw`, a sample of them.
        validation: people for model selection.
        test: people for reported measures.
        pool: people of Phase I; its first rows are those of the warm-up.
        pool_tables: the pool before scaling, as initial policies need it, of each split.
        sample_weight: of the labels of the pool, shape (E, N), all of whom are of the warm-up; None: 1.
        draw: generator of new applicants; None if they are people of `train`.
        dynamics: how people change when they are accepted, if that is known.
        notes: remarks on how the raw data was read, a line each.
        warnings: reasons why measures on these people need care, a line each.
    """

    scaler: Scaler
    train: People
    validation: People
    test: People
    pool: People
    pool_tables: tuple[Table, ...]
    draw: Draw | None = None
    dynamics: Dynamics | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    sample_weight: Tensor | None = None

    def __post_init__(self) -> None:
        """Refuse people of more than two groups one of which is absent, and warn of groups of few people."""
        if self.schema.n_groups == 2:
            return
        warnings, sensitive = [*self.warnings], self.pool_table.sensitive
        if sensitive is None or len(sensitive.groups) != self.schema.n_groups:
            raise FairAllError("a table of more than two groups needs their words: `Table.sensitive`")
        remedy = "leave it out with dataset.groups=[A,B,C] of the others"
        for name, s in zip(sensitive.names, sensitive.groups, strict=True):
            for role, people in (("training", self.train), ("test", self.test)):
                n = int((people.s == s).sum(-1).min())
                if n == 0:
                    raise FairAllError(f"group {name}: nobody among the {role} people; {remedy}")
                if n < FEWEST:
                    warnings.append(
                        f"group {name} has {n} of the {role} people: too few to measure its acceptance "
                        f"rate, whose standard error is up to {0.5 / n**0.5:.2f}, and with it the "
                        f"largest gap; {remedy}"
                    )
        object.__setattr__(self, "warnings", tuple(dict.fromkeys(warnings)))

    @property
    def schema(self) -> Schema:
        """The features of x, with mean and scale of the training rows."""
        return self.scaler.schema

    @property
    def pool_table(self) -> Table:
        """The pool before scaling, of several splits that of the first."""
        return self.pool_tables[0]

    @classmethod
    def of_splits(cls, parts: Sequence[PreparedData], seeds: int) -> PreparedData:
        """The people of E seeds, seed e with those of split e mod K, scaled as those of the first.

        Raises:
            FairAllError: where labels are unknown: splits would differ in how many are known.
        """
        if parts[0].train.label_weight is not None:
            raise FairAllError("splits: people without a label are split once only; set splits=1")

        def stacked(role: str) -> People:
            fields = [vars(getattr(parts[e % len(parts)], role)) for e in range(seeds)]
            known = [name for name, values in fields[0].items() if values is not None]
            return People(**{name: torch.stack([person[name] for person in fields]) for name in known})

        changed: dict[str, Any] = {role: stacked(role) for role in ROLES}
        for name in ("notes", "warnings"):
            changed[name] = tuple(dict.fromkeys(line for part in parts for line in getattr(part, name)))
        return replace(parts[0], pool_tables=tuple(part.pool_table for part in parts), **changed)

    @property
    def reader(self) -> PeopleReader:
        """The reader of further people like these."""
        from fairall.tables.people import LearntFeature, PeopleReader  # training does not need it

        ends = torch.stack(torch.aminmax(self.train.merged().x, dim=0)).double().numpy()
        ends = ends * self.scaler.scale + self.scaler.mean
        features = []
        for k, feature in enumerate(self.schema):
            low, high = (None, None) if feature.codes else ends[:, k].tolist()
            mean, scale = self.schema.mean[k], self.schema.scale[k]
            features.append(LearntFeature(**vars(feature), mean=mean, scale=scale, lowest=low, highest=high))
        return PeopleReader(tuple(features), self.pool_table.sensitive)

    def warm_up(self, n: int) -> People:
        """The first `n` people of the pool, on whom the initial policy decides; scaled as a file."""
        first = self.pool.rows(torch.arange(min(n, len(self.pool))))
        files = [table.features[: len(first)] for table in self.pool_tables]
        x = torch.stack([self.scaler.transform_file(features) for features in files])
        return replace(first, x=x[torch.arange(len(first.x)) % len(x)] if first.by_replicate else x[0])

    def applicants(
        self, size: int, seeds: Sequence[int], purpose: str = "applicants", *, one_order: bool = False
    ) -> RecycledApplicants | DrawnApplicants:
        """A stream of applicants, `size` at a time, independent across seeds and purposes.

        Every applicant has a label. If `train` lacks some, its labelled people are drawn in proportion to
        `People.label_weight`, which makes them a sample of the population. With `one_order` all passes over a
        finite population have the same order.
        """
        if self.draw is not None:
            return DrawnApplicants(self.draw, size, seeds, purpose)
        people = self.train
        if people.label_weight is not None:
            people = people.rows(people.labelled.nonzero().squeeze(-1))
            weight = people.label_weight
            assert weight is not None
            if (weight != weight[0]).any():  # they are drawn with replacement
                return DrawnApplicants(
                    lambda streams, n: people.rows(streams.choices(weight, n)), size, seeds, purpose
                )
        return RecycledApplicants(people, size, seeds, purpose, one_order=one_order)

    def fingerprint(self) -> str:
        """Hash of schema, scaler, all values of all roles, and logged decisions."""
        digest = hashlib.sha256(repr(self.schema).encode())
        digest.update(self.scaler.mean.tobytes() + self.scaler.scale.tobytes())
        for role in ROLES:
            for values in vars(getattr(self, role)).values():
                if values is not None:
                    digest.update(values.numpy().tobytes())
        for table in self.pool_tables:
            digest.update(table.labelled.tobytes())
            if table.logged is not None:
                digest.update(table.logged.accepted.tobytes() + table.logged.propensity.tobytes())
        return digest.hexdigest()


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
