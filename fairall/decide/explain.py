"""Explanation of one decision: what each feature contributed to the probability, by Shapley values."""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from fairall.decide.reasons import typical
from fairall.display.style import BLUE, ORANGE, STYLE, save_figure
from fairall.display.table import print_frame
from fairall.errors import FairAllError, needing
from fairall.policy import Policy
from fairall.storage.files import tidied, write_text
from fairall.storage.stored import strict as strict_json

BACKGROUND = 100  # people whose values stand in for those of the person
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
        warnings: about the table of the person.
    """

    policy: str
    probability: float
    threshold: float
    average: float
    contributions: pd.DataFrame
    warnings: list[str]

    def show(self) -> None:
        """Print the explanation, the table first."""
        formats = {"value": "{}", "contribution": "{:+.3f}", "error": "± {:.3f}", "spread": "{:.3f}"}
        texts = {name: self.contributions[name].map(form.format) for name, form in formats.items()}
        print_frame(pd.DataFrame(texts).replace("nan", ""), first="feature")
        print(f"Mean probability of the people compared with: {self.average:.3f}")
        print(f"Probability of acceptance: {self.probability:.3f} (policy {self.policy})")
        print(f"Threshold of decisions that are not drawn: {self.threshold:g}")
        print(*CAUTIONS, *map("Warning: {}".format, self.warnings), sep="\n")

    def to_plain(self) -> dict[str, Any]:
        """Everything, as JSON allows it."""
        rows = self.contributions.rename_axis("feature").reset_index().to_dict("records")
        return strict_json(vars(self) | {"contributions": rows, "cautions": CAUTIONS})


def explain(
    policy: Policy,
    people: pd.DataFrame,
    row: int,
    others: pd.DataFrame | None = None,
    *,
    by: str = "mean",
    strict: bool = False,
) -> Explanation:
    """Explain the probability that a policy gives to one person.

    Shapley values are estimated by antithetic permutations (Mitchell et al. 2022) with the interventional
    expectation: a feature that is not known takes its value from another person, independently of the
    others. The sensitive attribute is one of the features.

    Args:
        policy: of a finished run.
        people: as for `Policy.propensity`, whose values are judged as a whole.
        row: place of the person among them, from 0.
        others: likewise, to compare with, of whom `BACKGROUND` random ones count; by default people made up
            of the training data (`reasons.typical`).
        by: see `Policy.combined`.
        strict: see `Policy.propensity`.

    Raises:
        FairAllError: if there is no such row, or as `Policy.propensity` and `Policy.combined`.

    References:
        Mitchell, R., Cooper, J., Frank, E., Holmes, G. (2022). Sampling permutations for Shapley value
        estimation. Journal of Machine Learning Research 23.
    """
    if row >= len(people):
        raise FairAllError(f"there is no row {row + 1}, only {len(people)}")
    x, s, found = policy.read(people, strict=strict)
    own, random = torch.column_stack([x, s])[[row]].double().numpy(), np.random.default_rng(0)
    if others is None:
        background = typical(policy.reader, BACKGROUND, random)
    else:
        some = others.sample(min(BACKGROUND, len(others)), random_state=random)
        background = torch.column_stack(policy.encoded(some))

    def probabilities(rows: np.ndarray) -> np.ndarray:
        """Of the policy, then of every seed that has not diverged, shape (N, 1 + E)."""
        values = torch.tensor(rows, dtype=torch.float32)
        propensity = policy.encoded_propensity(values[:, :-1], values[:, -1])
        return np.column_stack([policy.combined(propensity, by), propensity[policy.deciding("mean")].T])

    state = np.random.get_state()  # of numpy's global generator, which shap seeds
    try:
        with warnings.catch_warnings(action="ignore"), needing("shap", "explain"):
            import shap  # warns of other packages

            masker = shap.maskers.Independent(background.double().numpy(), max_samples=len(background))
            # One order at a time, since shap's own error takes both passes of an order for independent.
            orders = [
                shap.PermutationExplainer(probabilities, masker, seed=seed)(
                    own, max_evals=2 * own.shape[1] + 1, silent=True
                )
                for seed in range(ORDERS)
            ]
    finally:
        np.random.set_state(state)
    values = np.stack([one.values[0] for one in orders])  # (orders, features, 1 + E)
    of_s = [*policy.reader.meanings]
    names = [*policy.reader.names, next(filter(people.__contains__, of_s), of_s[-1])]
    cells = people[row : row + 1].reindex(columns=names).astype(object).iloc[0]
    table = pd.DataFrame({"value": cells.where(cells.notna(), "(missing)").map(str)})
    table["contribution"] = values[:, :, 0].mean(axis=0)
    table["error"] = values[:, :, 0].std(axis=0, ddof=1) / math.sqrt(ORDERS)
    table["spread"] = pd.DataFrame(values[:, :, 1:].mean(axis=0), names).std(axis=1)
    return Explanation(
        policy=by,
        probability=float(probabilities(own)[0, 0]),
        threshold=policy.threshold,
        average=float(orders[0].base_values[0, 0]),
        contributions=table.sort_values("contribution", key=abs, ascending=False, kind="stable"),
        warnings=found,
    )


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
        axes.set(
            title=f"Probability {explanation.probability:.2f}, {explanation.average:.2f} on average",
            xlabel="contribution to the probability (± 1 std over seeds)",
        )
        save_figure(figure, folder / "explanation.png")
        plain = json.dumps(explanation.to_plain(), indent=1, allow_nan=False)
        write_text(folder / "explanation.json", plain + "\n")
