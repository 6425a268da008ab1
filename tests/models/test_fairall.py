from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from scipy import integrate, stats
from torch import Tensor

from fairall.config.schema import KL
from fairall.data.features import Feature, Kind, Schema
from fairall.data.people import Decided, People
from fairall.data.prepared import PreparedData
from fairall.models.fairall import FairAll, FairAllConfig
from fairall.models.learner import PretrainCurves, Setting
from fairall.models.policy_heads import net_targets
from fairall.models.vae import ConditionalVAE
from fairall.nn.likelihoods import MIN_RATE, Poisson
from fairall.nn.native import calls
from fairall.nn.noise import RandomNumbers
from fairall.nn.stacked import StackedMLP
from fairall.runtime.randomness import SeedStreams
from tests.conftest import ComposeConfig, cache_in, warm_up
from tests.models.conftest import with_features

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


def net_of(learner: FairAll) -> StackedMLP:
    assert learner.policy_net is not None
    return learner.policy_net


@torch.no_grad()
def examples(learner: FairAll, batch: Decided) -> tuple[Tensor, Tensor]:
    """The latents and the decisions that the policy learns from; everybody counts, and for one."""
    z = learner.model.draw_latent(batch, learner.noise)
    target, weight, rows = net_targets(
        learner.config.policy, learner.model, batch, z, learner.noise, learner.setting
    )
    assert (weight == 1).all()
    assert rows.all()
    return z, target


def linear_gaussian_learner(config: FairAllConfig, setting: Setting) -> FairAll:
    """A learner of one real feature, linear encoder and decoder, Z = 1, constant η2 and posterior scale."""
    linear = replace(config, latent_size=1, vae_arch=[], clf_dropout=0.0, alpha=0.0, beta=0.7)
    learner = FairAll(linear, setting)
    with torch.no_grad():
        # Encoder inputs x, s, ũ to location and raw scale; decoder inputs z, s to η1, raw η2 and ũ's logit.
        (encoder,), (decoder,) = learner.model.vae.encoder.layers, learner.model.vae.decoder.layers
        encoder.weight[:] = torch.tensor([[0.5, 0.0], [0.2, 0.0], [-0.8, 0.0]])
        encoder.bias[:] = torch.tensor([0.1, -0.3])
        decoder.weight[:] = torch.tensor([[0.9, 0.0, 1.3], [-0.4, 0.0, 0.6]])
        decoder.bias[:] = torch.tensor([0.2, 0.4, -0.5])
    return learner


def expected_likelihood(x: float, s: float, u: float, labelled: bool) -> tuple[float, float, float]:
    """E_q[log p(x | z, s) (+ log p(ũ | z, s))] of the model above, and q's location and scale."""
    loc = 0.5 * x + 0.2 * s - 0.8 * u + 0.1
    scale = F.softplus(torch.tensor(-0.3)).item() + 1e-4
    eta2 = -F.softplus(torch.tensor(0.4)).item() - MIN_RATE
    # η1 is linear in z, so that its first two moments give the Gaussian part in closed form.
    mean = 0.9 * loc - 0.4 * s + 0.2
    second = mean**2 + (0.9 * scale) ** 2
    log_x = mean * x + eta2 * x**2 + second / (4 * eta2) + 0.5 * np.log(-2 * eta2) - 0.5 * np.log(2 * np.pi)
    if not labelled:
        return log_x, loc, scale

    def log_u(z: float) -> float:
        logit = 1.3 * z + 0.6 * s - 0.5
        return stats.norm.pdf(z, loc, scale) * -np.logaddexp(0, -logit if u else logit)

    return log_x + integrate.quad(log_u, loc - 9 * scale, loc + 9 * scale)[0], loc, scale


@pytest.fixture
def two_people() -> People:
    return People(torch.tensor([[0.7], [-1.2]]), torch.tensor([1.0, -1.0]), torch.tensor([1.0, 0.0]))


@pytest.fixture
def one_feature(setting: MakeSetting) -> Setting:
    return with_features(setting([0]), "x")


