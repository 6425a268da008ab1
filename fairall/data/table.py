"""Data set as a table, before splitting and scaling."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from fairall.data.features import Schema
from fairall.data.splits import Splits

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


def sides(n_groups: int) -> tuple[float, ...]:
    """The values of s of G groups, in the order in which a configuration lists them.

    Examples:
        >>> sides(2), sides(3)
        ((1.0, -1.0), (0.0, 1.0, 2.0))
    """
    return (1.0, -1.0) if n_groups == 2 else tuple(map(float, range(n_groups)))


def group_name(s: float, values: Sequence[str] = (), n_groups: int = 2) -> str:
    """The group S = s, with its values in the raw data if they are known; of more than two these alone.

    Examples:
        >>> group_name(1, ["male"]), group_name(-1), group_name(2, ["asian"], 4)
        ('S = +1 (male)', 'S = −1', 'asian')
    """
    if n_groups > 2:
        return ", ".join(values)
    sign = "S = +1" if s > 0 else "S = −1"
    return f"{sign} ({', '.join(values)})" if values else sign


@dataclass(frozen=True)
class Sensitive:
    """The raw column of the sensitive attribute.

    Attributes:
        column: name.
        advantaged: values of the first group, as text; of two groups S = +1.
        disadvantaged: values of the second one; of two groups S = −1.
        further: values of each further group.
    """

    column: str
    advantaged: tuple[str, ...]
    disadvantaged: tuple[str, ...]
    further: tuple[tuple[str, ...], ...] = ()

    @property
    def groups(self) -> dict[float, tuple[str, ...]]:
        """The values of each group, by s."""
        words = (self.advantaged, self.disadvantaged, *self.further)
        return dict(zip(sides(len(words)), words, strict=True))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the groups for sentences, in the order of `sides`."""
        if not self.further:
            return ("advantaged", "disadvantaged")
        return tuple(", ".join(values) for values in self.groups.values())

    @property
    def keys(self) -> dict[str, str]:
        """Names of more than two groups in their order, by key in tables and files; empty for two groups."""
        if not self.further:
            return {}
        keys = [re.sub(r"\W+", "_", name.lower()).strip("_") for name in self.names]
        if len({*keys, "all", "column", ""}) < len(keys) + 3:
            keys = [f"group_{number}" for number in range(len(keys))]
        return dict(zip(keys, self.names, strict=True))

    @property
    def meaning(self) -> dict[str, float]:
        """S of each value."""
        return {value: s for s, values in self.groups.items() for value in values}

    def values(self, s: float) -> tuple[str, ...]:
        """Values that mean S = s."""
        return self.groups[float(s)]

    @classmethod
    def of(cls, column: pd.Series, s: np.ndarray, n_groups: int = 2) -> Sensitive:
        """The values of each of G groups in `column`, given s (N,) of its rows."""
        values = column.astype(str).to_numpy()
        first, second, *others = (tuple(sorted(set(values[s == side]))) for side in sides(n_groups))
        return cls(str(column.name), first, second, tuple(others))

    def to_plain(self) -> dict[str, Any]:
        """Plain containers, for JSON."""
        plain = asdict(self)
        return plain if self.further else {name: of for name, of in plain.items() if name != "further"}


@dataclass(frozen=True)
class Table:
    """N rows in their raw order.

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
        sensitive: Sensitive | pd.Series | None = None,
    ) -> Table:
        """A table in which every label is known; `sensitive` may be the raw column of s."""
        if isinstance(sensitive, pd.Series):
            sensitive = Sensitive.of(sensitive, s, schema.n_groups)
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
        values = () if self.sensitive is None else self.sensitive.values(s)
        return group_name(s, values, self.schema.n_groups)

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
