"""Decide on the people of a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from fairall.config.compose import PLACES
from fairall.decide.equal_rates import EqualRates
from fairall.decide.reasons import BY_GROUP, LAWFUL, LEAST, elsewhere, reasons
from fairall.decide.refer import Refer
from fairall.decide.rules import Rule
from fairall.decide.writing import write_rows
from fairall.display.table import print_frame
from fairall.errors import FairAllError, count
from fairall.measuring.decisions import free_names, told_of_renamed
from fairall.models.learner import MARGIN_DECIMALS
from fairall.policy import Policy
from fairall.storage.files import unnamed
from fairall.storage.stored import why_no_file
from fairall.tables.declared import Declared, keywords
from fairall.tables.files import File
from fairall.tables.groups import sides

LABEL = "label_probability"
PREFIX = "new_"  # of a column whose name is that of one of the table
READING = ("separator", "text_encoding")  # keys of dataset=csv
NO_POINTS = torch.empty(1, 0, 1)  # of a policy of one seed that averages over nothing


def decide(
    policy: Policy,
    table: File,
    out: Path,
    rule: Rule,
    *,
    which: str,
    strict: bool,
    most_reasons: int | None,
    wording: Mapping[str, str],
    refer: Refer | None,
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Write the table with a decision on each person.

    The table is read into memory and its values are judged as a whole before the first decision.

    Args:
        policy: of all seeds.
        table: of people.
        out: file to write, CSV or, by its ending, Parquet: the columns of the table and those of
            docs/decide.md.
        rule: from probabilities to decisions.
        which: see `Policy.combined`.
        strict: see `Policy.propensity`.
        most_reasons: largest number of `reasons` for a rejected person, a further column; None for none.
        wording: see `reasons`.
        refer: who is decided on by a person, of which there is a further column; None for nobody.

    Returns:
        Numbers of people, of the accepted and of the referred, and the share of the accepted among those
        decided on, a row for everybody and for each group; and `method`, `policy`, number of `seeds`,
        `diverged_seeds`, `rule`, and sentences: `notes` on columns and on people, `warnings` about the table,
        and of a rule that depends on the group.

    Raises:
        FairAllError: if the table cannot be read or holds invalid values, the policy has diverged, or `out`
            is the table itself or cannot be a file.
    """
    seeds, reader = policy.deciding(which), policy.reader
    require_place(out, table.path)
    # Through a symbolic link, which stays.
    with unnamed(out.resolve()) as file:
        x, s, warnings = policy.read(table.frame, strict=strict)
        n, notes = len(s), list[str]()
        places = rule.n_places(n)
        of_seeds = policy.encoded_propensity(x, s)
        probability, label = policy.combined(of_seeds, which), np.full(n, np.nan)
        if policy.estimates_label:
            label = policy.combined(policy.encoded_label_probability(x, s), which)
        else:
            notes.append(f"model={policy.learner.config.name} has no estimate of the label: {LABEL} is empty")
        if policy.diverged:
            notes.append(f"left out, since they have diverged: seeds {', '.join(map(str, policy.diverged))}")
        referred = np.zeros(n, dtype=bool)
        if refer is not None:
            referred = refer.people(policy, x, s, probability, threshold=rule.threshold, by=which)
            no_place = "" if rule.places is None else "; they take no place"
            notes.append(f"left to a person, without a decision: {referred.sum()} of {n}, {refer}{no_place}")
        deciding, by = policy, which
        if rule.bound is None:
            unlimited, margin = rule.acceptance(probability), np.zeros(n)
            if rule.places is not None:
                margin = policy.combined(policy.encoded_margin(x, s), which, decimals=MARGIN_DECIMALS)
            taken, propensity = rule.decisions(probability, margin, referred)
        else:
            thresholds = EqualRates(policy, which, rule.bound)
            chances = np.where(referred, np.nan, label)
            unlimited, propensity = (
                thresholds.acceptance(chances, x, s, most) for most in (math.inf, places)
            )
            taken = rule.by_lot(propensity, s.numpy())
            deciding, by = Policy(thresholds, reader, NO_POINTS), "mean"
        drawn = np.flatnonzero((propensity > 0.0) & (propensity < 1.0))
        if rule.draw is None and len(drawn):
            notes.append(
                f"drawn by lot for the last places: {count(len(drawn), 'person', 'people')}, of whom "
                f"{taken[drawn].sum()} accepted; `propensity` is the chance of each"
            )
        columns = pd.DataFrame({"probability": probability, "spread": policy.spread(of_seeds), LABEL: label})
        columns["decision"] = pd.Series(taken, dtype="Int8").mask(referred)
        columns["propensity"] = np.where(referred, np.nan, propensity)
        if refer is not None:
            columns["referred"] = referred.astype(np.int8)
        left = ~taken & ~referred
        if most_reasons is not None:
            columns["reasons"] = ""
        if most_reasons is not None and left.any():
            people, crowded = (x[left], s[left]), unlimited[left] == 1
            columns.loc[left, "reasons"] = reasons(deciding, *people, crowded, most_reasons, wording, by)
            more = rule.acceptance(elsewhere(deciding, *people, by)) > unlimited[left] + LEAST
            if more.any():
                likelier = "" if rule.draw is None else "likelier to be "
                notes.append(BY_GROUP.format(more.sum(), len(more), likelier))
                warnings.append(LAWFUL)
        free = free_names(columns, table.frame.columns, PREFIX)
        notes += told_of_renamed(free, "new", out.name, table.path.name)
        write_rows(table.table, columns.rename(columns=free), file, out.name, table.declared)
    numbers = pd.DataFrame({"people": 1, "accepted": taken, "referred": referred}, dtype=int)
    members = {reader.group_name(side): s.numpy() == side for side in sides(reader.n_groups)}
    groups = pd.DataFrame({"all": True} | members, dtype=int).T @ numbers
    groups["share"] = groups["accepted"] / (groups["people"] - groups["referred"])
    return groups, {
        "method": policy.learner.config.name,
        "policy": which,
        "seeds": len(seeds),
        "diverged_seeds": policy.diverged,
        "rule": rule.told(n),
        "notes": notes,
        "warnings": warnings,
    }


