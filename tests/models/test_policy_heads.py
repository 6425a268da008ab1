import functools
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from fairall.data.people import Decided
from fairall.models.fairall import FairAll, FairAllConfig
from fairall.models.policy_heads import NET_POLICIES, POLICIES, net_loss
from fairall.models.vae import SemiSupervisedVAE
from fairall.nn.noise import RandomNumbers
from fairall.runtime.randomness import SeedStreams
from tests.conftest import ComposeConfig, MakePeople, MakeSetting
from tests.models.conftest import decided_on, net_of, stacked

MakeLearner = Callable[..., FairAll]
COST = 0.3


@pytest.fixture
def learner(compose_config: ComposeConfig, setting: MakeSetting) -> MakeLearner:
    """A learner of two seeds with small nets and a policy, at a cost that is not ½."""
    config: FairAllConfig = replace(
        compose_config().model,
        latent_size=2,
        vae_arch=[8],
        clf_arch=[8, 8],
        clf_dropout=0.0,
        elbo_samples=3,
        kl_samples=4,
        phase1=None,
    )

    def made(policy: str, *overrides: str, decision: str = "sample", samples: int = 16) -> FairAll:
        # From random weights: with vae_start=group_blind the decoder could not tell the groups apart yet.
        given = setting([0, 1], f"cost.value={COST}", "protocol.vae_start=random", *overrides)
        return FairAll(replace(config, policy=policy, decision=decision, propensity_samples=samples), given)

    return made


decided = functools.partial(decided_on, n_seeds=2, share=0.5, first=0.005)


def loss_of(learner: FairAll, batch: Decided) -> Tensor:
    return net_loss(learner.config.policy, learner.model, net_of(learner), batch, noise(), learner.setting)


def noise() -> RandomNumbers:
    return RandomNumbers([0, 1], "of a test")


def streams() -> SeedStreams:
    return SeedStreams([0, 1], "of a test")


@pytest.mark.parametrize("name", POLICIES)
def test_propensity_is_a_probability_that_equal_streams_repeat(
    name: str, learner: MakeLearner, people: MakePeople
) -> None:
    own = learner(name)
    x, s = stacked(people(90))  # more than a chunk
    propensity = own.propensity(x, s, streams())
    assert propensity.shape == (2, 90)
    assert ((propensity >= 0) & (propensity <= 1)).all()
    assert propensity.std(-1).min() > 1e-3
    assert torch.equal(propensity, own.propensity(x, s, streams()))
    draws_nothing = name == "clf"
    assert torch.equal(propensity, own.propensity(x, s, SeedStreams([0, 1], "others"))) is draws_nothing


@pytest.mark.parametrize("name", POLICIES)
def test_a_deterministic_policy_says_yes_from_its_threshold_on(
    name: str, learner: MakeLearner, people: MakePeople
) -> None:
    x, s = stacked(people(300))
    sampled, fixed = learner(name), learner(name, decision="deterministic")
    if name in NET_POLICIES:
        middle = torch.logit(sampled.propensity(x, s, streams()).median(-1).values)
        for own in (sampled, fixed):
            with torch.no_grad():
                net_of(own).layers[-1].bias -= middle.reshape(2, 1, 1)
    decisions = fixed.propensity(x, s, streams())
    assert set(decisions.flatten().tolist()) == {0.0, 1.0}
    assert (decisions == (sampled.propensity(x, s, streams()) >= fixed.rule.threshold).float()).all()


@pytest.mark.parametrize("name", POLICIES)
def test_threshold_is_the_cost_for_the_decoder_alone(name: str, learner: MakeLearner) -> None:
    assert learner(name).rule.threshold == (COST if name == "dec" else 0.5)


