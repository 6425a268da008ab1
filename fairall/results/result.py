"""The result of a run: what was measured, as data frames, and its two files."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from fairall.config.schema import Config, FairnessConfig, FairnessRule
from fairall.display.format import interpretable, marked
from fairall.display.viewed import Viewed
from fairall.errors import FairAllError, count
from fairall.metrics import LATENT, Quantity, Spread, curves
from fairall.results.paper import REFERENCES, paper_metrics
from fairall.storage.identity import configuration_key
from fairall.storage.run_folder import RunFolder
from fairall.storage.stored import DamagedFileError, Plain, opened, read_json, strict
from fairall.tables.groups import group_name, sides

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GROUPS = ("all", "advantaged", "disadvantaged")  # of people; more than two groups have keys of their words
OF_REFERENCES = "policy", "measure"  # levels of the index of `Result.references`


def bound_of(fairness: FairnessConfig) -> str:
    """The bound on the gap between groups that a run keeps, in words; empty for none.

    Examples:
        >>> bound_of(FairnessConfig(FairnessRule.demographic_parity, slack=0.05, blind=False))
        'demographic parity within 5 points'
    """
    if fairness.rule is FairnessRule.none:
        return ""
    slack = f"{100 * fairness.slack:g} points" if fairness.slack else "0"
    return f"{fairness.rule.name.replace('_', ' ')} within {slack}{', blind to s' * fairness.blind}"


@dataclass(frozen=True)
class Group:
    """People of a group of the sensitive attribute, and how many of them were accepted.

    Attributes:
        values: raw values of the sensitive attribute; empty for everybody.
        people: number of people by split.
        labelled: number of people with a label, which the run need not have seen.
        base_rate: share of label 1 in the population; None without labels.
        accepted: acceptance rate of applicants over all time steps; None where a seed has no value.
        accepted_in_window: the same over the time steps of evaluation.window.
    """

    values: Sequence[str]
    people: Mapping[str, int]
    labelled: int
    base_rate: float | None
    accepted: Spread | None
    accepted_in_window: Spread | None


@dataclass(frozen=True)
class EvaluationPeople:
    """The people whom the policy was measured on.

    Attributes:
        split: `test` or `validation`.
        people: how many.
        labelled: how many with a label.
        effective_sample_size: number of equally weighted labels that theirs are worth.
        utility_standard_error: of the last policy's utility, averaged over seeds; None where unknown.
        dpu_standard_error: of its demographic-parity unfairness.
    """

    split: str
    people: int
    labelled: int
    effective_sample_size: float
    utility_standard_error: float | None
    dpu_standard_error: float | None


@dataclass(frozen=True)
class WarmUp:
    """How many people the initial policy decided on, and the share accepted, averaged over seeds."""

    people: int
    accepted: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Result(Viewed):
    """The result of a run. Values are in plain units, not ×100.

    `plot` draws a measure of the policy over time, `utility` unless another one is named, with levels of the
    reference policies; `figures` has their names.

    Attributes:
        config: of the run, as it is stored (`Config.stored`).
        steps: a row per seed and time step: `seed`, `time_step`, and a column per measure.
        measures: the measures in `steps`, without those of drawn decisions.
        per_seed: measures of the whole run, a row per seed, NaN where a seed has no value.
        aggregate: the same over seeds that have not diverged, a row per measure: `mean`, `std`, and `low` and
            `high`, the ends of the 95 % interval of the mean by Student's t. NaN where there is no value.
        references: as `aggregate`, a row per reference policy and measure.
        groups: by name of `GROUPS`, or everybody and more than two groups by `data.table.Sensitive.keys`.
        sensitive_column: raw column of the sensitive attribute, None where there is none.
        evaluation: the people measured on.
        warm_up: the decisions of the initial policy.
        fingerprint: hash of the data.
        notes: what a reader should know, a line each.
        warnings: where numbers need care, a line each.
        path: folder of the run; empty for a result that was not saved.
        finished: time of completion, seconds since 1970.
    """

    panels = ("utility", "dpu")
    config: Config
    steps: pd.DataFrame
    measures: Sequence[Quantity]
    per_seed: pd.DataFrame
    aggregate: pd.DataFrame
    references: pd.DataFrame
    groups: Mapping[str, Group]
    sensitive_column: str | None
    evaluation: EvaluationPeople
    warm_up: WarmUp
    fingerprint: str
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()
    path: Path = Path()
    finished: float = 0.0

    @cached_property
    def key(self) -> str:
        """Equal for results of equal configurations."""
        return configuration_key(self.config)

    @property
    def title(self) -> str:
        """One line with the method, data set and setting."""
        config = self.config
        parts = (
            f"{self.name('model')} on {self.name('dataset')}",
            f"{self.name('initial_policy')} initial policy",
            f"{config.protocol.name} protocol",
            bound_of(config.fairness),
            f"world of {', '.join(config.parts)}" * bool(config.parts),
            config.worth,
            count(config.seeds, "seed"),
        )
        return marked(", ".join(filter(None, parts)), config.preset)

    @property
    def identity(self) -> str:
        """The run's id; empty for a result that was not saved."""
        return self.path.name

    @property
    def interpretable(self) -> bool:
        """Whether the numbers may be interpreted: not those of preset=quick."""
        return interpretable(self.config.preset)

    @property
    def seeds(self) -> list[int]:
        """Seeds in their order."""
        return self.per_seed.index.tolist()

    @property
    def named_groups(self) -> dict[str, Group]:
        """The groups without `all`, by their names for readers."""
        groups = [group for key, group in self.groups.items() if key != "all"]
        n = len(groups)
        return {group_name(s, group.values, n): group for s, group in zip(sides(n), groups, strict=True)}

    def name(self, group: str) -> str:
        """Name of the chosen file of a group of the configuration, such as `model`."""
        return self.config.name(group)

    def values(self, measure: str) -> pd.Series:
        """A measure of the whole run by seed; seeds without a value are left out."""
        return self.per_seed.get(measure, pd.Series(dtype=float)).dropna()

    def curve(self, measure: str) -> pd.DataFrame:
        """A measure over time: a row per time step, a column per seed; empty where it has no values."""
        if measure not in self.steps:
            return pd.DataFrame()
        return self.steps.pivot(index="time_step", columns="seed", values=measure).dropna(how="all")

    def last(self, measure: str) -> pd.Series:
        """A measure at the last time step by seed; empty where it has no values."""
        return self.curve(measure).tail(1).mean()

    def spread(self, measure: str) -> Spread | None:
        """A measure of the whole run over seeds; None where it has no value."""
        return _spread(self.aggregate, measure)

    def reference(self, policy: str, measure: str) -> Spread | None:
        """A measure of a policy of `REFERENCES`; None where the data do not allow it."""
        return _spread(self.references, (policy, measure))

    def to_frame(self) -> pd.DataFrame:
        """`steps`: a row per seed and time step, a column per measure."""
        return self.steps.copy()

    def summary(self) -> pd.DataFrame:
        """Measures of the whole run with values, beside the references and the paper's printed ones.

        Measures of drawn decisions are included where the paper prints them.

        Returns:
            A row per measure. Columns: `heading`; `mean`, `std`, `low`, `high`; the mean of each policy of
            `REFERENCES`; `paper_mean` and `paper_std`. NaN where there is none.
        """
        headings = {name: name.replace("_", " ") for name in LATENT}
        for measure in curves(self.measures):  # type: ignore[arg-type]  # needs no function
            parts = [measure.mean(), measure.variation()] if measure.of == "policy" else [measure]
            headings |= {part.name: part.heading for part in parts}
        rows = self.aggregate[self.aggregate.index.isin([*headings])].dropna(subset="mean")
        rows.insert(0, "heading", rows.index.map(headings))
        for policy in REFERENCES:
            rows[policy] = [self.references["mean"].get((policy, name), np.nan) for name in rows.index]
        names = rows.index.str.removesuffix("_sampled")
        printed = pd.DataFrame(paper_metrics(self.config), ["paper_mean", "paper_std"], dtype=float).T
        rows[printed.columns] = printed.reindex(names).to_numpy()
        return rows[(names == rows.index) | rows["paper_mean"].notna()]

    @property
    def figures(self) -> tuple[str, ...]:
        """Names of the measures of the policy."""
        return tuple(measure.name for measure in self.measures if measure.of == "policy")

    def _draw(self, what: str, axes: Axes) -> None:
        """Draw a measure over time, with levels of the reference policies."""
        from fairall.results.figures import draw_curve  # imports matplotlib

        measure = next(measure for measure in self.measures if measure.name == what)
        draw_curve(self.steps, measure, axes, self.summary())
        if axes.get_legend_handles_labels()[1]:
            axes.legend(loc="best")

    def to_plain(self) -> Plain:
        """Content of summary.json."""
        references: dict[str, dict[str, Spread | None]] = defaultdict(dict)
        for policy, measure in self.references.index:
            references[policy][measure] = self.reference(policy, measure)
        return strict(
            {
                "measures": {measure.name: measure.to_plain() for measure in self.measures},
                "aggregate": {measure: self.spread(measure) for measure in self.aggregate.index},
                "per_seed": self.per_seed.reset_index(names="seed").to_dict("records"),
                "references": references,
                "data": {"fingerprint": self.fingerprint},
                "evaluation": self.evaluation,
                "groups": {"column": self.sensitive_column, **self.groups},
                "warm_up": self.warm_up,
                "notes": self.notes,
                "warnings": self.warnings,
            }
        )

    def save(self, folder: RunFolder) -> None:
        """Write metrics.csv and summary.json."""
        folder.write_text("metrics.csv", self.steps.to_csv(index=False, float_format="%.7g"))
        folder.write_text("summary.json", json.dumps(self.to_plain(), indent=1, allow_nan=False) + "\n")

    @classmethod
    def read(cls, folder: RunFolder) -> Result:
        """Read config.yaml, metrics.csv and summary.json of a finished run.

        See `runs.load`, which checks that they are of one run.

        Raises:
            OSError: where a file cannot be read; FileNotFoundError where it is missing.
            FairAllError: where a file is not as `save` writes it.
        """
        path = folder.path
        summary, config = read_json(path / "summary.json", Summary), folder.read_config()
        if config is None:
            raise FairAllError("config.yaml is missing, damaged or of an earlier version of fairall")
        per_seed = pd.DataFrame([*summary.per_seed], columns=["seed", *summary.aggregate], dtype=float)
        return cls(
            config=config,
            steps=_read_table(path / "metrics.csv"),
            measures=[Quantity.from_plain(name, vars(plain)) for name, plain in summary.measures.items()],
            per_seed=per_seed.astype({"seed": int}).set_index("seed"),
            aggregate=spreads(summary.aggregate),
            references=spreads(
                {
                    (policy, measure): spread
                    for policy, levels in summary.references.items()
                    for measure, spread in levels.items()
                },
                OF_REFERENCES,
            ),
            sensitive_column=next((name for name in summary.groups.values() if isinstance(name, str)), None),
            groups={name: group for name, group in summary.groups.items() if isinstance(group, Group)},
            fingerprint=summary.data["fingerprint"],
            path=path,
            finished=(path / "DONE").stat().st_mtime,
            **{name: getattr(summary, name) for name in ("evaluation", "warm_up", "notes", "warnings")},
        )


