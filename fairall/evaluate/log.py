"""Logs of past decisions: features, groups, decisions, and the labels that they revealed."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
from omegaconf import OmegaConf
from pandas.util import hash_pandas_object

from fairall.config.compose import compose_config
from fairall.config.schema import NetInputs
from fairall.config.validation import check_values, checked_dataset
from fairall.config.words import nearest_key, typed_entry
from fairall.data.cells import listed, refuse, row_number, shown
from fairall.data.csv.cells_as_text import of_frame
from fairall.data.csv.config import CsvConfig
from fairall.data.csv.infer import infer_features
from fairall.data.csv.leaks import leaks
from fairall.data.csv.reader import read_text
from fairall.data.csv.roles import decisions, labels, recorded_propensity, revealed, roles
from fairall.data.csv.selective_labels import empty_regions, feature_regions
from fairall.data.encoding import FeatureInputs
from fairall.data.features import DISCRETE, MISSING_LEVEL, Kind, Schema, is_value, numbers_of
from fairall.data.prepared import FURTHEST
from fairall.errors import FairAllError, count

PREFIX = "dataset."
OWN_KEYS = ("person", "gain", "loss", "policy_version")  # columns of a log only
# Columns that an option of the command line names.
AS_OPTION = {"decision_maker": "--decision-maker", "groups": "--groups", "score": "--score"}
KEYS = (*(field.name for field in fields(CsvConfig) if field.name != "groups"), *OWN_KEYS)
MAY_BE_ABSENT = ("path", "label", "positive", "sensitive", "advantaged")  # of the keys without a default
MOST_GROUPS = 50  # more are a number or a name, no groups
MOST_VERSIONS = 50  # likewise
LEAST_WANTED = 0.01  # share of the target policy's acceptances in a reported region
LEAST_ROWS = 50  # of a region
MOST_SHARED = 0.1  # distinct rows with the real numbers of another, per repeated one: more are chance
UNLABELLED = (
    "which labels are known is modelled from features and group, given which it is taken to be random"
)


@dataclass
class LogConfig(CsvConfig):
    """Keys of `dataset=csv` and of a log."""

    grouped_by: Sequence[str] = ()
    decision_maker: str | None = None
    time: str | None = None
    not_features: Sequence[str] = ()
    person: str | None = None
    gain: str | None = None
    loss: str | None = None
    policy_version: str | None = None
    words: Sequence[str] = ()  # as typed


@dataclass(frozen=True)
class DecisionLog:
    """N people, the past decision on each, and the labels that the decisions revealed.

    Attributes:
        raw: all columns as given: of a file the cells as text, None where missing.
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
        schema: features.
        x: their values, categories as codes, NaN where a number is missing, shape (N, number of features).
        notes: on how the log was read, one sentence each.
    """

    raw: pd.DataFrame
    inputs: np.ndarray
    input_names: tuple[str, ...]
    group: np.ndarray
    groups: tuple[str, ...]
    accepted: np.ndarray
    label: np.ndarray
    propensity: np.ndarray | None
    decision_maker: np.ndarray | None
    time: np.ndarray | None
    policy_version: np.ndarray | None
    person: np.ndarray | None
    cost: float | None
    gain: np.ndarray
    loss: np.ndarray
    decision: str
    decision_values: tuple[str, str]
    schema: Schema
    x: pd.DataFrame
    notes: tuple[str, ...]

    @classmethod
    def read(
        cls,
        path: str | Path,
        words: Sequence[str] = (),
        *,
        groups: Sequence[str] = (),
        decision_maker: str | None = None,
        time: str | None = None,
        not_features: Sequence[str] = (),
    ) -> DecisionLog:
        """Read a CSV or Parquet file.

        Args:
            path: of the file.
            words: KEY=VALUE with the keys of `dataset=csv`, such as `label=repaid` or `dataset.label=repaid`.
                `decision` and `accepted` are needed, and `sensitive` or `groups`; without `label` only what
                needs no label can be estimated. `advantaged` has no effect. `person` names the column of who
                was decided on, by default rows that are equal in all features, if these include a telling
                real one; `gain` and `loss` name those of amounts, instead of `cost`; `policy_version` that of
                the policy that decided, where it was changed.
            groups: columns whose values, or combinations of values, are the groups; by default `sensitive`.
            decision_maker: column of who decided.
            time: column of when it was decided, numbers or dates, for a monitor.
            not_features: columns that are no features of the log, such as probabilities of target policies;
                names of no column have no effect.

        Raises:
            FairAllError: if a key is unknown or a value invalid, or the file cannot be read or is no log.
        """
        with _as_typed(words):
            config = replace(
                _config(words), path=str(path), grouped_by=groups, decision_maker=decision_maker,
                time=time, not_features=not_features,
            )  # fmt: skip
            raw = read_text(
                Path(path), separator=config.separator, encoding=config.text_encoding, missing=config.no_value
            )
            return _log(raw, raw, config)

    @classmethod
    def of(
        cls,
        people: pd.DataFrame,
        *,
        decision: str,
        accepted: object = 1,
        label: str | None = None,
        positive: object = 1,
        sensitive: str | None = None,
        groups: Sequence[str] = (),
        propensity: str | None = None,
        cost: float | None = None,
        gain: str | None = None,
        loss: str | None = None,
        person: str | None = None,
        policy_version: str | None = None,
        drop: Sequence[str] = (),
        kinds: Mapping[str, str] | None = None,
        decision_maker: str | None = None,
        time: str | None = None,
        not_features: Sequence[str] = (),
    ) -> DecisionLog:
        """Take a log from a DataFrame; arguments and errors as for `read` and the keys of `dataset=csv`."""
        config = replace(
            _defaults(), path="the table", decision=decision, accepted=str(accepted), label=label or "",
            positive=str(positive), sensitive=sensitive or "", propensity=propensity, drop=list(drop),
            kinds=dict(kinds or {}), grouped_by=groups, decision_maker=decision_maker,
            time=time, not_features=not_features, person=person, gain=gain, loss=loss,
            policy_version=policy_version,
            cost=_defaults().cost if cost is None else cost,
            words=() if cost is None else (f"cost={cost}",),
        )  # fmt: skip
        with _as_typed():
            check_values(config, "dataset")
            raw = people.rename(columns=str).reset_index(drop=True)
            if raw.columns.has_duplicates:
                raise FairAllError(f"two columns are named {raw.columns[raw.columns.duplicated()][0]!r}")
            if not len(raw):
                raise FairAllError("the table has no row")
            return _log(raw, of_frame(raw, config.no_value), config)

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
    def design(self) -> np.ndarray:
        """Inputs of the nuisance models, shape (N, D), float32.

        Real features and counts with mean 0 and standard deviation 1, indicators of categories, of
        missing cells, and of all groups but the first.
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
    def stake(self) -> np.ndarray:
        """Gain + loss, shape (N,); the utility of a decision a is a · stake · (y − break_even)."""
        return self.gain + self.loss

    @property
    def break_even(self) -> np.ndarray:
        """Probability of a positive label above which acceptance pays, loss / (gain + loss), shape (N,)."""
        return self.loss / self.stake

    def regions(self) -> Iterator[tuple[str, np.ndarray]]:
        """Names and masks (N,) of groups, levels of features and deciles of numbers, of 50 rows or more."""
        yield from ((name, rows) for name, rows in self._members().items() if rows.sum() >= LEAST_ROWS)
        for feature in self.schema:
            for name, rows in feature_regions(feature, self.x[feature.name].to_numpy()):
                if rows.sum() >= LEAST_ROWS:
                    yield name, rows

    def regions_without_acceptance(self, wanted: np.ndarray) -> list[tuple[str, np.ndarray]]:
        """Names and masks (N,) of regions that a target policy accepts from and the past decisions did not.

        A region is a group, a level of a feature, a range of deciles of a number, or one of these within a
        group. It is reported if no label in it was revealed (in a log without labels: nobody was accepted),
        the average rate predicts at least `selective_labels.EXPECTED` of them, so that chance is no
        explanation, and it holds at least `LEAST_WANTED` of the policy's acceptances, below which it
        matters little to the estimates.

        Args:
            wanted: acceptance probabilities of the target policy, shape (N,).
        """
        known = self.revealed if self.revealed.any() else self.accepted
        least = max(LEAST_WANTED * wanted.sum(), np.finfo(float).tiny)
        empty = empty_regions(self._members(), self.schema, self.x, known)
        return [(name, rows) for name, rows in empty if wanted[rows].sum() >= least]

    def _members(self) -> dict[str, np.ndarray]:
        return {f"of group {name}": self.group == code for code, name in enumerate(self.groups)}


