"""A result as text: tables and sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from fairall.display.format import interval, mean_std, number
from fairall.display.table import print_frame

if TYPE_CHECKING:  # it imports torch
    from fairall.results.result import Result


def print_result(result: Result) -> None:
    """Print the measures of a result, beside those of accepting everybody and the paper's."""
    rows = result.rows()
    latent = ", latent_* in plain units" if any(name.startswith("latent_") for name in rows.index) else ""
    drawn = "; _sampled: from drawn decisions, as the paper's mean_ and tv_ are"
    caption = (
        f"×100{latent}. mean_ and tv_: mean and temporal variation over t in {list(result.window)}"
        f"{drawn if any(name.endswith('_sampled') for name in rows.index) else ''}. 95 % interval: of "
        "the mean over seeds, by Student's t. accept all: of accepting everybody of the same people; "
        f"accepting nobody gives 0. {known_labels(result)}{noise(result)}"
    )
    frame = shown_measures(rows).drop(columns=["knows every label", "with parity"], errors="ignore")
    frame = frame.rename(columns={"accept all": "accept\nall"})
    print_frame(frame, title=result.title, caption=caption, first="measure")
    if len(result.named_groups) > 2:
        print_frame(by_group(result), title=f"By {result.sensitive_column}, ×100", first="group")


def shown_measures(rows: pd.DataFrame) -> pd.DataFrame:
    """The measures of `Result.rows` as text, ×100, those of a latent in plain units."""
    shown = {}
    for name, row in rows.iterrows():
        scale = 1 if name.startswith("latent_") else 100
        shown[name] = {
            "mean ± std": mean_std(row["mean"], row["std"], scale=scale, digits=2),
            "95 % interval": interval(row["low"], row["high"], scale=scale, digits=2),
            "accept all": number(row["accept_all"], scale, 2),
            "knows every label": number(row["oracle"], scale, 2),
            "with parity": number(row["oracle_fair"], scale, 2),
            "paper": mean_std(row["paper_mean"], row["paper_std"], scale=scale),
        }
    return pd.DataFrame.from_dict(shown, orient="index")


def by_group(result: Result) -> pd.DataFrame:
    """People, base rate and acceptance of each group and of everybody."""
    rows = {}
    for name, group in result.all_groups.items():
        rates = group.accepted, group.accepted_in_window
        of_all, in_window = ("" if one is None else mean_std(one.mean, one.std) for one in rates)
        rows[name] = {
            "people": str(sum(group.people.values())),
            f"{result.evaluation.split} people": str(group.people[result.evaluation.split]),
            "base rate": number(group.base_rate),
            "accepted applicants": of_all,
            f"over t in {list(result.window)}": in_window,
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def known_labels(result: Result) -> str:
    """A sentence on the classifier that knows every label, empty where it was not measured."""
    said = []
    for policy in ("oracle", "oracle_fair"):
        found = {name: result.reference(policy, name) for name in ("mean_utility", "mean_dpu")}
        if not all(found.values()):  # no DPU where a group is absent
            return ""
        said.append(
            " and ".join(f"{name} {number(one.mean, digits=2)}" for name, one in found.items() if one)
        )
    return (
        f"A classifier fitted to every training label has {said[0]}, with parity of the training people "
        f"{said[1]}. "
    )


def noise(result: Result) -> str:
    """A sentence on the noise of the evaluation people, which intervals over seeds of one split leave out."""
    of, splits = result.evaluation, result.config.splits
    if of.utility_standard_error is None:
        return f"Measured on {of.people} {of.split} people."
    worth = ""
    if of.labelled < of.people:
        worth = f" ({of.labelled} labels, worth {of.effective_sample_size:.0f} equally weighted ones)"
    left_out = ", which these intervals leave out" if splits == 1 else f" of one of {splits} splits"
    said = (
        f"Noise of the evaluation people{left_out}: {of.people} {of.split} people{worth} give the utility a "
        f"standard error of {number(of.utility_standard_error)}"
    )
    if of.dpu_standard_error is None:
        return f"{said}."
    groups = result.named_groups
    if len(groups) > 2:
        sizes = ", ".join(f"{one.people[of.split]} {name}" for name, one in groups.items())
    else:
        sizes = " and ".join(f"{one.people[of.split]} with {name}" for name, one in reversed(groups.items()))
    return (
        f"{said} and the DPU one of {number(of.dpu_standard_error)}, from {sizes}: a policy with parity on "
        "other people need not have it on these."
    )
