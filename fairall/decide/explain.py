"""Explanation of one decision: what each feature contributed to the probability, by Shapley values."""

from __future__ import annotations

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
from matplotlib.figure import Figure
from torch import Tensor

from fairall.data.load import people_of_run
from fairall.display.style import BLUE, ORANGE, STYLE, save_figure
from fairall.display.table import print_frame
from fairall.errors import FairAllError, count, needing
from fairall.policy import Policy
from fairall.runtime.reading import why_no_file
from fairall.storage.files import tidied, write_text
from fairall.storage.stored import strict as strict_json
from fairall.tables.cells import shown
from fairall.tables.files import File
from fairall.tables.people import UNKNOWN

BACKGROUND = 100  # people whose values stand in for those of the person
OTHERS = 1000  # people whom the person is ranked among
ORDERS = 10  # random orders of the features, each forward and backward
MOST_BARS = 12  # features in the figure
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
class Explanation:
    """Why a policy gives a person its probability.

    Attributes:
        policy: `mean`, `median` or `seed:NUMBER`, see `Policy.combined`.
        probability: of acceptance.
        threshold: least probability of an acceptance that is not drawn.
        average: mean probability of the people compared with.
        contributions: a row per feature and the sensitive attribute, the largest first, indexed by name: the
            raw `value`, its `contribution` (a Shapley value), the standard `error` of that over random
            orders, and the `spread`, its standard deviation over seeds (NaN for one seed).
        group: name of the person's group.
        compared_with: how many other people there are.
        share_with_lower_probability: of `all` of them, and of those of the person's `group` (NaN for nobody).
    """

    policy: str
    probability: float
    threshold: float
    average: float
    contributions: pd.DataFrame
    group: str
    compared_with: int
    share_with_lower_probability: dict[str, float]

    def show(self) -> None:
        """Print the explanation, the table first."""
        formats = {"value": "{}", "contribution": "{:+.3f}", "error": "± {:.3f}", "spread": "{:.3f}"}
        texts = {name: self.contributions[name].map(form.format) for name, form in formats.items()}
        print_frame(pd.DataFrame(texts).replace("nan", ""), first="feature")
        average = f"{self.average:.3f} on average of the people compared with"
        print(f"Probability of acceptance: {self.probability:.3f} (policy {self.policy}), {average}")
        print(f"Threshold of decisions that are not drawn: {self.threshold:g}")
        people, below = count(self.compared_with, "person", "people"), self.share_with_lower_probability
        group = f"of group {self.group}: {below['group']:.0%}"
        print(f"Share with a lower one: {below['all']:.0%} of {people}; {group}")
        for caution in CAUTIONS:
            print(caution)

    def to_plain(self) -> dict[str, Any]:
        """Everything, as JSON allows it."""
        rows = self.contributions.rename_axis("feature").reset_index().to_dict("records")
        return strict_json(vars(self) | {"contributions": rows, "cautions": CAUTIONS})


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
    if len(person) != 1 or not len(others[0]):
        told = f"not {len(person)}, compared with {len(others[0])}"
        raise FairAllError(f"one person is explained at a time, compared with at least one other, {told}")
    given = encoded or policy.encoded(person), others
    own, background = (torch.cat([x, s.unsqueeze(-1)], dim=-1).double().numpy() for x, s in given)

    def probabilities(rows: np.ndarray) -> np.ndarray:
        """Of the policy, then of every seed that has not diverged, shape (N, 1 + E)."""
        values = torch.tensor(rows, dtype=torch.float32)
        propensity = policy.encoded_propensity(values[:, :-1], values[:, -1])
        return np.column_stack([policy.combined(propensity, by), propensity[policy.deciding("mean")].T])

    of_s = [*policy.reader.meanings]
    names = [*policy.reader.names, next((name for name in of_s if name in person), of_s[-1])]
    cells = person.reindex(columns=names).astype(object).iloc[0]
    values, errors, average = _shapley(probabilities, own, background[:BACKGROUND])
    table = pd.DataFrame({"value": cells.where(cells.notna(), "(missing)").map(str)})
    table["contribution"], table["error"] = values[:, 0], errors[:, 0]
    table["spread"] = pd.DataFrame(values[:, 1:], names).std(axis=1)
    probability, s = float(probabilities(own)[0, 0]), own[0, -1]
    lower = pd.Series(probabilities(background)[:, 0] < probability)
    return Explanation(
        policy=by,
        probability=probability,
        threshold=policy.threshold if threshold is None else threshold,
        average=float(average[0]),
        contributions=table.sort_values("contribution", key=abs, ascending=False, kind="stable"),
        group="unknown" if s == UNKNOWN else policy.reader.group_name(s),
        compared_with=len(lower),
        share_with_lower_probability={"all": lower.mean(), "group": lower[background[:, -1] == s].mean()},
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


def _shapley(
    probabilities: Callable[[np.ndarray], np.ndarray], own: np.ndarray, background: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shapley values of K probabilities.

    Args:
        probabilities: of people (N, M), shape (N, K).
        own: values of the M features of the person, shape (1, M).
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
                    own, max_evals=2 * own.size + 1, silent=True
                )
                for seed in range(ORDERS)
            ]
    finally:
        np.random.set_state(state)
    values = np.stack([one.values[0] for one in found])
    return values.mean(0), values.std(0, ddof=1) / math.sqrt(ORDERS), found[0].base_values[0]


def write_explanation(explanation: Explanation, folder: Path) -> None:
    """Write explanation.png and explanation.json to a folder, which is made where it is missing."""
    table = explanation.contributions[:MOST_BARS]
    with tidied(folder, "explanation.*"), mpl.rc_context(STYLE):
        figure = Figure(figsize=(6, 0.9 + 0.24 * len(table)), layout="constrained")
        axes = figure.subplots()
        axes.barh(
            [f"{name} = {value[:CELL]}" for name, value in table["value"].items()],
            table["contribution"],
            xerr=table["spread"],
            color=[BLUE if contribution > 0 else ORANGE for contribution in table["contribution"]],
        )
        axes.axvline(0.0, color="black", lw=0.8)
        axes.invert_yaxis()
        below = explanation.share_with_lower_probability["all"]
        axes.set(
            title=f"Probability {explanation.probability:.2f}, {explanation.average:.2f} on average, "
            f"above that of {below:.0%} of {explanation.compared_with} others",
            xlabel="contribution to the probability (± 1 std over seeds)",
        )
        save_figure(figure, folder / "explanation.png")
        plain = json.dumps(explanation.to_plain(), indent=1, allow_nan=False)
        write_text(folder / "explanation.json", plain + "\n")