def test_labelled_elbo_is_its_closed_form(
    config: FairAllConfig, one_feature: Setting, two_people: People
) -> None:
    learner = linear_gaussian_learner(replace(config, elbo_samples=200_000), one_feature)
    measured = -learner.loss(decided(two_people, torch.ones(1, 2, dtype=torch.bool)))
    exact = []
    for x, s, u in ((0.7, 1.0, 1.0), (-1.2, -1.0, 0.0)):
        likelihood, loc, scale = expected_likelihood(x, s, u, labelled=True)
        kl = 0.5 * (loc**2 + scale**2 - 2 * np.log(scale) - 1)
        exact.append(likelihood - 0.7 * kl)
    assert measured.item() == pytest.approx(np.mean(exact), abs=0.01)


@pytest.mark.parametrize("kl_term", ["density", "cdf"])
def test_unlabelled_elbo_is_its_quadrature(
    kl_term: str, config: FairAllConfig, one_feature: Setting, two_people: People
) -> None:
    given = replace(one_feature, protocol=replace(one_feature.protocol, kl=KL[kl_term]))
    learner = linear_gaussian_learner(replace(config, elbo_samples=1, kl_samples=200_000), given)
    learner.config = replace(learner.config, elbo_samples=200_000)
    nobody = decided(two_people, torch.zeros(1, 2, dtype=torch.bool))
    measured = -learner.loss(nobody)
    logits = learner.model.classify(nobody.x, nobody.s)[0].tolist()
    exact = []
    for (x, s), logit in zip(((0.7, 1.0), (-1.2, -1.0)), logits, strict=True):
        good = 1 / (1 + np.exp(-logit))
        (like0, loc0, scale), (like1, loc1, _) = (
            expected_likelihood(x, s, u, labelled=False) for u in (0.0, 1.0)
        )

        def kl(
            z: float, term: str, good: float = good, a: float = loc0, b: float = loc1, scale: float = scale
        ) -> float:
            density = (1 - good) * stats.norm.pdf(z, a, scale) + good * stats.norm.pdf(z, b, scale)
            if term == "density":
                return density * np.log(density / stats.norm.pdf(z))
            below = (1 - good) * stats.norm.cdf(z, a, scale), good * stats.norm.cdf(z, b, scale)
            return density * (np.logaddexp(*below) - stats.norm.logpdf(z))

        kls = {term: integrate.quad(kl, -9, 9, args=(term,))[0] for term in ("density", "cdf")}
        assert abs(kls["density"] - kls["cdf"]) > 0.5
        exact.append((1 - good) * like0 + good * like1 - 0.7 * kls[kl_term])
    assert measured.item() == pytest.approx(np.mean(exact), abs=2e-3)


def test_the_kl_term_concerns_the_rejected_alone(
    config: FairAllConfig, setting: MakeSetting, people: MakePeople
) -> None:
    accepted = torch.tensor([[True] * 6, [True, False] * 3])
    losses = []
    for kl_term in ("density", "cdf"):
        learner = FairAll(config, setting([0, 1], f"protocol.kl={kl_term}"))
        losses.append(learner.loss(decided(people(6), accepted)))
    assert (losses[0] == losses[1]).tolist() == [True, False]


def test_loss_adds_the_weighted_risk_of_the_classifier(
    config: FairAllConfig, setting: MakeSetting, people: MakePeople
) -> None:
    cost, alpha = 0.3, 4.0
    given = replace(setting([0]), cost=cost)
    accepted = torch.tensor([[True, True, False, True]])
    batch = replace(decided(people(4), accepted), propensity=torch.tensor([[0.9, 0.2, 0.5, 0.4]]))

    def loss(alpha: float) -> Tensor:
        learner = FairAll(replace(config, clf_dropout=0.0, alpha=alpha), given)
        learner.noise = RandomNumbers([0], "the same noise each time")
        return learner.loss(batch)

    learner = FairAll(replace(config, clf_dropout=0.0), given)
    q = torch.sigmoid(learner.model.classify(batch.x, batch.s))
    y = batch.label
    entropy = -(cost * (1 - y) * torch.log(1 - q) + (1 - cost) * y * torch.log(q))
    risk = (entropy / batch.propensity)[accepted].mean()
    torch.testing.assert_close((loss(alpha) - loss(0.0)).squeeze(), alpha * risk, rtol=1e-4, atol=1e-4)