@contextmanager
def _as_typed(words: Sequence[str] = ()) -> Iterator[None]:
    """Raise errors of `dataset=csv` with the keys that were typed, see `_retyped`."""
    try:
        yield
    except FairAllError as error:
        raise FairAllError(_retyped(str(error), words)) from error


def _retyped(message: str, words: Sequence[str]) -> str:
    """A message with `log FILE`, and with `dataset.` in front of those keys only that were typed so."""
    prefixed = {word.partition("=")[0].split(".")[1] for word in words if word.startswith(PREFIX)}
    bare = "|".join(key for key in KEYS if key not in prefixed)
    return re.sub(rf"(?<![\w./])\+?dataset\.({bare})\b", r"\1", message.replace("dataset.path=", "log "))


@functools.cache
def _defaults() -> LogConfig:
    """Composed once: composing takes longer than a small log."""
    return _config([])


def _config(words: Sequence[str]) -> LogConfig:
    """Configuration with words KEY=VALUE; empty text for columns of `dataset=csv` that are not given."""
    overrides = []
    for word in words:
        key, equals, value = word.partition("=")
        name = key.removeprefix(PREFIX)
        if not equals or name.split(".")[0] not in KEYS:
            hint = nearest_key(name, KEYS) or f"; there are {', '.join(KEYS[2:])}"
            hint = f": give {AS_OPTION[name]} {value or 'COLUMN'}" if name in AS_OPTION else hint
            raise FairAllError(f"{word}: no such key of a log{hint}")
        overrides.append(f"{'+' if name in OWN_KEYS else ''}{PREFIX}{name}={value}")
    composed = compose_config("dataset=csv", *overrides)
    OmegaConf.set_struct(composed, False)
    own = [composed.dataset.pop(key, None) for key in OWN_KEYS]
    for key in MAY_BE_ABSENT:
        if OmegaConf.is_missing(composed.dataset, key):
            composed.dataset[key] = ""
    config = checked_dataset(composed)
    assert isinstance(config, CsvConfig)
    person, gain, loss, version = (None if name in (None, "") else str(name) for name in own)
    of_csv = {field.name: getattr(config, field.name) for field in fields(config)}
    return LogConfig(**of_csv, person=person, gain=gain, loss=loss, policy_version=version, words=words)