def show(groups: pd.DataFrame, about: dict[str, Any], run: str) -> None:
    """Print what `decide` returns; `run` names the run of the policy."""
    seeds = count(about["seeds"], "seed")
    print(f"Policy: {about['method']} {run}, {about['policy']} of {seeds}")
    print(f"Rule: {about['rule']}")
    share = (100 * groups["share"]).map("{:.1f} %".format).replace("nan %", "")
    print_frame(groups.assign(referred=groups["referred"].astype(str).replace("0", ""), share=share))
    for kind in ("note", "warning"):
        for line in about[f"{kind}s"]:
            print(f"{kind.capitalize()}: {line}")


def require_place(out: Path, *read: Path) -> None:
    """Raise FairAllError where decisions cannot be written to `out`, or it is one of the files `read`."""
    if not out.parent.is_dir():
        raise FairAllError(f"-o {out}: there is no folder {out.parent}")
    if out.exists():
        is_read = any(path.exists() and out.samefile(path) for path in read)
        if wrong := why_no_file(out) or "is read by this command" * is_read:
            raise FairAllError(f"-o {out}: {wrong}; give another file to write")


def people_file(path: Path, words: Sequence[str]) -> File:
    """The file of people at a path.

    Args:
        path: of a CSV or Parquet file.
        words: KEY=VALUE of `READING`, as in `dataset=csv`; those of `PLACES` are ignored.

    Raises:
        FairAllError: where there is no such file, key or value.
    """
    if wrong := why_no_file(path):
        raise FairAllError(f"{path}: {wrong}; give the CSV or Parquet file of the people")
    given = [word for word in words if not word.startswith(PLACES)]
    return File(path, Declared.of(missing_by_default=(), **keywords(given, READING)))
