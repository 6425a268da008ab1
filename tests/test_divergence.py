"""A seed whose numbers blow up, and the others beside it."""

import json
from pathlib import Path
from typing import Any

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

pytestmark = pytest.mark.usefixtures("undrawn")

STEP, SEED = 4, 1


def result(folder: Path, model: str) -> tuple[pd.DataFrame, dict[str, Any]]:
    composed = compose_config(
        f"model={model}",
        "preset=quick",
        "seeds=3",
        "schedule.time_steps=9",
        "evaluation.window=[2,9]",
        "schedule.phase1_epochs=1",
        "schedule.warm_up_epochs=2",
        "tracking.enabled=false",
        f"outputs_dir={folder}",
    )
    path = run(composed, display=Display(progress_only=True)).path
    return pd.read_csv(path / "metrics.csv"), json.loads((path / "summary.json").read_text())


@pytest.mark.whole
@pytest.mark.parametrize(("model", "method"), [("fairlog", FairLog), ("fairall_I_II", FairAll)])
def test_a_seed_that_blows_up_is_marked_and_leaves_the_others_alone(
    model: str, method: type[Learner], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound, of_sound = result(tmp_path / "sound", model)
    update, updates = method.update, 0

    def poisoned(self: Learner, decided: Decided) -> None:
        nonlocal updates
        updates += 1
        if updates == STEP:
            with torch.no_grad():
                for parameter in self.parameters():
                    parameter[SEED] = torch.nan
        update(self, decided)

    monkeypatch.setattr(method, "update", poisoned)
    mixed, of_mixed = result(tmp_path / "mixed", model)

    others = mixed["seed"] != SEED
    # To rounding: beside a seed that accepts nobody, products of the others are of other sizes.
    pd.testing.assert_frame_equal(mixed[others], sound[others], rtol=1e-3, atol=1e-5)
    for k in (0, 2):
        known = {name: value for name, value in of_sound["per_seed"][k].items() if value is not None}
        own_measures = {name: of_mixed["per_seed"][k][name] for name in known}
        assert own_measures == pytest.approx(known, rel=1e-2, abs=1e-4)
    own = mixed[~others].set_index("time_step")
    pd.testing.assert_frame_equal(own.loc[: STEP - 1], sound[~others].set_index("time_step").loc[: STEP - 1])
    assert own.loc[STEP:].drop(columns="seed").isna().all(axis=None)
    assert own.loc[STEP - 1, "utility"] == own.loc[STEP - 1, "utility"]
    diverged = of_mixed["per_seed"][SEED]
    assert diverged["effective_utility"] is None
    assert diverged["mean_utility"] is None
    two = [of_mixed["per_seed"][k]["mean_utility"] for k in (0, 2)]
    assert of_mixed["aggregate"]["mean_utility"]["mean"] == pytest.approx(sum(two) / 2)
    assert any("1 seed (1) diverged" in line for line in of_mixed["warnings"])
    assert not any("diverged" in line for line in of_sound["warnings"])
