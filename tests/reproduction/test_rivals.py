"""Figures of other methods' authors beside ours, from made-up runs."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fairall import FairAllError, Result
from reproduction.rivals import (
    MEASURES,
    accuracy,
    compared,
    errors,
    every_tenth,
    regret,
    rivals_plan,
    studies,
    study_table,
)
from tests.made_up import made_up

pytestmark = pytest.mark.whole


def earning(per_step: list[float], seeds: int = 2) -> Result:
    """A run of 20 time steps that earns so much per applicant at each of them."""
    run = made_up(
        "dataset=fico",
        "model=greedy",
        "schedule.time_steps=20",
        "evaluation.window=[10,20]",
        f"seeds={seeds}",
    )
    cumulative = np.cumsum(per_step) / np.arange(1, 21)
    steps = run.steps.assign(
        effective_utility=[np.nan if t == 0 else cumulative[t - 1] for t in run.steps["time_step"]]
    )
    return replace(run, steps=steps)


def test_regrets_are_of_each_time_step() -> None:
    lost = [0.1 if t in (3, 10, 20) else 0.0 for t in range(1, 21)]
    run, reference = earning([0.3 - of for of in lost]), earning([0.3] * 20)
    assert every_tenth(run, reference).tolist() == pytest.approx([0.4, 0.4])
    assert every_tenth(run, reference, steps=1).tolist() == pytest.approx([0.6, 0.6])
    assert regret(run, reference, until=10).tolist() == pytest.approx([0.02, 0.02])
    assert regret(run, reference).tolist() == pytest.approx([0.015, 0.015])
    assert errors(run, reference).tolist() == pytest.approx([2 * 0.3 * 64] * 2)


def test_accuracy_follows_from_the_utility() -> None:
    """Of ten people four have label 1; three of those and two others are accepted."""
    run = made_up("dataset=fico", references={"accept_all": {"mean_utility": 0.4 - 0.5}})
    run = replace(run, steps=run.steps.assign(utility=(3 - 0.5 * 5) / 10))
    assert accuracy(run, run, at=3).tolist() == pytest.approx([0.7] * len(run.seeds))


@pytest.mark.parametrize(("printed", "inside"), [(0.3, True), (0.5, False)])
def test_a_printed_mean_is_inside_or_outside(printed: float, inside: bool) -> None:
    seeds = 10
    run = earning([0.0] * 20, seeds)
    run.per_seed["mean_dpu"] = np.linspace(0.2, 0.4, seeds)
    cell: dict[str, Any] = {"measure": "demographic_parity", "printed": [printed, 0.1], "replicates": 5}
    found = compared(run, run, cell)
    assert found["ours"] == pytest.approx(0.3)
    assert found["inside"] is inside
    assert found["predictive_low"] < found["interval_low"] < 0.3
    assert compared(run, run, {"measure": "demographic_parity"})["inside"] is None


def test_every_row_has_a_run_and_a_reference_on_the_same_people() -> None:
    runs = rivals_plan()
    assert len(runs) == 2 * sum(len(study["rows"]) for study in studies().values())
    for one, reference in zip(runs[::2], runs[1::2], strict=True):
        own, other = one.config, reference.config
        assert {cell["measure"] for cell in one.said["cells"]} <= set(MEASURES)
        for key in ("dataset", "schedule", "initial_policy", "seed", "seeds", "cost"):
            assert getattr(own, key) == getattr(other, key)
        assert reference.model.startswith("oracle")
        assert own.hyperparameters == "defaults"


def test_words_pick_rows_or_change_all_commands() -> None:
    assert [one.config.seeds for one in rivals_plan(["dataset=adult", "model=plot", "seeds=3"])] == [3, 3]
    with pytest.raises(FairAllError, match="no run is left by dataset=law"):
        rivals_plan(["dataset=law"])


def test_rows_of_a_method_are_told_apart() -> None:
    runs = [one for one in rivals_plan(["dataset=fico"]) if one.sweep == "rivals_fico"]
    run = made_up("dataset=fico", references={"accept_all": {"mean_utility": -0.1}})
    names = study_table("rivals_fico", [replace(one, run=run) for one in runs]).frame.index.get_level_values(
        0
    )
    assert [*names.unique()] == ["Fair reductions model.slack=0.1", "Fair reductions model.slack=0.01"]
    lacking = study_table("rivals_fico", runs)
    assert not lacking.shown
    assert len(lacking.lacking) == 3
