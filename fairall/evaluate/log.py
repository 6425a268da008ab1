"""Logs of past decisions: features, groups, decisions, and the labels that they revealed."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
from omegaconf import OmegaConf

from fairall.config.compose import compose_config
from fairall.config.schema import NetInputs
from fairall.config.validation import checked_dataset
from fairall.config.words import nearest_key
from fairall.data.cells import listed, numbers_of, refuse, shown
from fairall.data.csv.cells_as_text import of_frame
from fairall.data.csv.config import CsvConfig
from fairall.data.csv.infer import infer_features
from fairall.data.csv.leaks import leaks
from fairall.data.csv.reader import read_text
from fairall.data.csv.roles import decisions, is_value, labels, recorded_propensity, revealed, roles
from fairall.data.csv.selective_labels import empty_regions
from fairall.data.encoding import FeatureInputs
from fairall.data.features import DISCRETE, Feature, Schema
from fairall.data.prepared import FURTHEST
from fairall.errors import FairAllError

PREFIX = "dataset."
MAY_BE_ABSENT = ("path", "label", "positive", "sensitive", "advantaged")  # of the keys without a default
MOST_GROUPS = 50  # more are a number or a name, no groups
LEAST_WANTED = 0.01  # share of the target policy's acceptances in a reported region


@dataclass(frozen=True)
class DecisionLog:
    """N people, the past decision on each, and the labels that the decisions revealed.

    Attributes:
        raw: all columns as given: of a file the cells as text, None where missing.
        inputs: a column of ones, then `design`, shape (N, D + 1), float32.
        group: number of the group, shape (N,), int.
        groups: names of the G groups, sorted; of intersections of columns as "female, black".
        accepted: the decisions, shape (N,), bool.
        label: 1 or 0 where a decision revealed it, NaN elsewhere, shape (N,).
        propensity: recorded P(accepted), shape (N,), NaN where a rejected row has none; None if not recorded.
        decision_maker: who decided, as text, shape (N,); None if not given.
        cost: c, of an acceptance, in units of the gain from a positive label.
        decision: name of the column of the decisions.
        decision_values: texts of a rejection and of an acceptance.
        schema: features.
        x: their values, categories as codes, shape (N, number of features).
        notes: on how the log was read, one sentence each.
    """

    raw: pd.DataFrame
    inputs: np.ndarray
    group: np.ndarray
    groups: tuple[str, ...]
    accepted: np.ndarray
    label: np.ndarray
    propensity: np.ndarray | None
    decision_maker: np.ndarray | None
    cost: float
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
        not_features: Sequence[str] = (),
    ) -> DecisionLog:
        """Read a CSV or Parquet file.

        Args:
            path: of the file.
            words: KEY=VALUE with the keys of `dataset=csv`, such as `label=repaid` or `dataset.label=repaid`.
                `decision` and `accepted` are needed, and `sensitive` or `groups`; without `label` only what
                needs no label can be estimated. `advantaged` has no effect.
            groups: columns whose values, or combinations of values, are the groups; by default `sensitive`.
            decision_maker: column of who decided.
            not_features: columns that are no features of the log, such as probabilities of target policies;
                names of no column have no effect.

        Raises:
            FairAllError: if a key is unknown or a value invalid, or the file cannot be read or is no log.
        """
        config = replace(_config(words), path=str(path))
        raw = read_text(
            Path(path), separator=config.separator, encoding=config.text_encoding, missing=config.no_value
        )
        return _log(raw, raw, config, groups, decision_maker, not_features)

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
        cost: float = 0.5,
        drop: Sequence[str] = (),
        kinds: Mapping[str, str] | None = None,
        decision_maker: str | None = None,
        not_features: Sequence[str] = (),
    ) -> DecisionLog:
        """Take a log from a DataFrame; arguments and errors as for `read` and the keys of `dataset=csv`."""
        config = replace(
            _defaults(), path="the table", decision=decision, accepted=str(accepted), label=label or "",
            positive=str(positive), sensitive=sensitive or "", propensity=propensity, cost=cost,
            drop=list(drop), kinds=dict(kinds or {}),
        )  # fmt: skip
        config.validate()
        raw = people.rename(columns=str).reset_index(drop=True)
        if raw.columns.has_duplicates:
            raise FairAllError(f"two columns are named {raw.columns[raw.columns.duplicated()][0]!r}")
        if not len(raw):
            raise FairAllError("the table has no row")
        return _log(raw, of_frame(raw, config.no_value), config, groups, decision_maker, not_features)

    def __len__(self) -> int:
        return len(self.group)

    @property
    def design(self) -> np.ndarray:
        """Inputs of the nuisance models, shape (N, D), float32.

        Real features and counts with mean 0 and standard deviation 1, indicators of categories, and
        indicators of all groups but the first.
        """
        return self.inputs[:, 1:]

    @property
    def revealed(self) -> np.ndarray:
        """Whose label is known, shape (N,), bool."""
        return ~np.isnan(self.label)

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
        groups = {f"of group {name}": self.group == code for code, name in enumerate(self.groups)}
        least = max(LEAST_WANTED * wanted.sum(), np.finfo(float).tiny)
        empty = empty_regions(groups, self.schema, self.x, known)
        return [(name, rows) for name, rows in empty if wanted[rows].sum() >= least]


@functools.cache
def _defaults() -> CsvConfig:
    """Composed once: composing takes longer than a small log."""
    return _config([])


def _config(words: Sequence[str]) -> CsvConfig:
    """Configuration of `dataset=csv` with words KEY=VALUE; empty text for columns that are not given."""
    known = [field.name for field in fields(CsvConfig)]
    overrides = []
    for word in words:
        key, equals, value = word.partition("=")
        name = key.removeprefix(PREFIX)
        if not equals or name.split(".")[0] not in known:
            hint = nearest_key(name, known) or f"; there are {', '.join(known[2:])}"
            raise FairAllError(f"{word}: no such key of a log{hint}")
        overrides.append(f"{PREFIX}{name}={value}")
    composed = compose_config("dataset=csv", *overrides)
    for key in MAY_BE_ABSENT:
        if OmegaConf.is_missing(composed.dataset, key):
            composed.dataset[key] = ""
    config = checked_dataset(composed)
    assert isinstance(config, CsvConfig)
    return config


def _log(
    raw: pd.DataFrame,
    text: pd.DataFrame,
    config: CsvConfig,
    groups: Sequence[str],
    decision_maker: str | None,
    not_features: Sequence[str],
) -> DecisionLog:
    if config.decision is None:
        raise FairAllError("a log needs the past decisions: give decision=COLUMN and accepted=VALUE")
    grouping = list(groups) or [config.sensitive]
    if not grouping[0]:
        raise FairAllError("a log needs groups of people: give sensitive=COLUMN, or the columns of groups")
    with_role = _with_role(text, config, grouping, decision_maker)
    accepted = _accepted(text[config.decision], config)
    label, notes = _label(text, accepted, config)
    propensity = None
    if config.propensity is not None:
        propensity = recorded_propensity(text[config.propensity], accepted)
    others = text.drop(
        columns=[*with_role, *(name for name in not_features if name not in with_role)], errors="ignore"
    )
    numbers = {name: numbers_of(others[name]) for name in others}  # parsed once, which takes long
    features, left_out = infer_features(others, np.arange(len(text)), config, numbers)
    if not features and propensity is None:
        raise FairAllError(
            f"{config.path}: no propensity is recorded, and no feature is left to estimate it from; give "
            "propensity=COLUMN, or columns that tell whom the decisions accepted"
        )
    known, who = (~np.isnan(label), "has a label") if config.label else (accepted, "was accepted")
    told = leaks(others[[feature.name for feature in features]], known, config, who=who)
    schema = Schema(features)
    x = pd.DataFrame(
        {one.name: _values(one, text[one.name], numbers[one.name]) for one in features}, index=text.index
    )
    group, names = _groups(text, grouping)
    maker = None
    if decision_maker is not None:
        refuse(text[decision_maker], text[decision_maker].isna(), "is no decision maker: complete it")
        maker = text[decision_maker].to_numpy(dtype=str)
    return DecisionLog(
        raw=raw, inputs=_inputs(schema, x, group, len(names)), group=group, groups=names, accepted=accepted,
        label=label, propensity=propensity, decision_maker=maker, cost=config.cost, decision=config.decision,
        decision_values=tuple(text[config.decision].iloc[[accepted.argmin(), accepted.argmax()]]),
        schema=schema, x=x, notes=(*left_out, *notes, *told),
    )  # fmt: skip


def _with_role(
    text: pd.DataFrame, config: CsvConfig, grouping: list[str], decision_maker: str | None
) -> list[str]:
    """Columns that are no features; raises as `roles`."""
    named: dict[str, Sequence[str | None]] = {
        "dataset.label": [config.label],
        "dataset.decision": [config.decision],
        "dataset.propensity": [config.propensity],
        "dataset.split.column": [config.split.column],
        "dataset.sensitive" if grouping == [config.sensitive] else "groups": grouping,
        "decision_maker": [decision_maker],
        "dataset.drop": config.drop,
        "dataset.kinds": list(config.kinds),
    }
    pairs = [(key, name) for key, names in named.items() for name in names if name]
    found = roles(pairs, list(text), config.path)
    return [name for name, key in found.items() if key != "dataset.kinds"]


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
    positive, labelled = labels(column, config.positive)
    assert config.decision is not None
    known, notes = revealed(labelled, accepted, text[config.decision], config.accepted)
    return np.where(known, positive, np.nan), notes


def _groups(text: pd.DataFrame, grouping: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Number of the group of each row, shape (N,), and the names of the groups."""
    for name in grouping:
        refuse(text[name], text[name].isna(), "is no sensitive attribute: complete or remove the row")
    first, *further = (text[name] for name in grouping)
    joined = first.str.cat(further, sep=", ") if further else first
    group, names = pd.factorize(joined, sort=True)
    if not 2 <= len(names) <= MOST_GROUPS:
        what = f"column {grouping[0]!r} has" if len(grouping) == 1 else f"columns {', '.join(grouping)} have"
        raise FairAllError(
            f"{what} {listed(list(names), 'group')}; from 2 to {MOST_GROUPS} are needed: merge or remove rows"
        )
    return group, tuple(names)