def _log(raw: pd.DataFrame, text: pd.DataFrame, config: LogConfig) -> DecisionLog:
    if config.decision is None:
        raise FairAllError("a log needs the past decisions: give decision=COLUMN and accepted=VALUE")
    grouping = list(dict.fromkeys(config.grouped_by)) or [config.sensitive]
    if not grouping[0]:
        raise FairAllError("a log needs groups of people: give sensitive=COLUMN, or the columns of groups")
    with_role = _with_role(text, config, grouping)
    accepted = _accepted(text[config.decision], config)
    label, notes = _label(text, accepted, config)
    propensity = None
    if config.propensity is not None:
        propensity = recorded_propensity(text[config.propensity], accepted)
    gain, loss = _amounts(text, config)
    group, names, of_groups = _groups(text, grouping)
    others = text.drop(columns=[*with_role, *config.not_features], errors="ignore")
    numbers = {name: numbers_of(others[name]) for name in others}  # parsed once, which takes long
    ranks = [name for name in others if name not in config.kinds and _numbers_rows(numbers[name])]
    features, left_out = infer_features(others.drop(columns=ranks), np.arange(len(text)), config, numbers)
    for name in ranks:
        declared = typed_entry("dataset.kinds", name, Kind.REAL)
        left_out.append(f"column {name!r} is left out: it numbers the rows; if it is a rank, {declared}")
    if not features and propensity is None:
        raise FairAllError(
            f"{config.path}: no propensity is recorded, and no feature is left to estimate it from; give "
            "propensity=COLUMN, or columns that tell whom the decisions accepted"
        )
    known, who = (~np.isnan(label), "has a label") if config.label else (accepted, "was accepted")
    told = leaks(others[[feature.name for feature in features]], known, config, who=who)
    schema = Schema(features)
    codes = {one.name: one.encode(text[one.name]) for one in features if one.kind in DISCRETE}
    x = pd.DataFrame({name: codes.get(name, numbers[name]) for name in schema.names}, index=text.index)
    empty, of_missing = _missing(text, x, schema)
    if config.person is None:
        person, of_people = _repeated(x, group, schema)
    else:
        person, of_people = pd.factorize(_complete(text[config.person], "person"), sort=True)[0], []
    maker = None
    if config.decision_maker is not None:
        maker = _complete(text[config.decision_maker], "decision maker").to_numpy(dtype=str)
    time = None
    notes = [*left_out, *notes, *of_groups, *of_missing, *of_people, *told]
    if config.time is not None:
        time, of_times = _times(text[config.time])
        notes += of_times
    version = None
    if config.policy_version is not None:
        version = _versions(text[config.policy_version])
    inputs, input_names = _inputs(schema, x, empty, group, len(names))
    return DecisionLog(
        raw=raw, inputs=inputs, input_names=input_names, group=group, groups=names,
        accepted=accepted, label=label, propensity=propensity, decision_maker=maker, time=time,
        policy_version=version, person=person,
        cost=None if config.gain else config.cost, gain=gain, loss=loss, decision=config.decision,
        decision_values=tuple(text[config.decision].iloc[[accepted.argmin(), accepted.argmax()]]),
        schema=schema, x=x, notes=tuple(_retyped(note, config.words) for note in notes),
    )  # fmt: skip


