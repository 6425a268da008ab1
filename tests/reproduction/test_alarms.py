"""The study of alarms over time, from made-up logs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairall.evaluate import evaluate
from fairall.evaluate.analyses.monitor import watch
from fairall.measuring import LARGEST_GAP
from reproduction.alarms import alarm_table, watched
from reproduction.logs import DECISIONS
from reproduction.plan import plan, with_runs
from tests.made_up import made_up

pytestmark = pytest.mark.whole

STEPS = 200


def log_of(seed: int, gap: float, steps: int = STEPS) -> pd.DataFrame:
    """The decisions of a seed whose policy has a gap between its groups from the first time step on."""
    draw = np.random.default_rng(seed)
    n = 64 * steps
    sex = draw.choice(["f", "m"], n)
    propensity = np.where(sex == "m", 0.4 + gap, 0.4)
    accepted = draw.random(n) < propensity
    label = np.where(accepted, draw.random(n) < 0.6, np.nan)
    return pd.DataFrame({"seed": seed, "time_step": np.repeat(np.arange(steps) + 1, 64)}).assign(
        score=draw.normal(size=n), sex=sex, propensity=propensity, decision=accepted.astype(int), label=label
    )


def test_a_gap_is_found_none_is_excluded_and_intervals_hold_the_truth() -> None:
    large, none = watched(log_of(0, 0.3)), watched(log_of(1, 0.0))
    assert large.found < 20
    assert (large.excluded, large.held) == (np.inf, True)
    assert (none.found, none.held) == (np.inf, True)
    assert none.excluded < STEPS


def test_the_findings_are_those_of_an_evaluation() -> None:
    log = log_of(0, 0.12, steps=40)
    columns = {"decision": "decision", "label": "label", "sensitive": "sex", "propensity": "propensity"}
    one = evaluate(None, log, **columns, time="time_step", drop=["seed"])
    monitor, name = watch(one), "gap of acceptance rates"
    found = watched(log)
    assert found.found == monitor.alarms[name] < 40
    below = monitor.moments[monitor.courses[name][2] <= LARGEST_GAP]
    assert found.excluded == (below[0] if len(below) else np.inf)


def test_intervals_that_do_not_hold_the_truth_are_noticed() -> None:
    log = log_of(0, 0.3)
    claimed = log.assign(propensity=np.where(log["sex"] == "m", 0.45, 0.4))
    assert not watched(claimed).held


def test_the_table_counts_seeds_and_leaves_out_those_that_have_diverged(tmp_path: Path) -> None:
    (planned,) = plan(["alarms"], ["model=unfairlog", "dataset=fico"])
    run = replace(made_up(*planned.words), path=tmp_path)
    diverged = log_of(3, 0.3).assign(propensity=np.nan)
    pd.concat([*(log_of(seed, gap) for seed, gap in enumerate((0.3, 0.3, 0.0))), diverged]).to_csv(
        tmp_path / DECISIONS, index=False
    )
    table = alarm_table(with_runs([planned], [run]))
    (cells,) = table.frame.to_numpy().tolist()
    found = table.records.set_index("seed") if "seed" in table.records else table.records
    assert len(found) == 3
    assert cells[0] == f"2, step {sorted(found['found'])[1]:g}"
    assert cells[1:] == ["1", "3 of 3"]
