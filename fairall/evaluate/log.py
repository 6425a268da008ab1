"""Logs of past decisions: features, groups, decisions, and the labels that they revealed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairall.config.checks import number, open_unit
from fairall.display.progress import doing
from fairall.errors import FairAllError
from fairall.tables.applicants import RowValues
from fairall.tables.declared import Declared, csv_defaults, keywords
from fairall.tables.features import DISCRETE, MISSING_LEVEL, Feature
from fairall.tables.groups import display_name
from fairall.tables.overlap import feature_regions
from fairall.tables.roles import read

# Keys of the words of a command line; `advantaged` has no effect.
KEYS = (
    *("label", "positive", "sensitive", "decision", "accepted", "propensity", "cost", "gain", "loss"),
    *("person", "policy_version", "drop", "kinds", "missing", "missing_by_default", "max_categories"),
    *("max_count", "separator", "text_encoding", "advantaged", "split.column"),
)
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
        decision: name of the column of the decisions.
        decision_values: texts of a rejection and of an acceptance.
        label_values: texts of a negative and of a positive label; "" for one that no row has.
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
    input_names: tuple[str, ...]
    group: np.ndarray
    groups: tuple[str, ...]
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
    decision: str
    decision_values: tuple[str, str]
    label_values: tuple[str, str]
    features: tuple[Feature, ...]
    x: pd.DataFrame
    notes: tuple[str, ...]
    probabilities: RowValues = None
    probable_groups: tuple[str, ...] = ()
    telling: tuple[str, ...] = ()

    @classmethod
    def read(
        cls,
        path: str | Path,
        words: Sequence[str] = (),
        *,
        frame: pd.DataFrame | None = None,
        groups: Sequence[str] = (),
        **further: Any,
    ) -> DecisionLog:
        """Read a CSV or Parquet file, or take what another kind of file holds.

        Args:
            path: of the file.
            words: KEY=VALUE with the keys of `dataset=csv`, such as `label=repaid` or `dataset.label=repaid`.
                `decision` and `accepted` are needed, and `sensitive` or `groups`; without `label` only what
                needs no label can be estimated. `advantaged` has no effect. `person` names the column of who
                was decided on, by default each row is another person; `gain` and `loss` name those of
                amounts, instead of `cost`; `policy_version` that of the policy that decided, where it was
                changed. `sensitive=[A,B,...]` names columns of probabilities of groups, or of values whose
                combinations are the groups.
            frame: the log in a file that is no table, such as a ledger; None to read the file.
            groups: columns whose values, or combinations of values, are the groups; by default `sensitive`.
            further: `decision_maker`, column of who decided; `time`, of when, numbers or dates, for a
                monitor; `not_features`, columns that are no features of the log, such as probabilities of
                target policies, where names of no column have no effect; `score`, column of a score, which is
                a feature, since decisions may be taken by it, and may rank people as the decisions do.

        Raises:
            FairAllError: if a key is unknown or a value invalid, or the file cannot be read or is no log.
        """
        given = keywords(words, KEYS)
        given["part"] = given.pop("split.column", None)
        given |= {"path": str(path), "intersections": groups, **further}
        return cls._of(Path(path) if frame is None else frame, given)

    @classmethod
    def of(
        cls, people: pd.DataFrame | str | Path, *, groups: Sequence[str] = (), **columns: Any
    ) -> DecisionLog:
        """Take a log from a DataFrame or a file.

        Args:
            people: a row for each decision; a CSV or Parquet file by its path.
            groups: columns whose values, or combinations of values, are the groups; by default `sensitive`.
            columns: `cost`, c, by default ½; `score` of `read`; and other keywords of `Declared`: decision,
                accepted (by default 1), label, positive (by default 1), sensitive, propensity, ..., as the
                keys of `read`.

        Raises:
            FairAllError: if a keyword is unknown, or as `read`.
        """
        if isinstance(people, str | Path):
            people = Path(people)
            columns |= {"path": str(people)}
        elif not isinstance(people, pd.DataFrame):
            raise FairAllError(
                f"a log is a DataFrame or a file with a row for each decision, not {type(people).__name__}"
            )
        given = {"accepted": 1, "positive": 1, "intersections": groups} | columns
        return cls._of(people, given)

    @classmethod
    def _of(cls, source: Path | pd.DataFrame, keys: dict[str, Any]) -> DecisionLog:
        """The log in a file or DataFrame.

        Args:
            source: as of `roles.read`.
            keys: of `Declared`, `cost`, and `score` of `read`.
        """
        cost, score = keys.pop("cost", None), keys.pop("score", None)
        declared = Declared.of(**keys)
        if cost is not None and (declared.gain or declared.loss):
            raise FairAllError(f"cost={cost}: each row has its own gain and loss: leave cost out")
        cost = number("cost", csv_defaults()["cost"] if cost is None else cost, open_unit())
        if (declared.gain is None) != (declared.loss is None):
            raise FairAllError("gain= and loss= are needed both: give the other one too")
        needs = {
            "decision": "a log needs the past decisions: give decision=COLUMN and accepted=VALUE",
            "grouping": "a log needs groups of people: give sensitive=COLUMN, or the columns of groups",
        }
        people = read(source, declared, needs=needs).checked()
        features, x, of_features = people.coded()
        if not features and people.propensity is None:
            raise FairAllError(
                f"{declared.path}: no propensity is recorded, and no feature is left to estimate it from; "
                "give propensity=COLUMN, or columns that tell whom the decisions accepted"
            )
        group, accepted, n = people.group, people.accepted, len(people)
        assert group is not None
        assert accepted is not None
        doing("columns that tell what is not known before the decision")
        leaks = people.leaks([one for one in features if one.name != score])
        notes = [*people.notes, *of_features]
        if people.label is None:
            notes.append("there is no label: only what needs none can be estimated")
        masks, of_missing = _missing(people.missing(features), features)
        person = None if people.person is None else pd.factorize(people.person, sort=True)[0]
        of_group = people.probabilities
        if of_group is None:
            of_group = group[:, None] == np.arange(len(people.groups))
        inputs, input_names = _inputs(features, x, masks, of_group[:, 1:])
        raw = people.cells
        if isinstance(source, pd.DataFrame):
            raw = source.set_axis(people.cells.columns, axis=1).reset_index(drop=True)
        return cls(
            raw=raw,
            cells=people.cells,
            inputs=inputs,
            input_names=input_names,
            group=group,
            groups=tuple(display_name(values) for values in people.groups),
            accepted=accepted,
            label=np.full(n, np.nan) if people.label is None else people.label,
            propensity=people.propensity,
            decision_maker=people.decision_maker,
            time=people.time,
            policy_version=people.policy_version,
            person=person,
            cost=cost if people.gain is None else None,
            gain=np.broadcast_to(1 - cost, n) if people.gain is None else people.gain,
            loss=np.broadcast_to(cost, n) if people.loss is None else people.loss,
            decision=str(declared.decision),
            decision_values=_texts(raw[declared.decision], accepted.astype(float)),
            label_values=("", "") if people.label is None else _texts(raw[declared.label], people.label),
            features=tuple(features),
            x=x,
            notes=(*notes, *of_missing, *people.warnings, *leaks.values()),
            telling=tuple(itertools.chain(*leaks)),
            probabilities=people.probabilities,
            probable_groups=() if people.probabilities is None else tuple(declared.grouping),
        )

    def __len__(self) -> int:
        return len(self.group)

    def rows(self, chosen: np.ndarray) -> DecisionLog:
        """The log of some of the rows, a mask (N,) or their positions; numbers of persons are given anew."""
        parts = {
            field.name: value.iloc[chosen] if isinstance(value, pd.DataFrame) else value[chosen]
            for field in fields(self)
            if isinstance(value := getattr(self, field.name), np.ndarray | pd.DataFrame)
        }
        if self.person is not None:
            parts["person"] = np.unique(parts["person"], return_inverse=True)[1]
        return replace(self, **parts)

    @property
    def names(self) -> list[str]:
        """Of the features."""
        return [one.name for one in self.features]

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
        return self.person is not None and len(np.unique(self.person)) < len(self)

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
        first = np.arange(len(self))
        if self.person is not None:
            first = np.unique(self.person * n + code, return_index=True)[1]
        once = np.isin(np.arange(len(self)), first)
        return [once & (code == k) for k in range(n)]

    @property
    def members(self) -> dict[str, np.ndarray]:
        """Masks (N,) of the groups by their names in sentences."""
        return {f"of group {name}": self.group == code for code, name in enumerate(self.groups)}


def _texts(column: pd.Series, value: np.ndarray) -> tuple[str, str]:
    """Texts of the cells of value 0 and of value 1, shape (N,); "" where there is none."""
    no, yes = (next(map(str, column[value == one]), "") for one in (0, 1))
    return no, yes


def _missing(
    empty: Mapping[str, np.ndarray], features: Sequence[Feature]
) -> tuple[list[tuple[str, np.ndarray]], list[str]]:
    """Distinct masks (N,) of missing cells that are no level, with a feature of each, and a note on them."""
    levels = {one.name for one in features if MISSING_LEVEL in one.levels}
    marked = {name: rows for name, rows in empty.items() if name not in levels}
    known = {empty[name].tobytes() for name in levels & empty.keys()}
    masks = {rows.tobytes(): (name, rows) for name, rows in marked.items()}
    names = ", ".join(f"{name} ({int(rows.sum())})" for name, rows in marked.items())
    note = f"empty cells of features are imputed, and marked by indicators of their own: {names}"
    return [mask for key, mask in masks.items() if key not in known], [note] if marked else []


def _inputs(
    features: Sequence[Feature],
    x: pd.DataFrame,
    missing: list[tuple[str, np.ndarray]],
    of_group: np.ndarray,  # indicators or probabilities of all groups but the first, shape (N, G − 1)
) -> tuple[np.ndarray, tuple[str, ...]]:
    """See `DecisionLog.inputs` and `input_names`; filled column by column, which needs no second copy."""
    numeric = [one for one in features if one.kind not in DISCRETE]
    levels = [
        (one.name, code)
        for one in features
        if one.kind in DISCRETE
        for code in (one.codes[1:] if len(one.codes) == 2 else one.codes)
    ]
    names = [*(one.name for one in numeric), *(name for name, _ in (*levels, *missing))]
    names += [""] * of_group.shape[1]

    def standardised(feature: Feature) -> np.ndarray:
        values = x[feature.name].to_numpy()
        values = np.asarray(np.where(np.isnan(values), feature.fill, values))
        deviations = (values - values.mean()) / max(values.std(), np.finfo(float).tiny)
        return np.clip(deviations, -FURTHEST, FURTHEST)

    columns = itertools.chain(
        map(standardised, numeric),
        (x[name].to_numpy() == code for name, code in levels),
        (rows for _, rows in missing),
        of_group.T,
    )
    inputs = np.ones((len(of_group), 1 + len(names)), dtype=np.float32)
    for place, column in enumerate(columns, start=1):
        inputs[:, place] = column
    return inputs, tuple(names)
