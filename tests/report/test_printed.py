"""Printed values beside predictive intervals of ten seeds, recomputed from metrics.csv and summary.json."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fairall.results.finished import collect, read_run

from fairall.metrics import Spread
from fairall.report import printed
from fairall.report.claims import in_words
from fairall.report.plan import with_runs
from fairall.report.statistics import predictive_intervals, predictive_pooled_std
from fairall.results.table import Table, latex, markdown
from fairall.storage.run_folder import RunFolder
from tests.report.conftest import MakeRun, planned

UTILITY = "effective_utility"
Tables = Callable[..., tuple[Table, Table]]


def collapse(path: Path, seeds: list[int], since: int = 101) -> Path:
    """Let seeds of a run accept nobody from a time step on."""
    run, table = RunFolder(path), pd.read_csv(path / "metrics.csv")
    table.loc[table["seed"].isin(seeds) & (table["time_step"] >= since), "acceptance_rate"] = 0.0
    run.write_table(table)
    run.finish()
    return path


def per_seed(path: Path, measure: str = UTILITY) -> np.ndarray:
    return np.array([seed[measure] for seed in json.loads((path / "summary.json").read_text())["per_seed"]])


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    """Tables of means and standard deviations of the runs that are there."""

    def made(seeds: int = 50, *words: str) -> tuple[Table, Table]:
        needed = planned("harsh", "dataset=credit", f"seeds={seeds}", *words)
        found = with_runs(needed, collect(tmp_path / "outputs" / "runs").runs)
        means, deviations = printed.printed_tables(found, "harsh", "corrected")
        return means, deviations

    return made


def record(table: Table, model: str = "fairlog", measure: str = UTILITY) -> dict[str, object]:
    (one,) = (one for one in table.records if (one["model"], one["measure"]) == (model, measure))
    return dict(one)


def test_values_are_those_of_the_run(make_run: MakeRun, tables: Tables) -> None:
    # The paper's is 19.4 (1.0); ours is near 19.4, with a deviation of 1.
    path = make_run("model=fairlog", "dataset=credit", "seeds=50", shift=0.194, number=1)
    make_run("model=unfairlog", "dataset=credit", "seeds=50", shift=0.4, number=2)
    means, deviations = tables()
    values = per_seed(path)
    predictive = predictive_intervals(values, 10)
    for table, statistic, shown in ((means, "mean", predictive.mean), (deviations, "std", predictive.std)):
        one = record(table)
        ours = values.mean() if statistic == "mean" else values.std(ddof=1)
        assert one["ours"] == one["of_survivors"] == pytest.approx(ours)
        assert one["printed"] == pytest.approx(0.194 if statistic == "mean" else 0.01)
        assert (one["predictive_low"], one["predictive_high"]) == pytest.approx(shown)
        assert (one["seeds"], one["collapsed"], one["on_survivors"]) == (50, 0.0, False)
        assert one["inside"] is True
        # Of UnfairLog no temporal measures are printed.
        assert [bool(cell.ours) for cell in table.rows[1].cells] == [True] * 3 + [False] * 4
        assert len(table.records) == 6 + 2
        assert table.rows[0].cells[0].ours == "0 of 50"
        assert latex(table).isascii()
    spread = Spread.over_seeds(values)
    assert spread is not None
    assert spread.interval is not None
    one = record(means)
    assert (one["interval_low"], one["interval_high"]) == pytest.approx(spread.interval)
    assert record(deviations)["interval_low"] is None
    cell = means.rows[0].cells[1]
    low_end, high_end, first, last = (f"{100 * end:.1f}" for end in (*spread.interval, *predictive.mean))
    assert cell.ours == f"{100 * values.mean():.1f} [{low_end}, {high_end}]"
    assert cell.beside == f"19.4, inside {first} to {last}"
    assert not cell.outside
    # UnfairLog's is 20.4, ours near 40.
    assert record(means, "unfairlog")["inside"] is False
    assert means.rows[1].cells[1].outside
    assert ", outside " in means.rows[1].cells[1].beside
    curve = read_run(path).curve("utility_sampled").loc[125:200]
    over_both = {"mean_utility_sampled": curve, "tv_utility_sampled": (curve - curve.mean()).abs()}
    for measure, values_by_step in over_both.items():
        pooled = record(deviations, measure=measure)
        assert pooled["ours"] == pytest.approx(values_by_step.to_numpy().std())
        low, high = predictive_pooled_std(values_by_step.T.to_numpy(), 10)
        assert (pooled["predictive_low"], pooled["predictive_high"]) == pytest.approx((low, high))
        assert low < values_by_step.to_numpy().std() < high
    sampled = record(means, measure="mean_utility_sampled")
    assert sampled["ours"] == pytest.approx(per_seed(path, "mean_utility_sampled").mean())


@pytest.mark.parametrize(("gone", "judged_on"), [(5, "all"), (6, "survivors"), (42, "nothing")])
def test_more_than_a_tenth_collapsed_is_judged_on_survivors(
    gone: int, judged_on: str, make_run: MakeRun, tables: Tables
) -> None:
    path = make_run("model=fairlog", "dataset=credit", "seeds=50", shift=0.194)
    collapse(path, list(range(gone)))
    values = per_seed(path)
    for table, statistic in zip(tables(), ("mean", "std"), strict=True):
        one, cell = record(table), table.rows[0].cells[1]
        assert one["collapsed"] == pytest.approx(gone / 50)
        survivors = values[gone:].mean() if statistic == "mean" else values[gone:].std(ddof=1)
        assert one["of_survivors"] == pytest.approx(survivors)
        assert cell.ours.endswith(f", {100 * survivors:.1f}") == (judged_on != "all")
        assert cell.marks == ("" if judged_on == "all" else "†")
        assert table.rows[0].cells[0].ours == f"{gone} of 50"
        if judged_on == "nothing":
            assert (one["inside"], one["predictive_low"]) == (None, None)
            assert cell.beside == ("19.4" if statistic == "mean" else "1.0")
        else:
            drawn_from = values if judged_on == "all" else values[gone:]
            low, high = getattr(predictive_intervals(drawn_from, 10), statistic)
            assert (one["predictive_low"], one["predictive_high"]) == pytest.approx((low, high))
        assert ("† *" in markdown(table)) == (judged_on != "all")


def test_a_single_survivor_has_a_mean_and_no_deviation(make_run: MakeRun, tables: Tables) -> None:
    path = collapse(make_run("model=fairlog", "dataset=credit", "seeds=50", shift=0.194), list(range(49)))
    means, deviations = tables()
    assert record(means)["of_survivors"] == pytest.approx(per_seed(path)[49])
    assert record(deviations)["of_survivors"] is None
    assert not any("nan" in cell.ours for table in (means, deviations) for cell in table.rows[0].cells)


def test_a_single_seed_that_has_not_diverged_has_a_mean_and_no_deviation(
    make_run: MakeRun, tables: Tables
) -> None:
    path = make_run("model=fairlog", "dataset=credit", "seeds=50", shift=0.194)
    folder, summary = RunFolder(path), RunFolder(path).read_summary()
    for seed in summary["per_seed"][1:]:
        seed[UTILITY] = None
    folder.write_summary(summary)
    folder.finish()
    means, deviations = tables()
    assert record(means)["seeds"] == 1
    assert [one["measure"] for one in deviations.records].count(UTILITY) == 0


def test_a_seed_that_accepts_again_has_not_collapsed(make_run: MakeRun) -> None:
    path = make_run("model=fairlog", "dataset=credit", "seeds=10")
    gone = printed.collapsed(read_run(collapse(path, [3], since=102)))
    assert gone is not None
    assert not gone.any()
    gone = printed.collapsed(read_run(collapse(path, [3, 7], since=101)))
    assert gone is not None
    assert list(gone.index[gone]) == [3, 7]
    RunFolder(path).write_table(pd.read_csv(path / "metrics.csv").drop(columns="acceptance_rate"))
    RunFolder(path).finish()
    assert printed.collapsed(read_run(path)) is None


def test_rounding_of_printed_values_is_allowed_for() -> None:
    def inside(value: float) -> bool | None:
        shared = {"seeds": 50, "collapsed": 0.0, "ours": 0.2, "interval": None, "of_survivors": 0.2}
        return printed._Compared(**shared, on_survivors=False, predictive=(0.19, 0.21), printed=value).inside  # type: ignore[arg-type]

    assert [inside(value) for value in (0.1894, 0.1896, 0.2104, 0.2106)] == [False, True, True, False]


def test_fewer_seeds_than_ten_say_nothing(make_run: MakeRun, tables: Tables) -> None:
    for seeds in (1, 9):
        make_run("model=fairlog", "dataset=credit", f"seeds={seeds}", number=seeds)
        for table in tables(seeds):
            assert not table.rows
            assert not table.records
            assert len(in_words("harsh", [], [table], planned=1, there=1)) == 1


def test_what_is_outside_is_named_the_farthest_first(make_run: MakeRun, tables: Tables) -> None:
    make_run("model=fairlog", "dataset=credit", "seeds=50", shift=0.5, number=1)
    collapse(
        make_run("model=unfairlog", "dataset=credit", "seeds=50", shift=0.204, number=2), [0, 1, 2, 3, 4, 5]
    )
    both = tables()
    paragraph, line = in_words("harsh", [], both, planned=15, there=2)
    found = {
        statistic: [one["inside"] for one in table.records]
        for table, statistic in zip(both, ("mean", "std"), strict=True)
    }
    assert (
        "Of 8 printed means (harsh initial policy, protocol corrected), "
        f"{sum(found['mean'])} lie inside the 95 % predictive interval of a mean of 10 seeds of ours, and "
        f"{sum(found['std'])} of the 8 printed standard deviations inside theirs; 2 of the 8 are judged on "
        "survivors."
    ) in paragraph
    means, deviations = line.split(" Standard deviations: ")
    assert means.startswith(
        "Printed values outside the predictive interval (harsh initial policy, protocol corrected)"
    )
    for named, statistic in ((means, "mean"), (deviations, "std")):
        assert named.count(", not ") == found[statistic].count(False) > 0
    # An effective utility of 50 where 19.4 is printed, within some 2.
    assert "FairLog on German Credit, effective utility (19.4, not 4" in means
    assert "†)" in means
    # TV are far smaller numbers than means, and as far away in widths of their intervals.
    widths = {}
    for one in both[0].records:
        if not one["inside"]:
            low, high, value = one["predictive_low"], one["predictive_high"], one["printed"]
            widths[f"({100 * value:.1f}, not {100 * low:.1f}"] = max(low - value, value - high) / (high - low)
    assert sorted(widths, key=means.index) == sorted(widths, key=lambda name: -widths[name])
