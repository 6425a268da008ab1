"""Explanation of one decision: Shapley values of the probability, and the person's place among others."""

from __future__ import annotations

import math
import textwrap
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from fairall.config.stored import undownloaded
from fairall.config.target import require_trusted
from fairall.config.validation import checked_dataset
from fairall.data.dataset import dataset
from fairall.data.people_reader import PeopleReader
from fairall.decide.tables import Table
from fairall.errors import FairAllError, count
from fairall.policy import Policy

BACKGROUND = 100  # people whose values stand in for those of the person
OTHERS = 1000  # people whom the person is ranked among
WIDTH = 100  # characters of a line
ORDERS = 10  # random orders of the features, each forward and backward
CAUTIONS = (
    "Contributions add up from the mean probability of the people compared with to that of this person. The "
    "contribution of a feature is the mean change of the probability when it takes this person's value "
    "instead of another person's, over random orders of the features.",
    "They describe the policy. They do not say why the person has these values, whether they are good or bad "
    "risks, or what would happen if they changed: features that go together in the population are varied "
    "apart, also to combinations that nobody has.",
    "A small contribution of the sensitive attribute does not make the policy fair: other features may stand "
    "in for it. Fairness is a property of decisions on groups, see the measures of the run.",
)


@dataclass(frozen=True)
class Position:
    """A person's place among N others in the latent space of one seed.

    Attributes:
        seed: of the latent.
        z: E[z | x, s] of the person, shape (Z,).
        others: the same of the others, shape (N, Z).
    """

    seed: int
    z: np.ndarray
    others: np.ndarray

    @property
    def share_below(self) -> np.ndarray:
        """Share of the others with a lower value, by dimension, shape (Z,)."""
        return (self.others < self.z).mean(axis=0)


@dataclass(frozen=True)
class Explanation:
    """Why a policy gives a person its probability.

    Attributes:
        policy: `mean`, `median` or `seed:NUMBER`, see `Policy.combined`.
        probability: of acceptance.
        threshold: least probability of an acceptance that is not drawn.
        average: mean probability of the people compared with.
        contributions: a row per feature, the sensitive attribute last, indexed by name: the raw `value`, its
            `contribution` (a Shapley value), the standard `error` of that over random orders, and the
            `spread`, its standard deviation over seeds (NaN for one seed).
        others: probabilities of N people, for comparison, shape (N,).
        groups: which of them are of which group, shape (N,) each, bool, by the name of the group.
        group: name of the person's group.
        position: in the latent; None for a method without one.
    """

    policy: str
    probability: float
    threshold: float
    average: float
    contributions: pd.DataFrame
    others: np.ndarray
    groups: dict[str, np.ndarray]
    group: str
    position: Position | None

    @property
    def ranked(self) -> pd.DataFrame:
        """The contributions, the largest first."""
        size = self.contributions["contribution"].abs()
        return self.contributions.loc[size.sort_values(ascending=False, kind="stable").index]

    @property
    def share_below(self) -> tuple[float, float]:
        """Share of the others with a lower probability: of all, and of the person's group (or NaN)."""
        below = self.others < self.probability
        of_group = below[self.groups[self.group]]
        return float(below.mean()), float(of_group.mean()) if len(of_group) else float("nan")

    def lines(self) -> Iterator[str]:
        """The explanation for a terminal."""
        of_all, of_group = self.share_below
        yield f"Probability of acceptance: {self.probability:.3f} (policy {self.policy})"
        yield f"Threshold of decisions that are not drawn: {self.threshold:g}"
        among = f"{100 * of_all:.0f} % of {count(len(self.others), 'person', 'people')}"
        same = "nobody is there" if math.isnan(of_group) else f"{100 * of_group:.0f} %"
        yield f"Share with a lower one: {among}; of group {self.group}: {same}"
        ranked = self.ranked
        sensitive = self.contributions.index[-1]
        cells = [
            f"{name} = {value}{' (sensitive attribute)' if name == sensitive else ''}"
            for name, value in ranked["value"].items()
        ]
        start = "mean of the people compared with"
        width = max(map(len, [*cells, start]))
        yield f"{'Contributions':<{width}}            ± error   spread over seeds"
        yield f"  {start:<{width}}  {self.average:.3f}"
        for cell, (_, row) in zip(cells, ranked.iterrows(), strict=True):
            spread = "" if math.isnan(row["spread"]) else f"   {row['spread']:.3f}"
            yield f"  {cell:<{width}}  {row['contribution']:+.3f}  ± {row['error']:.3f}{spread}"
        yield f"  {'this person':<{width}}  {self.probability:.3f}"
        if self.position is not None:
            below = ", ".join(f"{100 * share:.0f}" for share in self.position.share_below)
            seed = self.position.seed
            yield f"Share with a lower value by dimension of the latent of seed {seed} (%): {below}"
        for caution in CAUTIONS:
            yield from textwrap.wrap(caution, WIDTH)

    def to_plain(self) -> dict[str, Any]:
        """Everything but the other people, as JSON allows it."""
        of_all, of_group = self.share_below
        rows = self.ranked.rename_axis("feature").reset_index()
        plain = {
            "policy": self.policy,
            "probability": self.probability,
            "threshold": self.threshold,
            "average": self.average,
            "share_with_lower_probability": {"all": of_all, "group": of_group},
            "group": self.group,
            "compared_with": len(self.others),
            "contributions": rows.to_dict("records"),
            "latent": None
            if self.position is None
            else {
                "seed": self.position.seed,
                "mean": self.position.z.tolist(),
                "share_below": self.position.share_below.tolist(),
            },
            "cautions": list(CAUTIONS),
        }
        return _without_nan(plain)