def _with_role(text: pd.DataFrame, config: LogConfig, grouping: list[str]) -> list[str]:
    """Columns that are no features; raises as `roles`."""
    named: dict[str, Sequence[str | None]] = {
        "dataset.label": [config.label],
        "dataset.decision": [config.decision],
        "dataset.propensity": [config.propensity],
        "dataset.split.column": [config.split.column],
        "dataset.sensitive" if grouping == [config.sensitive] else "groups": grouping,
        "decision_maker": [config.decision_maker],
        "time": [config.time],
        "policy_version": [config.policy_version],
        "person": [config.person],
        "dataset.drop": config.drop,
        "dataset.kinds": list(config.kinds),
    }
    pairs = [(key, name) for key, names in named.items() for name in names if name]
    found = roles(pairs, list(text), config.path)
    return [name for name, key in found.items() if key != "dataset.kinds"]


def _complete(column: pd.Series, what: str) -> pd.Series:
    """The column, which must have no empty cell."""
    refuse(column, column.isna(), f"is no {what}: complete it")
    return column


def _versions(column: pd.Series) -> np.ndarray | None:
    """Name of the policy of each row, shape (N,); None where there is one."""
    names = _complete(column, "policy version").to_numpy(dtype=str)
    versions = np.unique(names)
    if len(versions) > MOST_VERSIONS:
        raise FairAllError(
            f"column {column.name!r} has {listed(list(versions), 'policy version')}; at most {MOST_VERSIONS} "
            "can be modelled: give the column that changes with the policy"
        )
    return names if len(versions) > 1 else None


def _times(column: pd.Series) -> tuple[np.ndarray, list[str]]:
    """Numbers, or dates written like the first, shape (N,), and a note where they are not in order."""
    time: np.ndarray = numbers_of(column)
    if np.isnan(time).all():
        time = _dates(column)
    wrong = np.isnan(time) | np.isinf(time)
    refuse(column, wrong, "is no time: every row needs a number, or a date written as in row 1")
    if (time[1:] >= time[:-1]).all():
        return time, []
    return time, [f"column {column.name!r}: rows are not in the order of time; they are watched in it"]


