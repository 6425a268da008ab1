"""Printed means and standard deviations beside those that as many seeds of ours would give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from fairall.metrics import Quantity, Spread
from fairall.report import labels
from fairall.report.plan import Planned, missing_runs
from fairall.report.statistics import predictive_intervals, predictive_pooled_std
from fairall.results.finished import Run
from fairall.results.paper import HALF_DIGIT, paper_metrics, paper_seeds
from fairall.results.table import Cell, Row, Table, hundredfold

# The printed temporal measures are of drawn decisions.
MEASURES = (*labels.EFFECTIVE, *(measure.sampled() for measure in labels.TEMPORAL))
MANY = 0.1  # share of collapsed seeds above which predictive intervals are of the survivors
SHOWN = {
    "mean": ("means", "Our mean and its 95 % interval (Student's t over seeds)"),
    "std": (
        "standard deviations",
        "Our standard deviation: of effective measures over seeds; of temporal ones over seeds and time "
        "steps, of M_t for a mean and of |M_t − μ_M| for a temporal variance, as the printed ones appear to "
        "be (docs/reproduction.md)",
    ),
}


def printed_tables(planned: Sequence[Planned], initial_policy: str, protocol: str) -> list[Table]:
    """A table of means and one of standard deviations, a row per run that has printed values.

    A printed value is inside or outside the 95 % predictive interval of as many seeds as it is of, drawn
    from ours. Runs of fewer seeds are left out.

    Args:
        planned: runs, finished or missing, of one initial policy and protocol.
        initial_policy: its name.
        protocol: its name.
    """
    setting = f"{initial_policy} initial policy, protocol {protocol}"
    enough = [(one, one.run) for one in planned if one.run and len(one.run.seeds) >= paper_seeds()]
    tables = []
    for statistic, (plural, ours) in SHOWN.items():
        rows, records = [], []
        for one, run in enough:
            gone = collapsed(run)
            compared = [_Compared.of(run, measure, gone, statistic) for measure in MEASURES]
            if not any(compared):
                continue
            share = "" if gone is None else f"{gone.sum()} of {len(gone)}"
            cells = [Cell(share), *(Cell() if value is None else value.cell() for value in compared)]
            rows.append(Row(labels.dataset(one.dataset), labels.method(one.model), cells))
            for measure, value in zip(MEASURES, compared, strict=True):
                if value is not None:
                    who = {"dataset": one.dataset, "model": one.model, "run": run.path.name}
                    what = {"measure": measure.name, "statistic": statistic}
                    records.append(who | what | value.record() | {"command": one.command})
        tables.append(
            Table(
                key=f"printed_{statistic}_{initial_policy}_{protocol}",
                title=f"Printed {plural} and what {paper_seeds()} seeds of ours would give, {setting}",
                note=_note(ours, plural),
                section="Printed values",
                setting=setting,
                columns=["collapsed", *(measure.heading for measure in MEASURES)],
                rows=rows,
                records=records,
                lacking=missing_runs(planned),
            )
        )
    return tables


def _note(ours: str, plural: str) -> str:
    n = paper_seeds()
    return (
        f"×100. {ours}. In italics the printed value, and whether it is inside the 95 % predictive interval "
        f"of {plural} of {n} seeds, by nested bootstrap of our seeds: it has the variance of so few seeds "
        "and the uncertainty of ours. Half a unit of the last printed digit is allowed on either side. With "
        "50 seeds, 5 to 10 % would be outside by chance if nothing differed. Collapsed: seeds that accepted "
        f"nobody in the last half of the time steps. †: where more than {100 * MANY:.0f} % collapsed, the "
        "value of the survivors; the predictive interval is theirs too, and there is none for fewer than "
        f"{n} of them."
    )


def collapsed(run: Run) -> pd.Series | None:
    """Whether each seed accepted no applicant at any step in the last half of the time steps.

    Returns:
        Booleans by seed; None for runs of versions that did not record acceptance rates.
    """
    rates = run.curve("acceptance_rate")
    if rates.empty:
        return None
    return rates[rates.index > run.config["schedule"]["time_steps"] / 2].eq(0.0).all()


def _by_step(run: Run, measure: Quantity) -> pd.DataFrame:
    """What the printed standard deviation of a measure is taken over: a row per seed.

    Columns are the time steps of evaluation.window for a temporal measure: M_t for a mean, |M_t − μ_M| for a
    temporal variance. For an effective measure it is one column.
    """
    kind, _, column = measure.name.partition("_")
    if kind not in ("tv", "mean"):
        return run.per_seed(measure.name).to_frame()
    first, last = run.config["evaluation"]["window"]
    curve = run.curve(column).loc[first:last].T
    return curve if kind == "mean" else curve.sub(curve.mean(axis=1), axis=0).abs()


@dataclass(frozen=True)
class _Compared:
    """A printed mean or standard deviation, plain units, beside ours."""

    seeds: int  # with a value
    collapsed: float | None  # share of them
    ours: float
    interval: tuple[float, float] | None  # 95 %, of our mean
    of_survivors: float | None
    on_survivors: bool  # whether the predictive interval is of survivors
    predictive: tuple[float, float] | None  # None for fewer seeds than the printed value is of
    printed: float

    @classmethod
    def of(cls, run: Run, measure: Quantity, gone: pd.Series | None, statistic: str) -> _Compared | None:
        """The comparison of a measure of a run; None without a printed value, or one of ours.

        Args:
            run: with printed values or without.
            measure: a key of summary.json.
            gone: of `collapsed`.
            statistic: `mean` or `std`.
        """
        printed = paper_metrics(run.config).get(measure.name.removesuffix("_sampled"))
        values, n = run.per_seed(measure.name), paper_seeds()
        spread = Spread.over_seeds(values.to_numpy(), bounds=measure.bounds)
        if printed is None or spread is None:
            return None
        alive = pd.Series(True, values.index) if gone is None else ~gone[values.index]
        share = None if gone is None else 1 - alive.mean()
        on_survivors = share is not None and share > MANY
        drawn_from = values.index[alive] if on_survivors else values.index
        # Rows are seeds: of one value, or of one per time step, whose deviation is over both.
        series = values.to_frame() if statistic == "mean" else _by_step(run, measure).loc[values.index]

        def of_seeds(seeds: pd.Index) -> float | None:
            some = series.loc[seeds].to_numpy()
            # One value per seed has a standard deviation from two seeds on.
            if some.size <= (statistic == "std"):
                return None
            return float(some.mean() if statistic == "mean" else some.std(ddof=some.shape[1] == 1))

        predictive = None
        if len(drawn_from) >= n:
            some = series.loc[drawn_from].to_numpy()
            if some.shape[1] > 1:
                predictive = predictive_pooled_std(some, n)
            else:
                predictive = getattr(predictive_intervals(some[:, 0], n), statistic)
        ours = of_seeds(values.index)
        if ours is None:
            return None
        return cls(
            seeds=len(values),
            collapsed=share,
            ours=ours,
            interval=spread.interval if statistic == "mean" else None,
            of_survivors=None if gone is None else of_seeds(values.index[alive]),
            on_survivors=on_survivors,
            predictive=predictive,
            printed=printed[statistic == "std"],
        )

    @property
    def inside(self) -> bool | None:
        """Whether the printed value, which is rounded, is inside the predictive interval."""
        if self.predictive is None:
            return None
        low, high = self.predictive
        return low - HALF_DIGIT <= self.printed <= high + HALF_DIGIT

    def cell(self) -> Cell:
        """As shown."""
        ours, beside = hundredfold(self.ours), hundredfold(self.printed)
        if self.interval is not None:
            ours += f" [{', '.join(map(hundredfold, self.interval))}]"
        if self.on_survivors and self.of_survivors is not None:
            ours += f", {hundredfold(self.of_survivors)}"
        if self.predictive is not None:
            where = "inside" if self.inside else "outside"
            beside += f", {where} {' to '.join(map(hundredfold, self.predictive))}"
        marked = (
            ("†", "of the survivors, and so is the predictive interval") if self.on_survivors else ("", "")
        )
        return Cell(ours, beside, marks=marked[0], tests=marked[1], outside=self.inside is False)

    def record(self) -> dict[str, Any]:
        """For the CSV."""
        low, high = self.interval or (None, None)
        predictive_low, predictive_high = self.predictive or (None, None)
        return {
            "seeds": self.seeds, "collapsed": self.collapsed,
            "ours": self.ours, "interval_low": low, "interval_high": high,
            "of_survivors": self.of_survivors, "printed": self.printed,
            "on_survivors": self.on_survivors,
            "predictive_low": predictive_low, "predictive_high": predictive_high, "inside": self.inside,
        }  # fmt: skip