def explain(
    policy: Policy,
    person: pd.DataFrame,
    others: tuple[Tensor, Tensor],
    *,
    by: str = "mean",
    threshold: float | None = None,
) -> Explanation:
    """Explain the probability that a policy gives to one person.

    Shapley values are estimated by antithetic permutations (Mitchell et al. 2022) with the interventional
    expectation: a feature that is not known takes its value from another person, independently of the
    others. The sensitive attribute is one of the features.

    Args:
        policy: of a finished run.
        person: one row, as for `Policy.propensity`.
        others: encoded people to compare with, of `training_people` or `Policy.reader`: x, shape (N, D), and
            s, shape (N,). The first `BACKGROUND` of them are those of the Shapley values.
        by: see `Policy.combined`.
        threshold: of decisions that are not drawn; `Policy.threshold` by default.

    Raises:
        FairAllError: if there is not exactly one person, or nobody to compare with, or as
            `Policy.propensity` and `Policy.combined`.

    References:
        Mitchell, R., Cooper, J., Frank, E., Holmes, G. (2022). Sampling permutations for Shapley value
        estimation. Journal of Machine Learning Research 23.
    """
    if len(person) != 1:
        raise FairAllError(f"one decision is explained at a time, not {len(person)}")
    if not len(others[0]):
        raise FairAllError("there is nobody to compare the person with")
    x, s = policy.reader.read(person)
    own, background = _rows(x, s), _rows(*others)

    def probabilities(rows: np.ndarray) -> np.ndarray:
        """Of the policy, then of every seed that has not diverged, shape (N, 1 + E)."""
        values = torch.tensor(rows, dtype=torch.float32)
        propensity = policy.encoded_propensity(values[:, :-1], values[:, -1])
        return np.column_stack([policy.combined(propensity, by), propensity[policy.deciding("mean")].T])

    of_others = probabilities(background)[:, 0]
    names = [*policy.reader.schema.names, policy.reader.sensitive_column(person)[0]]
    values, errors, average = _shapley(probabilities, own[0], background[:BACKGROUND])
    contributions = pd.DataFrame(
        {
            "value": ["(missing)" if pd.isna(value) else str(value) for value in person[names].iloc[0]],
            "contribution": values[:, 0],
            "error": errors[:, 0],
            "spread": values[:, 1:].std(axis=1, ddof=1) if values.shape[1] > 2 else np.nan,
        },
        index=names,
    )
    return Explanation(
        policy=by,
        probability=float(probabilities(own)[0, 0]),
        threshold=policy.threshold if threshold is None else threshold,
        average=float(average[0]),
        contributions=contributions,
        others=of_others,
        groups={policy.reader.group_name(side): background[:, -1] == side for side in (1.0, -1.0)},
        group=policy.reader.group_name(own[0, -1]),
        position=_position(policy, own, background, by),
    )


