"""Explanation of one decision: Shapley values of the probability, and the person's place among others."""

from __future__ import annotations

import itertools
import json
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from fairall.data.load import people_of_run
from fairall.display.style import BLUE, GREY, ORANGE, PALETTE, STYLE, save_figure, set_title
from fairall.display.table import print_frame
from fairall.errors import FairAllError, count, needing
from fairall.policy import Policy
from fairall.results.figures import principal
from fairall.runtime.reading import why_no_file
from fairall.storage.files import tidied, write_text
from fairall.tables.cells import shown
from fairall.tables.files import File
from fairall.tables.groups import sides
from fairall.tables.people import UNKNOWN

BACKGROUND = 100  # people whose values stand in for those of the person
OTHERS = 1000  # people whom the person is ranked among
ORDERS = 10  # random orders of the features, each forward and backward
MOST_BARS = 12  # features in the figure; further ones are one bar
CELL = 24  # characters of a value in the figure
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
        of_group = below[self.groups.get(self.group, [])]
        return float(below.mean()), float(of_group.mean()) if len(of_group) else float("nan")

    def show(self) -> None:
        """Print the explanation."""
        of_all, of_group = self.share_below
        print(f"Probability of acceptance: {self.probability:.3f} (policy {self.policy})")
        print(f"Threshold of decisions that are not drawn: {self.threshold:g}")
        among = f"{100 * of_all:.0f} % of {count(len(self.others), 'person', 'people')}"
        same = "nobody is there" if math.isnan(of_group) else f"{100 * of_group:.0f} %"
        print(f"Share with a lower one: {among}; of group {self.group}: {same}")
        sensitive, rows = self.contributions.index[-1], {}
        rows["mean of the people compared with"] = f"{self.average:.3f}", "", ""
        for name, value, contribution, error, spread in self.ranked.itertuples():
            feature = f"{name} = {value}{' (sensitive attribute)' if name == sensitive else ''}"
            of_seeds = "" if math.isnan(spread) else f"{spread:.3f}"
            rows[feature] = f"{contribution:+.3f}", f"± {error:.3f}", of_seeds
        rows["this person"] = f"{self.probability:.3f}", "", ""
        columns = ["contribution", "error", "spread over seeds"]
        print_frame(pd.DataFrame.from_dict(rows, orient="index", columns=columns), first="feature")
        if self.position is not None:
            below = ", ".join(f"{100 * share:.0f}" for share in self.position.share_below)
            seed = self.position.seed
            print(f"Share with a lower value by dimension of the latent of seed {seed} (%): {below}")
        for caution in CAUTIONS:
            print(caution)

    def to_plain(self) -> dict[str, Any]:
        """Everything but the other people, as JSON allows it."""
        of_all, of_group = self.share_below
        rows = self.ranked.rename_axis("feature").reset_index().astype(object)
        latent = self.position and {
            "seed": self.position.seed,
            "mean": self.position.z.tolist(),
            "share_below": self.position.share_below.tolist(),
        }
        return {
            "policy": self.policy,
            "probability": self.probability,
            "threshold": self.threshold,
            "average": self.average,
            "share_with_lower_probability": {
                "all": of_all,
                "group": None if math.isnan(of_group) else of_group,
            },
            "group": self.group,
            "compared_with": len(self.others),
            "contributions": rows.where(rows.notna(), None).to_dict("records"),
            "latent": latent,
            "cautions": list(CAUTIONS),
        }


