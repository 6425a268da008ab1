"""A data set as a table, before it is cut, scaled or turned into tensors."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from fairall.data.features import Schema

LEAST_PROPENSITY = 1e-6  # one label of a smaller one would be all that counts


@dataclass(frozen=True)
class Logged:
    """Decisions that somebody took before us, with what probability.

    Attributes:
        accepted: the decisions, shape (N,), bool.
        propensity: π(d=1 | x, s) of each row, recorded or estimated, shape (N,); 0 where it was not recorded
            of a rejected row.
        estimated: whether the propensities are estimates.
        reveals: whether labels are known of people who were accepted alone.
    """

    accepted: np.ndarray
    propensity: np.ndarray
    estimated: bool = False
    reveals: bool = False


@dataclass(frozen=True)
class Sensitive:
    """The raw column that s was read from.

    Attributes:
        column: its name.
        advantaged: its values that mean S = +1, as text.
        disadvantaged: its values that mean S = −1, as text.
    """

    column: str
    advantaged: tuple[str, ...]
    disadvantaged: tuple[str, ...]

    @property
    def meaning(self) -> dict[str, float]:
        """S of each value."""
        return dict.fromkeys(self.advantaged, 1.0) | dict.fromkeys(self.disadvantaged, -1.0)

    @classmethod
    def of(cls, column: pd.Series, s: np.ndarray) -> Sensitive:
        """The values that each group has in `column`, given s (N,) of its rows."""
        values = column.astype(str).to_numpy()
        advantaged, disadvantaged = (tuple(sorted(set(values[s == side]))) for side in (1, -1))
        return cls(str(column.name), advantaged, disadvantaged)


@dataclass(frozen=True)
class Table:
    """N rows in their raw order.

    Attributes:
        schema: the D features.
        x: a column per feature, categories as their codes; columns that no learner sees may follow.
        s: sensitive attribute in {−1, +1}, +1 the advantaged group, shape (N,).
        label: proxy label ỹ in {0, 1}, 0 where it is unknown, shape (N,).
        labelled: whose label is known, shape (N,), bool.
        logged: decisions in the raw data, where it has them.
        missing: how many values of a feature were missing and stood in for, by name; none where not named.
        sensitive: the raw column of s, where there is one.
    """

    schema: Schema
    x: pd.DataFrame
    s: np.ndarray
    label: np.ndarray
    labelled: np.ndarray
    logged: Logged | None = None
    missing: dict[str, int] = field(default_factory=dict)
    sensitive: Sensitive | None = None

    @classmethod
    def fully_labelled(
        cls,
        schema: Schema,
        x: pd.DataFrame,
        s: np.ndarray,
        label: np.ndarray,
        sensitive: Sensitive | None = None,
    ) -> Table:
        """A table in which every label is known."""
        return cls(schema, x, s, label, np.ones(len(x), dtype=bool), sensitive=sensitive)

    def __len__(self) -> int:
        return len(self.x)

    @property
    def features(self) -> np.ndarray:
        """What learners may see, shape (N, D)."""
        return self.x[self.schema.names].to_numpy(dtype=float)

    @property
    def label_propensity(self) -> np.ndarray:
        """Probability with which each person's label became known, shape (N,).

        That of the logged decision, at least `LEAST_PROPENSITY`, where decisions revealed the labels; 1 where
        every label is known or nothing says how labels became known.
        """
        if self.logged is None or not self.logged.reveals:
            return np.ones(len(self))
        return np.maximum(self.logged.propensity, LEAST_PROPENSITY)

    @property
    def label_weight(self) -> np.ndarray | None:
        """Weight of each person's label in means over the population, shape (N,).

        The inverse of `label_propensity` where the label is known, else 0; None where every label is known.
        """
        if self.labelled.all() and not (self.logged is not None and self.logged.reveals):
            return None
        return self.labelled / np.where(self.labelled, self.label_propensity, 1.0)

    def rows(self, index: np.ndarray) -> Table:
        """The rows at `index`, in its order."""
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
