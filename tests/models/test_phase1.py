from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fairall.data.features import Schema
from fairall.data.people import People
from fairall.models.learner import PretrainCurves, ProgressCallback
from fairall.models.phase1 import Phase1Config, phase1_key, phase1_loss, train_phase1
from fairall.models.phase1_gradients import phase1_gradients
from fairall.models.vae import ConditionalVAE
from fairall.randomness import SeedStreams
from fairall.storage.checkpoint import Checkpoint
from tests.conftest import no_checkpoint

CONFIG = Phase1Config(
    batch_size=16,
    learning_rate=3e-2,
    beta=0.8,
    elbo_samples=1,
    validate_every=1,
    validation_samples=4,
    patience=None,
    margin=0.1,
)
SEEDS = [0, 1]


def train(
    schema: Schema,
    pool: People,
    validation: People,
    epochs: int,
    config: Phase1Config = CONFIG,
    seeds: Sequence[int] = SEEDS,
    checkpoint: Checkpoint | None = None,
    advance: ProgressCallback = lambda **_: None,
) -> tuple[ConditionalVAE, PretrainCurves]:
    streams = SeedStreams(seeds, "phase1")
    vae = ConditionalVAE(schema, 2, [16], streams, utility=False, group_blind=False)
    checkpoint = checkpoint or no_checkpoint()
    curves = train_phase1(
        vae, pool, validation, config, epochs=epochs, streams=streams, advance=advance, checkpoint=checkpoint
    )
    return vae, curves


def test_training_lowers_the_loss(schema: Schema, people: Callable[[int], People]) -> None:
    _, curves = train(schema, people(64), people(40), 60)
    assert (curves.train[-1] < curves.train[0] - 0.3).all()


def test_weights_of_the_best_validation_epoch_are_kept(
    schema: Schema, people: Callable[[int], People]
) -> None:
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