def test_everybody_accepted_leaves_no_unlabelled_term(
    config: FairAllConfig, setting: MakeSetting, people: MakePeople
) -> None:
    everybody = decided(people(9), torch.ones(2, 9, dtype=torch.bool))
    learner = FairAll(config, setting([0, 1]))
    loss = learner.loss(everybody).sum()
    # Were there an unlabelled term, its weight in the KL would come from the classifier's gradient.
    learner.config = replace(config, alpha=0.0)
    learner.setting = replace(
        learner.setting, protocol=replace(learner.setting.protocol, classifier_in_unlabelled_elbo=True)
    )
    for weight, gradient in zip(
        learner.model.classifier.parameters(),
        torch.autograd.grad(learner.loss(everybody).sum(), list(learner.model.classifier.parameters())),
        strict=True,
    ):
        assert gradient.shape == weight.shape
        assert (gradient == 0).all()
    assert loss.isfinite()


@pytest.mark.parametrize("switch", [False, True])
def test_unlabelled_gradient_reaches_the_classifier_as_the_protocol_says(
    switch: bool, config: FairAllConfig, setting: MakeSetting, people: MakePeople
) -> None:
    given = setting([0], f"protocol.classifier_in_unlabelled_elbo={switch}")
    learner = FairAll(replace(config, alpha=0.0), given)
    learner.loss(decided(people(9), torch.zeros(1, 9, dtype=torch.bool))).sum().backward()
    gradients = [weight.grad for weight in learner.model.classifier.parameters()]
    assert any(g is not None and (g != 0).any() for g in gradients) is switch


def test_loss_gradient_by_finite_differences(
    config: FairAllConfig, setting: MakeSetting, people: MakePeople
) -> None:
    batch = decided(people(8), torch.tensor([[True, False] * 4, [False] * 7 + [True]]))
    learner = FairAll(replace(config, clf_dropout=0.0), setting([0, 1], "protocol=text"))

    def loss() -> Tensor:
        learner.noise = RandomNumbers([0, 1], "the same noise each time")
        return learner.loss(batch).sum()

    parameters = list(learner.model.parameters())
    gradients = torch.autograd.grad(loss(), parameters)
    step = 3e-3
    generator = torch.Generator().manual_seed(0)
    directions = [torch.randn(p.shape, generator=generator) for p in parameters]
    directional = sum((g * d).sum() for g, d in zip(gradients, directions, strict=True))
    values = []
    with torch.no_grad():
        for sign in (1, -1):
            for p, d in zip(parameters, directions, strict=True):
                p.add_(d, alpha=sign * step)
            values.append(loss())
            for p, d in zip(parameters, directions, strict=True):
                p.sub_(d, alpha=sign * step)
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


def test_propensity_weighs_both_branches_exactly_and_repeats(
    config: FairAllConfig, setting: MakeSetting, people: MakePeople
) -> None:
    learner = FairAll(replace(config, propensity_samples=4000), setting([0]))
    crowd = people(3)
    x, s = crowd.x[None], crowd.s[None]
    measured = learner.propensity(x, s, SeedStreams([0], "evaluation"))
    torch.testing.assert_close(measured, learner.propensity(x, s, SeedStreams([0], "evaluation")))
    with torch.no_grad():
        good = torch.sigmoid(learner.model.classify(x, s))
        by_branch = []
        for u in (0.0, 1.0):
            loc, scale = learner.model.vae.encode(x, s, torch.full((1, 3), u))
            z = loc.unsqueeze(2) + scale.unsqueeze(2) * torch.randn(1, 3, 4000, 2)
            accepts = torch.sigmoid(net_of(learner)(z.flatten(1, 2)))
            by_branch.append(accepts.reshape(1, 3, 4000).mean(-1))
    expected = (1 - good) * by_branch[0] + good * by_branch[1]
    torch.testing.assert_close(measured, expected, atol=0.02, rtol=0)


def test_policy_learns_what_the_decoder_says(
    config: FairAllConfig, setting: MakeSetting, people: MakePeople
) -> None:
    learner = FairAll(replace(config, clf_dropout=0.0), setting([0, 1]))
    # One group: the decoder reads s, which the policy may not.
    crowd = decided(replace(people(64), s=torch.ones(64)), torch.ones(2, 64, dtype=torch.bool))
    for _ in range(100):
        learner.epochs.policy_epoch(learner, crowd)  # the policy alone learns
    z, target = examples(learner, crowd)
    with torch.no_grad():
        guess = (net_of(learner)(z).squeeze(-1) > 0).float()
    assert 0.1 < target.mean() < 0.9
    assert (guess == target).float().mean() > 0.9