def _dates(column: pd.Series) -> np.ndarray:
    """Dates, shape (N,), NaT where there is none."""

    def parsed(day_first: bool) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # where the first tells no format
            dates = pd.to_datetime(column.astype(str), errors="coerce", utc=True, dayfirst=day_first)
        return dates.dt.tz_localize(None).to_numpy()

    month_first = parsed(False)
    if re.match(r"\d{4}", str(column.iloc[0])):
        return month_first
    day_first = parsed(True)
    if np.isnan(day_first).any() or np.isnan(month_first).any():
        return month_first if np.isnan(day_first).sum() > np.isnan(month_first).sum() else day_first
    refuse(column, day_first != month_first, "may be two dates: write them as 2025-12-31")
    return month_first


def _numbers_rows(numbers: np.ndarray) -> bool:
    """Whether a column holds 0, 1, 2, ... or 1, 2, 3, ... in any order."""
    first, n = numbers.min(), len(numbers)
    return n > 2 and first in (0, 1) and bool((np.sort(numbers) == first + np.arange(n)).all())


def _accepted(column: pd.Series, config: CsvConfig) -> np.ndarray:
    """The decisions, shape (N,), bool, of which there must be both."""
    values = column.dropna().unique()
    if len(values) != 1:
        return decisions(column, config.accepted)
    refuse(column, column.isna(), "is no decision: complete or remove the row")
    only = f"column {column.name!r} is always {shown(values[0])!r}"
    try:
        is_value(column, config.accepted, "dataset.accepted")
    except FairAllError as error:
        raise FairAllError(
            f"{only}: nobody was accepted, so that nothing is known of what acceptance brings; an acceptance "
            f"is accepted={config.accepted}"
        ) from error
    raise FairAllError(
        f"{only}: nobody was rejected, so that there is no selection to correct for; a log holds all who "
        "applied"
    )


def _label(text: pd.DataFrame, accepted: np.ndarray, config: CsvConfig) -> tuple[np.ndarray, list[str]]:
    """1 or 0 where a decision revealed the label, NaN elsewhere, shape (N,), and notes."""
    if not config.label:
        return np.full(len(text), np.nan), ["there is no label: only what needs none can be estimated"]
    column = text[config.label]
    if not config.positive:
        raise FairAllError(
            f"column {config.label!r} has {listed(list(column.dropna().unique()), 'value')}: give the good "
            "one with positive=VALUE"
        )
    if column.nunique() == 1 and str(column.dropna().iloc[0]) == config.positive:
        positive = labelled = column.notna().to_numpy()  # nobody has failed: still a log
    else:
        positive, labelled = labels(column, config.positive)
    assert config.decision is not None
    known, notes = revealed(labelled, accepted, text[config.decision], config.accepted, UNLABELLED)
    return np.where(known, positive, np.nan), notes


def _amounts(text: pd.DataFrame, config: LogConfig) -> tuple[np.ndarray, np.ndarray]:
    """Gain and loss of each row, shape (N,)."""
    if config.gain is None and config.loss is None:
        return np.broadcast_to(1 - config.cost, len(text)), np.broadcast_to(config.cost, len(text))
    for word in config.words:
        if word.removeprefix(PREFIX).startswith("cost="):
            raise FairAllError(f"{word}: each row has its own gain and loss: leave cost out")
    amounts = []
    for key, name in (("gain", config.gain), ("loss", config.loss)):
        if name is None:
            raise FairAllError(f"gain and loss are needed both: give {key}=COLUMN too")
        roles([(key, name)], list(text), config.path)
        amounts.append(numbers_of(text[name]))
        wrong = ~((amounts[-1] >= 0) & np.isfinite(amounts[-1]))
        refuse(text[name], wrong, f"is no {key}: everybody needs a number that is at least 0")
    both = f"is the gain, and the loss is 0 too (column {config.loss!r}): one must be above 0"
    refuse(text[config.gain], sum(amounts) == 0, both)
    return amounts[0], amounts[1]


def _groups(text: pd.DataFrame, grouping: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...], list[str]]:
    """Number of the group of each row, shape (N,), the names of the groups, and notes."""
    columns = text[list(grouping)]
    notes = [
        f"column {name!r}: {count(empty, 'empty cell')}, taken for a group, {MISSING_LEVEL}"
        for name, empty in columns.isna().sum().items()
        if empty
    ]
    first, *further = (columns[name].where(columns[name].notna(), MISSING_LEVEL) for name in columns)
    joined = first.str.cat(further, sep=", ") if further else first
    group, names = pd.factorize(joined, sort=True)
    if not 2 <= len(names) <= MOST_GROUPS:
        what = f"column {grouping[0]!r} has" if len(grouping) == 1 else f"columns {', '.join(grouping)} have"
        raise FairAllError(
            f"{what} {listed(list(names), 'group')}; from 2 to {MOST_GROUPS} are needed: merge or remove rows"
        )
    return group, tuple(names), notes


