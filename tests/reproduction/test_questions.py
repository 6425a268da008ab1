"""The studies of open questions, from made-up runs and simulated logs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from fairall import FairAllError, Result
from fairall.metrics import Spread
from fairall.report import method_label
from fairall.results.result import Group
from reproduction import questions_groups, questions_hidden
from reproduction.plan import QUESTIONS, Planned, plan
from reproduction.questions import ASKED, questions
from reproduction.questions_groups import Groups, groups_items, groups_of
from reproduction.questions_hidden import coverage_table, gamma_of, hidden_items, loss_table
from reproduction.questions_truth import CFU, HELD, TRUE, World, first_table, tool_of, truth_items, world_of
from tests.reproduction.collection import result

pytestmark = pytest.mark.whole

QUICK = ("preset=quick", "seeds=4", "splits=4")
LEVELS = {"nothing": 0.0, "equal rates": 0.01, "equal opportunity": 0.02, "latent": 0.03}


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
    records = first_table(by_world).records.to_dict("records")
    for record in records:
        utility, before = record["measure"] == TRUE.name, record["gap"] > 0
        expected = ("nothing", "equal rates") if utility and before else ("latent", "equal opportunity")
        assert (record["first"], record["next"]) == expected
        assert record["difference"] == pytest.approx(0.01 if utility else -0.01)
    assert len(records) == 9 * 2 + 6  # CFU with Y held has no values of its own where Y is independent
    figure, first, cells = truth_items(planned, planned[0].config)
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
    records = coverage_table(planned).records
    share = records.groupby("gamma")[["1", "1.5", "2", "3"]].mean()
    assert share.loc[3.0, "3"] >= 0.75
    assert share.loc[3.0, "1"] == 0.0
    assert share.loc[1.0, "1"] >= 0.75
    assert share.loc[1.0, "3"] == 1.0


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
    found = {(groups_of(one.run), one.model) for one in planned if one.run is not None}
    settings = {*(Groups(name, 4) for name in ("compas", "adult", "meps", "law")), Groups("compas", 8)}
    assert found == {(groups, model) for groups in settings for model in (*AHEAD, "fairlog")}
    assert len(planned) == len(found)
    figure, *tables = groups_items(planned, planned[0].config)
    assert [figure.key, *(table.key for table in tables)] == [
        "questions_groups_map",
        "questions_groups_differences",
        "questions_groups_rates",
        "questions_groups",
    ]
    assert figure.draw is not None
    panels = [axes for axes in figure.draw().axes if axes.axison]
    assert {axes.get_title() for axes in panels} == {groups.label for groups in settings}
    assert all(len(axes.containers) == 4 for axes in panels)


def test_differences_are_from_equal_rates_by_thresholds_and_bold_where_they_are_sure() -> None:
    planned = of_groups()
    _, differences, *_ = groups_items(planned, planned[0].config)
    assert len(differences.records) == 5 * 3 * 3
    labels = {method_label(model): ahead for model, ahead in AHEAD.items()}
    for record in differences.records.to_dict("records"):
        expected = labels.get(record["method"], 0.0)
        assert record["difference"] == pytest.approx(expected, abs=1e-12)
        assert record["low"] <= record["difference"] <= record["high"]
    for (_, method), row in differences.frame.iterrows():
        assert all(cell.best == (method in labels) for cell in row)
    without = [one for one in planned if one.model != "parity_ensemble"]
    _, differences, *_ = groups_items(without, planned[0].config)
    assert {cell.text for row in differences.frame.to_numpy() for cell in row} == {""}


def test_rates_of_groups_begin_with_the_largest() -> None:
    planned = of_groups()
    rates = groups_items(planned, planned[0].config)[2]
    records = rates.records[rates.records["groups"] == 8]
    assert list(dict.fromkeys(records["people"])) == sorted(SIZES, reverse=True)
    assert len(records) == 8 * 4
    for record in records.to_dict("records"):
        assert record["accepted"] == SIZES.index(record["people"]) / 10
        assert record["group"] == f"g{SIZES.index(record['people'])}"


def test_nothing_is_drawn_without_runs() -> None:
    planned = plan(QUESTIONS["truth"], QUICK, once=False)
    assert not any(item.shown for item in truth_items(planned, planned[0].config))
    with_groups = plan(QUESTIONS["groups"], [*QUICK, "dataset=compas"], once=False)
    assert not any(item.shown for item in groups_items(with_groups, with_groups[0].config))
    of_hidden = plan(QUESTIONS["hidden"], [*QUICK, "dataset=compas", "model=dcem"], once=False)
    figure, table, _ = hidden_items([], of_hidden[0].config)
    assert not figure.shown
    assert not table.shown


def test_a_question_that_nobody_has_is_said() -> None:
    assert set(ASKED) == set(QUESTIONS)
    with pytest.raises(FairAllError, match=r"trut: no such question, did you mean truth\?"):
        questions([], asked=["trut"])
    with pytest.raises(FairAllError, match="say which; there are truth, hidden"):
        questions([], asked=[])