def explain(
    policy: Policy,
    person: pd.DataFrame,
    others: tuple[Tensor, Tensor],
    *,
    by: str = "mean",
    threshold: float | None = None,
    encoded: tuple[Tensor, Tensor] | None = None,
) -> Explanation:
    """Explain the probability that a policy gives to one person.

    Shapley values are estimated by antithetic permutations (Mitchell et al. 2022) with the interventional
    expectation: a feature that is not known takes its value from another person, independently of the
    others. The sensitive attribute is one of the features.

    Args:
        policy: of a finished run.
        person: one row, as for `Policy.propensity`.
        others: encoded people to compare with, of `training_people` or `Policy.encoded`: x, shape (N, D), and
            s, shape (N,). The first `BACKGROUND` of them are those of the Shapley values.
        by: see `Policy.combined`.
        threshold: of decisions that are not drawn; `Policy.threshold` by default.
        encoded: the person, x (1, D) and s (1,), by default as `Policy.encoded` has it.

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
    own, background = _rows(*(encoded or policy.encoded(person))), _rows(*others)

    def probabilities(rows: np.ndarray) -> np.ndarray:
        """Of the policy, then of every seed that has not diverged, shape (N, 1 + E)."""
        values = torch.tensor(rows, dtype=torch.float32)
        propensity = policy.encoded_propensity(values[:, :-1], values[:, -1])
        return np.column_stack([policy.combined(propensity, by), propensity[policy.deciding("mean")].T])

    of_others = probabilities(background)[:, 0]
    of_s = [*policy.reader.meanings]
    names = [*policy.reader.names, next((name for name in of_s if name in person), of_s[-1])]
    values, errors, average = _shapley(probabilities, own[0], background[:BACKGROUND])
    return Explanation(
        policy=by,
        probability=float(probabilities(own)[0, 0]),
        threshold=policy.threshold if threshold is None else threshold,
        average=float(average[0]),
        contributions=pd.DataFrame(
            {
                "value": [
                    "(missing)" if pd.isna(value) else str(value)
                    for value in person.reindex(columns=names).iloc[0]
                ],
                "contribution": values[:, 0],
                "error": errors[:, 0],
                "spread": values[:, 1:].std(axis=1, ddof=1) if values.shape[1] > 2 else np.nan,
            },
            index=names,
        ),
        others=of_others,
        groups={
            policy.reader.group_name(side): background[:, -1] == side
            for side in sides(policy.reader.n_groups)
        },
        group="unknown" if own[0, -1] == UNKNOWN else policy.reader.group_name(own[0, -1]),
        position=_position(policy, own, background, by),
    )


def explain_row(
    policy: Policy,
    table: File,
    row: int,
    *,
    against: Path | None = None,
    by: str = "mean",
    threshold: float | None = None,
    strict: bool = False,
) -> tuple[Explanation, list[str]]:
    """Explain the decision on one row of a table, which is judged with its table, as for a decision.

    Args:
        policy: of a finished run.
        table: of people.
        row: its number, from 1.
        against: file of people to compare with; by default those of `training_people`.
        by: see `Policy.combined`.
        threshold: see `explain`.
        strict: see `Policy.propensity`.

    Returns:
        The explanation, and warnings about the table.

    Raises:
        FairAllError: as `decide`, `training_people` and `explain`.
    """
    if against is not None and (wrong := why_no_file(against)):
        raise FairAllError(f"--against {against}: {wrong}; give a CSV or Parquet file of people")
    policy.deciding(by)
    if row > (n := len(table.frame)):
        raise FairAllError(f"{table.path}: there is no row {row}, only {n}")
    person = table.frame[row - 1 : row]
    x, s, warnings = policy.read(table.frame, strict=strict)
    if against is None:
        others = training_people(policy)
    else:
        others = _some_of(*policy.encoded(replace(table, path=against).frame))
    encoded = x[[row - 1]], s[[row - 1]]
    return explain(policy, person, others, by=by, threshold=threshold, encoded=encoded), warnings


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
    setting, name = policy.learner.setting, policy.config.name("dataset")
    try:
        data = people_of_run(
            policy.config, len(setting.seeds), setting.splits, setting.protocol.scaler, policy.modules
        )
    except FairAllError as error:
        raise FairAllError(f"no training people of {shown(name)} ({error}); {instead}") from error
    if data.reader != policy.reader:
        raise FairAllError(f"{name} has changed since the run; {instead}")
    train = data.train.merged()
    return _some_of(train.x, train.s)


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
    state = np.random.get_state()  # of numpy's global generator, which shap seeds
    try:
        with warnings.catch_warnings(action="ignore"), needing("shap", "explain"):
            import shap  # warns of other packages

            masker = shap.maskers.Independent(background, max_samples=len(background))
            # One order at a time, since shap's own error takes both passes of an order for independent.
            found = [
                shap.PermutationExplainer(probabilities, masker, seed=seed)(
                    own[np.newaxis], max_evals=2 * len(own) + 1, silent=True
                )
                for seed in range(ORDERS)
            ]
    finally:
        np.random.set_state(state)
    values = np.stack([one.values[0] for one in found])
    return values.mean(0), values.std(0, ddof=1) / math.sqrt(ORDERS), found[0].base_values[0]


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


def write_explanation(explanation: Explanation, folder: Path) -> None:
    """Write explanation.png and explanation.json to a folder, which is made where it is missing."""
    with tidied(folder, "explanation.*"):
        _draw(explanation, folder / "explanation.png")
        plain = json.dumps(explanation.to_plain(), indent=1, allow_nan=False)
        write_text(folder / "explanation.json", plain + "\n")


def _draw(explanation: Explanation, path: Path) -> None:
    """The contributions, the person's place among others and, with a latent, their place in it."""
    with mpl.rc_context(STYLE | {"axes.titlesize": 9}):
        panels = 2 if explanation.position is None else 3
        height = max(3.4, 0.9 + 0.24 * min(len(explanation.contributions), MOST_BARS + 1))
        figure = Figure(figsize=(4 * panels, height), layout="constrained")
        axes = figure.subplots(1, panels)
        _contributions(axes[0], explanation)
        _among_others(axes[1], explanation)
        if explanation.position is not None:
            _in_latent(axes[2], explanation, explanation.position)
        set_title(
            figure,
            f"Probability of acceptance {explanation.probability:.2f} (policy {explanation.policy}), "
            f"{explanation.average:.2f} on average",
        )
        save_figure(figure, path)