@dataclass(frozen=True)
class _Described:
    """A measure in summary.json, see `Quantity.to_plain`."""

    label: str
    unit: str
    higher_is_better: bool | None
    bounds: tuple[float | None, float | None]
    of: Literal["policy", "applicants"]


@dataclass(frozen=True)
class Summary:
    """Content of summary.json, as `Result.to_plain` has it; `groups` has their column too."""

    measures: Mapping[str, _Described]
    aggregate: Mapping[str, Spread | None]
    per_seed: Sequence[Mapping[str, float | None]]
    references: Mapping[str, Mapping[str, Spread | None]]
    data: Mapping[Literal["fingerprint"], str]
    evaluation: EvaluationPeople
    groups: Mapping[str, Group | str | None]
    warm_up: WarmUp
    notes: Sequence[str]
    warnings: Sequence[str]


def _read_table(path: Path) -> pd.DataFrame:
    """A CSV file of numbers; raises DamagedFileError for any other."""
    kinds = defaultdict[str, type](lambda: float, seed=int, time_step=int)
    try:
        with opened(path) as file:
            return pd.read_csv(file, dtype=kinds)
    except (ValueError, TypeError, OverflowError) as error:  # of pandas' parser too
        raise DamagedFileError(path, str(error).strip().split("\n")[0][:120]) from error


def spreads(by_name: Mapping[Any, Spread | None], names: Sequence[str] = ()) -> pd.DataFrame:
    """A table with `mean`, `std`, `low` and `high` of each, NaN for none.

    Args:
        by_name: by measure, or by policy and measure.
        names: of the levels of the index, where there are several.
    """
    index = pd.MultiIndex.from_tuples([*by_name], names=names) if names else pd.Index([*by_name])
    rows = [
        (spread.mean, spread.std, *(spread.interval or (None, None))) if spread else (None,) * 4
        for spread in by_name.values()
    ]
    return pd.DataFrame(rows, index=index, columns=["mean", "std", "low", "high"], dtype=float)


def _spread(table: pd.DataFrame, key: Any) -> Spread | None:
    """A row of a table of `spreads`; None where there is no such row or no value."""
    row = table.loc[key].dropna() if key in table.index else {}
    interval = (row["low"], row["high"]) if "low" in row else None
    return Spread(row["mean"], row.get("std"), interval) if "mean" in row else None
