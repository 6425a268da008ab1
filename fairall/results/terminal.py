"""A result as text: a table and sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from fairall.display.format import interval, mean_interval, mean_std, number
from fairall.display.table import print_frame

if TYPE_CHECKING:  # it imports torch
    from fairall.results.result import Result

COLUMNS = ["mean ± std", "95 % interval", "accept all", "knows every label", "with parity", "paper"]


def print_result(result: Result) -> None:
    """Print the measures of a result, beside those of the reference policies and the paper's."""
    rows = result.summary()
    known = (
        "knows every label: of a classifier fitted to every training label, and of one with parity of the "
        "training people. "
    )
    caption = (
        f"×100, latent_* in plain units. mean_ and tv_: mean and temporal variation over t in "
        f"{list(result.config.evaluation.window)}; _sampled: from drawn decisions, as the paper's mean_ and "
        "tv_ are. 95 % interval: of the mean over seeds, by Student's t. accept all: of accepting everybody "
        "of the same people; accepting nobody gives 0. "
        f"{known if rows['oracle'].notna().any() else ''}{noise(result)}"
    )
    print_frame(shown_measures(rows), title=result.title, caption=caption, first="measure")
    if len(result.named_groups) > 2:
        print_frame(by_group(result), title=f"By {result.sensitive_column}, ×100", first="group")


def shown_measures(rows: pd.DataFrame) -> pd.DataFrame:
    """The measures of `Result.summary` as text, ×100, those of a latent in plain units."""
    shown = {}
    for name, row in rows.iterrows():
        scale = 1 if str(name).startswith("latent_") else 100
        shown[name] = [
            mean_std(row["mean"], row["std"], scale=scale, digits=2),
            interval(row["low"], row["high"], scale=scale, digits=2),
            *(number(row[policy], scale, 2) for policy in ("accept_all", "oracle", "oracle_fair")),
            mean_std(row["paper_mean"], row["paper_std"], scale=scale),
        ]
    return pd.DataFrame.from_dict(shown, orient="index", columns=COLUMNS)


def by_group(result: Result) -> pd.DataFrame:
    """People, base rate and acceptance of each group and of everybody."""
    split = result.evaluation.split
    rows = {
        name: {
            "people": str(sum(group.people.values())),
            f"{split} people": str(group.people[split]),
            "base rate": number(group.base_rate),
            "accepted applicants": mean_interval(group.accepted),
            f"over t in {list(result.config.evaluation.window)}": mean_interval(group.accepted_in_window),
        }
        for name, group in (result.named_groups | {"all": result.groups["all"]}).items()
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def noise(result: Result) -> str:
    """A sentence on the noise of the evaluation people, which intervals over seeds of one split leave out."""
    people, splits = result.evaluation, result.config.splits
    errors = {"utility": people.utility_standard_error, "DPU": people.dpu_standard_error}
    known = " and ".join(
        f"the {name} a standard error of {number(error)}"
        for name, error in errors.items()
        if error is not None
    )
    left_out = ", which intervals over seeds of one split leave out" * (splits == 1)
    return (
        f"Measured on {people.people} {people.split} people{f' of one of {splits} splits' * (splits > 1)} "
        f"with {people.labelled} labels, worth {people.effective_sample_size:.0f} equally weighted ones."
        + f" Their choice gives {known}{left_out}."
        * bool(known)
    )
