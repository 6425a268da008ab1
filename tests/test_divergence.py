"""A seed whose numbers blow up, and the others beside it."""

import itertools
from pathlib import Path

import pandas as pd
import pytest
import torch

from fairall.config.compose import compose_config
from fairall.data.people import Decided
from fairall.display.progress import Display
from fairall.experiment import run
from fairall.models.fairall import FairAll
from fairall.models.fairlog import FairLog
from fairall.models.learner import Learner
from fairall.results.result import Result

pytestmark = pytest.mark.usefixtures("undrawn")

STEP, SEED = 4, 1


WORDS = """
    preset=quick seeds=3 schedule.time_steps=9 evaluation.window=[2,9] schedule.phase1_epochs=1
    schedule.warm_up_epochs=2 tracking.enabled=false
""".split()


def result(folder: Path, model: str) -> Result:
    composed = compose_config(f"model={model}", *WORDS, f"outputs_dir={folder}")
    return run(composed, display=Display(progress_only=True))


@pytest.mark.whole
@pytest.mark.parametrize(("model", "method"), [("fairlog", FairLog), ("fairall_I_II", FairAll)])
def test_a_seed_that_blows_up_is_marked_and_leaves_the_others_alone(
    model: str, method: type[Learner], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = result(tmp_path / "sound", model)
    update, updates = method.update, itertools.count(1)

    def poisoned(self: Learner, decided: Decided) -> None:
        if next(updates) == STEP:
            with torch.no_grad():
                for parameter in self.parameters():
                    parameter[SEED] = torch.nan
        update(self, decided)

    monkeypatch.setattr(method, "update", poisoned)
    mixed = result(tmp_path / "mixed", model)

    others, first = mixed.steps["seed"] != SEED, mixed.steps["time_step"] < STEP
    # To rounding: beside a seed that accepts nobody, products of the others are of other sizes.
    pd.testing.assert_frame_equal(mixed.steps[others], sound.steps[others], rtol=1e-3, atol=1e-5)
    pd.testing.assert_frame_equal(mixed.per_seed.drop(SEED), sound.per_seed.drop(SEED), rtol=1e-2, atol=1e-4)
    before, after = (mixed.steps[~others & of] for of in (first, ~first))
    pd.testing.assert_frame_equal(before, sound.steps[~others & first])
    assert after.drop(columns=["seed", "time_step"]).isna().all(axis=None)
    assert before["utility"].notna().all()
    names = ["effective_utility", "mean_utility"]
    assert mixed.per_seed.loc[SEED, names].isna().all()
    two = mixed.per_seed.drop(SEED)["mean_utility"]
    assert mixed.aggregate.loc["mean_utility", "mean"] == pytest.approx(two.mean())
    assert any("1 seed (1) diverged" in line for line in mixed.warnings)
    assert not any("diverged" in line for line in sound.warnings)
