"""Figures of other methods' authors beside ours, from made-up runs."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fairall import FairAllError, Result
from reproduction.rivals import (
    MEASURES,
    STUDIES,
    compared,
    rivals,
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
    expected = {"every_tenth": 0.4, "every_step": 0.6, "regret": 0.015, "errors": 2 * 0.3 * 64}
    for name, value in expected.items():
        assert MEASURES[name][2](run, reference).tolist() == pytest.approx([value] * 2)
    assert MEASURES["regret"][2](run, reference, until=10).tolist() == pytest.approx([0.02] * 2)


def test_accuracy_follows_from_the_utility() -> None:
    """Of ten people four have label 1; three of those and two others are accepted."""
    run = made_up("dataset=fico", references={"accept_all": {"mean_utility": 0.4 - 0.5}})
    run = replace(run, steps=run.steps.assign(utility=(3 - 0.5 * 5) / 10))
    assert MEASURES["accuracy"][2](run, run, at=3).tolist() == pytest.approx([0.7] * len(run.seeds))


def test_a_printed_mean_is_inside_or_outside() -> None:
    run = earning([0.0] * 20, 10)
    run.per_seed["mean_dpu"] = np.linspace(0.2, 0.4, 10)
    cell: dict[str, Any] = {"measure": "demographic_parity", "replicates": 5, "why": "known"}
    ours, reach = "0.300 [0.252, 0.348]", "0.228 to 0.372"
    for printed, shown in (
        ([0.3, 0.1], ["0.300 (0.100)", ours, reach, "inside", "known"]),
        ([0.5], ["0.500", ours, reach, "outside", "known"]),
    ):
        assert compared(run, run, cell | {"printed": printed}) == shown
    assert compared(run, run, cell) == ["", ours, "", "", "known"]


def test_every_row_has_a_run_and_a_reference_on_the_same_people() -> None:
    runs = rivals.planned([])
    assert len(runs) == 2 * sum(len(study["rows"]) for study in STUDIES.values())
    for one, reference in zip(runs[::2], runs[1::2], strict=True):
        own, other = one.config, reference.config
        assert {cell["measure"] for cell in one.said["cells"]} <= set(MEASURES)
        for key in ("dataset", "schedule", "initial_policy", "seed", "seeds", "cost"):
            assert getattr(own, key) == getattr(other, key)
        assert reference.model.startswith("oracle")
        assert own.hyperparameters == "defaults"


def test_words_pick_rows_or_change_all_commands() -> None:
    assert [one.config.seeds for one in rivals.planned(["dataset=adult", "model=plot", "seeds=3"])] == [3, 3]
    with pytest.raises(FairAllError, match="no run is left by dataset=law"):
        rivals.planned(["dataset=law"])


def test_rows_of_a_method_are_told_apart() -> None:
    runs = [one for one in rivals.planned(["dataset=fico"]) if one.sweep == "rivals_fico"]
    run = made_up("dataset=fico", references={"accept_all": {"mean_utility": -0.1}})
    names = study_table("rivals_fico", [replace(one, run=run) for one in runs]).frame.index.get_level_values(
        0
    )
    assert [*names.unique()] == ["Fair reductions model.slack=0.1", "Fair reductions model.slack=0.01"]
    lacking = study_table("rivals_fico", runs)
    assert not lacking.shown
    assert len(lacking.lacking) == 3
