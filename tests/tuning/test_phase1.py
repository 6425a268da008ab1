"""Phase I as a trial, and what hyperparameters are selected by."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from fairall.config.compose import compose_config
from fairall.data.people import People
from fairall.data.prepared import PreparedData
from fairall.experiment import job
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


@pytest.mark.whole
def test_a_phase1_trial_shares_the_cache_and_sees_no_test_people(
    tmp_path: Path, credit: PreparedData
) -> None:
    unlabelled: dict[str, Any] = {
        role: People(known.x, known.s, known.label * torch.nan)
        for role in ("train", "validation", "pool")
        for known in [getattr(credit, role)]
    }
    unseen = People(credit.test.x * torch.nan, credit.test.s, credit.test.label * torch.nan)
    guarded = replace(credit, **unlabelled, test=unseen)
    words = [*WORDS, f"outputs_dir={tmp_path}", "tracking.enabled=false"]
    composed = compose_config(*words, "objective=mean_utility")
    task = job(composed, lambda source, scaler: guarded)
    measures = phase1_measures(task)
    (cached,) = (tmp_path / "cache" / "phase1").glob("*.pt")
    phase1 = task.learner.phase1_task(credit, task.config.model.phase1)
    vae, _ = train_phase1(phase1, progress=lambda **_: None, checkpoint=no_checkpoint())
    again = latent_selection_metrics(vae, vae.encode, credit.train, credit.validation, [0, 1])
    # The frame that groups are matched in changes what z is called, not what comes back.
    assert again["reconstruction_loss"] == pytest.approx(measures["reconstruction_loss"], rel=0.02)

    # A trial, and a whole run with the same Phase I, find it.
    loss = "phase1_validation_loss"
    composed.objective = loss
    expected = pytest.approx([*map(float, measures[loss])])
    assert outcome_of(composed, "") == {"seeds": {loss: expected}}
    outcome = outcome_of(compose_config(*words, "objective=mean_utility", "sweep.trial=run"), "")
    whole = load_result(outcome["run"].rpartition("/")[2], outputs_dir=tmp_path).per_seed
    assert [*whole[loss]] == expected
    assert [*(tmp_path / "cache" / "phase1").glob("*.pt")] == [cached]
    for name in SELECTION:
        assert (whole[name] >= 0).all()


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("model.latent_size=0", "model.latent_size=0 is not possible: it must be at least 1"),
        ("model=fairall_II", "sweep.trial=phase1: fairall_II has no Phase I"),
    ],
)
def test_a_trial_that_cannot_be_says_why(word: str, reason: str) -> None:
    assert outcome_of(compose_config(*WORDS, word), "") == {"reason": reason}


def test_classification_loss_is_the_cost_sensitive_cross_entropy(
    compose_config: ComposeConfig, credit: PreparedData
) -> None:
    config = compose_config("model=fairlog", "dataset=credit", "seeds=2", "cost.value=0.3")
    learner, people = config.model.build(Setting.of(credit.schema, config)), credit.validation
    x, s = people.x.expand(2, -1, -1), people.s.expand(2, -1)
    propensity = learner.propensity(x, s, SeedStreams([0, 1], "any")).double()
    good, bad = people.label * propensity.log(), (1 - people.label) * (1 - propensity).log()
    measures = selection_metrics(learner, credit.train, people)
    assert measures == {
        "classification_loss": pytest.approx(-(0.7 * good + 0.3 * bad).mean(-1).numpy(), 1e-4)
    }
    # A method without a classifier is judged by its policy.
    policy = classifier_logit.dispatch(object)(learner, x, s)
    assert torch.allclose(policy, classifier_logit(learner, x, s).detach(), atol=0.01)


@pytest.mark.parametrize(("shift", "expected"), [(0.0, 0.0), (5.0, 1.0)])
def test_dependence_on_s_is_nought_of_noise_and_one_of_a_giveaway(
    shift: float, expected: float, credit: PreparedData
) -> None:
    vae = ConditionalVAE(credit.schema, 2, [8], SeedStreams([0], "any"), utility=False, group_blind=True)

    def posterior(x: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return shift * s.unsqueeze(-1).expand(-1, -1, 2), torch.ones(*s.shape, 2)

    measures = latent_selection_metrics(vae, posterior, credit.train, credit.validation, [0])
    assert measures["latent_s_dependence"] == pytest.approx([expected], abs=0.1)
