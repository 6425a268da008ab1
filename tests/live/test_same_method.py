"""A ledger that is driven with a run's applicants and labels is that run, to the byte."""

from pathlib import Path

import numpy as np
import pytest
from torch import Tensor

from fairall import Ledger, run
from fairall.config.choices import choices
from fairall.config.compose import compose_config, target_class
from fairall.data.people import Decided, Decisions, People
from fairall.experiment import job, warmed_up
from fairall.measuring.decisions import decision_table
from fairall.models.learner import FixedPolicy
from tests.conftest import run_online
from tests.live.conftest import NAMES, SMALL, at

AS_IN_A_RUN = ["live.horizon=null", "live.held_out=0", "live.explore=0"]
# Words of the run and of the ledger; after a bar those of a world, which the ledger has by its outcomes.
WORDS = [
    *(
        f"model={name}"
        for name in choices()["model"]
        if not issubclass(target_class(compose_config(f"model={name}").model, "model"), FixedPolicy)
        and name != "opt_fair"  # for dataset=synthetic alone
    ),
    *(
        f"model={name} | {world}"
        for name in ("fairlog", "ensemble", "plot")
        for world in ("steps=3", "mean=2")
    ),
    *(f"model=greedy exploration={rule}" for rule in ("none", "stuck", "bounded")),
    "model=greedy exploration=epsilon exploration.decay=true",
    "model=fairlog model.memory=all",
    "model=greedy fairness=demographic_parity",
]


class Recorded:
    """A run of 5 time steps: applicants and decisions of each, and the steps whose labels came then."""

    def __init__(self, *words: str) -> None:
        training = warmed_up(job(compose_config(*words, "evaluation.decisions=true")))
        world, applicants = training.world, list[Tensor]()
        self.due, reveal = list[list[int]](), world.reveal

        def watched(people: People, taken: Decisions) -> list[Decided]:
            applicants.append(people.x)
            due = reveal(people, taken)
            self.due.append([step for one in due for step, x in enumerate(applicants) if x is one.x])
            return due

        world.reveal = watched  # type: ignore[method-assign]
        run_online(training, 5)
        log = decision_table(training)
        log = log.assign(id=log.index.astype(str), time=log["time_step"].map(at), repaid=log["label"])
        self.steps = [part.reset_index() for _, part in log.groupby("time_step")]

    def drives(self, place: Path, begin: int = 0) -> None:
        """Check that a ledger decides as the run from a time step on."""
        ledger, learnt = Ledger(place), 0
        for step, due in [*zip(self.steps, self.due, strict=True)][begin:]:
            decided = ledger.decide(step[[*NAMES, "time"]])
            np.testing.assert_array_equal(decided["propensity"].astype(np.float32), step["propensity"])
            np.testing.assert_array_equal(decided["decision"], step["decision"])
            for number in due:
                known = self.steps[number].query("decision == 1")[["id", "repaid"]]
                if len(known):
                    ledger.outcomes(known.assign(time=step["time"][0]))
            if due:
                learnt += ledger.promote(ledger.learn()["version"])
        assert learnt > 1


@pytest.mark.whole
@pytest.mark.parametrize("words", WORDS)
def test_a_ledger_learns_as_a_run(words: str, tmp_path: Path) -> None:
    quick = ["schedule.warm_up_epochs=2", "schedule.phase1_epochs=2", f"outputs_dir={tmp_path}"]
    own, _, delay = words.partition(" | ")
    both = [*SMALL, *quick, *own.split()]
    Ledger.start(tmp_path / "loans.db", *both, *AS_IN_A_RUN)
    world = f"world=delay world.delay.steps=0 world.delay.{delay}".split()
    Recorded(*both, *world * bool(delay)).drives(tmp_path / "loans.db")


@pytest.mark.whole
@pytest.mark.parametrize("name", ["fairlog", "ensemble", "fairall_I_II"])
def test_a_finished_run_goes_on(name: str, tmp_path: Path) -> None:
    words = [*SMALL, "schedule.phase1_epochs=2", f"outputs_dir={tmp_path}", f"model={name}"]
    done = run(compose_config(*words, "schedule.time_steps=2", "evaluation.window=[1,2]"))
    Ledger.start(tmp_path / "loans.db", str(done.path), *AS_IN_A_RUN)
    Recorded(*words).drives(tmp_path / "loans.db", begin=2)