@pytest.mark.parametrize("protocol", ["corrected", "text"])
def test_policy_target_is_the_protocols(
    protocol: str, config: FairAllConfig, setting: MakeSetting, people: MakePeople
) -> None:
    cost = 0.3
    learner = FairAll(
        replace(config, clf_dropout=0.0), replace(setting([0], f"protocol={protocol}"), cost=cost)
    )
    everybody = decided(people(400), torch.ones(1, 400, dtype=torch.bool))
    z, target = examples(learner, everybody)
    with torch.no_grad():
        good = learner.model.decoded_utility(z.unsqueeze(-1), everybody.s).squeeze(-1)
    assert ((good > cost) & (good < 0.5)).any(), "people on whom a threshold of ½ would differ"
    if protocol == "corrected":
        assert (target == (good >= cost)).all()
    else:
        assert 0.1 < (target == (good >= cost)).float().mean() < 0.95
        assert abs(target.mean() - good.mean()) < 0.08


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
        latents.append(examples(learner, decided(replace(crowd, label=label), accepted))[0][0])
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
    z, _ = examples(learner, decided(crowd, torch.zeros(1, 4000, dtype=torch.bool)))
    good = torch.sigmoid(learner.model.classify(person.x[None], person.s[None])).item()
    assert 0.05 < good < 0.95
    torch.testing.assert_close(z, z.round(), atol=1e-2, rtol=0)
    assert z.mean().item() == pytest.approx(good, abs=0.03)


def test_warm_up_trains_the_policy_too(
    config: FairAllConfig, setting: MakeSetting, people: MakePeople
) -> None:
    learner = FairAll(config, setting([0], "schedule.warm_up_epochs=2"))
    before = [p.detach().clone() for p in net_of(learner).parameters()]
    told = warm_up(learner, decided(people(12), torch.ones(1, 12, dtype=torch.bool)))
    assert [set(figures) for figures in told] == [{"loss"}, {"loss"}]
    assert all((a != b).any() for a, b in zip(before, net_of(learner).parameters(), strict=True))


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


@pytest.mark.whole
@pytest.mark.parametrize("latent_size", [5, 12])
@pytest.mark.parametrize(("computed", "tolerance"), [("compiled", 0.0), ("torch", 1e-3)])
def test_phase1_of_a_seed_is_the_same_alone_and_among_ten_if_compiled_to_the_last_bit(
    computed: str,
    tolerance: float,
    latent_size: int,
    credit: PreparedData,
    compose_config: ComposeConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if computed == "compiled" and calls.kernels() is None:
        pytest.skip("numba is not installed, or switched off")
    if computed == "torch":
        monkeypatch.setattr(calls, "kernels", lambda: None)
    config = compose_config()
    schedule = replace(config.schedule, phase1_epochs=10)  # 40 updates
    model = replace(config.model, latent_size=latent_size)
    model.phase1 = replace(model.phase1, validate_every=1)
    found = {}
    for k, seeds in ((3, range(10)), (0, [3])):
        learner = FairAll(model, Setting(credit.schema, 0.5, list(seeds), schedule, config.protocol))
        learned = learner.pretrain(credit, cache_in(tmp_path / str(k)), lambda **_: None)
        assert learned is not None
        weights = [values[k] for values in learner.model.vae.state_dict().values()]
        found[k] = (learned.train[:, k], learned.validation[:, k], *weights)
    torch.testing.assert_close(found[3], found[0], rtol=tolerance, atol=tolerance)


def test_phase2_starts_with_fresh_optimisers(
    people: MakePeople, setting: MakeSetting, config: FairAllConfig
) -> None:
    learner = FairAll(config, setting([0, 1]))
    crowd = decided(people(30), torch.arange(30).expand(2, -1) % 2 == 0)
    warm_up(learner, crowd)
    for optimiser in (learner.epochs.model, learner.epochs.policy):
        assert not torch.as_tensor(optimiser.steps).any()
    before = [parameter.clone() for parameter in net_of(learner).parameters()]
    learner.update(crowd)
    assert all(
        not torch.equal(old, new) for old, new in zip(before, net_of(learner).parameters(), strict=True)
    )
