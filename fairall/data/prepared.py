"""Prepared data of a run: scaled people by role."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch

from fairall.config.schema import ScalerRows
from fairall.data.applicants import Draw, DrawnApplicants, Dynamics, RecycledApplicants
from fairall.data.features import DISCRETE, Kind, Schema
from fairall.data.people import People
from fairall.data.table import Table
from fairall.errors import FairAllError, count
from fairall.runtime.randomness import SeedStreams
from fairall.tables.people import PeopleReader

FURTHEST = 100.0  # training standard deviations; larger outliers would dominate squared errors
FEWEST = 20  # people of a group without a warning


@dataclass(frozen=True)
class Scaler:
    """Standardisation of real features with outliers clipped to ±`FURTHEST`; others are unchanged.

    Attributes:
        schema: the D features, with mean and scale of the rows to standardise by.
        rows: which rows these are: those of training, or with `each_file` those to be scaled (`of_file`).
        lowered: by name of a discrete feature, the number of codes by which its values are lowered, so that
            the lowest code of a file becomes the first of the feature; the authors' code prepares every file
            of people like this.
    """

    schema: Schema
    rows: ScalerRows = ScalerRows.training_rows
    lowered: dict[str, int] = field(default_factory=dict)

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

    def of_column(self, i: int) -> Scaler:
        """The scaler of feature `i` alone."""
        schema = self.schema
        return Scaler(Schema([schema[i]], schema.inputs, [schema.mean[i]], [schema.scale[i]]))

    def of_file(self, x: np.ndarray) -> Scaler:
        """The scaler of a file of people with features x (N, D): this one, or one fitted on x."""
        if self.rows is ScalerRows.training_rows:
            return self
        positions = {
            feature.name: int(np.searchsorted(feature.codes, x[:, i].min()))
            for i, feature in enumerate(self.schema)
            if feature.kind in DISCRETE
        }
        lowered = {name: position for name, position in positions.items() if position > 0}
        return Scaler(self.schema.measured(x), self.rows, lowered)

    def transform(self, x: np.ndarray) -> torch.Tensor:
        """Scale features (..., D); float32."""
        limit = np.where(self.real, FURTHEST, np.inf)
        scaled = np.clip((x - self.mean) / self.scale, -limit, limit)
        for i, feature in enumerate(self.schema):
            if feature.name in self.lowered:
                position = np.searchsorted(feature.codes, x[..., i]) - self.lowered[feature.name]
                scaled[..., i] = np.take(feature.codes, position)
        return torch.tensor(scaled, dtype=torch.float32)


@dataclass(frozen=True)
class PreparedData:
    """People of a run, by role.

    Attributes:
        scaler: of the training rows.
        train: applicants of Phase II; with `draw`, a sample of them.
        validation: people for model selection.
        test: people for reported measures.
        pool: people of Phase I; its first rows are those of the warm-up.
        pool_table: the pool before scaling, as initial policies need it; of several splits that of the first.
        other_pools: those of the other splits.
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
    pool_table: Table
    draw: Draw | None = None
    dynamics: Dynamics | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    other_pools: tuple[Table, ...] = ()
    sample_weight: torch.Tensor | None = None

    def __post_init__(self) -> None:
        """Refuse people of more than two groups one of which is absent, and warn of groups of few people."""
        if self.schema.n_groups == 2:
            return
        told, words = list(self.warnings), self.pool_table.sensitive
        if words is None or len(words.groups) != self.schema.n_groups:
            raise FairAllError("a table of more than two groups needs their words: `Table.sensitive`")
        for name, s in zip(words.names, words.groups, strict=True):
            remedy = "leave it out with dataset.groups=[A,B,C] of the others"
            for role, people in (("training", self.train), ("test", self.test)):
                n = int((people.s == s).sum(-1).min())
                if n == 0:
                    raise FairAllError(f"group {name}: nobody among the {role} people; {remedy}")
                if n < FEWEST:
                    few = count(n, f"{role} person", f"{role} people")
                    told.append(
                        f"group {name} has {few}: too few to measure its acceptance rate, whose standard "
                        f"error is up to {0.5 / n**0.5:.2f}, and with it the "
                        f"largest gap; {remedy}"
                    )
        object.__setattr__(self, "warnings", tuple(dict.fromkeys(told)))

    @property
    def schema(self) -> Schema:
        """The features of x, with mean and scale of the training rows."""
        return self.scaler.schema

    @classmethod
    def of_splits(cls, parts: Sequence[PreparedData], seeds: int) -> PreparedData:
        """The people of E seeds, seed e with those of split e mod K, scaled as those of the first.

        Raises:
            FairAllError: where labels are unknown: splits would differ in how many are known.
        """
        if parts[0].train.label_weight is not None:
            raise FairAllError("splits: people without a label are split once only; set splits=1")

        def by_replicate(of: Sequence[People]) -> People:
            known = [name for name, values in vars(of[0]).items() if values is not None]
            each = [of[e % len(of)] for e in range(seeds)]
            return People(**{name: torch.stack([getattr(one, name) for one in each]) for name in known})

        return replace(
            parts[0],
            train=by_replicate([part.train for part in parts]),
            validation=by_replicate([part.validation for part in parts]),
            test=by_replicate([part.test for part in parts]),
            pool=by_replicate([part.pool for part in parts]),
            notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
            warnings=tuple(dict.fromkeys(warning for part in parts for warning in part.warnings)),
            other_pools=tuple(part.pool_table for part in parts[1:]),
        )

    @property
    def reader(self) -> PeopleReader:
        """The reader of further people like these."""
        x = self.train.merged().x.double().numpy()
        ends = np.stack([x.min(0), x.max(0)]) * self.scaler.scale + self.scaler.mean
        discrete = [feature.kind in DISCRETE for feature in self.schema]
        lowest, highest = np.where(discrete, np.nan, ends)
        mean, scale = np.array(self.schema.mean), np.array(self.schema.scale)
        return PeopleReader(tuple(self.schema), mean, scale, lowest, highest, self.pool_table.sensitive)

    @property
    def pool_tables(self) -> tuple[Table, ...]:
        """The pool of each split before scaling."""
        return (self.pool_table, *self.other_pools)

    def warm_up(self, n: int) -> People:
        """The first `n` people of the pool, on whom the initial policy decides; scaled as a file."""
        first = self.pool.rows(torch.arange(min(n, len(self.pool))))
        files = [table.features[: len(first)] for table in self.pool_tables]
        scaled = [self.scaler.of_file(features).transform(features) for features in files]
        if not first.by_replicate:
            return replace(first, x=scaled[0])
        return replace(first, x=torch.stack([scaled[e % len(scaled)] for e in range(len(first.x))]))

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
        if self.train.label_weight is None:
            return RecycledApplicants(self.train, size, seeds, purpose, one_order=one_order)
        labelled = self.train.rows(self.train.labelled.nonzero().squeeze(-1))
        weight = labelled.label_weight
        assert weight is not None
        if (weight == weight[0]).all():
            return RecycledApplicants(labelled, size, seeds, purpose, one_order=one_order)

        def weighted(streams: SeedStreams, n: int) -> People:
            return labelled.rows(streams.choices(weight, n))  # with replacement

        return DrawnApplicants(weighted, size, seeds, purpose)

    def fingerprint(self) -> str:
        """Hash of schema, scaler, all values of all roles, and logged decisions; computed once."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        digest = hashlib.sha256(repr(self.schema).encode())
        digest.update(self.scaler.mean.tobytes() + self.scaler.scale.tobytes())
        for people in (self.train, self.validation, self.test, self.pool):
            for values in vars(people).values():
                if values is not None:
                    digest.update(values.numpy().tobytes())
        for table in self.pool_tables:
            digest.update(table.labelled.tobytes())
            if table.logged is not None:
                digest.update(table.logged.accepted.tobytes() + table.logged.propensity.tobytes())
        return digest.hexdigest()