def _values(feature: Feature, column: pd.Series, numbers: np.ndarray) -> np.ndarray:
    """Numbers or codes of a column that the feature was inferred from, shape (N,)."""
    if feature.kind in DISCRETE:
        return feature.encode(column)
    return np.where(np.isnan(numbers), feature.fill, numbers) if feature.fill is not None else numbers


def _inputs(schema: Schema, x: pd.DataFrame, group: np.ndarray, n_groups: int) -> np.ndarray:
    """See `DecisionLog.inputs`; filled column by column, which needs no second copy."""
    encoding = FeatureInputs(schema.seen_as(NetInputs.one_hot))
    inputs = np.ones((len(group), 1 + encoding.size + n_groups - 1), dtype=np.float32)
    columns = iter(inputs.T[1:])
    for i in encoding.numeric:
        values = x[schema[i].name].to_numpy()
        standardised = (values - values.mean()) / max(values.std(), np.finfo(float).tiny)
        next(columns)[:] = np.clip(standardised, -FURTHEST, FURTHEST)
    for i, code in zip(encoding.columns.tolist(), encoding.codes.tolist(), strict=True):
        next(columns)[:] = x[schema[i].name].to_numpy() == code
    for code in range(1, n_groups):
        next(columns)[:] = group == code
    return inputs
