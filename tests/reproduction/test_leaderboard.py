"""The leaderboard, from made-up runs."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from omegaconf import DictConfig

from fairall import Config
from fairall.config.schema import FairnessConfig, FairnessRule
from fairall.display import STYLE, PageTable
from fairall.metrics import Spread
from fairall.report import dataset_label, look_of, method_label
from fairall.results.result import spreads
from reproduction.board import (
    BASELINE,
    DPU,
    OPPORTUNITY,
    RIVAL,
    TEST_UTILITY,
    UTILITY,
    WAYS,
    Board,
    board,
    cpu_seconds,
)
from reproduction.leaderboard_figures import board_figures
from reproduction.leaderboard_tables import (
    alike_table,
    care_table,
    method_table,
    short_table,
    standings_table,
    task_table,
    versus_table,
)
from reproduction.plan import LEADERBOARD, Planned, grid
from reproduction.runs import Durations
from tests.made_up import made_up

SEEDS = 10
ANY = made_up()
TASKS = [("credit", "harsh"), ("credit", "lenient"), ("fico", "harsh")]
METHODS = [name for sweep in LEADERBOARD[:1] for name in grid(sweep).model.split(",")]
MEASURED = (UTILITY.name, TEST_UTILITY.name, DPU.name, OPPORTUNITY.name)
ORACLE = 0.4  # utility, effective and on test people


def point(
    method: str, task: tuple[str, str], values: Mapping[str, Sequence[float]] | None, /, **more: Any
) -> Planned:
    """A planned run, finished where `values` has measures by seed."""
    dataset, policy = task
    config = Config(
        model={"name": method},
        dataset={"name": dataset},
        initial_policy={"name": policy},
        fairness=FairnessConfig(rule=FairnessRule.none),
        world={},
        preset=None,
        seeds=SEEDS,
        splits=SEEDS,
    )
    words = (f"model={method}", f"dataset={dataset}", f"initial_policy={policy}")
    run = None
    if values is not None:
        per_seed = pd.DataFrame(values, index=pd.Index(range(SEEDS), name="seed"))
        levels = dict(zip(MEASURED, (ORACLE, ORACLE, 0.3, 0.1), strict=True))
        of = {("oracle", name): Spread(mean, 0.0, None) for name, mean in levels.items()}
        fields = {"per_seed": per_seed, "references": spreads(of)} | more
        run = replace(ANY, **fields)
    return Planned("leaderboard_methods", words, DictConfig({}), config, run)


def measured(utility: float, dpu: float, number: int) -> dict[str, Sequence[float]]:
    """Values near some means; each number has other ones."""
    rng = np.random.default_rng(number)
    return {
        name: (mean + rng.normal(0, 0.002, SEEDS)).tolist()
        for name, mean in zip(MEASURED, (utility, utility / 2, dpu, dpu), strict=True)
    }


def several(methods: Sequence[str], levels: Mapping[str, tuple[float, float]]) -> list[Planned]:
    """Runs of some methods on `TASKS`, with utility and DPU by method, 0.2 and 0.1 by default."""
    return [
        point(name, task, measured(*levels.get(name, (0.2, 0.1)), 100 * k + i))
        for k, task in enumerate(TASKS)
        for i, name in enumerate(methods)
    ]


def cells(table: PageTable, name: str, group: str = "") -> dict[str, str]:
    """Texts of a row by column."""
    (row,) = [
        list(row) for of, *row in table.frame.itertuples() if of[1] == method_label(name) and group in of[0]
    ]
    texts = (one if isinstance(one, str) else one.text for one in row)
    return dict(zip(table.frame.columns, texts, strict=True))


def made(levels: Mapping[str, tuple[float, float]], **more: Any) -> Board:
    return board(several(list(levels), levels), more.get("reasons", {}), more.get("cpu", {}))


def test_every_method_of_the_sweeps_has_a_name_a_colour_and_a_mark() -> None:
    assert len(set(METHODS)) == len(METHODS)
    assert {method_label(name) for name in METHODS}.isdisjoint(METHODS)
    looks = {(look_of(name)["color"], look_of(name)["marker"]) for name in METHODS}
    assert len(looks) == len(METHODS)
    datasets = grid(LEADERBOARD[0]).dataset
    assert datasets == grid(LEADERBOARD[1]).dataset
    assert {dataset_label(name) for name in datasets.split(",")}.isdisjoint(datasets.split(","))


def test_standings_of_methods_that_differ() -> None:
    own = made({BASELINE: (0.2, 0.1), "greedy": (0.3, 0.3), "plot": (0.2, 0.1), "fairlog": (0.1, 0.2)})
    table = standings_table(own)
    order = list(table.frame.index.get_level_values(1))
    assert order[0] == "Greedy"
    assert order[3:] == ["FairLog", "accept everybody", "knows every label", "knows every label, with parity"]
    greedy, plot, fairlog = (cells(table, name) for name in ("greedy", "plot", "fairlog"))
    # By utility 1, 2, 2, 4; by DPU 4, 1, 1, 3. Of the two that are alike each may be the better one.
    assert [row["rank by utility"] for row in (greedy, plot, fairlog)] == ["1", "2 to 3", "4"]
    assert [row["rank by DPU"] for row in (greedy, plot, fairlog)] == ["4", "1 to 2", "3"]
    share = [float(end) for end in re.findall(r"[\d.]+", greedy["share of the oracle's utility ↑"])]
    assert share[1] < share[0] < share[2]
    assert share == pytest.approx([75] * 3, abs=1)  # 0.3 of the oracle's 0.4
    assert float(greedy["share by test utility ↑"].split()[0]) == pytest.approx(37.5, abs=0.5)
    # Two data sets that agree: 0.025^(1/2) = 0.158.
    ends = [
        [float(end) for end in re.findall(r"[\d.]+", greedy[f"P({of} than FairAll (I+II))"])]
        for of in ("earns more", "fairer")
    ]
    assert ends[0] == pytest.approx([100.0, 15.8, 100.0], abs=2)
    assert ends[1] == pytest.approx([0.0, 0.0, 84.2], abs=2)
    assert cells(table, BASELINE)["P(earns more than FairAll (I+II))"] == ""
    assert fairlog["on the front"] == "0"
    assert greedy["on the front"] == greedy["tasks"][0] == "3"
    oracle = cells(table, "oracle")
    assert [oracle[f"share {of} ↑"] for of in ("of the oracle's utility", "by test utility")] == ["100.0"] * 2
    assert [oracle[of] for of in ("DPU ↓", "equal-opportunity gap ↓")] == ["30.0", "10.0"]


def test_rows_that_decide_alike_stand_together() -> None:
    rates = FairnessRule.demographic_parity
    rows: dict[tuple[str, str], dict[str, Any]] = {
        ("leaderboard_methods", "fairlog"): {"model": {"name": "fairlog", "decision": "sample"}},
        ("leaderboard_cut", "fairlog"): {"model": {"name": "fairlog", "decision": "deterministic"}},
        ("leaderboard_parity", "greedy"): {"fairness": FairnessConfig(rates, blind=False)},
        ("leaderboard_methods", "greedy"): {},
        ("leaderboard_methods", "sellf_one_step"): {},
        ("leaderboard_blind", "greedy"): {"fairness": FairnessConfig(rates, blind=True)},
    }
    runs = []
    for k, ((sweep, name), more) in enumerate(rows.items()):
        one = point(name, TASKS[0], measured(0.1 + 0.05 * k, 0.1, k))
        runs.append(replace(one, sweep=sweep, config=replace(one.config, **more)))
    own = board(runs, {}, {})
    assert own.methods == [
        "fairlog",
        "fairlog cut",
        "greedy parity",
        "greedy",
        "sellf_one_step",
        "greedy blind",
    ]
    shown = [tuple(index) for index in alike_table(own).frame.index]
    assert shown[:6] == [
        (WAYS[0], method_label("sellf_one_step")),
        (WAYS[0], "FairLog"),
        (WAYS[1], "Greedy"),
        (WAYS[1], "FairLog, cut"),
        (WAYS[2], "Greedy + parity"),
        (WAYS[3], "Greedy, blind"),
    ]


def test_the_short_table_has_ten_methods_of_the_standings() -> None:
    own = made({name: (0.3 - 0.01 * k, 0.1) for k, name in enumerate(METHODS[:12])})
    short, whole = short_table(own), standings_table(own)
    assert list(short.frame.index) == list(whole.frame.index)[:10]
    shared = [*short.frame.columns]
    pd.testing.assert_frame_equal(short.frame, whole.frame[shared].iloc[:10])


def test_the_table_of_a_method_has_its_rows_of_all_data_sets() -> None:
    own = made({"greedy": (0.3, 0.1), BASELINE: (0.1, 0.1)})
    table = method_table(own, "greedy")
    tasks = [("German Credit", "harsh"), ("German Credit", "lenient"), ("FICO scores", "harsh")]
    assert [tuple(index) for index in table.frame.index] == tasks
    assert not method_table(own, "plot").shown
    fico = task_table(own, "fico").frame.loc[("harsh initial policy", "Greedy")]
    assert [*table.frame.drop(columns="CFU ↓").loc[tasks[-1]]] == [*fico]
    assert {*table.records["method"]} == {"greedy"}


def test_a_missing_run_has_a_row_with_the_reason() -> None:
    runs = several([BASELINE, "greedy", "plot", "adopt"], {})
    long = "model.updates must be at least 1, and is 0, " + 3 * "which makes no update "
    runs[1], runs[2] = (point(name, TASKS[0], None) for name in ("greedy", "plot"))
    runs[3] = point("adopt", TASKS[0], {UTILITY.name: [np.nan] * SEEDS, DPU.name: [np.nan] * SEEDS})
    own = board(runs, {runs[2].key: long}, {})
    rows = task_table(own, "credit").frame.iloc[:, 1].to_dict()
    harsh = "harsh initial policy"
    reasons = {name: rows[harsh, method_label(name)].beside for name in ("greedy", "plot", "adopt")}
    assert reasons == {
        "greedy": "not made",
        "plot": "model.updates must be at least 1, and is 0, …",
        "adopt": "no seed has a value",
    }
    assert rows[harsh, "Greedy"].text == "missing"
    assert all(isinstance(rows["lenient initial policy", method_label(name)], str) for name in reasons)
    standings = standings_table(own)
    assert [cells(standings, name)["tasks"] for name in (BASELINE, *reasons)] == ["3 of 3", *["2 of 3"] * 3]


def test_every_method_on_every_data_set_has_a_row() -> None:
    runs = [point(name, task, None) for task in TASKS for name in METHODS]
    runs[0] = several([BASELINE], {})[0]
    own = board(runs, {}, {})
    for dataset, policies in (("credit", ("harsh", "lenient")), ("fico", ("harsh",))):
        rows = list(task_table(own, dataset).frame.index)
        wanted = {(f"{one} initial policy", method_label(name)) for one in policies for name in METHODS}
        assert wanted <= set(rows)
        assert len(rows) == len(set(rows))
    assert standings_table(own).frame.index[0][1] == "FairAll (I+II)"
    assert [item.key for item in board_figures(own) if item.shown] == [
        "leaderboard_aggregates",
        "leaderboard_plane",
    ]
    nothing = board([point(name, TASKS[0], None) for name in METHODS], {}, {})
    assert not standings_table(nothing).shown
    assert not any(item.shown for item in board_figures(nothing))


def test_regret_is_what_the_oracle_earns_more() -> None:
    table = task_table(made({"greedy": (0.3, 0.1), BASELINE: (0.1, 0.1)}), "fico")
    assert cells(table, "greedy")["regret ↓"].startswith("10.")
    assert cells(table, BASELINE)["regret ↓"].startswith("30.")
    assert cells(table, "greedy")["test utility ↑"].startswith("15.")
    oracle = cells(table, "oracle")
    assert [oracle[column] for column in table.frame.columns] == [
        "",
        "40.0",
        "0.0",
        "40.0",
        "",
        "30.0",
        "10.0",
        *[""] * 6,
    ]
    greedy = table.records[table.records["method"] == "greedy"].set_index(["measure", "seed"])["value"]
    assert greedy["regret", 3] == pytest.approx(ORACLE - greedy[UTILITY.name, 3])


def test_a_task_without_an_oracle_has_no_share() -> None:
    runs = several([BASELINE, "greedy"], {})
    none = spreads({("accept_all", "regret"): None})
    runs[:2] = [point(one.model, TASKS[0], measured(0.2, 0.1, 0), references=none) for one in runs[:2]]
    own = board(runs, {}, {})
    assert [bool(task.shares()) for task in own.tasks] == [False, True, True]
    table = task_table(own, "credit")
    assert cells(table, "greedy", "harsh")["regret ↓"] == ""
    assert cells(table, "greedy", "lenient")["regret ↓"] != ""


def test_two_methods_side_by_side() -> None:
    runs = several([BASELINE, RIVAL], {BASELINE: (0.3, 0.1)})
    # On the last task the rival earns more, and nobody can tell whose DPU is less.
    runs[-1] = point(RIVAL, TASKS[-1], measured(0.5, 0.1, 77))
    table = versus_table(board(runs, {}, {}), BASELINE, RIVAL)
    won = list(table.frame.loc[("all tasks", "significantly better")])
    assert won == ["2 of 3", "1 of 3", "", "", "0 of 3", "0 of 3", "", ""]
    bold = [[one.best for one in row[:3]] for row in table.frame.iloc[:3].to_numpy()]
    assert bold == [[True, False, False], [True, False, False], [False, True, False]]
    # Ten of ten seeds: 2/1024, times three tasks.
    assert table.frame.iloc[0, 3].text == "0.0059"
    first = table.records.iloc[0]
    assert first["low"] < first["difference"] < first["high"]
    assert first["difference"] == pytest.approx(first[BASELINE] - first[RIVAL])
    assert table.frame.iloc[0, 2].text.startswith("10.")
    assert not versus_table(made({BASELINE: (0.2, 0.1)}), BASELINE, RIVAL).shown


def test_a_warning_is_said_once_with_its_methods() -> None:
    runs = several([BASELINE, "greedy", "plot"], {})
    collapsed = "2 seeds (0, 4) collapsed to accepting nobody"
    for k, warnings in enumerate((["few people"], ["few people", collapsed], ["few people"])):
        runs[k] = point(runs[k].model, TASKS[0], measured(0.2, 0.1, k), warnings=warnings)
    for k in (3, 4, 5, 6, 7):
        runs[k] = point(runs[k].model, TASKS[k // 3], None)
    reasons = {one.key: "law.csv: not found" for one in runs[3:6]}
    found = [tuple(row) for row in care_table(board(runs, reasons, {})).records.to_numpy()]
    assert found == [
        ("German Credit, harsh", "every method", "few people"),
        ("German Credit, harsh", "Greedy", collapsed),
        ("German Credit, lenient", "every method", "missing: law.csv: not found"),
        ("FICO scores, harsh", "FairAll (I+II), Greedy", "missing: not made"),
    ]


def test_processor_time_is_of_the_last_run_of_a_command(tmp_path: Path) -> None:
    runs = several([BASELINE, "greedy"], {})
    path = tmp_path / "reproduction.csv"
    measurements = Durations(path, [])
    for one, cpu in ((runs[0], 50.0), (runs[0], 60.0), (runs[2], 40.0)):
        measurements.add(one, 99.0, cpu)
    # As typed with another folder, which changes nothing.
    path.write_text(
        path.read_text().replace("policy=lenient", "policy=lenient outputs_dir=/x tracking.enabled=false")
    )
    own = board(runs, {}, cpu_seconds(path))
    table = task_table(own, "credit")
    assert cells(table, BASELINE, "harsh")["CPU seconds"] == "60"
    assert cells(table, BASELINE, "lenient")["CPU seconds"] == "40"
    assert cells(table, "greedy", "harsh")["CPU seconds"] == ""
    assert cells(standings_table(own), BASELINE)["CPU seconds a run"] == "50"


@pytest.mark.whole
def test_figures_of_all_methods() -> None:
    rng = np.random.default_rng(0)
    own = made({name: (rng.uniform(0, 0.4), rng.uniform(0.02, 0.3)) for name in METHODS})
    names, n = {*map(method_label, METHODS)}, len(METHODS)
    with mpl.rc_context(STYLE):
        aggregates, planes, pairs = (item.draw() for item in board_figures(own) if item.draw is not None)
        for figure in (aggregates, planes, pairs):
            FigureCanvasAgg(figure).draw()
    assert {label.get_text() for label in aggregates.axes[0].get_yticklabels()} == names
    (legend,) = planes.legends
    assert {text.get_text() for text in legend.get_texts()} == {*names, "knows every label", "Pareto front"}
    assert [len(axes.containers) for axes in planes.axes] == [n] * len(TASKS)
    assert [len(axes.texts) for axes in pairs.axes] == [n * (n - 1)] * 2
    # The method of the greatest rank is in the first row of the matrix and on top of the aggregates.
    best = method_label(own.standings[0].method)
    assert pairs.axes[0].get_yticklabels()[0].get_text() == best
    assert aggregates.axes[0].get_yticklabels()[-1].get_text() == best


@pytest.mark.parametrize(("earned", "shown"), [(-0.3, False), (0.0, True)])
def test_a_reference_that_loses_is_not_in_the_plane(earned: float, shown: bool) -> None:
    levels = {("accept_all", UTILITY.name): earned, ("accept_all", DPU.name): 0.0}
    references = spreads({key: Spread(level, 0.0, None) for key, level in levels.items()})
    own = board([point("greedy", TASKS[0], measured(0.2, 0.1, 0), references=references)], {}, {})
    with mpl.rc_context(STYLE):
        planes = next(item.draw() for item in board_figures(own) if item.key.endswith("plane") and item.draw)
    (legend,) = planes.legends
    assert ("accept everybody" in {text.get_text() for text in legend.get_texts()}) is shown