def _missing(
    text: pd.DataFrame, x: pd.DataFrame, schema: Schema
) -> tuple[list[tuple[str, np.ndarray]], list[str]]:
    """Distinct masks (N,) of missing cells that are no level, with a feature of each, and a note on them."""
    empty = {one.name: (text if one.kind in DISCRETE else x)[one.name].isna().to_numpy() for one in schema}
    levels = {one.name for one in schema if MISSING_LEVEL in one.levels}
    marked = {name: int(rows.sum()) for name, rows in empty.items() if name not in levels and rows.any()}
    known = {empty[name].tobytes() for name in levels}
    masks = {empty[name].tobytes(): (name, empty[name]) for name in marked}
    names = ", ".join(f"{name} ({n})" for name, n in marked.items())
    note = f"empty cells of features are imputed, and marked by indicators of their own: {names}"
    return [mask for key, mask in masks.items() if key not in known], [note] if marked else []


def _repeated(x: pd.DataFrame, group: np.ndarray, schema: Schema) -> tuple[np.ndarray | None, list[str]]:
    """Number of the distinct row, shape (N,), if rows that are equal must be of one person, and a note.

    They must be if real numbers tell people apart: few distinct rows have the numbers of another one, as
    they have where numbers are rounded. A row without any real number is compared with none.
    """
    real = x[[one.name for one in schema if one.kind is Kind.REAL]]
    if real.empty:
        return None, []
    row = hash_pandas_object(x, index=False).to_numpy() + group.astype(np.uint64)
    unknown = real.isna().all(axis=1).to_numpy()
    row[unknown] = np.arange(unknown.sum())
    repeats = pd.Series(row).duplicated().to_numpy()
    if not repeats.any():
        return None, []
    second = int(repeats.argmax())
    first = int((row == row[second]).argmax())
    note = (
        f"rows {row_number(x, first)} and {row_number(x, second)} are equal in all features and the group, "
        f"and {count(int(repeats.sum()), 'row')} repeat an earlier one"
    )
    shared = real[~repeats & ~unknown].duplicated(keep=False).sum()
    if shared > MOST_SHARED * len(np.unique(row[repeats])):
        chance = "perhaps by chance, and are taken to be of other people; if not, give person=COLUMN"
        return None, [f"{note}, {chance}"]
    same = "and are taken to be of the same person; give person=COLUMN"
    return np.unique(row, return_inverse=True)[1], [f"{note}, {same}"]


def _inputs(
    schema: Schema, x: pd.DataFrame, missing: list[tuple[str, np.ndarray]], group: np.ndarray, n_groups: int
) -> tuple[np.ndarray, tuple[str, ...]]:
    """See `DecisionLog.inputs` and `input_names`; filled column by column, which needs no second copy."""
    encoding = FeatureInputs(schema.seen_as(NetInputs.one_hot))
    inputs = np.ones((len(group), encoding.size + len(missing) + n_groups), dtype=np.float32)
    columns, names = iter(inputs.T[1:]), []
    for i in encoding.numeric:
        values = x[schema[i].name].to_numpy()
        values = np.where(np.isnan(values), schema[i].fill, values)
        standardised = (values - values.mean()) / max(values.std(), np.finfo(float).tiny)
        next(columns)[:] = np.clip(standardised, -FURTHEST, FURTHEST)
        names.append(schema[i].name)
    for i, code in zip(encoding.columns.tolist(), encoding.codes.tolist(), strict=True):
        next(columns)[:] = x[schema[i].name].to_numpy() == code
        names.append(schema[i].name)
    for name, rows in missing:
        next(columns)[:] = rows
        names.append(name)
    for code in range(1, n_groups):
        next(columns)[:] = group == code
        names.append("")
    return inputs, tuple(names)
