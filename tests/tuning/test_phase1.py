"""Phase I as a trial, and what hyperparameters are selected by."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nan

from fairall.config.compose import compose_config
from fairall.data.people import People
from fairall.data.prepared import PreparedData
from fairall.experiment import job
from fairall.measuring.latent_quality import stacked
from fairall.measuring.selection import (
    SELECTION,
    classifier_logit,
    latent_selection_metrics,
    selection_metrics,
)
from fairall.models.learner import Setting
from fairall.models.phase1 import train_phase1
from fairall.models.vae import ConditionalVAE
from fairall.results.runs import load_result
from fairall.runtime.randomness import SeedStreams
from fairall.tuning.trial import outcome_of, phase1_measures
from tests.conftest import ComposeConfig, no_checkpoint

WORDS = """
    sweeps=phase1 preset=quick schedule.phase1_epochs=2 schedule.time_steps=2 evaluation.window=[0,2]
""".split()
LOSS = "phase1_validation_loss"


@pytest.mark.whole
def test_a_phase1_trial_shares_the_cache_and_sees_no_test_people(
    tmp_path: Path, credit: PreparedData
) -> None:
    unknown: dict[str, Any] = {
        role: People(people.x * nan if role == "test" else people.x, people.s, people.label * nan)
        for role, people in vars(credit).items()
        if isinstance(people, People)
    }
    words = [*WORDS, f"outputs_dir={tmp_path}", "tracking.enabled=false"]
    composed = compose_config(*words, "objective=mean_utility")
    task = job(composed, lambda source, scaler: replace(credit, **unknown))
    measures, (cached,) = phase1_measures(task), (tmp_path / "cache" / "phase1").glob("*.pt")
    phase1 = task.learner.phase1_task(credit, task.config.model.phase1)
    vae, _ = train_phase1(phase1, progress=lambda **_: None, checkpoint=no_checkpoint())
    again = latent_selection_metrics(vae, vae.encode, credit.train, credit.validation, [0, 1])
    # The frame that groups are matched in changes what z is called, not what comes back.
    assert measures["reconstruction_loss"] == pytest.approx(again["reconstruction_loss"], rel=0.02)

    # A trial, and a whole run with the same Phase I, find it.
    composed.objective = LOSS
    expected = pytest.approx([*map(float, measures[LOSS])])
    assert outcome_of(composed, "") == {"seeds": {LOSS: expected}}
    outcome = outcome_of(compose_config(*words, "objective=mean_utility", "sweep.trial=run"), "")
    whole = load_result(outcome["run"].rpartition("/")[2], outputs_dir=tmp_path).per_seed
    assert [*whole[LOSS]] == expected
    assert [*cached.parent.glob("*.pt")] == [cached]
    assert (whole[SELECTION] >= 0).all(axis=None)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["model.latent_size=0"], "model.latent_size=0 is not possible: it must be at least 1"),
        (["model=fairall_II"], "sweep.trial=phase1: fairall_II has no Phase I"),
        (
            ["model=unfairlog", "model.learning_rate=1e30", "sweep.trial=run", "objective=mean_utility"],
            "mean_utility is not finite in some seeds",
        ),
    ],
)
def test_a_trial_that_cannot_be_says_why(words: list[str], reason: str, tmp_path: Path) -> None:
    composed = compose_config(*WORDS, *words, "tracking.enabled=false", f"outputs_dir={tmp_path}")
    assert outcome_of(composed, "") == {"reason": reason}


def test_classification_loss_is_the_cost_sensitive_cross_entropy(
    compose_config: ComposeConfig, credit: PreparedData
) -> None:
    config = compose_config("model=fairlog", "dataset=credit", "seeds=2", "cost.value=0.3")
    learner, people = config.model.build(Setting.of(credit.schema, config)), credit.validation
    x, s = stacked(people, 2)
    propensity = learner.propensity(x, s, SeedStreams([0, 1], "any")).double()
    good, bad = people.label * propensity.log(), (1 - people.label) * (1 - propensity).log()
    measures = selection_metrics(learner, credit.train, people)
    assert measures == {
        "classification_loss": pytest.approx(-(0.7 * good + 0.3 * bad).mean(-1).numpy(), 1e-4)
    }
    # A method without a classifier is judged by its policy.
    policy: Any = SimpleNamespace(propensity=learner.propensity, setting=learner.setting)
    expected = classifier_logit(learner, x, s).detach()
    assert torch.allclose(classifier_logit(policy, x, s), expected, atol=0.01)


@pytest.mark.parametrize(("shift", "expected"), [(0.0, 0.0), (5.0, 1.0)])
def test_dependence_on_s_is_nought_of_noise_and_one_of_a_giveaway(
    shift: float, expected: float, credit: PreparedData
) -> None:
    vae = ConditionalVAE(credit.schema, 2, [8], SeedStreams([0], "any"), utility=False, group_blind=True)

    measures = latent_selection_metrics(
        vae,
        lambda x, s: (shift * s.unsqueeze(-1).expand(-1, -1, 2), torch.ones(*s.shape, 2)),
        credit.train,
        credit.validation,
        [0],
    )
    assert measures["latent_s_dependence"] == pytest.approx([expected], abs=0.1)
