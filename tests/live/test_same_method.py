"""A ledger that is driven with a run's applicants and labels is that run, to the byte."""

from pathlib import Path

import numpy as np
import pytest

from fairall import Ledger, run
from fairall.config.choices import choices
from fairall.config.compose import compose_config, target_class
from fairall.models.learner import FixedPolicy
from tests.live.conftest import AS_IN_A_RUN, SMALL, begun, outcomes_of, simulated

METHODS = [
    name
    for name in choices()["model"]
    if not issubclass(target_class(compose_config(f"model={name}").model, "model"), FixedPolicy)
    and name != "opt_fair"  # for dataset=synthetic alone
]
QUICK = {
    "fairall_I_II": ["schedule.phase1_epochs=2"],
    "fairlab_I_II": ["schedule.phase1_epochs=2"],
}


def driven(place: Path, words: list[str], *of_run: str) -> None:
    """Check that a ledger of some words decides as the run with further ones."""
    made = simulated(*words, *of_run)
    ledger = begun(place, *words, *AS_IN_A_RUN)
    learnt = 0
    for step, table in enumerate(made.tables):
        decided = ledger.decide(table)
        np.testing.assert_array_equal(decided["propensity"].to_numpy(np.float32), made.propensities[step])
        np.testing.assert_array_equal(decided["decision"] == 1, made.accepted[step])
        for earlier in made.due[step]:
            given = outcomes_of(made.tables[earlier], made.accepted[earlier], made.labels[earlier], step)
            if len(given):
                ledger.outcomes(given)
        if made.due[step]:
            version = Ledger(place).learn()["version"]
            assert version is not None
            ledger.promote(version)
            learnt += 1
    assert learnt > 2
    assert len(np.unique(np.concatenate(made.propensities))) > 1


@pytest.mark.parametrize("name", METHODS)
def test_every_method_learns_as_in_a_run(name: str, tmp_path: Path) -> None:
    driven(tmp_path / "loans.db", [f"model={name}", "schedule.warm_up_epochs=4", *QUICK.get(name, [])])


@pytest.mark.parametrize("delay", ["world.delay.steps=3", "world.delay.mean=2"])
@pytest.mark.parametrize("name", ["fairlog", "ensemble", "plot"])
def test_labels_that_come_late(name: str, delay: str, tmp_path: Path) -> None:
    words = [f"model={name}", "schedule.warm_up_epochs=4"]
    of_run = ["world=delay", "world.delay.steps=0", delay]
    driven(tmp_path / "loans.db", words, *of_run)


@pytest.mark.parametrize("rule", ["none", "stuck", "epsilon", "bounded"])
def test_exploration(rule: str, tmp_path: Path) -> None:
    decay = ["exploration.decay=true"] if rule == "epsilon" else []
    driven(tmp_path / "loans.db", ["model=greedy", f"exploration={rule}", *decay])


@pytest.mark.parametrize(
    "own", ["model=fairlog model.memory=all", "model=greedy fairness=demographic_parity"]
)
def test_memories(own: str, tmp_path: Path) -> None:
    driven(tmp_path / "loans.db", own.split())


@pytest.mark.parametrize("name", ["fairlog", "ensemble", "fairall_I_II"])
def test_a_finished_run_goes_on(name: str, tmp_path: Path) -> None:
    words = [*SMALL, f"model={name}", "schedule.warm_up_epochs=4", *QUICK.get(name, [])]
    whole = simulated(*words)
    done = run(
        compose_config(*words, "schedule.time_steps=3", "evaluation.window=[1,3]", f"outputs_dir={tmp_path}")
    )
    ledger = Ledger.start(tmp_path / "loans.db", str(done.path), *AS_IN_A_RUN)
    for step in range(3, len(whole.tables)):
        decided = ledger.decide(whole.tables[step])
        np.testing.assert_array_equal(decided["propensity"].to_numpy(np.float32), whole.propensities[step])
        ledger.outcomes(outcomes_of(whole.tables[step], whole.accepted[step], whole.labels[step], step))
        ledger.promote(ledger.learn()["version"])
