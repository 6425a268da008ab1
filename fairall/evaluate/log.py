"""Logs of past decisions: features, groups, decisions, and the labels that they revealed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from omegaconf import OmegaConf

from fairall.config.checks import check, one_of, require
from fairall.config.compose import compose_config
from fairall.config.schema import NetInputs
from fairall.config.validation import checked_dataset
from fairall.config.words import nearest_key
from fairall.data.encoding import FeatureInputs
from fairall.data.features import Schema
from fairall.data.own_table import OwnTableConfig
from fairall.data.prepared import FURTHEST
from fairall.data.selective_labels import empty_regions, feature_regions
from fairall.errors import FairAllError
from fairall.evaluate.persons import repeated
from fairall.tables.applicants import read
from fairall.tables.declared import PREFIX, Declared, Spelling, csv_defaults
from fairall.tables.features import MISSING_LEVEL, Feature, Kind
from fairall.tables.groups import display_name

OWN_KEYS = ("person", "gain", "loss", "policy_version")  # columns of a log only
# Columns that an option of the command line names.
AS_OPTION = {"decision_maker": "--decision-maker", "groups": "--groups", "score": "--score"}
KEYS = (*(field.name for field in fields(OwnTableConfig) if field.name not in ("groups", "path")), *OWN_KEYS)
MAY_BE_ABSENT = ("path", "label", "positive", "sensitive", "advantaged")  # of the keys without a default
LEAST_WANTED = 0.01  # share of the target policy's acceptances in a reported region
LEAST_ROWS = 50  # of a region
UNLABELLED = (
    "which labels are known is modelled from features and group, given which it is taken to be random"
)


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
        schema: features.
        x: their values, categories as codes, NaN where a number is missing, shape (N, number of features).
        notes: on how the log was read, one sentence each.
    """

    raw: pd.DataFrame
    cells: pd.DataFrame
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
    label_values: tuple[str, str]
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
                was decided on, by default rows that are equal where chance is no explanation
                (`evaluate.persons.repeated`); `gain` and `loss` name those of amounts, instead of `cost`;
                `policy_version` that of the policy that decided, where it was changed.
            groups: columns whose values, or combinations of values, are the groups; by default `sensitive`.
            decision_maker: column of who decided.
            time: column of when it was decided, numbers or dates, for a monitor.
            not_features: columns that are no features of the log, such as probabilities of target policies;
                names of no column have no effect.

        Raises:
            FairAllError: if a key is unknown or a value invalid, or the file cannot be read or is no log.
        """
        declared, cost = _declared(
            str(path), words, intersections=tuple(groups), decision_maker=decision_maker, time=time,
            not_features=tuple(not_features),
        )  # fmt: skip
        return cls.of_table(Path(path), declared, cost)

    @classmethod
    def of(
        cls, people: pd.DataFrame, *, cost: float | None = None, groups: Sequence[str] = (), **columns: Any
    ) -> DecisionLog:
        """Take a log from a DataFrame.

        Args:
            people: a row for each decision.
            cost: c; by default ½.
            groups: columns whose values, or combinations of values, are the groups; by default `sensitive`.
            columns: other keywords of `Declared`: decision, accepted (by default 1), label, positive (by
                default 1), sensitive, propensity, ..., as the keys of `dataset=csv` and of `read`.

        Raises:
            FairAllError: if a keyword is unknown, or as `read`.
        """
        if not isinstance(people, pd.DataFrame):
            raise FairAllError(
                f"a log is a DataFrame with a row for each decision, not {type(people).__name__}"
            )
        given = {"accepted": 1, "positive": 1} | columns
        declared = Declared.of(**given, intersections=groups, spelling=Spelling(python=True))
        check("kinds", declared.kinds, one_of(Kind))
        return cls.of_table(people, declared, cost)

    @classmethod
    def of_table(
        cls, source: Path | pd.DataFrame, declared: Declared, cost: float | None = None
    ) -> DecisionLog:
        """The log in a file or DataFrame.

        Args:
            source: as of `applicants.read`.
            declared: meanings of columns.
            cost: c; None for the default, or where each row has its own gain and loss.

        Raises:
            FairAllError: where it cannot be read, or is no log.
        """
        given = declared.spelling.given
        if cost is not None and (declared.gain or declared.loss):
            raise FairAllError(f"{given('cost', cost)}: each row has its own gain and loss: leave cost out")
        cost = float(csv_defaults()["cost"] if cost is None else cost)
        require(0 < cost < 1, declared.spelling.key("cost"), cost, "between 0 and 1, both excluded")
        decision = f"{given('decision', 'COLUMN')} and {given('accepted', 'VALUE')}"
        groups = f"{given('sensitive', 'COLUMN')}, or the columns of groups"
        needs = {
            "decision": f"a log needs the past decisions: give {decision}",
            "grouping": f"a log needs groups of people: give {groups}",
        }
        people = read(source, declared, needs=needs, unlabelled=UNLABELLED).checked()
        features, of_features = people.features()
        if not features and people.propensity is None:
            raise FairAllError(
                f"{declared.path}: no propensity is recorded, and no feature is left to estimate it from; "
                f"give {given('propensity', 'COLUMN')}, or columns that tell whom the decisions accepted"
            )
        group, accepted, n = people.group, people.accepted, len(people)
        assert group is not None
        assert accepted is not None
        x = pd.DataFrame(people.values(features), index=people.cells.index, copy=False)
        told, doubts = people.leaks(features)
        notes = [*people.notes, *of_features]
        if people.label is None:
            notes.append("there is no label: only what needs none can be estimated")
        masks, of_missing = _missing(people.missing(features), features)
        if people.person is None:
            kinds = {one.name: one.kind for one in features}
            person, of_people = repeated(x, kinds, group, given("person", "COLUMN"))
        else:
            person, of_people = pd.factorize(people.person, sort=True)[0], []
        schema = Schema(features)
        inputs, input_names = _inputs(schema, x, masks, group, len(people.groups))
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
            schema=schema,
            x=x,
            notes=(*notes, *of_missing, *of_people, *told, *people.warnings, *doubts),
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


def _texts(column: pd.Series, value: np.ndarray) -> tuple[str, str]:
    """Texts of the cells of value 0 and of value 1, shape (N,); "" where there is none."""
    rows = ((value == one).argmax() for one in (0, 1))
    texts = [str(column.iloc[row]) if value[row] == one else "" for one, row in enumerate(rows)]
    return texts[0], texts[1]


def _declared(path: str, words: Sequence[str], **options: Any) -> tuple[Declared, float | None]:
    """Meanings of columns by words KEY=VALUE, and c if it is given."""
    overrides = []
    for word in words:
        key, equals, value = word.partition("=")
        name = key.removeprefix(PREFIX)
        if not equals or name.split(".")[0] not in KEYS:
            hint = nearest_key(name, KEYS) or f"; there are {', '.join(KEYS[2:])}"
            hint = f": give {AS_OPTION[name]} {value or 'COLUMN'}" if name in AS_OPTION else hint
            raise FairAllError(f"{word}: no such key of a log{hint}")
        overrides.append(f"{'+' if name in OWN_KEYS else ''}{PREFIX}{name}={value}")
    prefixed = frozenset(
        word.partition("=")[0].removeprefix(PREFIX) for word in words if word.startswith(PREFIX)
    )
    spelling = Spelling(bare=True, prefixed=prefixed)
    try:
        composed = compose_config("dataset=csv", *overrides)
    except FairAllError as error:
        raise FairAllError(_bare(str(error), spelling)) from error
    OmegaConf.set_struct(composed, False)
    own = {key: composed.dataset.pop(key, None) for key in OWN_KEYS}
    own = {key: str(name) for key, name in own.items() if name not in (None, "")}
    for key in MAY_BE_ABSENT:
        if OmegaConf.is_missing(composed.dataset, key):
            composed.dataset[key] = ""
    try:
        config = checked_dataset(composed)
    except FairAllError as error:
        raise FairAllError(_bare(str(error), spelling)) from error
    assert isinstance(config, OwnTableConfig)
    declared = replace(config.declared, path=path, spelling=spelling, **own, **options)
    given = any(word.removeprefix(PREFIX).startswith("cost=") for word in words)
    return declared, config.cost if given else None


def _bare(message: str, spelling: Spelling) -> str:
    """A message about keys of a run, with the keys of a log as they were typed."""
    return re.sub(rf"\+?{re.escape(PREFIX)}(\w+)", lambda key: spelling.key(key[1]), message)


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
