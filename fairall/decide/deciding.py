"""Decide on the people of a table, part by part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fairall.data.people_reader import Findings, PeopleReader
from fairall.decide.rules import Rule
from fairall.decide.tables import Part, Table
from fairall.measuring.decisions import free_names, told_of_renamed
from fairall.models.learner import ProgressCallback
from fairall.policy import Policy
from fairall.results.terminal import Display
from fairall.storage.files import unnamed

COLUMNS = ("probability", "spread", "decision", "propensity")


@dataclass
class Decided:
    """What was decided.

    Attributes:
        people: number of people by s.
        accepted: number of the accepted by s.
        warnings: about the whole table.
        notes: on names of columns.
        total_spread: sum over people of the standard deviation over seeds; NaN for a single seed.
        largest_spread: over people.
    """

    people: Counter[float] = field(default_factory=Counter)
    accepted: Counter[float] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    total_spread: float = 0.0
    largest_spread: float = 0.0

    def add(self, s: np.ndarray, accepted: np.ndarray, spread: np.ndarray) -> None:
        """Count further people; all arrays of shape (N,)."""
        self.people.update(s.tolist())
        self.accepted.update(s[accepted].tolist())
        self.total_spread += float(spread.sum())
        self.largest_spread = max(self.largest_spread, float(spread.max()))


def decide(
    policy: Policy,
    table: Table,
    out: Path,
    rule: Rule,
    *,
    which: str = "mean",
    strict: bool = False,
) -> Decided:
    """Write the table with a decision on each person.

    The table is read twice, since its values are judged as a whole before the first decision, and a third
    time if places are few, since all probabilities are then needed before the first decision. That it is the
    same table each time is checked by a hash of the file.

    Args:
        policy: of all seeds.
        table: of people.
        out: file to write, CSV or, by its ending, Parquet: the columns of the table and those of `COLUMNS`,
            see docs/decide.md.
        rule: from probabilities to decisions.
        which: see `Policy.combined`.
        strict: see `Policy.propensity`.

    Raises:
        FairAllError: if the table cannot be read, holds invalid values or is changed meanwhile, or the
            policy has diverged.
    """
    decided = Decided()
    with unnamed(out) as file, table.unchanged():
        findings, n_parts = findings_in(table, policy.reader)
        decided.warnings = policy.reader.doubts(findings, strict=strict)
        rule.check(findings.n_rows)
        names = free_names(COLUMNS, findings.columns)
        decided.notes = told_of_renamed(names, out.name, table.path.name)
        with table.writer(file, out.name) as write, Display().phase("Deciding", n_parts) as advance:
            for part, *values in _decisions(policy, table, rule, which, advance):
                write(part, dict(zip(names.values(), values, strict=True)))
                _, spread, accepted, _ = values
                decided.add(policy.reader.groups(part.text), accepted > 0, spread)
    return decided


def findings_in(table: Table, reader: PeopleReader) -> tuple[Findings, int]:
    """What is found in a table, for `PeopleReader.doubts`, and the number of its parts."""
    findings, n_parts = Findings(), 0
    for part in table.parts():
        reader.read_part(part.text, findings)
        n_parts += 1
    return findings, n_parts


def _decisions(
    policy: Policy, table: Table, rule: Rule, which: str, advance: ProgressCallback
) -> Iterator[tuple[Part, np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Rows of the table and the values of `COLUMNS`, of shape (N,) each."""
    generator = rule.generator()
    computed = _computed(policy, table, which, advance)
    if rule.places is None:
        for part, probability, spread in computed:
            accepted, propensity = rule.decisions(probability, generator)
            yield part, probability, spread, accepted.astype(np.int8), propensity
        return
    numbers = [(probability, spread) for _, probability, spread in computed]
    accepted, propensity = rule.decisions(np.concatenate([own for own, _ in numbers]), generator)
    decision, end = accepted.astype(np.int8), 0
    for part, (probability, spread) in zip(table.parts(), numbers, strict=True):
        start, end = end, end + len(probability)
        yield part, probability, spread, decision[start:end], propensity[start:end]


def _computed(
    policy: Policy, table: Table, which: str, advance: ProgressCallback
) -> Iterator[tuple[Part, np.ndarray, np.ndarray]]:
    """Rows of a table that was read before, their probabilities and spreads, of shape (N,) each."""
    judged = policy.without_doubts()
    for part in table.parts():
        propensity = judged.propensity(part.text)
        yield part, policy.combined(propensity, which), policy.spread(propensity)
        advance()
