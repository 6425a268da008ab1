from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from fairall.data.features import Schema
from fairall.data.people import People
from fairall.models.learner import PretrainCurves
from fairall.models.phase1 import Phase1Config, phase1_loss, train_phase1
from fairall.models.phase1_cache import cached_phase1, phase1_key
from fairall.models.vae import ConditionalVAE
from fairall.randomness import SeedStreams

CONFIG = Phase1Config(
    batch_size=16, learning_rate=3e-2, beta=0.8, elbo_samples=1, validate_every=1, validation_samples=4
)
SEEDS = [0, 1]


def train(
    schema: Schema, pool: People, validation: People, epochs: int
) -> tuple[ConditionalVAE, PretrainCurves]:
    streams = SeedStreams(SEEDS, "phase1")
    vae = ConditionalVAE(schema, 2, [16], streams, utility=False, group_blind=False)
    curves = train_phase1(
        vae, pool, validation, CONFIG, epochs=epochs, streams=streams, advance=lambda **_: None
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
    assert (curves.best_epoch < 150).all()
    # A run that stops there ends with the same weights.
    stopped, _ = train(schema, pool, validation, int(curves.best_epoch[0]))
    for long, short in zip(vae.parameters(), stopped.parameters(), strict=True):
        torch.testing.assert_close(long[0], short[0], rtol=0, atol=0)


def test_loss_is_beta_kl_minus_likelihood(schema: Schema, people: Callable[[int], People]) -> None:
    vae = ConditionalVAE(schema, 2, [16], SeedStreams(SEEDS, "phase1"), utility=False, group_blind=False)
    crowd = people(5)
    x, s = crowd.x.expand(2, -1, -1), crowd.s.expand(2, -1)
    noise = torch.zeros(2, 5, 2, 1)
    loc, scale = vae.encode(x, s)
    kl = 0.5 * (loc**2 + scale**2 - 2 * scale.log() - 1).sum(-1)
    expected = 0.3 * kl - vae.likelihood.log_prob(vae.decode(loc.unsqueeze(-1), s), x)
    torch.testing.assert_close(phase1_loss(vae, x, s, noise, beta=0.3), expected.mean(-1))


def test_cache_gives_back_what_was_trained_and_trains_once(
    schema: Schema, people: Callable[[int], People], tmp_path: Path
) -> None:
    pool, validation = people(32), people(20)
    calls = []

    def run() -> tuple[ConditionalVAE, PretrainCurves]:
        streams = SeedStreams(SEEDS, "phase1")
        vae = ConditionalVAE(schema, 2, [16], streams, utility=False, group_blind=False)

        def training() -> PretrainCurves:
            calls.append(1)
            return train_phase1(
                vae, pool, validation, CONFIG, epochs=3, streams=streams, advance=lambda **_: None
            )

        return vae, cached_phase1(vae, training, cache=tmp_path, key="k")

    (first, trained), (second, cached) = run(), run()
    assert len(calls) == 1
    torch.testing.assert_close(trained.validation, cached.validation, rtol=0, atol=0)
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


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
