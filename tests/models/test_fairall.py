from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, distributions

from fairall.config.schema import KL
from fairall.data.features import Feature, Kind, Schema
from fairall.data.people import Decided, People
from fairall.data.prepared import PreparedData
from fairall.models.elbo import MIXTURE_KL
from fairall.models.fairall import FairAll, FairAllConfig
from fairall.models.learner import PretrainCurves, Setting
from fairall.models.vae import ConditionalVAE
from fairall.nn.likelihoods import MIN_RATE, Poisson
from fairall.nn.noise import RandomNumbers
from fairall.runtime.randomness import SeedStreams
from tests.conftest import ComposeConfig, cache_in, warm_up
from tests.models.conftest import decided_on, net_of

MakePeople = Callable[[int], People]
MakeSetting = Callable[..., Setting]


@pytest.fixture
def config(compose_config: ComposeConfig) -> FairAllConfig:
    return replace(
        compose_config().model,
        latent_size=2,
        vae_arch=[8],
        clf_arch=[8, 8],
        elbo_samples=3,
        kl_samples=4,
        phase1=None,
    )


def test_what_no_switch_covers(setting: MakeSetting, config: FairAllConfig) -> None:
    # The table of docs/protocols.md: what published_code does otherwise than the authors' code.
    learner = FairAll(config, setting([0, 1], "protocol=published_code"))
    parameters = dict(learner.model.named_parameters()) | dict(net_of(learner).named_parameters())
    assert all(not values.any() for name, values in parameters.items() if name.endswith("bias"))
    head = learner.model.vae.encoder.last.weight
    bound = 2**0.5 * (6 / (head.shape[1] + head.shape[2])) ** 0.5
    assert 0.9 * bound < head.abs().max() <= bound
    of_counts = Poisson(Schema([Feature("visits", Kind.COUNT)])).point_estimate(torch.tensor([[[1.5]]]))
    assert of_counts.item() == pytest.approx(np.log1p(np.exp(1.5)) + MIN_RATE)


def decided(people: People, accepted: Tensor) -> Decided:
    """The same people for every replicate, decided as `accepted` (E, B) says with propensity ½."""
    stacked = people.rows(torch.arange(len(people)).expand(len(accepted), -1))
    return Decided.reveal(stacked, torch.full(accepted.shape, 0.5), accepted)


@pytest.mark.parametrize("kl_term", KL)
def test_loss_is_its_definition_on_the_same_noise(
    kl_term: KL, config: FairAllConfig, setting: MakeSetting, people: MakePeople
) -> None:
    config = replace(config, clf_dropout=0.0, alpha=4.0, beta=0.7)
    given = setting([0], f"protocol.kl={kl_term.name}", "cost.value=0.3")
    learner = FairAll(config, given)
    batch = decided_on(people(12), first=0.005)
    learner.noise, draws = (RandomNumbers([0], "the same noise each time", stratified=True) for _ in range(2))
    measured = learner.loss(batch).item()
    with torch.no_grad():
        vae, known, others = (
            learner.model.vae,
            rows_of(batch, batch.accepted),
            rows_of(batch, ~batch.accepted),
        )
        y = known.label
        entropy = -0.3 * (1 - y) * F.logsigmoid(-(logit := learner.model.classify(known.x, known.s)))
        entropy = entropy - 0.7 * y * F.logsigmoid(logit)
        risk = (entropy / known.propensity.clamp(min=0.01)).mean()

        def elbo_terms(of: Decided, noise: Tensor, u: Tensor, labelled: bool) -> tuple[Tensor, ...]:
            loc, scale = vae.encode(of.x, of.s, u)
            outputs = vae.decode(loc.unsqueeze(-1) + scale.unsqueeze(-1) * noise[..., :3], of.s)
            of_u = distributions.Bernoulli(logits=outputs[:, -1]).log_prob(u.unsqueeze(-1)).mean(-1)
            log_x = vae.likelihood.log_prob(outputs[:, :-1], of.x)
            return log_x + (of_u if labelled else 0.0), loc, scale

        log_p, loc, scale = elbo_terms(known, draws.samples(known.s.shape[1], 2, 4), y, True)
        standard = distributions.Normal(0.0, 1.0)
        kl = distributions.kl_divergence(distributions.Normal(loc, scale), standard).sum(-1)
        noise = draws.samples(others.s.shape[1], 2, 2, 4)
        likelihoods, locs, scales = zip(
            *(elbo_terms(others, noise[:, :, u], torch.full_like(others.s, u), False) for u in (0, 1)),
            strict=True,
        )
        logit = learner.model.classify(others.x, others.s)
        good, loc, scale = torch.sigmoid(logit), torch.stack(locs, 2), torch.stack(scales, 2)
        unlabelled = (1 - good) * likelihoods[0] + good * likelihoods[1]
        unlabelled = unlabelled - 0.7 * MIXTURE_KL[kl_term](logit, loc, scale, noise)
    expected = 4.0 * risk - (log_p - 0.7 * kl).mean() - unlabelled.mean()
    assert measured == pytest.approx(expected.item(), rel=1e-5)