def _contributions(axes: Axes, explanation: Explanation) -> None:
    ranked = explanation.ranked
    names = [f"{name} = {value[:CELL]}" for name, value in ranked["value"].items()]
    values, spread = ranked["contribution"].to_numpy(), ranked["spread"].to_numpy()
    if len(names) > MOST_BARS + 1:
        names = [*names[:MOST_BARS], f"{len(names) - MOST_BARS} others"]
        values = np.append(values[:MOST_BARS], values[MOST_BARS:].sum())
        spread = np.append(spread[:MOST_BARS], np.nan)
    at = np.arange(len(names))[::-1]
    axes.barh(at, values, color=np.where(values < 0, ORANGE, BLUE), height=0.7)
    known = np.isfinite(spread)
    axes.errorbar(
        values[known], at[known], xerr=spread[known], fmt="none", ecolor="black", elinewidth=0.8, capsize=2
    )
    axes.axvline(0.0, color="black", lw=0.8)
    axes.set_yticks(at, names, fontsize=8)
    axes.set(title="what moved it (bars: ± 1 std over seeds)", xlabel="contribution to the probability")


def _among_others(axes: Axes, explanation: Explanation) -> None:
    bins = np.linspace(0.0, 1.0, 21)
    colours = itertools.cycle((BLUE, ORANGE, *PALETTE))
    for (name, rows), colour in zip(explanation.groups.items(), colours, strict=False):
        if rows.any():
            share = [1.0 / rows.sum()] * rows.sum()
            own = explanation.others[rows]
            axes.hist(own, bins.tolist(), weights=share, histtype="step", color=colour, label=name)
    axes.axvline(explanation.probability, color="black", lw=1.2, label="this person")
    axes.axvline(explanation.threshold, color=GREY, ls="--", lw=1, label="threshold")
    axes.set(
        title=f"among {len(explanation.others)} others",
        xlabel="probability of acceptance",
        ylabel="share of the group",
        xlim=(0, 1),
    )
    axes.legend(fontsize=7, frameon=True, framealpha=0.85, edgecolor="none")


def _in_latent(axes: Axes, explanation: Explanation, position: Position) -> None:
    points, share = principal(np.vstack([position.others, position.z]))
    first, second = points.T
    shown = axes.scatter(
        first[:-1], second[:-1], c=explanation.others, cmap="cividis", vmin=0.0, vmax=1.0, s=9, lw=0
    )
    axes.scatter(
        first[-1], second[-1], marker="*", s=160, color="white", edgecolor="black", label="this person"
    )
    axes.set(
        title=f"in the latent of seed {position.seed} ({100 * share:.0f} % of its variance)",
        xlabel="first principal axis of z",
        ylabel="second principal axis",
    )
    axes.legend(fontsize=7, loc="best")
    axes.figure.colorbar(shown, ax=axes, label="probability of acceptance", pad=0.02)