def training_people(policy: Policy) -> tuple[Tensor, Tensor]:
    """At most `OTHERS` random people of the training split of a loaded policy's run, always the same.

    They are read again from the data set of the run, since a saved policy holds nobody's data.

    Returns:
        Scaled x, shape (N, D), and s in {−1, +1}, shape (N,).

    Raises:
        FairAllError: if the data set cannot be read or is not that of the run.
    """
    instead = "give people to compare with: --against FILE"
    if policy.config is None:
        raise FairAllError(f"the policy was not loaded, and its training people are not known; {instead}")
    try:
        require_trusted(policy.config["dataset"], "dataset", policy.modules)
    except FairAllError as error:
        raise FairAllError(f"{error}; or {instead}") from error
    config = checked_dataset(policy.config | {"dataset": undownloaded(policy.config["dataset"])})
    try:
        data = dataset(config).prepare(scaler=policy.learner.setting.protocol.scaler)
    except FairAllError as error:
        raise FairAllError(f"no training people of {config.name} ({error}); {instead}") from error
    if PeopleReader.of(data).to_plain() != policy.reader.to_plain():
        raise FairAllError(f"{config.name} has changed since the run; {instead}")
    return _some_of(data.train.x, data.train.s)


def read_people(policy: Policy, table: Table) -> tuple[Tensor, Tensor]:
    """At most `OTHERS` random people of a table, as of `training_people`; raises as `Policy.propensity`."""
    parts = pd.concat([part.text for part in table.parts()])
    return _some_of(*policy.reader.read(parts))


def _some_of(x: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    """At most `OTHERS` random rows of x (N, D) and s (N,), always the same."""
    rows = np.random.default_rng(0).permutation(len(x))[:OTHERS]
    return x[rows], s[rows]


def _rows(x: Tensor, s: Tensor) -> np.ndarray:
    """Features, then the sensitive attribute, shape (N, D + 1)."""
    return torch.cat([x, s.unsqueeze(-1)], dim=-1).double().numpy()


def _shapley(
    probabilities: Callable[[np.ndarray], np.ndarray], own: np.ndarray, background: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shapley values of K probabilities.

    Args:
        probabilities: of people (N, M), shape (N, K).
        own: values of the M features of the person.
        background: those of the people compared with, shape (N, M).

    Returns:
        Shapley values and their standard errors, shape (M, K) each, and the means over the background,
        shape (K,).
    """
    with _quiet_shap() as shap:
        masker = shap.maskers.Independent(background, max_samples=len(background))
        # One order at a time, since shap's own error takes both passes of an order for independent.
        found = [
            shap.PermutationExplainer(probabilities, masker, seed=seed)(
                own[np.newaxis], max_evals=2 * len(own) + 1, silent=True
            )
            for seed in range(ORDERS)
        ]
    values = np.stack([one.values[0] for one in found])
    return values.mean(0), values.std(0, ddof=1) / math.sqrt(ORDERS), found[0].base_values[0]


@contextmanager
def _quiet_shap() -> Iterator[Any]:
    """The module shap; it warns of other packages when imported and seeds the global generator of numpy."""
    state = np.random.get_state()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import shap

            yield shap
    finally:
        np.random.set_state(state)


def _position(policy: Policy, own: np.ndarray, others: np.ndarray, by: str) -> Position | None:
    """The place in the latent of the seed of `by`, or of the first seed that has not diverged."""
    position = policy.deciding(by)[0]
    values = torch.tensor(np.concatenate([own, others]), dtype=torch.float32).expand(
        len(policy.seeds), -1, -1
    )
    latent = policy.learner.representation(values[..., :-1], values[..., -1])
    if latent is None:
        return None
    z = latent[position].numpy()
    return Position(policy.seeds[position], z[0], z[1:])


def _without_nan(value: Any) -> Any:
    """Plain containers with None for NaN, which JSON lacks."""
    if isinstance(value, dict):
        return {name: _without_nan(child) for name, child in value.items()}
    if isinstance(value, list):
        return [_without_nan(child) for child in value]
    return None if isinstance(value, float) and math.isnan(value) else value
