"""Decide on the people of a table, part by part."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from fairall.config.compose import PLACES
from fairall.data.prepared import Scaler
from fairall.decide.reasons import reasons
from fairall.decide.rules import Rule
from fairall.decide.writing import writer
from fairall.display.progress import Display, ProgressCallback
from fairall.display.table import print_frame
from fairall.errors import FairAllError, count
from fairall.measuring.decisions import free_names, told_of_renamed
from fairall.models.learner import MARGIN_DECIMALS
from fairall.policy import ENSEMBLES, Policy, schema_of
from fairall.results.result import bound_of
from fairall.runtime.reading import why_no_file
from fairall.storage.files import unnamed
from fairall.tables.declared import Declared, keywords
from fairall.tables.files import File
from fairall.tables.groups import sides

ROWS = 10_000  # of a part of a table; another number may change the last decimal of probabilities
LABEL = "label_probability"
COLUMNS = ("probability", "spread", LABEL, "decision", "propensity")
REASONS = "reasons"
PREFIX = "new_"  # of a column whose name is that of one of the table
READING = ("separator", "text_encoding")  # keys of dataset=csv
People = Sequence[tuple[Tensor, Tensor]]
"""Encoded people of each part of a table: x (N, D) and s (N,)."""
Columns = dict[str, np.ndarray]
"""Further columns of a part, of shape (N,)."""


@dataclass
class Tally:
    """What was decided.

    Attributes:
        policy: makes the decisions.
        which: of its seeds, `mean`, `median` or `seed:N`, see `Policy.combined`.
        rule: from probabilities to decisions.
        people: number of people by s.
        accepted: number of the accepted by s.
        warnings: about the whole table.
        notes: on columns, and on places that were drawn.
        total_spread: sum over people of the standard deviation over seeds; NaN for a single seed.
        largest_spread: over people.
        n_shared: number of people who share places by lot, where nothing else is drawn.
        shared: sum of their propensities, the number of these places.
    """

    policy: Policy
    which: str
    rule: Rule
    people: Counter[float] = field(default_factory=Counter)
    accepted: Counter[float] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    total_spread: float = 0.0
    largest_spread: float = 0.0
    n_shared: int = 0
    shared: float = 0.0

    def add(self, s: np.ndarray, accepted: np.ndarray, spread: np.ndarray, propensity: np.ndarray) -> None:
        """Count further people; all arrays of shape (N,)."""
        self.people.update(s.tolist())
        self.accepted.update(s[accepted].tolist())
        if self.rule.draw is None:
            by_lot = propensity[(propensity > 0.0) & (propensity < 1.0)]
            self.n_shared += len(by_lot)
            self.shared += float(by_lot.sum())
        self.total_spread += float(spread.sum())
        self.largest_spread = max(self.largest_spread, float(spread.max()))

    def groups(self) -> pd.DataFrame:
        """Number of people and of the accepted, a row for everybody and for each group."""
        rows = {"all": (self.people.total(), self.accepted.total())}
        for s in sides(self.policy.reader.n_groups):
            rows[self.policy.reader.group_name(s)] = self.people[s], self.accepted[s]
        return pd.DataFrame.from_dict(rows, orient="index", columns=["people", "accepted"])

    def to_plain(self) -> dict[str, Any]:
        """Everything as JSON allows it."""
        n, spread = self.people.total(), not math.isnan(self.total_spread)
        return {
            "method": self.policy.learner.config.name,
            "policy": self.which,
            "seeds": len(self.policy.deciding(self.which)),
            "diverged_seeds": self.policy.diverged,
            "rule": self.rule.told(n),
            "fairness": bound_of(self.policy.config.fairness) if self.policy.config else "",
            "groups": self.groups().to_dict("index"),
            "mean_spread": self.total_spread / n if spread else None,
            "largest_spread": self.largest_spread if spread else None,
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
            mean = plain["mean_spread"]
            print(f"Spread over seeds: {mean:.3f} on average, at most {self.largest_spread:.3f}")
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
    decided = Tally(policy, which, rule)
    # Through a symbolic link, which stays.
    with unnamed(out.resolve()) as file:
        x, s, decided.warnings = read(policy, table.frame, strict=strict)
        rule.check(len(s))
        wanted = COLUMNS if most_reasons is None else (*COLUMNS, REASONS)
        names = free_names(wanted, table.frame.columns, PREFIX)
        decided.notes = told_of_renamed(names, "new", out.name, table.path.name)
        if not policy.estimates_label:
            method = policy.learner.config.name
            decided.notes.append(f"model={method} has no estimate of the label: {names[LABEL]!r} is empty")
        people = list(zip(x.split(ROWS), s.split(ROWS), strict=True))
        with writer(table, file, out.name) as write, Display().phase("Deciding", len(people)) as advance:
            decisions = _decisions(policy, people, rule, which, advance)
            for k, ((x, s), columns) in enumerate(zip(people, decisions, strict=True)):
                taken = columns["decision"] > 0
                if most_reasons is not None:
                    crowded = rule.acceptance(columns["probability"])[~taken] == 1
                    columns[REASONS] = np.full(len(taken), "", dtype=object)
                    columns[REASONS][~taken] = reasons(
                        policy, x[~taken], s[~taken], crowded, most_reasons, wording, which
                    )
                rows = table.table[k * ROWS : (k + 1) * ROWS]
                write(rows, {own: columns[name] for name, own in names.items()})
                decided.add(s.numpy(), taken, columns["spread"], columns["propensity"])
    if decided.n_shared:
        decided.notes.append(
            f"{decided.n_shared} people between whom the policy does not distinguish share "
            f"{count(round(decided.shared), 'place')}, drawn by lot: the propensity of each is the share"
        )
    return decided


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


def read(policy: Policy, people: pd.DataFrame, *, strict: bool) -> tuple[Tensor, Tensor, list[str]]:
    """People as `Policy.encoded`, which is without a warning, and what it would warn of, a sentence each."""
    reader = policy.reader
    x, s, warnings = reader.read(people, refuse_unknown=strict, refuse_empty=strict)
    return Scaler(schema_of(reader)).transform(x), torch.tensor(s, dtype=torch.float32), warnings


def _decisions(
    policy: Policy, people: People, rule: Rule, which: str, advance: ProgressCallback
) -> Iterator[Columns]:
    """The values of `COLUMNS`, of shape (N,) each, of each part."""
    generator = rule.generator()
    computed = _computed(policy, people, rule, which, advance)
    if rule.places is None:
        for columns in computed:
            accepted, propensity = rule.decisions(columns["probability"], generator)
            yield columns | {"decision": accepted.astype(np.int8), "propensity": propensity}
        return
    kept = list(computed)
    probability, margin = (np.concatenate([own[name] for own in kept]) for name in ("probability", "margin"))
    accepted, propensity = rule.decisions(probability, generator, margin)
    decision, end = accepted.astype(np.int8), 0
    for columns in kept:
        start, end = end, end + len(columns["probability"])
        yield columns | {"decision": decision[start:end], "propensity": propensity[start:end]}


def _computed(
    policy: Policy, people: People, rule: Rule, which: str, advance: ProgressCallback
) -> Iterator[Columns]:
    """What the policy says of the people, of shape (N,) each, part by part."""
    for x, s in people:
        propensity = policy.encoded_propensity(x, s)
        columns = {"probability": policy.combined(propensity, which), "spread": policy.spread(propensity)}
        columns[LABEL] = np.full(len(s), np.nan)
        if policy.estimates_label:
            columns[LABEL] = policy.combined(policy.encoded_label_probability(x, s), which)
        if rule.places is not None:
            columns["margin"] = policy.combined(policy.encoded_margin(x, s), which, decimals=MARGIN_DECIMALS)
        yield columns
        advance()
