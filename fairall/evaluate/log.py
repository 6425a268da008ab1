"""Logs of past decisions: features, groups, decisions, and the labels that they revealed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairall.config.checks import number, open_unit
from fairall.errors import FairAllError
from fairall.tables.applicants import Applicants, RowValues
from fairall.tables.declared import Declared, csv_defaults, keywords
from fairall.tables.features import MISSING_LEVEL, Feature
from fairall.tables.groups import display_name
from fairall.tables.overlap import feature_regions
from fairall.tables.roles import read

# Keys of the words of a command line; `advantaged` has no effect.
KEYS = """
    label positive sensitive decision accepted propensity cost gain loss person policy_version drop kinds
    missing missing_by_default max_categories max_count separator text_encoding advantaged split.column
""".split()
NEEDS = {
    "decision": "a log needs the past decisions: give decision=COLUMN and accepted=VALUE",
    "grouping": "a log needs groups of people: give sensitive=COLUMN, or the columns of groups",
}
# Attributes that are those of `Applicants`.
SAME = "cells group accepted propensity decision_maker time policy_version probabilities".split()
FURTHEST = 100.0  # standard deviations; larger outliers would dominate the models
LEAST_ROWS = 50  # of a region


@dataclass(frozen=True)
class DecisionLog:
    """N people, the past decision on each, and the labels that the decisions revealed.

    Attributes:
        raw: all columns as given.
        cells: the same, missing where a cell means no value (`Applicants.cells`).
        inputs: a column of ones, then `design`, shape (N, D + 1), float32.
        input_names: feature of each column of `design`, D of them; "" for the groups.
        group: number of the group, shape (N,), int.
        groups: names of the G groups, sorted; of intersections of columns as "female, black"; "(missing)" of
            an empty cell.
        accepted: the decisions, shape (N,), bool.
        label: 1 or 0 where a decision revealed it, NaN elsewhere, shape (N,).
        propensity: recorded P(accepted), shape (N,), NaN where a rejected row has none; None if not recorded.
        decision_maker: who decided, as text, shape (N,); None if not given.
        time: when it was decided, numbers or datetime64, shape (N,); None if not given.
        policy_version: which policy decided, as text, shape (N,); None if one did, or it is not given.
        person: number of the person, from 0, shape (N,); None if each row is another person.
        cost: c, of an acceptance, in units of the gain from a positive label; None if the log has amounts.
        gain: of an accepted person with a positive label, shape (N,); 1 − c without amounts.
        loss: of an accepted person with a negative label, at least 0, shape (N,); c without amounts.
        declared: names of columns, and the values of an acceptance and of a positive label.
        features: what decisions may have been based on.
        x: their values, categories as codes, NaN where a number is missing, shape (N, number of features).
        notes: on how the log was read, one sentence each.
        probabilities: of the groups where only these are known, shape (N, K); None where groups are known.
        probable_groups: names of these K groups.
        telling: names of features that tell the decision or the label, on which there are notes.
    """

    raw: pd.DataFrame
    cells: pd.DataFrame
    inputs: np.ndarray
    input_names: Sequence[str]
    group: np.ndarray
    groups: Sequence[str]
    accepted: np.ndarray
    label: np.ndarray
    propensity: RowValues
    decision_maker: RowValues
    time: RowValues
    policy_version: RowValues
    person: RowValues
    cost: float | None
    gain: np.ndarray
    loss: np.ndarray
    declared: Declared
    features: Sequence[Feature]
    x: pd.DataFrame
    notes: Sequence[str]
    probabilities: RowValues
    probable_groups: Sequence[str]
    telling: Sequence[str]

    @classmethod
    def of(
        cls,
        people: pd.DataFrame | str | Path,
        *,
        groups: Sequence[str] = (),
        cost: Any = None,
        score: str | None = None,
        **columns: Any,
    ) -> DecisionLog:
        """Take a log from a DataFrame or a file.

        Args:
            people: a row for each decision; a CSV or Parquet file by its path.
            groups: columns whose values, or combinations of values, are the groups; by default `sensitive`.
            cost: c, by default ½; not where rows have amounts.
            score: column of a score, which is a feature, since decisions may be taken by it, and may rank
                people as the decisions do.
            columns: other keywords of `Declared`: decision, accepted (by default 1), label, positive (by
                default 1), sensitive, propensity, ..., see `log_keywords`; `decision_maker`, column of who
                decided; `time`, of when, numbers or dates, for a monitor; `not_features`, columns that are
                no features of the log, such as probabilities of target policies, where names of no column
                have no effect.

        Raises:
            FairAllError: if a keyword is unknown or a value invalid, or the file cannot be read or is no log.
        """
        if isinstance(people, str | Path):
            people, columns = Path(people), {"path": str(people)} | columns
        elif not isinstance(people, pd.DataFrame):
            raise FairAllError(
                f"a log is a DataFrame or a file with a row for each decision, not {type(people).__name__}"
            )
        declared = Declared.of(**({"accepted": 1, "positive": 1, "intersections": groups} | columns))
        amounts = [declared.gain, declared.loss].count(None)
        if amounts == 1:
            raise FairAllError("gain= and loss= are needed both: give the other one too")
        if not amounts and cost is not None:
            raise FairAllError(f"cost={cost}: each row has its own gain and loss: leave cost out")
        c = number("cost", csv_defaults()["cost"] if cost is None else cost, open_unit())
        table = read(people, declared, needs=NEEDS).checked()
        features, x, of_features = table.coded()
        if not features and table.propensity is None:
            raise FairAllError(
                f"{declared.path}: no propensity is recorded, and no feature is left to estimate it from; "
                "give propensity=COLUMN, or columns that tell whom the decisions accepted"
            )
        leaks = table.leaks([feature for feature in features if feature.name != score])
        inputs, input_names, of_missing = _inputs(table, features, x)
        raw, n = table.cells, len(table)
        if isinstance(people, pd.DataFrame):
            raw = people.set_axis(raw.columns, axis=1).reset_index(drop=True)
        return cls(
            **{name: getattr(table, name) for name in SAME},
            label=np.full(n, np.nan if table.label is None else table.label),
            gain=np.full(n, 1.0 - c if table.gain is None else table.gain),
            loss=np.full(n, c if table.loss is None else table.loss),
            cost=c if amounts else None,
            raw=raw,
            inputs=inputs,
            input_names=input_names,
            groups=tuple(map(display_name, table.groups)),
            person=None if table.person is None else pd.factorize(table.person, sort=True)[0],
            declared=declared,
            features=features,
            x=x,
            notes=(*table.notes, *of_features, *of_missing, *table.warnings, *leaks.values()),
            telling=tuple(itertools.chain(*leaks)),
            probable_groups=() if table.probabilities is None else tuple(declared.grouping),
        )

    def __len__(self) -> int:
        return len(self.group)

    def rows(self, chosen: np.ndarray) -> DecisionLog:
        """The log of some of the rows, a mask (N,) or their positions; numbers of persons are given anew."""
        parts = {
            name: getattr(value, "iloc", value)[chosen]
            for name, value in vars(self).items()
            if isinstance(value, np.ndarray | pd.DataFrame)
        }
        if self.person is not None:
            parts["person"] = np.unique(parts["person"], return_inverse=True)[1]
        return replace(self, **parts)

    @property
    def design(self) -> np.ndarray:
        """Inputs of the nuisance models, shape (N, D), float32.

        Real features and counts with mean 0 and standard deviation 1, indicators of categories, of
        missing cells, and of all groups but the first (or the probabilities of these).
        """
        return self.inputs[:, 1:]

    @property
    def revealed(self) -> np.ndarray:
        """Whose label is known, shape (N,), bool."""
        return ~np.isnan(self.label)

    @property
    def labels_complete(self) -> bool:
        """Whether the label of every accepted row is known."""
        return bool(self.revealed[self.accepted].all())

    @property
    def several_rows(self) -> bool:
        """Whether a person has several rows."""
        return self.person is not None and int(self.person.max()) + 1 < len(self)

    @property
    def stake(self) -> np.ndarray:
        """Gain + loss, shape (N,); the utility of a decision a is a · stake · (y − break_even)."""
        return self.gain + self.loss

    @property
    def break_even(self) -> np.ndarray:
        """Probability of a positive label above which acceptance pays, loss / (gain + loss), shape (N,)."""
        return self.loss / self.stake

    def regions(self) -> Iterator[tuple[str, np.ndarray]]:
        """Names and masks (N,) of groups, levels of features and deciles of numbers, of 50 rows or more."""
        of_features = (feature_regions(one, self.x[one.name]) for one in self.features)
        regions = itertools.chain(self.members.items(), *of_features)
        return ((name, rows) for name, rows in regions if rows.sum() >= LEAST_ROWS)

    def people_of(self, code: np.ndarray, n: int) -> list[np.ndarray]:
        """Masks (N,) of the first row of each person in each of n parts, of which code (N,) is the number."""
        person = np.arange(len(self)) if self.person is None else self.person
        first = ~pd.DataFrame({"person": person, "code": code}).duplicated().to_numpy()
        return [first & (code == k) for k in range(n)]

    @property
    def members(self) -> dict[str, np.ndarray]:
        """Masks (N,) of the groups by their names in sentences."""
        return {f"of group {name}": self.group == code for code, name in enumerate(self.groups)}


def log_keywords(words: Sequence[str]) -> dict[str, Any]:
    """Keywords of `DecisionLog.of` by the words of a command line.

    Args:
        words: KEY=VALUE with the keys of `dataset=csv`, such as `label=repaid` or `dataset.label=repaid`.
            `decision` and `accepted` are needed, and `sensitive` or `groups`; without `label` only what needs
            no label can be estimated. `advantaged` has no effect. `person` names the column of who was
            decided on, by default each row is another person; `gain` and `loss` name those of amounts,
            instead of `cost`; `policy_version` that of the policy that decided, where it was changed.
            `sensitive=[A,B,...]` names columns of probabilities of groups, or of values whose combinations
            are the groups.

    Raises:
        FairAllError: if a key is unknown, or a value cannot be read.
    """
    typed = keywords(words, KEYS)
    return {"accepted": None, "positive": None, "part": typed.pop("split.column", None)} | typed


def _inputs(
    people: Applicants, features: Sequence[Feature], x: pd.DataFrame
) -> tuple[np.ndarray, Sequence[str], list[str]]:
    """See `DecisionLog.inputs` and `input_names`; and a note on cells whose number is missing."""
    fill = {feature.name: feature.fill for feature in features if not feature.codes}
    numbers = x[[*fill]].fillna(fill)
    deviations = (numbers - numbers.mean()) / numbers.std(ddof=0)
    missing = people.missing([feature for feature in features if MISSING_LEVEL not in feature.levels])
    masks = {rows.tobytes(): (name, rows) for name, rows in missing.items()}
    of_group = people.probabilities
    if of_group is None:
        of_group = pd.get_dummies(people.group).to_numpy()
    columns = [
        *deviations.clip(-FURTHEST, FURTHEST).astype(np.float32).items(),
        *((one.name, x[one.name] == code) for one in features for code in one.codes[len(one.codes) == 2 :]),
        *masks.values(),
        *(("", column) for column in of_group.T[1:]),
    ]
    inputs = np.column_stack([np.ones(len(x), dtype=np.float32), *(column for _, column in columns)])
    note = f"empty cells of features are imputed, and marked by indicators: {', '.join(missing)}"
    names = [str(name) for name, _ in columns]
    return inputs.astype(np.float32, copy=False), names, [note] * bool(missing)
