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
from torch import Tensor

from fairall.config.compose import PLACES
from fairall.decide.equal_rates import EqualRates
from fairall.decide.reasons import reasons
from fairall.decide.rules import Rule
from fairall.decide.writing import write_rows
from fairall.display.progress import Display
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
COLUMNS = ("probability", "spread", LABEL, "decision", "propensity")
REASONS = "reasons"
PREFIX = "new_"  # of a column whose name is that of one of the table
READING = ("separator", "text_encoding")  # keys of dataset=csv
NO_POINTS = torch.empty(1, 0, 1)  # of a policy of one seed that averages over nothing
Columns = dict[str, np.ndarray]
"""Further columns of a table, of shape (N,)."""


@dataclass(frozen=True)
class Tally:
    """What was decided.

    Attributes:
        policy: makes the decisions.
        which: of its seeds, `mean`, `median` or `seed:N`, see `Policy.combined`.
        rule: from probabilities to decisions.
        s: sensitive attribute of the people, shape (N,).
        columns: values of `COLUMNS`.
        warnings: about the table.
        notes: on columns, and on people who were drawn.
    """

    policy: Policy
    which: str
    rule: Rule
    s: np.ndarray
    columns: Columns
    warnings: list[str]
    notes: list[str]

    def groups(self) -> pd.DataFrame:
        """Number of people and of the accepted, a row for everybody and for each group."""
        reader, accepted = self.policy.reader, pd.Series(self.columns["decision"])
        members = {"all": accepted}
        members |= {reader.group_name(s): accepted[self.s == s] for s in sides(reader.n_groups)}
        rows = {name: (len(own), int(own.sum())) for name, own in members.items()}
        return pd.DataFrame.from_dict(rows, orient="index", columns=["people", "accepted"])

    def to_plain(self) -> dict[str, Any]:
        """Everything as JSON allows it."""
        spread = self.columns["spread"] if len(self.policy.deciding("mean")) > 1 else None
        return {
            "method": self.policy.learner.config.name,
            "policy": self.which,
            "seeds": len(self.policy.deciding(self.which)),
            "diverged_seeds": self.policy.diverged,
            "rule": self.rule.told(len(self.s)),
            "fairness": bound_of(self.policy.config.fairness) if self.policy.config else "",
            "groups": self.groups().to_dict("index"),
            "mean_spread": None if spread is None else float(spread.mean()),
            "largest_spread": None if spread is None else float(spread.max()),
            "notes": self.notes,
            "warnings": self.warnings,
        }

    def show(self, run: str) -> None:
        """Print everything; `run` names the run of the policy."""
        plain = self.to_plain()
        seeds = f" of {count(plain['seeds'], 'seed')}" if self.which in ENSEMBLES else ""
        print(f"Policy: {plain['method']} {run}, {self.which}{seeds}")
        if self.policy.diverged:
            print(f"Left out, since they have diverged: seeds {', '.join(map(str, self.policy.diverged))}")
        print(f"Rule: {plain['rule']}")
        if plain["fairness"]:
            print(f"Fairness in training: {plain['fairness']}")
        groups = self.groups()
        share = 100 * groups["accepted"] / groups["people"]
        print_frame(groups.astype(str).assign(share=[f"{one:.1f} %" * (one == one) for one in share]))
        if plain["mean_spread"] is not None:
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
) -> Tally:
    """Write the table with a decision on each person.

    The table is read into memory and its values are judged as a whole before the first decision.

    Args:
        policy: of all seeds.
        table: of people.
        out: file to write, CSV or, by its ending, Parquet: the columns of the table and those of `COLUMNS`,
            see docs/decide.md.
        rule: from probabilities to decisions.
        which: see `Policy.combined`.
        strict: see `Policy.propensity`.
        most_reasons: largest number of `reasons` for a rejected person, a further column; None for none.
        wording: see `reasons`.

    Raises:
        FairAllError: if the table cannot be read or holds invalid values, the policy has diverged, or `out`
            is the table itself or cannot be a file.
    """
    policy.deciding(which)
    require_place(out, table.path)
    # Through a symbolic link, which stays.
    with unnamed(out.resolve()) as file:
        x, s, warnings = policy.read(table.frame, strict=strict)
        rule.check(len(s))
        wanted = COLUMNS if most_reasons is None else (*COLUMNS, REASONS)
        names = free_names(wanted, table.frame.columns, PREFIX)
        notes = told_of_renamed(names, "new", out.name, table.path.name)
        if not policy.estimates_label:
            method = policy.learner.config.name
            notes.append(f"model={method} has no estimate of the label: {names[LABEL]!r} is empty")
        columns = _computed(policy, x, s, rule, which)
        probability, deciding, by = columns["probability"], policy, which
        if rule.bound is None:
            unlimited = rule.acceptance(probability)
            taken, propensity = rule.decisions(probability, columns.get("margin"))
        else:
            thresholds = EqualRates(policy, which, rule.bound)
            unlimited, propensity = (
                thresholds.acceptance(columns[LABEL], x, s, places)
                for places in (math.inf, rule.n_places(len(s)))
            )
            taken = rule.by_lot(propensity, s.numpy())
            deciding, by = Policy(thresholds, policy.reader, NO_POINTS), "mean"
        columns |= {"decision": taken.astype(np.int8), "propensity": propensity}
        if most_reasons is not None:
            left = ~taken
            columns[REASONS] = np.full(len(left), "", dtype=object)
            columns[REASONS][left] = reasons(
                deciding, x[left], s[left], unlimited[left] == 1, most_reasons, wording, by
            )
        written = {own: columns[name] for name, own in names.items()}
        write_rows(table.table, written, file, out.name, table.declared)
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


def _computed(policy: Policy, x: Tensor, s: Tensor, rule: Rule, which: str) -> Columns:
    """What the policy says of the people, of shape (N,) each."""
    with Display().phase("Deciding", 3) as advance:
        propensity = policy.encoded_propensity(x, s)
        advance()
        columns = {"probability": policy.combined(propensity, which), "spread": policy.spread(propensity)}
        columns[LABEL] = np.full(len(s), np.nan)
        if policy.estimates_label:
            columns[LABEL] = policy.combined(policy.encoded_label_probability(x, s), which)
        advance()
        if rule.places is not None and rule.bound is None:
            margin = policy.encoded_margin(x, s)
            columns["margin"] = policy.combined(margin, which, decimals=MARGIN_DECIMALS)
        advance()
    return columns
