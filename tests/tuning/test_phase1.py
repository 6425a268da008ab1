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
from fairall.measuring.selection import classifier_logit, latent_selection_metrics, selection_metrics
from fairall.models.learner import Learner, Setting
from fairall.models.vae import ConditionalVAE
from fairall.results.runs import load_result
from fairall.runtime.randomness import SeedStreams
from fairall.tuning.trial import outcome_of, phase1_measures
from tests.conftest import ComposeConfig

WORDS = """
    sweeps=phase1 preset=quick schedule.phase1_epochs=2 schedule.time_steps=2 evaluation.window=[0,2]
""".split()


class Untouchable(People):
    """People at whom nobody may look."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("x", "s", "label"):
            raise AssertionError("a sweep looked at test people")
        return super().__getattribute__(name)


@pytest.mark.whole
def test_a_phase1_trial_shares_the_cache_and_sees_no_test_people(
    tmp_path: Path, credit: PreparedData
) -> None:
    people = vars(credit.test)
    hidden = Untouchable(**people)
    unlabelled: dict[str, Any] = {
        role: People(known.x, known.s, torch.full_like(known.label, torch.nan))
        for role in ("train", "validation", "pool")
        for known in [getattr(credit, role)]
    }
    guarded = replace(credit, **unlabelled, test=hidden)
    words = [*WORDS, f"outputs_dir={tmp_path}"]
    composed = compose_config(*words, "objective=mean_utility")
    measures = phase1_measures(job(composed, lambda source, scaler: guarded))
    assert {len(values) for values in measures.values()} == {2}
    (cached,) = (tmp_path / "cache" / "phase1").glob("*.pt")

    # A whole run with the same Phase I finds it, and the measures are those of the cached weights.
    config = compose_config(*words, "model.alpha=15", "tracking.enabled=false")
    loss = "phase1_validation_loss"
    assert outcome_of(config, [loss], "") == {"seeds": {loss: pytest.approx([*measures[loss]])}}
    config.sweep.trial = "run"
    outcome = outcome_of(config, [loss], "")
    assert outcome["seeds"][loss] == pytest.approx([*measures[loss]])
    whole = load_result(outcome["run"].rpartition("/")[2], outputs_dir=tmp_path).per_seed
    assert [*(tmp_path / "cache" / "phase1").glob("*.pt")] == [cached]
    for name in ("classification_loss", "reconstruction_loss", "latent_s_dependence"):
        assert (whole[name] >= 0).all()

    kept = torch.load(cached, weights_only=True)["state"]["vae"]
    setting = Setting(credit.schema, 0.5, [0, 1], config.schedule, config.protocol)
    vae = ConditionalVAE(
        credit.schema,
        config.model.latent_size,
        config.model.vae_arch,
        SeedStreams([0, 1], "any"),
        utility=False,
        group_blind=setting.group_blind,
    )
    vae.load_state_dict(kept)
    again = latent_selection_metrics(vae, vae.encode, credit.train, credit.validation, [0, 1])
    # The frame that groups are matched in changes what z is called, not what comes back.
    assert again["reconstruction_loss"] == pytest.approx(measures["reconstruction_loss"], rel=0.02)


def test_a_trial_that_cannot_be_says_why(tmp_path: Path) -> None:
    for word, reason in (
        ("model.latent_size=0", "model.latent_size=0 is not possible: it must be at least 1"),
        ("model=fairall_II", "sweep.trial=phase1: fairall_II has no Phase I"),
    ):
        composed = compose_config(*WORDS, f"outputs_dir={tmp_path}", word)
        assert outcome_of(composed, ["reconstruction_loss"], "") == {"reason": reason}


@pytest.fixture
def learner(compose_config: ComposeConfig, credit: PreparedData) -> Learner:
    config = compose_config("model=fairlog", "dataset=credit", "seeds=2")
    return config.model.build(Setting.of(credit.schema, config))


def test_classification_loss_is_the_cost_sensitive_cross_entropy(
    learner: Learner, credit: PreparedData
) -> None:
    people, cost = credit.validation, 0.3
    learner.setting = replace(learner.setting, cost=cost)
    measures = selection_metrics(learner, credit.train, people)
    assert list(measures) == ["classification_loss"]
    propensity = learner.propensity(
        people.x.expand(2, -1, -1), people.s.expand(2, -1), SeedStreams([0, 1], "any")
    ).double()
    good, bad = propensity.log(), (1 - propensity).log()
    expected = -((1 - cost) * people.label * good + cost * (1 - people.label) * bad).mean(-1)
    assert measures["classification_loss"] == pytest.approx(expected.numpy(), rel=1e-4)


def test_a_method_without_a_classifier_is_judged_by_its_policy(
    learner: Learner, credit: PreparedData
) -> None:
    x, s = credit.validation.x.expand(2, -1, -1), credit.validation.s.expand(2, -1)
    of_policy = classifier_logit.dispatch(object)(learner, x, s)
    assert torch.allclose(of_policy, classifier_logit(learner, x, s).detach(), atol=0.01)


@pytest.mark.parametrize(("shift", "expected"), [(0.0, 0.0), (5.0, 1.0)])
def test_dependence_on_s_is_nought_of_noise_and_one_of_a_giveaway(
    shift: float, expected: float, credit: PreparedData
) -> None:
    vae = ConditionalVAE(credit.schema, 2, [8], SeedStreams([0], "any"), utility=False, group_blind=True)

    def posterior(x: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return shift * s.unsqueeze(-1).expand(-1, -1, 2), torch.ones(*s.shape, 2)

    measures = latent_selection_metrics(vae, posterior, credit.train, credit.validation, [0])
    assert measures["latent_s_dependence"] == pytest.approx([expected], abs=0.1)