def rows_of(batch: Decided, mask: Tensor) -> Decided:
    """The people of one replicate in a mask."""
    return Decided(**{name: of[:, mask[0]] for name, of in vars(batch).items() if of is not None})


def test_the_kl_term_concerns_the_rejected_alone(
    config: FairAllConfig, setting: MakeSetting, people: MakePeople
) -> None:
    accepted = torch.tensor([[True] * 6, [True, False] * 3])
    losses = []
    for kl_term in ("density", "cdf"):
        learner = FairAll(config, setting([0, 1], f"protocol.kl={kl_term}"))
        losses.append(learner.loss(decided(people(6), accepted)))
    assert (losses[0] == losses[1]).tolist() == [True, False]
    assert losses[0].isfinite().all()


def test_the_unlabelled_elbo_sends_no_gradient_into_the_classifier(
    config: FairAllConfig, setting: MakeSetting, people: MakePeople
) -> None:
    learner = FairAll(replace(config, alpha=0.0), setting([0]))
    learner.loss(decided(people(9), torch.zeros(1, 9, dtype=torch.bool))).sum().backward()
    assert all(weight.grad is not None for weight in learner.model.vae.parameters())
    assert not any(g is not None and g.any() for g in (w.grad for w in learner.model.classifier.parameters()))


def test_loss_gradient_by_finite_differences(
    config: FairAllConfig, setting: MakeSetting, people: MakePeople
) -> None:
    batch = decided(people(8), torch.tensor([[True, False] * 4, [False] * 7 + [True]]))
    learner = FairAll(replace(config, clf_dropout=0.0), setting([0, 1], "protocol.noise=independent"))

    def loss() -> Tensor:
        learner.noise = RandomNumbers([0, 1], "the same noise each time")
        return learner.loss(batch).sum()

    parameters = list(learner.model.vae.parameters())  # q(ũ), the weights of U, gets no gradient of it
    gradients = torch.autograd.grad(loss(), parameters)
    step = 3e-3
    generator = torch.Generator().manual_seed(0)
    directions = [torch.randn(p.shape, generator=generator) for p in parameters]
    directional = sum((g * d).sum() for g, d in zip(gradients, directions, strict=True))
    values = []
    with torch.no_grad():
        for moved in (step, -2 * step):
            for p, d in zip(parameters, directions, strict=True):
                p.add_(d, alpha=moved)
            values.append(loss())
    torch.testing.assert_close(directional, (values[0] - values[1]) / (2 * step), rtol=2e-2, atol=1e-2)


def test_transfer_keeps_phase1_and_leaves_new_connections_random(schema: Schema) -> None:
    phase1 = ConditionalVAE(schema, 2, [8], SeedStreams([0, 1], "phase1"), utility=False, group_blind=False)
    vae = ConditionalVAE(schema, 2, [8], SeedStreams([0, 1], "phase2"), utility=True, group_blind=False)
    new_input = vae.encoder.layers[0].weight[:, -1].clone()
    vae.transfer_from(phase1)
    x, s = torch.randn(2, 4, len(schema)), torch.ones(2, 4)
    torch.testing.assert_close(vae.encoder.layers[0].weight[:, -1], new_input, rtol=0, atol=0)
    assert (new_input != 0).all()
    # With ũ = 0 the new input is silent: both encoders agree, and so do the decoders on x.
    loc, scale = vae.encode(x, s, torch.zeros(2, 4))
    torch.testing.assert_close((loc, scale), phase1.encode(x, s))
    z = loc.unsqueeze(-1)
    torch.testing.assert_close(vae.decode(z, s)[:, :-1], phase1.decode(z, s))


def test_policy_sees_the_revealed_label_of_the_accepted(
    config: FairAllConfig, setting: MakeSetting, people: MakePeople
) -> None:
    learner = FairAll(config, setting([0]))
    with torch.no_grad():
        learner.model.vae.encoder.layers[0].weight[:, -1] = 50.0  # a latent that is all about ũ
    crowd = people(30)
    latents = []
    for label in (torch.zeros(30), torch.ones(30)):
        learner.noise = RandomNumbers([0], "the same noise each time")
        accepted = torch.arange(30).unsqueeze(0) < 15
        batch = decided(replace(crowd, label=label), accepted)
        latents.append(learner.model.draw_latent(batch, learner.noise)[0])
    moved = (latents[0] - latents[1]).abs().sum(-1) > 1e-3
    assert moved[:15].all()
    assert not moved[15:].any()


