"""Prepared data of a run: scaled people by role."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from fairall.data.applicants import (
    ApplicantStream,
    Draw,
    DrawnApplicants,
    RecycledApplicants,
    WeightedApplicants,
)
from fairall.data.dynamics import Dynamics
from fairall.data.features import DISCRETE, Kind, Schema
from fairall.data.people import People
from fairall.data.table import Table

FURTHEST = 100.0  # training standard deviations; larger outliers would dominate squared errors


@dataclass(frozen=True)
class Scaler:
    """Standardisation of real features with outliers clipped to ±`FURTHEST`; others are unchanged.

    Attributes:
        mean: shape (D,), 0 for features that are not real.
        scale: shape (D,), 1 for features that are not real or do not vary.
        real: which features are real, shape (D,), bool.
    """

    mean: np.ndarray
    scale: np.ndarray
    real: np.ndarray

    @classmethod
    def fit(cls, schema: Schema, x: np.ndarray) -> Scaler:
        """Fit zero mean and unit variance on rows (N, D)."""
        return cls.of(schema.measured(x))

    @classmethod
    def of(cls, schema: Schema) -> Scaler:
        """The scaler of the training rows that `schema` has the statistics of."""
        real = np.array([feature.kind is Kind.REAL for feature in schema])
        return cls(np.where(real, schema.mean, 0.0), np.where(real, schema.scale, 1.0), real)

    def transform(self, x: np.ndarray) -> torch.Tensor:
        """Scale features (..., D); float32."""
        limit = np.where(self.real, FURTHEST, np.inf)
        scaled = np.clip((x - self.mean) / self.scale, -limit, limit)
        return torch.tensor(scaled, dtype=torch.float32)


def scaled_by_itself(schema: Schema, x: np.ndarray) -> torch.Tensor:
    """Features (N, D) scaled by their own rows, with each discrete feature's lowest code there as its first.

    The authors' code prepares every file of people like this (`protocol.scaler=each_file`).
    """
    own = x.copy()
    for i, feature in enumerate(schema):
        if feature.kind in DISCRETE:
            position = np.searchsorted(feature.codes, x[:, i])
            own[:, i] = np.take(feature.codes, position - position.min())
    return Scaler.fit(schema, own).transform(own)


@dataclass(frozen=True)
class PreparedData:
    """People of a run, by role.

    Attributes:
        schema: the features of x.
        scaler: fitted on the training rows.
        train: applicants of Phase II; with `draw`, a sample of them.
        validation: people for model selection.
        test: people for reported measures.
        pool: people of Phase I; its first rows are those of the warm-up.
        pool_table: the pool before scaling, as initial policies need it.
        draw: generator of new applicants; None if they are people of `train`.
        dynamics: how people change when they are accepted, if that is known.
        notes: remarks on how the raw data was read, a line each.
        warnings: reasons why measures on these people need care, a line each.
        warm_up_by_itself: whether the people of the warm-up are standardised by their own statistics.
    """

    schema: Schema
    scaler: Scaler
    train: People
    validation: People
    test: People
    pool: People
    pool_table: Table
    draw: Draw | None = None
    dynamics: Dynamics | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    warm_up_by_itself: bool = False

    def warm_up(self, n: int) -> People:
        """The first `n` people of the pool, on whom the initial policy decides."""
        first = self.pool.rows(torch.arange(min(n, len(self.pool))))
        if not self.warm_up_by_itself:
            return first
        return replace(first, x=scaled_by_itself(self.schema, self.pool_table.features[: len(first)]))

    def applicants(
        self, size: int, seeds: Sequence[int], purpose: str = "applicants", *, one_order: bool = False
    ) -> ApplicantStream:
        """A stream of applicants, `size` at a time, independent across seeds and purposes.

        Every applicant has a label. If `train` lacks some, its labelled people are drawn in proportion to
        `People.label_weight`, which makes them a sample of the population. With `one_order` all passes over a
        finite population have the same order.
        """
        if self.draw is not None:
            return DrawnApplicants(self.draw, size, seeds, purpose)
        if self.train.label_weight is None:
            return RecycledApplicants(self.train, size, seeds, purpose, one_order=one_order)
        labelled = self.train.rows(self.train.labelled.nonzero().squeeze(-1))
        weight = labelled.label_weight
        assert weight is not None
        if (weight == weight[0]).all():
            return RecycledApplicants(labelled, size, seeds, purpose, one_order=one_order)
        return WeightedApplicants(labelled, weight, size, seeds, purpose)

    def fingerprint(self) -> str:
        """Hash of schema, scaler, all values of all roles, and logged decisions."""
        digest = hashlib.sha256(repr(self.schema).encode())
        digest.update(self.scaler.mean.tobytes() + self.scaler.scale.tobytes())
        for people in (self.train, self.validation, self.test, self.pool):
            for values in vars(people).values():
                if values is not None:
                    digest.update(values.numpy().tobytes())
        digest.update(self.pool_table.labelled.tobytes())
        logged = self.pool_table.logged
        if logged is not None:
            digest.update(logged.accepted.tobytes() + logged.propensity.tobytes())
        return digest.hexdigest()
