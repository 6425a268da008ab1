"""The studies of open questions, from made-up runs and simulated logs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from fairall import FairAllError, Result
from reproduction import questions_hidden
from reproduction.plan import QUESTIONS, Planned, plan
from reproduction.questions import ASKED, questions
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


def test_nothing_is_drawn_without_runs() -> None:
    planned = plan(QUESTIONS["truth"], QUICK, once=False)
    assert not any(item.shown for item in truth_items(planned, planned[0].config))
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