@pytest.mark.parametrize(
    ("name", "told_apart_by"),
    [*[(name, "z") for name in NET_POLICIES], ("dec", "z and s"), ("clf", "x and s")],
)
def test_of_people_with_one_latent_only_a_policy_without_a_net_tells_who_is_who(
    name: str, told_apart_by: str, learner: MakeLearner, people: MakePeople, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_latent(self: SemiSupervisedVAE, x: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        return torch.full((*s.shape, 2, 2), 0.7), torch.zeros(*s.shape, 2, 2)

    monkeypatch.setattr(SemiSupervisedVAE, "posteriors", one_latent)
    crowd = people(30)
    propensity = learner(name).propensity(*stacked(crowd), streams())
    spread_of_all = propensity.std(-1)
    spread_of_a_group = propensity[:, crowd.s > 0].std(-1)
    assert ((spread_of_all > 1e-4) == (told_apart_by != "z")).all()
    assert ((spread_of_a_group > 1e-4) == (told_apart_by == "x and s")).all()


@pytest.mark.parametrize("name", [*NET_POLICIES, "dec"])
def test_what_z_says_is_averaged_over_both_branches(
    name: str, learner: MakeLearner, people: MakePeople
) -> None:
    own = learner(name, samples=4000)
    x, s = stacked(people(5))

    def accepts(z: Tensor, s: Tensor) -> Tensor:
        if name == "dec":
            return torch.sigmoid(own.model.vae.decode(z.unsqueeze(-1), s)[:, -1, :, 0])
        return torch.sigmoid(net_of(own)(z)).squeeze(-1)

    measured = own.propensity(x, s, streams())
    torch.testing.assert_close(measured, average_over_branches(own, x, s, accepts), atol=0.01, rtol=0)


@torch.no_grad()
def average_over_branches(
    learner: FairAll, x: Tensor, s: Tensor, accepts: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """Of 8000 independent z per person, ũ drawn for each."""
    n = 8000
    good = torch.sigmoid(learner.model.classify(x, s))
    x, s, good = (values.repeat_interleave(n, dim=1) for values in (x, s, good))
    loc, scale = learner.model.vae.encode(x, s, torch.bernoulli(good))
    return accepts(loc + scale * torch.randn_like(loc), s).unflatten(1, (-1, n)).mean(-1)


def test_the_classifier_decides_with_its_sigmoid(learner: MakeLearner, people: MakePeople) -> None:
    own = learner("clf")
    x, s = stacked(people(70))
    with torch.no_grad():
        expected = 1 / (1 + torch.exp(-own.model.classify(x, s)))
    torch.testing.assert_close(own.propensity(x, s, streams()), expected)


@pytest.mark.parametrize(
    ("name", "bound"),
    [("z_clf", 100.0), ("z_dec", 100.0), *(("z_label", bound) for bound in (None, 100.0, 4.0))],
)
def test_loss_is_the_cross_entropy_with_what_the_policy_is_to_decide(
    name: str, bound: float | None, learner: MakeLearner, people: MakePeople
) -> None:
    own = learner(name, f"protocol.max_ips_weight={'null' if bound is None else bound}")
    batch = decided(people(400))
    measured = loss_of(own, batch)
    with torch.no_grad():
        z = own.model.draw_latent(batch, noise())
        by_classifier = torch.sigmoid(own.model.classify(batch.x, batch.s))
        by_decoder = torch.sigmoid(own.model.vae.decode(z.unsqueeze(-1), batch.s)[:, -1, :, 0])
    for estimate in (by_classifier, by_decoder):
        assert ((estimate > COST) & (estimate < 0.5)).any(), (
            "people on whom the other's threshold would differ"
        )
    # The classifier's loss weights ũ = 1 with 1 − c, and ũ = 0 with c, so that ½ is p(ũ = 1) = c.
    asked = {"z_clf": by_classifier >= 0.5, "z_dec": by_decoder >= COST, "z_label": batch.label > 0}[name]
    weight = torch.where(asked, 1 - COST, COST)
    if name == "z_label":
        weight = weight * (1 / batch.propensity).clamp(max=bound or torch.inf) * batch.accepted
        weight = weight / batch.accepted.float().mean(-1, keepdim=True)
    entropy = F.binary_cross_entropy_with_logits(net_of(own)(z).squeeze(-1), asked.float(), reduction="none")
    torch.testing.assert_close(measured, (entropy * weight).mean(-1))


@pytest.mark.parametrize("name", NET_POLICIES)
def test_learning_the_policy_leaves_the_model_of_people_alone(
    name: str, learner: MakeLearner, people: MakePeople
) -> None:
    own = learner(name)
    loss_of(own, decided(people(40))).sum().backward()
    assert all(weight.grad is None for weight in own.model.parameters())
    assert all(weight.grad is not None for weight in net_of(own).parameters())


@pytest.mark.parametrize("name", ["z_clf", "z_dec"])
def test_a_net_comes_to_agree_with_its_teacher(name: str, learner: MakeLearner, people: MakePeople) -> None:
    own = learner(name)
    # One group: teachers read s, which the net may not.
    crowd = people(64)
    batch = replace(decided(crowd), s=torch.ones(2, 64))
    for _ in range(100):
        own.epochs.policy_epoch(own, batch)  # the policy alone learns
    x, s = batch.x, batch.s
    teacher = learner("clf" if name == "z_clf" else "dec")
    teacher.model.load_state_dict(own.model.state_dict())
    opinion = teacher.propensity(x, s, streams())
    accepted = own.propensity(x, s, streams()) >= 0.5
    agreement = (accepted == (opinion >= teacher.rule.threshold)).float().mean()
    assert agreement > 0.85
