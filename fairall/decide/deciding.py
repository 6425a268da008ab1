"""Decide on the people of a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import torch

from fairall.config.compose import PLACES
from fairall.decide.equal_rates import EqualRates
from fairall.decide.reasons import LEAST, elsewhere, reasons
from fairall.decide.refer import Refer
from fairall.decide.rules import Rule
from fairall.decide.writing import write_rows
from fairall.display.table import print_frame
from fairall.errors import FairAllError, count
from fairall.measuring.decisions import free_names, told_of_renamed
from fairall.models.learner import MARGIN_DECIMALS
from fairall.policy import ENSEMBLES, Policy
from fairall.results.result import bound_of
from fairall.runtime.reading import why_no_file
from fairall.storage.files import unnamed
from fairall.tables.declared import Declared, keywords
from fairall.tables.files import File
from fairall.tables.groups import sides

LABEL = "label_probability"
PREFIX = "new_"  # of a column whose name is that of one of the table
READING = ("separator", "text_encoding")  # keys of dataset=csv
NO_POINTS = torch.empty(1, 0, 1)  # of a policy of one seed that averages over nothing


@dataclass(frozen=True)
class Tally:
    """What was decided.

    Attributes:
        policy: makes the decisions.
        which: of its seeds, `mean`, `median` or `seed:N`, see `Policy.combined`.
        rule: from probabilities to decisions.
        s: sensitive attribute of the people, shape (N,).
        columns: that were added to the table, by their names without `PREFIX`.
        warnings: about the table, and a rule that depends on the group.
        notes: on columns, and on people who were drawn or referred.
    """

    policy: Policy
    which: str
    rule: Rule
    s: np.ndarray
    columns: pd.DataFrame
    warnings: list[str]
    notes: list[str]

    def groups(self) -> pd.DataFrame:
        """Numbers of people, of the accepted and of the referred, a row for everybody and for each group."""
        numbers = pd.DataFrame({"people": 1, "accepted": self.columns["decision"].fillna(0).astype(int)})
        if "referred" in self.columns:
            numbers["referred"] = self.columns["referred"]
        reader = self.policy.reader
        of_groups = {reader.group_name(s): numbers[self.s == s] for s in sides(reader.n_groups)}
        return pd.DataFrame({name: own.sum() for name, own in {"all": numbers, **of_groups}.items()}).T

    def to_plain(self) -> dict[str, Any]:
        """Everything, with NaN where a single seed has no spread."""
        return {
            "method": self.policy.learner.config.name,
            "policy": self.which,
            "seeds": len(self.policy.deciding(self.which)),
            "diverged_seeds": self.policy.diverged,
            "rule": self.rule.told(len(self.s)),
            "fairness": bound_of(self.policy.config.fairness) if self.policy.config else "",
            "groups": self.groups().to_dict("index"),
            "mean_spread": float(self.columns["spread"].mean()),
            "largest_spread": float(self.columns["spread"].max()),
            "notes": self.notes,
            "warnings": self.warnings,
        }

    def show(self, run: str) -> None:
        """Print everything; `run` names the run of the policy."""
        plain, groups = self.to_plain(), self.groups()
        seeds = f" of {count(plain['seeds'], 'seed')}" if self.which in ENSEMBLES else ""
        print(f"Policy: {plain['method']} {run}, {self.which}{seeds}")
        if self.policy.diverged:
            print(f"Left out, since they have diverged: seeds {', '.join(map(str, self.policy.diverged))}")
        print(f"Rule: {plain['rule']}")
        if plain["fairness"]:
            print(f"Fairness in training: {plain['fairness']}")
        share = 100 * groups["accepted"] / (groups["people"] - groups.get("referred", 0))
        print_frame(groups.astype(str).assign(share=share.map("{:.1f} %".format).replace("nan %", "")))
        if plain["mean_spread"] == plain["mean_spread"]:
            largest = f"at most {plain['largest_spread']:.3f}"
            print(f"Spread over seeds: {plain['mean_spread']:.3f} on average, {largest}")
        for note in self.notes:
            print(f"Note: {note}")
        for warning in self.warnings:
            print(f"Warning: {warning}")


def decide(
    policy: Policy,
    table: File,
    out: Path,
    rule: Rule,
    *,
    which: str = "mean",
    strict: bool = False,
    most_reasons: int | None = None,
    wording: Mapping[str, str] = MappingProxyType({}),
    refer: Refer | None = None,
) -> Tally:
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
        most_reasons: largest number of `reasons` for a person who is not accepted, a further column; None for
            none.
        wording: see `reasons`.
        refer: who is decided on by a person, of which there is a further column; None for nobody.

    Raises:
        FairAllError: if the table cannot be read or holds invalid values, the policy has diverged, or `out`
            is the table itself or cannot be a file.
    """
    policy.deciding(which)
    require_place(out, table.path)
    # Through a symbolic link, which stays.
    with unnamed(out.resolve()) as file:
        x, s, warnings = policy.read(table.frame, strict=strict)
        n, notes = len(s), list[str]()
        rule.check(n)
        of_seeds = policy.encoded_propensity(x, s)
        probability, label = policy.combined(of_seeds, which), np.full(n, np.nan)
        if policy.estimates_label:
            label = policy.combined(policy.encoded_label_probability(x, s), which)
        referred = np.zeros(n, dtype=bool)
        if refer is not None:
            referred = refer.people(policy, x, s, probability, threshold=rule.threshold, by=which)
            no_place = "" if rule.places is None else "; they take no place"
            notes.append(f"left to a person, without a decision: {referred.sum()} of {n}, {refer}{no_place}")
        deciding, by, rest = policy, which, ~referred
        if rule.bound is None:
            margin = None
            if rule.places is not None:
                margin = policy.combined(policy.encoded_margin(x, s), which, decimals=MARGIN_DECIMALS)
            unlimited = rule.acceptance(probability)
            taken, propensity = rule.decisions(probability, margin, referred)
        else:
            thresholds = EqualRates(policy, which, rule.bound)
            unlimited, propensity = np.zeros((2, n))
            for chances, places in ((unlimited, math.inf), (propensity, rule.n_places(n))):
                chances[rest] = thresholds.acceptance(label[rest], x[rest], s[rest], places)
            taken = rule.by_lot(propensity, s.numpy())
            deciding, by = Policy(thresholds, policy.reader, NO_POINTS), "mean"
        columns = pd.DataFrame(
            {
                "probability": probability,
                "spread": policy.spread(of_seeds),
                LABEL: label,
                "decision": pd.Series(taken, dtype="Int8").mask(referred),
                "propensity": np.where(referred, np.nan, propensity),
            }
        )
        if refer is not None:
            columns["referred"] = referred.astype(np.int8)
        if most_reasons is not None:
            left = ~taken & rest
            own, crowded = (x[left], s[left]), unlimited[left] == 1
            columns["reasons"] = ""
            columns.loc[left, "reasons"] = reasons(deciding, *own, crowded, most_reasons, wording, by)
            more = rule.acceptance(elsewhere(deciding, *own, by)) > unlimited[left] + LEAST
            if more.any():
                likelier = "" if rule.draw is None else "likelier to be "
                notes.append(
                    f"the rule depends on the group: {more.sum()} of {len(more)} rejected people would be "
                    f"{likelier}accepted in another one, which `reasons` do not say"
                )
                warnings.append(
                    "the group may be no lawful reason to reject a person; a policy learnt with "
                    "fairness.blind=true decides without it"
                )
        names = free_names(columns, table.frame.columns, PREFIX)
        notes += told_of_renamed(names, "new", out.name, table.path.name)
        if not policy.estimates_label:
            method = policy.learner.config.name
            notes.append(f"model={method} has no estimate of the label: {names[LABEL]!r} is empty")
        write_rows(table.table, columns.rename(columns=names), file, out.name, table.declared)
    drawn = np.flatnonzero((propensity > 0.0) & (propensity < 1.0))
    if rule.draw is None and len(drawn):
        notes.append(
            f"drawn by lot for the last places: {count(len(drawn), 'person', 'people')}, of whom "
            f"{taken[drawn].sum()} accepted; `propensity` is the chance of each"
        )
    return Tally(policy, which, rule, s.numpy(), columns, warnings, notes)


def require_place(out: Path, *read: Path) -> None:
    """Raise FairAllError where decisions cannot be written to `out`, or it is one of the files `read`."""
    wrong = why_no_file(out) if out.exists() else None
    if not out.parent.is_dir():
        raise FairAllError(f"-o {out}: there is no folder {out.parent}")
    if wrong:
        raise FairAllError(f"-o {out}: {wrong}; give the file to write")
    if out.exists() and any(path.exists() and out.samefile(path) for path in read):
        raise FairAllError(f"-o {out}: is read by this command; give another file")


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
    given = keywords([word for word in words if not word.startswith(PLACES)], READING)
    return File(path, Declared.of(missing_by_default=(), **given))
