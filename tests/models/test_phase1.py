from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from fairall.data.features import Schema
from fairall.data.people import People
from fairall.models import phase1
from fairall.models.elbo import phase1_elbo
from fairall.models.learner import PretrainCurves, ProgressCallback
from fairall.models.phase1 import Phase1Config, Phase1Task, Unlabelled, train_phase1
from fairall.models.vae import ConditionalVAE
from fairall.nn.native import calls
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Checkpoint
from tests.conftest import PHASE1, MakePeople, no_checkpoint

SEEDS = [0, 1]


@pytest.fixture(autouse=True, params=["compiled", "torch"])
def _computed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test holds for compiled code and for what replaces it."""
    if request.param == "torch":
        monkeypatch.setattr(calls, "kernels", lambda: None)


def task_of(schema: Schema, pool: People, validation: People, epochs: int, **changes: Any) -> Phase1Task:
    """A task of small nets; `changes` are fields of the task."""
    task = Phase1Task(
        Unlabelled.of(pool), Unlabelled.of(validation), schema, SEEDS, 2, [16], False, PHASE1, epochs
    )
    return replace(task, **changes)


def train(
    *given: Any,
    checkpoint: Checkpoint | None = None,
    progress: ProgressCallback = lambda **_: None,
    **changes: Any,
) -> tuple[ConditionalVAE, PretrainCurves]:
    task = task_of(*given, **changes)
    return train_phase1(task, progress=progress, checkpoint=checkpoint or no_checkpoint())


@pytest.mark.whole
def test_weights_of_the_best_validation_epoch_are_kept(schema: Schema, people: MakePeople) -> None:
    pool, validation = people(20), people(40)  # few people, so that later epochs overfit
    vae, curves = train(schema, pool, validation, 150)
    epoch = curves.validation.argmin(0)
    assert (curves.best_epoch == curves.epochs[epoch]).all()
    assert (curves.kept_loss == curves.validation.min(0).values).all()
    assert (curves.best_epoch < 150).all()
    # A run that stops there ends with the same weights.
    stopped, _ = train(schema, pool, validation, int(curves.best_epoch[0]))
    for long, short in zip(vae.parameters(), stopped.parameters(), strict=True):
        torch.testing.assert_close(long[0], short[0], rtol=0, atol=0)


def test_seeds_that_overfit_are_done_early_with_the_same_weights(schema: Schema, people: MakePeople) -> None:
    pool, validation = people(20), people(40)
    whole, curves = train(schema, pool, validation, 150)
    stopped, short = train(schema, pool, validation, 150, config=replace(PHASE1, patience=30))
    assert short.epochs[-1] < 150
    assert (short.epochs[-1] >= short.best_epoch + 30).all()
    assert (short.best_epoch == curves.best_epoch).all()
    for own, known in zip(stopped.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(own, known, rtol=0, atol=0)
    # Seeds go on that are no worse than their best by the margin.
    _, curves = train(schema, pool, validation, 150, config=replace(PHASE1, patience=30, margin=1e3))
    assert curves.epochs[-1] == 150


@pytest.mark.whole
def test_a_seed_that_is_done_changes_no_more_whoever_trains_on(schema: Schema, people: MakePeople) -> None:
    # A patience of one epoch and no margin: each seed is done at its first step upwards.
    impatient = replace(PHASE1, patience=1, margin=0.0)
    pool, validation = people(20), people(40)
    seeds = range(6)
    together, curves = train(schema, pool, validation, 60, config=impatient, seeds=seeds)
    assert len(set(curves.best_epoch.tolist())) > 1
    for seed in seeds:
        alone, own = train(schema, pool, validation, 60, config=impatient, seeds=[seed])
        assert own.best_epoch[0] == curves.best_epoch[seed]
        for one, stacked in zip(alone.parameters(), together.parameters(), strict=True):
            torch.testing.assert_close(one[0], stacked[seed])


def test_elbo_is_likelihood_minus_beta_kl(schema: Schema, people: MakePeople) -> None:
    vae = ConditionalVAE(schema, 2, [16], SeedStreams(SEEDS, "phase1"), utility=False, group_blind=False)
    crowd = people(5)
    x, s = crowd.x.expand(2, -1, -1), crowd.s.expand(2, -1)
    noise = torch.zeros(2, 5, 2, 1)
    loc, scale = vae.encode(x, s)
    kl = 0.5 * (loc**2 + scale**2 - 2 * scale.log() - 1).sum(-1)
    expected = vae.likelihood.log_prob(vae.decode(loc.unsqueeze(-1), s), x) - 0.3 * kl
    torch.testing.assert_close(phase1_elbo(vae, x, s, noise, beta=0.3), expected.mean(-1))


class InterruptionError(Exception):
    """As a kill, but for the test itself."""


@pytest.mark.parametrize("last", [1, 2, 37])
def test_training_goes_on_after_any_epoch_to_the_same_end(
    last: int, schema: Schema, people: MakePeople, tmp_path: Path
) -> None:
    pool, validation = people(20), people(40)
    config = replace(PHASE1, patience=30)
    whole, curves = train(schema, pool, validation, 60, config=config)
    told: list[dict[str, float]] = []

    def interrupted(**now: float) -> None:
        told.append(now)
        if len(told) > last:
            raise InterruptionError

    kept = Checkpoint(tmp_path / "state.pt", "phase1", seconds=0.0)
    with pytest.raises(InterruptionError):
        train(schema, pool, validation, 60, config=config, checkpoint=kept, progress=interrupted)
    told.clear()
    resumed, further = train(
        schema, pool, validation, 60, config=config, checkpoint=kept, progress=lambda **now: told.append(now)
    )
    assert 1 <= told[0]["resumed"] <= last  # gone on with, not begun again
    for one, other in zip(vars(curves).values(), vars(further).values(), strict=True):
        assert torch.equal(one, other)
    for own, known in zip(resumed.parameters(), whole.parameters(), strict=True):
        assert torch.equal(own, known)


def test_a_seed_that_diverges_leaves_the_others_as_they_are(
    schema: Schema, people: MakePeople, monkeypatch: pytest.MonkeyPatch
) -> None:
    untrained_vae = Phase1Task.untrained_vae

    def poisoned(self: Phase1Task, streams: SeedStreams) -> ConditionalVAE:
        vae = untrained_vae(self, streams)
        with torch.no_grad():
            next(vae.parameters())[1] = torch.inf
        return vae

    sound, known = train(schema, people(32), people(20), 5, seeds=[0, 1, 2])
    monkeypatch.setattr(Phase1Task, "untrained_vae", poisoned)
    mixed, curves = train(schema, people(32), people(20), 5, seeds=[0, 1, 2])
    assert (curves.best_epoch == 0).tolist() == [False, True, False]
    for own, other in zip(mixed.parameters(), sound.parameters(), strict=True):
        assert torch.equal(own[[0, 2]], other[[0, 2]])
        assert own[1].isnan().all()
    assert torch.equal(curves.kept_loss[[0, 2]], known.kept_loss[[0, 2]])
    assert not curves.kept_loss[1].isfinite()


@pytest.mark.parametrize(
    ("updates", "n_people", "within"),
    [
        (None, 10**6, 200),
        (800, 64, 200),  # 4 minibatches of 16
        (799, 64, 199),
        (799, 65, 159),  # the fifth has one person
        (1, 64, 1),  # an epoch at least
    ],
)
def test_epochs_within_a_number_of_updates(updates: int | None, n_people: int, within: int) -> None:
    assert replace(PHASE1, updates=updates).epochs_within(200, n_people) == within


def test_a_share_of_the_epochs_that_updates_allow_and_at_least_one() -> None:
    assert replace(PHASE1, share=0.33).epochs_within(200, 64) == 66
    assert replace(PHASE1, share=0.33, updates=400).epochs_within(200, 64) == 33
    assert replace(PHASE1, share=0.01).epochs_within(20, 64) == 1


def test_an_annealed_rate_falls_from_the_learning_rate_to_nearly_0() -> None:
    config = replace(PHASE1, annealed=True, learning_rate=0.5)
    rates = [config.rate(epoch, 4) for epoch in (1, 2, 3, 4)]
    assert rates == pytest.approx([0.5, 0.25 + 0.125 * 2**0.5, 0.25, 0.25 - 0.125 * 2**0.5])
    assert replace(config, annealed=False).rate(4, 4) == 0.5


def test_epochs_are_trained_at_their_rate(
    schema: Schema, people: MakePeople, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = schema, people(64), people(40), 3
    monkeypatch.setattr(Phase1Config, "rate", lambda self, epoch, epochs: 0.0 if epoch <= epochs else 1.0)
    task = task_of(*given)
    untrained = task.untrained_vae(task.streams())
    for before, after in zip(untrained.parameters(), train(*given)[0].parameters(), strict=True):
        torch.testing.assert_close(before, after, rtol=0, atol=0)


def test_patience_and_validation_are_shortened_with_the_epochs() -> None:
    planned = replace(PHASE1, updates=90, validate_every=10, validation_samples=16, patience=300)
    same = planned.shortened(2000, 2000)
    assert same == replace(planned, updates=None)
    tenth = planned.shortened(200, 2000)
    assert tenth == replace(planned, updates=None, validate_every=1, validation_samples=2, patience=30)
    least = planned.shortened(1, 2000)
    assert least == replace(planned, updates=None, validate_every=1, validation_samples=1, patience=1)
    assert replace(planned, patience=None).shortened(1, 2000).patience is None


def test_every_field_of_a_task_and_of_its_configuration_enters_the_key(
    schema: Schema, people: MakePeople, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, validation = people(10), people(6)
    task = task_of(schema, pool, validation, 5)
    changed: dict[str, Any] = {
        "pool": replace(task.pool, s=-task.pool.s),
        "validation": Unlabelled.of(people(7)),
        "schema": Schema(list(schema)[1:]),
        "seeds": [0],
        "latent_size": 3,
        "vae_arch": [16, 16],
        "group_blind": True,
        "config": replace(PHASE1, beta=0.9),
        "epochs": 6,
    }
    others = [replace(task, **{field.name: changed[field.name]}) for field in fields(Phase1Task)]
    another: Any = 7
    others += [replace(task, config=replace(PHASE1, **{of.name: another})) for of in fields(Phase1Config)]
    others.append(replace(task, pool=replace(task.pool, x=task.pool.x + 1)))
    keys = [task.key(), *(other.key() for other in others)]
    assert len(set(keys)) == len(keys)
    relabelled = replace(pool, label=1 - pool.label)
    assert task_of(schema, relabelled, validation, 5).key() == task.key()
    monkeypatch.setattr(phase1, "processor", lambda: "another")
    assert task.key() not in keys
