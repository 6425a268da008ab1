"""Estimates with influence functions: standard errors, differences and ratios.

An estimate θ̂ has the influence function φ if θ̂ − θ = Σₘ φₘ + o(N^-½) with a φₘ of mean 0 for each of M
independent clusters of rows: persons, or random blocks of them in a large log. Its variance is Σₘ φₘ², the
covariance of two estimates Σₘ φₘ φ'ₘ (van der Vaart 1998, "Asymptotic statistics", chapters 5 and 25). Sums,
products and quotients of estimates follow from the chain rule (the delta method), as derivatives do in
forward-mode automatic differentiation. So do quantities of rows that depend on a model with parameters: they
carry their derivatives by the model's log odds (`Column`), and their mean (`Sample.mean`) adds the influence
function of the parameters (Newey and McFadden 1994, section 6).

Few clusters or few outcomes need more: how many there are is the `Support` of an estimate, from which `gaps`
makes its interval.

References:
    Kish, L. (1965). Survey sampling. Wiley.
    Bell, R. and McCaffrey, D. (2002). Bias reduction in standard errors for linear regression with
        multi-stage samples. Survey Methodology.
    Imbens, G. and Kolesár, M. (2016). Robust standard errors in small samples: some practical advice. Review
        of Economics and Statistics.
    Carter, A., Schnepel, K. and Steigerwald, D. (2017). Asymptotic behavior of a t-test robust to cluster
        heterogeneity. Review of Economics and Statistics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from scipy.special import ndtri

from fairall.evaluate.estimated.nuisance import Parametric
from fairall.measuring.sequences import LEVEL

Z = float(ndtri((1 + LEVEL) / 2))
BLOCKS = 5000  # of a log with more rows: the relative error of a standard error is 1/√(2·blocks) = 1 %
Number: TypeAlias = float | np.ndarray


@dataclass(frozen=True)
class Support:
    """The outcomes that estimates rest on: how many there are, and between which values an estimate can be.

    Attributes:
        weight: sum of the weights of the outcomes of each cluster, shape (..., M).
        squares: sum of their squares, by row, shape (...).
        lowest: the estimate if every outcome were the least possible, shape (...).
        highest: likewise the greatest.
        cut: whether these are bounds of the truth too, as 0 and 1 are of rates. Those of utilities depend on
            the amounts and acceptances of the sample, and are not.
    """

    weight: np.ndarray
    squares: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray
    cut: bool = True

    def __getitem__(self, index: Any) -> Support:
        lowest, highest = self.lowest[index], self.highest[index]
        return Support(self.weight[index], self.squares[index], lowest, highest, self.cut)

    def moved(self, factor: Number, shift: Number) -> Support:
        """That of factor·estimate + shift."""
        ends = np.stack([self.lowest * factor + shift, self.highest * factor + shift])
        return replace(self, lowest=ends.min(0), highest=ends.max(0))

    @property
    def rows(self) -> np.ndarray:
        """Number of equally weighted rows worth as much (Kish 1965), shape (...)."""
        return _divided(self.weight.sum(-1) ** 2, self.squares)

    @cached_property
    def clusters(self) -> np.ndarray:
        """Number of equally heavy clusters worth as much, shape (...)."""
        return _divided(np.ones_like(self.squares), self._powers(2))

    @property
    def known(self) -> np.ndarray:
        """Whether outcomes tell the variance by their mean: those of a rate, one of each cluster, (...)."""
        return self.cut & (self.clusters > self.rows * (1.0 - 1e-9))

    @cached_property
    def freedom(self) -> np.ndarray:
        """Degrees of freedom of the estimated variance, shape (...); infinite where it is `known`.

        Those of Bell and McCaffrey (2002; Imbens and Kolesár 2016) of a weighted mean whose clusters each
        have one outcome, the worst case: few of them, or clusters of unequal weight, tell little about the
        variance (Carter, Schnepel and Steigerwald 2017). K equal clusters have K − 1; without outcomes
        there is no variance to estimate, and they are infinite.
        """
        two, three, four, five = map(self._powers, (2, 3, 4, 5))
        trace = two - 2.0 * three + two**2
        square = two**4 + 2.0 * two * four + 2.0 * three**2 - 4.0 * two**2 * three
        square += four + 2.0 * two * four - 4.0 * five
        freedom = _divided(np.maximum(trace, 0.0) ** 2, square)
        return np.where((two > 0) & ~self.known, freedom, np.inf)

    @cached_property
    def shrinkage(self) -> np.ndarray:
        """Expectation of Σ φ² by the variance, likewise, shape (...): 1 − 1/K for K equal clusters."""
        two = self._powers(2)
        return np.where(self.known, 1.0, 1.0 - _divided(2.0 * self._powers(3), two) + two)

    @cached_property
    def _shares(self) -> np.ndarray:
        """Shares of clusters in the weight, shape (..., M)."""
        return _divided(self.weight, self.weight.sum(-1, keepdims=True))

    def _powers(self, power: int) -> np.ndarray:
        """Sum of powers of the shares, shape (...)."""
        return (self._shares**power).sum(-1)


def _divided(over: np.ndarray, under: np.ndarray) -> np.ndarray:
    """The quotient, 0 where the denominator is not positive."""
    return np.divide(over, under, out=np.zeros(np.broadcast(over, under).shape), where=under > 0)


@dataclass(frozen=True)
class Estimate:
    """Estimates with their influence functions; +, −, × and / with estimates and with numbers.

    Attributes:
        value: shape (...).
        phi: contribution of each cluster to the error, shape (..., M).
        support: outcomes that it rests on; None for normal errors of known variance. Arithmetic with numbers
            keeps it.
    """

    value: np.ndarray
    phi: np.ndarray
    support: Support | None = None
    __array_ufunc__ = None  # an array on the left leaves the operation to this class

    def on(self, support: Support) -> Estimate:
        """The same with a support."""
        return replace(self, support=support)

    def _moved(self, factor: Number, shift: Number = 0.0) -> Support | None:
        return None if self.support is None else self.support.moved(factor, shift)

    def __add__(self, other: Estimate | Number) -> Estimate:
        if isinstance(other, Estimate):
            return Estimate(self.value + other.value, self.phi + other.phi)
        return Estimate(self.value + other, self.phi, self._moved(1.0, other))

    def __neg__(self) -> Estimate:
        return self * -1.0

    def __sub__(self, other: Estimate | Number) -> Estimate:
        return self + (-other)

    def __rsub__(self, other: Number) -> Estimate:
        return -self + other

    def __mul__(self, other: Estimate | Number) -> Estimate:
        if isinstance(other, Estimate):
            phi = self.phi * other.value[..., None] + other.phi * self.value[..., None]
            return Estimate(self.value * other.value, phi)
        factor = np.asarray(other, dtype=float)
        return Estimate(self.value * factor, self.phi * factor[..., None], self._moved(factor))

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other: Estimate) -> Estimate:
        """The quotient; NaN where the denominator is not positive."""
        below = np.where(other.value > 0, other.value, np.nan)
        value = self.value / below
        return Estimate(value, (self.phi - value[..., None] * other.phi) / below[..., None])

    def __getitem__(self, index: Any) -> Estimate:
        support = None if self.support is None else self.support[index]
        return Estimate(self.value[index], self.phi[index], support)

    @property
    def error(self) -> np.ndarray:
        """Standard error, shape (...)."""
        return np.sqrt((self.phi**2).sum(-1))


@dataclass(frozen=True)
class Column:
    """A quantity of each row, with derivatives by the log odds of models; +, − and × as of `Estimate`.

    Attributes:
        value: shape (N,).
        slope: derivative by the log odds of a model, by the model's name, shape (N,); of models with
            parameters only.
    """

    value: np.ndarray
    slope: Mapping[str, np.ndarray] = field(default_factory=dict)
    __array_ufunc__ = None

    def __add__(self, other: Column | Number) -> Column:
        if not isinstance(other, Column):
            return Column(self.value + other, self.slope)
        return Column(self.value + other.value, _added(self.slope, other.slope))

    def __neg__(self) -> Column:
        return self * -1.0

    def __sub__(self, other: Column | Number) -> Column:
        return self + (-other)

    def __rsub__(self, other: Number) -> Column:
        return -self + other

    def __mul__(self, other: Column | Number) -> Column:
        if not isinstance(other, Column):
            return Column(self.value * other, {name: slope * other for name, slope in self.slope.items()})
        first = {name: slope * other.value for name, slope in self.slope.items()}
        second = {name: slope * self.value for name, slope in other.slope.items()}
        return Column(self.value * other.value, _added(first, second))

    __radd__, __rmul__ = __add__, __mul__


def _added(first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    common = {name: first[name] + second[name] for name in first.keys() & second.keys()}
    return {**first, **second, **common}


@dataclass(frozen=True)
class Sample:
    """Rows in independent clusters, and the models with parameters behind quantities of rows.

    Args:
        n_rows: N.
        models: by name, as in `Column.slope`.
        person: codes of persons, whose rows depend on each other, shape (N,); None for a row each.
        seed: of the random blocks of persons.
    """

    n_rows: int
    models: Mapping[str, Parametric] = field(default_factory=dict)
    person: np.ndarray | None = None
    seed: int = 0

    @cached_property
    def cluster(self) -> np.ndarray:
        """Number of the cluster of each row, shape (N,): its person, dealt at random into `BLOCKS`."""
        person = np.arange(self.n_rows) if self.person is None else self.person
        persons = int(person.max()) + 1
        if persons <= BLOCKS:
            return person
        return (np.random.default_rng(self.seed).permutation(persons) % BLOCKS)[person]

    @cached_property
    def size(self) -> np.ndarray:
        """Rows of each cluster, shape (M,)."""
        return np.bincount(self.cluster).astype(float)

    @property
    def clusters(self) -> int:
        """M."""
        return len(self.size)

    @cached_property
    def everybody(self) -> Groups:
        """All rows as one group."""
        return self.by(np.zeros(self.n_rows, dtype=int), 1)

    def by(self, group: np.ndarray, groups: int) -> Groups:
        """The rows by their groups: codes 0 to G − 1, shape (N,), and G."""
        return Groups(self, group, groups)

    def mean(self, column: Column | np.ndarray) -> Estimate:
        """Mean over all N rows of a quantity (N,), a scalar."""
        return self.everybody.mean(column)[0]

    def support(self, weight: np.ndarray, **ends: Any) -> Support:
        """`Groups.support` of a scalar."""
        return self.everybody.support(weight, **ends)[0]

    @cached_property
    def moves(self) -> dict[str, np.ndarray]:
        """Influence functions of the parameters of each model, shape (D + 1, M)."""
        found = {}
        for name, model in self.models.items():
            weighted = (column * model.residual for column in model.inputs.T)
            scores = np.stack([np.bincount(self.cluster, weights=column) for column in weighted])
            moves = model.inverse_information @ scores
            # Residuals are out of fold, so that their scores do not sum to 0.
            found[name] = moves - moves.mean(-1, keepdims=True)
        return found


@dataclass(frozen=True)
class Groups:
    """The rows of a sample by their groups.

    Args:
        sample: the rows.
        group: number of the group of each row, shape (N,).
        groups: G.
    """

    sample: Sample
    group: np.ndarray
    groups: int

    def mean(self, column: Column | np.ndarray) -> Estimate:
        """Mean over all N rows of a quantity (N,), counted as 0 outside of a group, shape (G,)."""
        sample, column = self.sample, column if isinstance(column, Column) else Column(column)
        sums = self._sums(column.value)
        value = sums.sum(-1) / sample.n_rows
        phi = (sums - value[:, None] * sample.size) / sample.n_rows
        for name, slope in column.slope.items():
            rows = (self.group == one for one in range(self.groups))
            by_parameter = [sample.models[name].inputs[own].T @ slope[own] for own in rows]
            phi += np.stack(by_parameter) / sample.n_rows @ sample.moves[name]
        return Estimate(value, phi)

    def support(
        self,
        weight: np.ndarray,
        *,
        lowest: np.ndarray | float = 0.0,
        highest: np.ndarray | float = 1.0,
        cut: bool = True,
    ) -> Support:
        """The support of a mean or rate by group, of outcomes with weights at least 0 (N,).

        Further arguments are as of `Support`, for all groups or for each, shape (G,).
        """
        squares = np.bincount(self.group, weights=weight**2, minlength=self.groups)
        low, high = (np.broadcast_to(np.asarray(end, dtype=float), self.groups) for end in (lowest, highest))
        return Support(self._sums(weight), squares, low, high, cut)

    def _sums(self, values: np.ndarray) -> np.ndarray:
        """Sums by group and cluster, shape (G, M)."""
        clusters = self.sample.clusters
        cell = self.group * clusters + self.sample.cluster
        sums = np.bincount(cell, weights=values, minlength=self.groups * clusters)
        return sums.reshape(self.groups, clusters)