def test_policy_learns_from_both_branches_of_the_rejected_as_the_classifier_weighs_them(
    config: FairAllConfig, setting: MakeSetting, people: MakePeople
) -> None:
    learner = FairAll(config, setting([0]))
    with torch.no_grad():
        for layer in learner.model.vae.encoder.layers:
            layer.weight[:] = 0.0
        # The location of z is ũ, and its scale next to nothing.
        learner.model.vae.encoder.layers[0].weight[:, -1] = 1.0
        learner.model.vae.encoder.layers[-1].weight[:, :, :2] = 1.0 / 8
        learner.model.vae.encoder.layers[-1].bias[:, :, 2:] = -20.0
    person = people(1)
    crowd = person.rows(torch.zeros(4000, dtype=torch.long))
    nobody = decided(crowd, torch.zeros(1, 4000, dtype=torch.bool))
    z = learner.model.draw_latent(nobody, learner.noise)
    good = torch.sigmoid(learner.model.classify(person.x[None], person.s[None])).item()
    assert 0.05 < good < 0.95
    torch.testing.assert_close(z, z.round(), atol=1e-2, rtol=0)
    assert z.mean().item() == pytest.approx(good, abs=0.03)


def test_pretraining_hands_its_weights_to_phase2(
    credit: PreparedData, compose_config: ComposeConfig, tmp_path: Path
) -> None:
    config = compose_config("preset=quick", "schedule.phase1_epochs=3", "model.phase1.validate_every=1")
    setting = Setting(credit.schema, 0.5, [0, 1], config.schedule, config.protocol)
    learner = FairAll(config.model, setting)
    learner.pretrain(credit, cache_in(tmp_path), lambda **_: None)
    (kept,) = (tmp_path / "phase1").glob("*.pt")
    phase1 = torch.load(kept, weights_only=True)["state"]["vae"]
    own = learner.model.vae.state_dict()
    for name, known in phase1.items():
        torch.testing.assert_close(own[name][tuple(slice(n) for n in known.shape)], known, rtol=0, atol=0)


def test_phase1_of_a_large_table_ends_within_its_updates(
    credit: PreparedData, compose_config: ComposeConfig, tmp_path: Path
) -> None:
    def pretrained(*words: str) -> tuple[FairAll, list[dict[str, float]], PretrainCurves]:
        config = compose_config("schedule.phase1_epochs=6", "model.phase1.validate_every=3", *words)
        learner = FairAll(config.model, Setting(credit.schema, 0.5, [0, 1], config.schedule, config.protocol))
        units: list[dict[str, float]] = []
        curves = learner.pretrain(credit, cache_in(tmp_path), lambda **shown: units.append(shown))
        assert curves is not None
        return learner, units, curves

    # The pool of credit has four minibatches of 128.
    whole, units, curves = pretrained("model.phase1.updates=24")
    assert (len(units), whole.pretrain_units(credit), whole.notes(credit)) == (6, 6, [])
    assert curves.epochs.tolist() == [3, 6]
    limited, units, curves = pretrained("model.phase1.updates=15")
    assert (len(units), limited.pretrain_units(credit)) == (3, 3)
    assert curves.epochs.tolist() == [2, 3]
    (note,) = limited.notes(credit)
    assert "limited to 3 epochs of 6" in note
    assert "model.phase1.updates=15" in note
    # A limit that does not apply leaves the cached Phase I valid.
    assert len(list((tmp_path / "phase1").glob("*.pt"))) == 2
    _, units, _ = pretrained("model.phase1.updates=null")
    assert units == []


def test_warm_up_trains_the_policy_too_and_phase2_starts_with_fresh_optimisers(
    people: MakePeople, setting: MakeSetting, config: FairAllConfig
) -> None:
    learner = FairAll(config, setting([0, 1], "schedule.warm_up_epochs=2"))
    crowd = decided(people(30), torch.arange(30).expand(2, -1) % 2 == 0)
    net = list(net_of(learner).parameters())
    before = [parameter.clone() for parameter in net]
    assert [set(figures) for figures in warm_up(learner, crowd)] == [{"loss"}, {"loss"}]
    for optimiser in (learner.epochs.model, learner.epochs.policy):
        assert not torch.as_tensor(optimiser.steps).any()
    warm = [parameter.clone() for parameter in net]
    learner.update(crowd)
    assert not any(map(torch.equal, before, warm))
    assert not any(map(torch.equal, warm, net))
