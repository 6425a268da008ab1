"""The studies of open questions, from made-up runs and simulated logs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from fairall import FairAllError, Result
from fairall.display import PageFigure
from fairall.metrics import Spread
from fairall.report import method_label
from fairall.results.result import Group
from reproduction import questions_groups, questions_hidden
from reproduction.plan import QUESTIONS, Planned, plan
from reproduction.questions import ASKED, questions
from reproduction.questions_amounts import (
    KNOWN,
    Terms,
    amounts_items,
    known_difference,
    paired_table,
    terms_of,
)
from reproduction.questions_amounts import (
    tool_of as tool_of_amounts,
)
from reproduction.questions_groups import ALIKE, Groups, groups_items, groups_of
from reproduction.questions_groups import tool_of as tool_of_groups
from reproduction.questions_hidden import (
    assumed_gamma,
    assumed_table,
    coverage_table,
    gamma_of,
    hidden_items,
    logs_of,
    loss_table,
    officers_table,
)
from reproduction.questions_tables import first_table
from reproduction.questions_truth import CFU, HELD, JUDGED, TRUE, World, tool_of, truth_items, world_of
from tests.models.test_amounts import best, cells
from tests.reproduction.collection import result

pytestmark = pytest.mark.whole

QUICK = ("preset=quick", "seeds=4", "splits=4")
LEVELS = {"no fairness term": 0.0, "equal rates": 0.01, "equal opportunity": 0.02, "latent": 0.03}


def made(word: str, values: Callable[[Result], dict[str, float]], *words: str) -> list[Planned]:
    """Runs of a question with measures of the whole run; seeds differ by 0.001."""
    found = []
    for k, one in enumerate(plan(QUESTIONS[word], [*QUICK, *words], once=False)):
        run = result(*one.words, number=k)
        of = {name: [value + 0.001 * seed for seed in run.seeds] for name, value in values(run).items()}
        found.append(replace(one, run=replace(run, per_seed=run.per_seed.assign(**of))))
    return found


def of_truth(run: Result) -> dict[str, float]:
    """The latent is ahead where truth does not depend on the group, and nothing where it does."""
    world, level = world_of(run), LEVELS[tool_of(run)]
    values = {TRUE.name: -level if world.gap else level, CFU.name: 0.1 + world.gap - level}
    return values | ({HELD.name: 0.1 - level} if world.gap else {})


def test_every_tool_in_every_world_once() -> None:
    runs = [one.run for one in made("truth", of_truth) if one.run is not None]
    found = {(world_of(run), tool_of(run)) for run in runs}
    worlds = {World(gap, bias) for gap in (0.0, 0.2, 0.4) for bias in (0.0, 0.5, 1.0)}
    assert found == {(world, tool) for world in worlds for tool in LEVELS}
    assert len(runs) == len(found)


def test_the_first_tool_is_that_with_the_best_mean_and_is_compared_with_the_next() -> None:
    planned = made("truth", of_truth)
    by_world: dict[World, dict[str, Result]] = {}
    for one in planned:
        assert one.run is not None
        by_world.setdefault(world_of(one.run), {})[tool_of(one.run)] = one.run
    table = first_table(by_world, JUDGED, key="first", title="First", note="")
    records = table.records.to_dict("records")
    for record in records:
        utility, before = record["measure"] == TRUE.name, record["gap"] > 0
        expected = (
            ("no fairness term", "equal rates") if utility and before else ("latent", "equal opportunity")
        )
        assert (record["first"], record["next"]) == expected
        assert record["difference"] == pytest.approx(0.01 if utility else -0.01)
    assert len(records) == 9 * 2 + 6  # CFU with Y held has no values of its own where Y is independent
    figure, first, cells = truth_items(planned)
    assert [figure.key, first.key, cells.key] == [
        "questions_truth_map",
        "questions_truth_first",
        "questions_truth",
    ]
    assert figure.shown
    assert figure.draw is not None
    assert len(figure.draw().axes) == 9


def test_losses_are_differences_from_the_runs_without_hidden_reasons() -> None:
    planned = made("hidden", lambda run: {"mean_utility": 0.3 - 0.1 * gamma_of(run.config)}, "dataset=compas")
    found: dict[questions_hidden.Kind, dict[float, Result]] = {}
    for one in planned:
        assert one.run is not None
        kind = questions_hidden.Kind(one.dataset, one.config.exploration.rule.name, one.model)
        found.setdefault(kind, {})[gamma_of(one.config)] = one.run
    assert {len(runs) for runs in found.values()} == {3}
    table = loss_table(found)
    later = table.records[table.records["measure"] == "mean_utility"]
    assert len(later) == 4 * 2 * 2
    for record in later.to_dict("records"):
        assert record["difference"] == pytest.approx(-0.1 * (record["gamma"] - 1))
    assert questions_hidden.draw_loss(found).axes


def test_intervals_of_logs_hold_the_truth_from_the_true_odds_ratio_on() -> None:
    words = ("dataset=synthetic", "model=ensemble", "exploration=none", "initial_policy.hidden=1.0,3.0")
    planned = plan(QUESTIONS["hidden"], [*QUICK, *words], once=False)
    planned = [one for one in planned if gamma_of(one.config) in (1.0, 3.0)]
    logs = logs_of(planned)
    for table in (coverage_table(logs), officers_table(logs)):
        share = table.records.groupby(["gamma", "assumption"])["held"].mean()
        assert share[3.0, "assumed Γ = 3"] >= 0.75
        assert share[3.0, "assumed Γ = 1"] == 0.0
        assert share[1.0, "assumed Γ = 1"] >= 0.75
        assert share[1.0, "assumed Γ = 3"] == 1.0
    assert share[3.0, "decision makers"] >= 0.75
    assert share[:, "no assumption"].min() == 1.0
    width = (table.records["high"] - table.records["low"]).groupby(table.records["assumption"]).mean()
    assert width["decision makers"] < 0.7 * width["no assumption"]


def test_what_imputation_assumes_is_compared_with_nothing_assumed_without_hidden_reasons() -> None:
    planned = made(
        "hidden", lambda run: {}, "dataset=compas", "model=multiple_imputation", "exploration=none"
    )
    for k, one in enumerate(planned):
        assert one.run is not None
        off = abs(gamma_of(one.config) - assumed_gamma(one.config))
        steps = one.run.steps.assign(utility=0.3 - 0.1 * off)
        planned[k] = replace(one, run=replace(one.run, steps=steps))
    table = assumed_table(planned)
    assert [*table.frame.columns] == ["assumed Γ = 1", "assumed Γ = 2", "assumed Γ = 3"]
    first = table.records[table.records["measure"] == "first"]
    assert len(first) == len(table.records) / 2 == 9
    for record in first.to_dict("records"):
        assert record["difference"] == pytest.approx(-0.1 * abs(record["gamma"] - record["assumed"]))
    names = {one.config.name("model") for one in planned}
    assert names == {"multiple_imputation"}


SIZES = (40, 900, 600, 58, 500, 300, 200, 100)  # people of made-up groups
# Differences from the baseline of the made-up runs; FairLog's change their sign from seed to seed.
AHEAD = {"fairall_I_II": -0.02, "fairlab_I_II": 0.03, "parity_ensemble": 0.0}


def of_groups() -> list[Planned]:
    """Runs with as many groups as the configuration has, the g-th of which is accepted at a rate of g/10."""

    def values(run: Result) -> dict[str, list[float]]:
        ahead = AHEAD.get(run.name("model"))
        apart = [0.01 * (-1) ** seed if ahead is None else ahead for seed in run.seeds]
        return {name: [0.2 + 0.001 * seed + one for seed, one in enumerate(apart)] for name in judged}

    judged = [one.name for one in questions_groups.JUDGED.values()]
    found = []
    for k, one in enumerate(plan(QUESTIONS["groups"], ["preset=quick", "seeds=8", "splits=8"], once=False)):
        run = result(*one.words, number=k)
        sizes = SIZES[: len(one.config.dataset.get("groups") or SIZES[:4])]
        groups = {
            f"g{g}": Group([f"g{g}"], {"train": n - 10, "test": 10}, n, 0.5, None, Spread(g / 10, None, None))
            for g, n in enumerate(sizes)
        }
        groups["all"] = run.groups["all"]
        run = replace(run, per_seed=run.per_seed.assign(**values(run)), groups=groups)
        found.append(replace(one, run=run))
    return found


def test_four_and_eight_groups_have_every_method_and_a_panel() -> None:
    planned = of_groups()
    found = {(groups_of(one.run), tool_of_groups(one.run)) for one in planned if one.run is not None}
    settings = {*(Groups(name, 4) for name in ("compas", "adult", "meps", "law")), Groups("compas", 8)}
    methods = {method_label(model) for model in (*AHEAD, "fairlog")} | {method_label("fairall_I_II") + ALIKE}
    assert found == {(groups, method) for groups in settings for method in methods}
    assert len(planned) == len(found)
    figure, *tables = groups_items(planned)
    assert [figure.key, *(table.key for table in tables)] == [
        "questions_groups_map",
        "questions_groups_differences",
        "questions_groups_rates",
        "questions_groups",
    ]
    assert figure.draw is not None
    panels = [axes for axes in figure.draw().axes if axes.axison]
    assert {axes.get_title() for axes in panels} == {groups.label for groups in settings}
    assert sorted(len(axes.containers) for axes in panels) == [5] * 5


def test_differences_are_from_equal_rates_by_thresholds_and_bold_where_they_are_sure() -> None:
    planned = of_groups()
    _, differences, *_ = groups_items(planned)
    assert len(differences.records) == 5 * 4 * 3
    labels = {method_label(model): ahead for model, ahead in AHEAD.items()}
    labels[method_label("fairall_I_II") + ALIKE] = AHEAD["fairall_I_II"]
    for record in differences.records.to_dict("records"):
        expected = labels.get(record["method"], 0.0)
        assert record["difference"] == pytest.approx(expected, abs=1e-12)
        assert record["low"] <= record["difference"] <= record["high"]
    for (_, method), row in differences.frame.iterrows():
        assert all(cell.best == (method in labels) for cell in row)
    without = [one for one in planned if one.model != "parity_ensemble"]
    _, differences, *_ = groups_items(without)
    assert {cell.text for row in differences.frame.to_numpy() for cell in row} == {""}


def test_rates_of_groups_begin_with_the_largest() -> None:
    planned = of_groups()
    rates = groups_items(planned)[2]
    records = rates.records[rates.records["groups"] == 8]
    assert list(dict.fromkeys(records["people"])) == sorted(SIZES, reverse=True)
    assert len(records) == 8 * 5
    for record in records.to_dict("records"):
        assert record["accepted"] == SIZES.index(record["people"]) / 10
        assert record["group"] == f"g{SIZES.index(record['people'])}"


def of_amounts(run: Result) -> dict[str, float]:
    """Amounts earn 20 more per test person of FICO and 5 more of German Credit, but nothing with Greedy."""
    further = 20.0 if run.name("dataset") == "fico" else 5.0
    gained = run.config.decided_amounts is not None and run.name("model") != "greedy"
    return {"mean_utility": 100.0 + further * gained, "effective_utility": 50.0}


def by_terms(planned: Sequence[Planned]) -> dict[Terms, dict[str, Result]]:
    """Runs by terms and tool, each once."""
    found: dict[Terms, dict[str, Result]] = {}
    for one in planned:
        of_terms = found.setdefault(terms_of(one.config), {})
        assert one.run is not None
        assert tool_of_amounts(one.config) not in of_terms
        of_terms[tool_of_amounts(one.config)] = one.run
    return found


def test_every_method_by_amounts_and_by_one_cost_on_all_terms() -> None:
    found = by_terms(made("amounts", of_amounts))
    methods = ("Greedy", "Ensemble", "Parity ensemble", "FairLog", "UnfairLog")
    both = {f"{method}, {way}" for method in methods for way in ("by amounts", "by one cost")}
    assert {terms: set(runs) for terms, runs in found.items()} == {
        Terms("fico", 0.02): both,
        Terms("credit", 0.2): both | {"FairAll (I+II), by one cost"},
    }
    assert [terms.label for terms in found] == ["FICO scores, interest 2 %", "German Credit, interest 20 %"]


def test_differences_are_by_amounts_less_by_one_cost_of_the_same_method() -> None:
    # The least p of the signed-rank test of eight seeds, 2/256, is below 5 % after correction for six.
    table = paired_table(by_terms(made("amounts", of_amounts, "seeds=8", "splits=8")))
    of_test = table.records[table.records["measure"] == "mean_utility"]
    assert len(of_test) == 2 * 5  # FairAll decides by one cost only
    for record in of_test.to_dict("records"):
        expected = {"fico": 20.0, "credit": 5.0}[record["dataset"]] * (record["method"] != "Greedy")
        assert record["difference"] == pytest.approx(expected)
        assert record["p"] == pytest.approx(5 * 2 / 256 if expected else 1.0)
    bold = table.frame["money per 100 test people ↑"].map(lambda cell: cell.best)
    assert bold.groupby(level=1).agg(["min", "max"]).to_dict("index") == {
        method: {"min": method != "Greedy", "max": method != "Greedy"} for method in set(of_test["method"])
    }
    assert table.frame.iloc[1, 1].text == "2000 [2000, 2000]"


def test_the_known_difference_is_that_of_the_closed_forms() -> None:
    (one,) = plan(["questions_amounts_fico"], [*QUICK, "model=greedy", "dataset.decide_by=cost"], once=False)
    money, p = cells()["worth"], cells()["p"]
    assert known_difference(one) == pytest.approx(best(cells()) - money[p >= 0.84].sum())
    # The cost of the sweep is nearly the best one, so that a better one is not what amounts earn.
    assert money[p >= 0.84].sum() > max(money[p >= c].sum() for c in p) - 0.05


def test_the_figure_has_a_panel_by_terms_and_the_known_difference_on_fico() -> None:
    planned = made("amounts", of_amounts)
    figure, *tables = amounts_items(planned)
    assert [figure.key, *(table.key for table in tables)] == [
        "questions_amounts",
        "questions_amounts_paired",
        "questions_amounts_first",
        "questions_amounts_means",
    ]
    assert isinstance(figure, PageFigure)
    assert figure.draw is not None
    lines = [
        [line.get_xdata()[0] for line in axes.lines if line.get_label() == KNOWN]
        for axes in figure.draw().axes
    ]
    of_fico = next(one for one in planned if one.dataset == "fico")
    assert lines == [[pytest.approx(100 * known_difference(of_fico))], []]
    alone, *_ = amounts_items([one for one in planned if one.dataset == "credit"])
    assert isinstance(alone, PageFigure)
    assert alone.draw is not None
    assert not alone.draw().legends


def test_nothing_is_drawn_without_runs() -> None:
    amounts = plan(QUESTIONS["amounts"], QUICK, once=False)
    assert not any(item.shown for item in amounts_items(amounts))
    planned = plan(QUESTIONS["truth"], QUICK, once=False)
    assert not any(item.shown for item in truth_items(planned))
    with_groups = plan(QUESTIONS["groups"], [*QUICK, "dataset=compas"], once=False)
    assert not any(item.shown for item in groups_items(with_groups))
    figure, table, *_ = hidden_items([])
    assert not figure.shown
    assert not table.shown


def test_a_question_that_nobody_has_is_said() -> None:
    assert set(ASKED) == set(QUESTIONS)
    with pytest.raises(FairAllError, match=r"trut: no such question, did you mean truth\?"):
        questions([], asked=["trut"])
    with pytest.raises(FairAllError, match="say which; there are truth, hidden"):
        questions([], asked=[])