def test_seeds_that_overfit_are_done_early_with_the_same_weights(
    schema: Schema, people: Callable[[int], People]
) -> None:
    pool, validation = people(20), people(40)
    whole, curves = train(schema, pool, validation, 150)
    stopped, short = train(schema, pool, validation, 150, replace(CONFIG, patience=30))
    assert short.epochs[-1] < 150
    assert (short.epochs[-1] >= short.best_epoch + 30).all()
    assert (short.best_epoch == curves.best_epoch).all()
    for own, known in zip(stopped.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(own, known, rtol=0, atol=0)


def test_seeds_go_on_that_are_no_worse_than_their_best_by_the_margin(
    schema: Schema, people: Callable[[int], People]
) -> None:
    pool, validation = people(20), people(40)
    _, curves = train(schema, pool, validation, 150, replace(CONFIG, patience=30, margin=1e3))
    assert curves.epochs[-1] == 150


def test_a_seed_that_is_done_changes_no_more_whoever_trains_on(
    schema: Schema, people: Callable[[int], People]
) -> None:
    # A patience of one epoch and no margin: each seed is done at its first step upwards.
    impatient = replace(CONFIG, patience=1, margin=0.0)
    pool, validation = people(20), people(40)
    seeds = range(6)
    together, curves = train(schema, pool, validation, 60, impatient, seeds)
    assert len(set(curves.best_epoch.tolist())) > 1
    for seed in seeds:
        alone, own = train(schema, pool, validation, 60, impatient, [seed])
        assert own.best_epoch[0] == curves.best_epoch[seed]
        for one, stacked in zip(alone.parameters(), together.parameters(), strict=True):
            torch.testing.assert_close(one[0], stacked[seed])


def test_loss_is_beta_kl_minus_likelihood(schema: Schema, people: Callable[[int], People]) -> None:
    vae = ConditionalVAE(schema, 2, [16], SeedStreams(SEEDS, "phase1"), utility=False, group_blind=False)
    crowd = people(5)
    x, s = crowd.x.expand(2, -1, -1), crowd.s.expand(2, -1)
    noise = torch.zeros(2, 5, 2, 1)
    loc, scale = vae.encode(x, s)
    kl = 0.5 * (loc**2 + scale**2 - 2 * scale.log() - 1).sum(-1)
    expected = 0.3 * kl - vae.likelihood.log_prob(vae.decode(loc.unsqueeze(-1), s), x)
    torch.testing.assert_close(phase1_loss(vae, x, s, noise, beta=0.3), expected.mean(-1))


@pytest.mark.parametrize("n_samples", [1, 3])
def test_gradients_by_hand_are_those_of_autograd(
    n_samples: int, schema: Schema, people: Callable[[int], People]
) -> None:
    vae = ConditionalVAE(schema, 2, [7, 6], SeedStreams(SEEDS, "phase1"), utility=False, group_blind=False)
    for parameter in vae.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    crowd = people(9)
    x, s = crowd.x.expand(2, -1, -1), crowd.s.expand(2, -1)
    noise = torch.randn(2, 9, 2, n_samples)
    expected = phase1_loss(vae, x, s, noise, beta=0.3)
    loss, gradients = phase1_gradients(vae, x, s, noise, beta=0.3)
    torch.testing.assert_close(loss, expected)
    known = torch.autograd.grad(expected.sum(), list(vae.parameters()))
    for own, of_autograd in zip(gradients, known, strict=True):
        torch.testing.assert_close(own, of_autograd)


class InterruptionError(Exception):
    """As a kill, but for the test itself."""


@pytest.mark.parametrize("last", [1, 2, 37])
def test_training_goes_on_after_any_epoch_to_the_same_end(
    last: int, schema: Schema, people: Callable[[int], People], tmp_path: Path
) -> None:
    pool, validation = people(20), people(40)
    config = replace(CONFIG, patience=30)
    whole, curves = train(schema, pool, validation, 60, config)
    told: list[dict[str, float]] = []

    def interrupted(**now: float) -> None:
        told.append(now)
        if len(told) > last:
            raise InterruptionError

    kept = Checkpoint(tmp_path / "state.pt", "phase1", seconds=0.0)
    with pytest.raises(InterruptionError):
        train(schema, pool, validation, 60, config, checkpoint=kept, advance=interrupted)
    told.clear()
    resumed, further = train(
        schema, pool, validation, 60, config, checkpoint=kept, advance=lambda **now: told.append(now)
    )
    assert 1 <= told[0]["resumed"] <= last  # gone on with, not begun again
    for one, other in zip(vars(curves).values(), vars(further).values(), strict=True):
        assert torch.equal(one, other)
    for own, known in zip(resumed.parameters(), whole.parameters(), strict=True):
        assert torch.equal(own, known)


def test_a_seed_that_diverges_leaves_the_others_as_they_are(
    schema: Schema, people: Callable[[int], People]
) -> None:
    def begun(poisoned: bool) -> tuple[ConditionalVAE, PretrainCurves]:
        streams = SeedStreams([0, 1, 2], "phase1")
        vae = ConditionalVAE(schema, 2, [16], streams, utility=False, group_blind=False)
        if poisoned:
            with torch.no_grad():
                next(vae.parameters())[1] = torch.inf
        curves = train_phase1(
            vae, people(32), people(20), CONFIG, epochs=5, streams=streams, advance=lambda **_: None,
            checkpoint=no_checkpoint(),
        )  # fmt: skip
        return vae, curves

    (sound, known), (mixed, curves) = begun(False), begun(True)
    assert (curves.best_epoch == 0).tolist() == [False, True, False]
    for own, other in zip(mixed.parameters(), sound.parameters(), strict=True):
        assert torch.equal(own[[0, 2]], other[[0, 2]])
        assert own[1].isnan().all()
    assert torch.equal(curves.kept_loss[[0, 2]], known.kept_loss[[0, 2]])
    assert not curves.kept_loss[1].isfinite()


def test_key_depends_on_what_phase1_sees_and_on_nothing_else(people: Callable[[int], People]) -> None:
    pool, validation = people(10), people(6)
    key = phase1_key(pool, validation, CONFIG, SEEDS)
    relabelled = replace(pool, label=1 - pool.label)
    assert phase1_key(relabelled, validation, CONFIG, SEEDS) == key
    others = [
        phase1_key(replace(pool, s=-pool.s), validation, CONFIG, SEEDS),
        phase1_key(replace(pool, x=pool.x + 1), validation, CONFIG, SEEDS),
        phase1_key(pool, people(7), CONFIG, SEEDS),
        phase1_key(pool, validation, replace(CONFIG, beta=0.9), SEEDS),
        phase1_key(pool, validation, CONFIG, [0]),
    ]
    assert len({key, *others}) == 6
