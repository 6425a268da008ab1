"""Data set as a table, before splitting and scaling."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fairall.data.features import Schema
from fairall.data.splits import Splits
from fairall.display.viewed import Viewed
from fairall.tables.groups import Sensitive, group_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST_PROPENSITY = 1e-6  # bounds the weight of a single label


@dataclass(frozen=True)
class Logged:
    """Past decisions with their propensities.

    Attributes:
        accepted: the decisions, shape (N,), bool.
        propensity: π(d=1 | x, s), recorded or estimated, shape (N,); 0 for a rejected row without a record.
        estimated: whether the propensities are estimates.
        reveals: whether labels are known only for accepted people.
    """

    accepted: np.ndarray
    propensity: np.ndarray
    estimated: bool = False
    reveals: bool = False


@dataclass(frozen=True, repr=False)
class Table(Viewed):
    """N rows in their raw order.

    `plot` draws `rates`, those of `summary` by group.

    Attributes:
        schema: the D features.
        x: a column per feature, categories as codes; columns hidden from learners may follow.
        s: sensitive attribute, shape (N,); see `People`.
        label: proxy label ỹ in {0, 1}, 0 where unknown, shape (N,).
        labelled: whose label is known, shape (N,), bool.
        logged: past decisions, if the raw data has any.
        missing: number of imputed values by feature; 0 for features not listed.
        sensitive: the raw column of s, if there is one.
        splits: row numbers by role, if the data set determines them; else they are drawn at random.
        notes: remarks on how the raw data was read, one sentence each.
        warnings: reasons why measures on these people need care, one sentence each.
    """

    panels = ("rates",)
    schema: Schema
    x: pd.DataFrame
    s: np.ndarray
    label: np.ndarray
    labelled: np.ndarray
    logged: Logged | None = None
    missing: dict[str, int] = field(default_factory=dict)
    sensitive: Sensitive | None = None
    splits: Splits | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @classmethod
    def fully_labelled(
        cls,
        schema: Schema,
        x: pd.DataFrame,
        s: np.ndarray,
        label: np.ndarray,
        sensitive: Sensitive | None = None,
    ) -> Table:
        """A table in which every label is known; s and label (N,)."""
        return cls(schema, x, s, label, np.ones(len(x), dtype=bool), sensitive=sensitive)

    def __len__(self) -> int:
        return len(self.x)

    @property
    def features(self) -> np.ndarray:
        """The features visible to learners, shape (N, D)."""
        return self.x[self.schema.names].to_numpy(dtype=float)

    @property
    def label_propensity(self) -> np.ndarray:
        """Probability that each person's label is revealed, shape (N,).

        The propensity of the logged decision, at least `LEAST_PROPENSITY`, if decisions revealed the labels,
        else 1.
        """
        if self.logged is None or not self.logged.reveals:
            return np.ones(len(self))
        return np.maximum(self.logged.propensity, LEAST_PROPENSITY)

    @property
    def label_weight(self) -> np.ndarray | None:
        """Weight of each person's label in means over the population, shape (N,).

        1 / `label_propensity` if the label is known, else 0; None if all labels are known.
        """
        if self.labelled.all() and not (self.logged is not None and self.logged.reveals):
            return None
        return self.labelled / np.where(self.labelled, self.label_propensity, 1.0)

    @property
    def groups(self) -> dict[str, np.ndarray]:
        """Masks (N,) of the groups of `sensitive` by their names for sentences; none without it."""
        of = self.sensitive
        return {} if of is None else {name: self.s == s for name, s in zip(of.names, of.groups, strict=True)}

    def group_name(self, s: float) -> str:
        """The group S = s, with its values in the raw data if they are known."""
        values = () if self.sensitive is None else self.sensitive.groups[s]
        return group_name(s, values, self.schema.n_groups)

    @property
    def title(self) -> str:
        """Numbers of people, features and known labels."""
        known = int(self.labelled.sum())
        return f"{len(self)} people with {len(self.schema)} features, {known} of them with a known label"

    def to_frame(self) -> pd.DataFrame:
        """Features, `s`, `label` (NaN where unknown) and, of past decisions, `accepted` and `propensity`.

        A name that a feature has ends in an underscore. N rows.
        """
        columns = {"s": self.s, "label": np.where(self.labelled, self.label, np.nan)}
        if self.logged is not None:
            columns |= {"accepted": self.logged.accepted, "propensity": self.logged.propensity}
        taken = {*self.x.columns}
        return self.x.assign(**{name + "_" * (name in taken): own for name, own in columns.items()})

    def summary(self) -> pd.DataFrame:
        """A row per group and one for all: `people`, `labelled`, `base_rate` and share `accepted`.

        The base rate is the share of label 1 in the population, NaN without a known label.
        """
        unknown = np.full(len(self), np.nan)
        accepted = unknown if self.logged is None else self.logged.accepted
        weight = np.ones(len(self)) if self.label_weight is None else self.label_weight
        groups = {self.group_name(float(s)): self.s == s for s in np.unique(self.s)}
        rows = [
            (
                rows.sum(),
                self.labelled[rows].sum(),
                np.average(self.label[rows], weights=weight[rows]) if weight[rows].any() else np.nan,
                accepted[rows].mean(),
            )
            for rows in [*groups.values(), np.full(len(self), True)]
        ]
        return pd.DataFrame(rows, [*groups, "all"], ["people", "labelled", "base_rate", "accepted"])

    def _draw(self, what: str, axes: Axes) -> None:
        """Draw base rate and share of accepted people by group."""
        from fairall.display.style import BLUE, GREY  # imports matplotlib

        rates = self.summary()[["base_rate", "accepted"]].dropna(axis="columns", how="all")
        rates = rates.rename(columns={"base_rate": "base rate"})
        rates.plot.bar(ax=axes, color=[BLUE, GREY], rot=0, ylabel="share of people", ylim=(0, 1))

    def rows(self, index: np.ndarray) -> Table:
        """The rows at `index` (n,), in its order."""
        logged = self.logged
        if logged is not None:
            logged = replace(logged, accepted=logged.accepted[index], propensity=logged.propensity[index])
        return Table(
            self.schema,
            self.x.iloc[index],
            self.s[index],
            self.label[index],
            self.labelled[index],
            logged,
            sensitive=self.sensitive,
        )
