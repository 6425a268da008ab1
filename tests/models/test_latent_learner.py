"""FairAll and FairLab: losses, policies, and what one phase hands to the next."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, distributions

from fairall.config.schema import KL
from fairall.data.people import Decided
from fairall.models.elbo import mixture_kl
from fairall.models.latent_learner import POLICIES
from fairall.nn import native
from fairall.nn.noise import RandomNumbers
from fairall.runtime.randomness import SeedStreams
from tests.conftest import ComposeConfig, MakePeople, MakeSetting, cache_in, training_of
from tests.models.conftest import decided_on, stacked

Make = Callable[..., Any]
COST, ALPHA, BETA = 0.3, 4.0, 0.7
WORDS = f"""
    model.latent_size=2 model.vae_arch=[8] model.clf_arch=[8,8] model.clf_dropout=0 model.elbo_samples=3
    model.alpha={ALPHA} model.beta={BETA} model.phase1=null cost.value={COST} protocol.vae_start=random
""".split()


@pytest.fixture
def make(compose_config: ComposeConfig, setting: MakeSetting) -> Make:
    """Makes a learner with small nets, at a cost that is not ½."""

    def made(*words: str, seeds: tuple[int, ...] = (0, 1)) -> Any:
        return compose_config(*WORDS, *words).model.build(setting([*seeds], *WORDS, *words))

    return made


def noise(*seeds: int, **how: Any) -> RandomNumbers:
    """The same every time."""
    return RandomNumbers(seeds, "of a test", **how)


def streams() -> SeedStreams:
    return SeedStreams([0, 1], "of a test")


def definition(
    learner: Any, decided: Decided, *, weight: str = "", bound: float = 100.0, risk: bool = True
) -> float:
    """The loss of a seed alone, person by person: U only of FairAll, no `weight` of L elsewhere."""
    vae, draws = learner.model.vae, noise(*learner.setting.seeds, stratified=True)
    n_elbo, n_kl = 3, learner.config.kl_samples

    def terms(of: Decided, eps: Tensor, u: Tensor) -> tuple[Tensor, ...]:
        loc, scale = vae.encode(of.x, of.s, u)
        outputs = vae.decode(loc.unsqueeze(-1) + scale.unsqueeze(-1) * eps[..., :n_elbo], of.s)
        of_u = distributions.Bernoulli(logits=outputs[:, -1]).log_prob(u.unsqueeze(-1)).mean(-1)
        return vae.likelihood.log_prob(outputs[:, :-1], of.x), of_u, loc, scale

    def mean(values: Tensor) -> float:
        return values.sum().item() / max(1, values.numel())

    known, others = (
        Decided(**{name: of[:, mask[0]] for name, of in vars(decided).items()})
        for mask in (decided.accepted, ~decided.accepted)
    )
    logit, y = learner.model.classify(known.x, known.s), known.label
    entropy = -COST * (1 - y) * F.logsigmoid(-logit) - (1 - COST) * y * F.logsigmoid(logit)
    inverse = (1 / known.propensity).clamp(max=bound)
    of_elbo = {"": 1.0, "inverse_propensity": inverse, "propensity": known.propensity}[weight]
    log_x, of_u, loc, scale = terms(known, draws.samples(y.shape[1], 2, max(n_elbo, n_kl)), y)
    kl = distributions.kl_divergence(distributions.Normal(loc, scale), distributions.Normal(0.0, 1.0)).sum(-1)
    loss = risk * ALPHA * mean(entropy * inverse) - mean(of_elbo * (log_x + of_u - BETA * kl))
    if n_kl == 0:
        return loss
    eps = draws.samples(others.s.shape[1], 2, 2, n_kl)
    branches = (terms(others, eps[:, :, u], torch.full_like(others.s, u)) for u in (0, 1))
    log_x, _, loc, scale = (torch.stack(both, 2) for both in zip(*branches, strict=True))
    logit = learner.model.classify(others.x, others.s)
    good = torch.sigmoid(logit)
    expected = (1 - good) * log_x[..., 0] + good * log_x[..., 1]
    return loss - mean(expected - BETA * mixture_kl(logit, loc, scale, eps, learner.setting.protocol.kl))


FAIRLAB = "model=fairlab_I_II protocol.max_ips_weight"


@pytest.mark.parametrize(
    ("words", "terms"),
    [
        *((f"model.kl_samples=4 protocol.kl={kl.name}", {}) for kl in KL),
        (f"{FAIRLAB}=5", {"weight": "inverse_propensity", "bound": 5.0}),
        (
            f"{FAIRLAB}=null protocol.fairlab_classifier=untrained",
            {"weight": "inverse_propensity", "bound": torch.inf, "risk": False},
        ),
        (f"{FAIRLAB}=100 protocol.fairlab_weight=propensity", {"weight": "propensity"}),
    ],
    ids=str,
)
@torch.no_grad()
def test_loss_is_its_definition_on_the_same_noise(
    words: str, terms: dict[str, Any], make: Make, people: MakePeople
) -> None:
    decided = decided_on(people(12), 3, first=0.005)
    accepted = decided.accepted & torch.tensor([[True], [False], [True]])  # nobody in the second
    decided = replace(decided, accepted=accepted, label=decided.label * accepted)
    learner = make(*words.split(), seeds=(0, 1, 2))
    learner.noise = noise(0, 1, 2, stratified=True)
    for seed, measured in enumerate(learner.loss(decided).tolist()):
        alone = Decided(*(of[seed : seed + 1] for of in vars(decided).values()))
        expected = definition(make(*words.split(), seeds=(seed,)), alone, **terms)
        assert measured == pytest.approx(expected, rel=1e-4)


def test_weights_begin_as_the_page_says(make: Make) -> None:
    # The table of docs/protocols.md: what published_code does otherwise than the authors' code.
    learner = make("protocol=published_code")
    assert not any(of.any() for name, of in learner.named_parameters() if name.endswith("bias"))
    head = learner.model.vae.encoder.last.weight
    bound = 2**0.5 * (6 / (head.shape[1] + head.shape[2])) ** 0.5
    assert 0.9 * bound < head.abs().max() <= bound


@torch.no_grad()
def test_the_policy_sees_the_label_of_the_accepted_and_what_the_classifier_guesses_of_others(
    make: Make, people: MakePeople, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(x: Tensor, s: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        return u.unsqueeze(-1).expand(*u.shape, 2), torch.full((*u.shape, 2), 1e-9)

    learner, n = make(), 4000
    monkeypatch.setattr(learner.model.vae, "posterior", told)  # the latent is ũ
    x, s = (of.repeat_interleave(n, dim=1) for of in stacked(people(3)))
    kind = torch.arange(3 * n).expand(2, -1) // n
    batch = Decided(x, s, torch.full_like(s, 0.5), kind < 2, (kind == 1).float())
    z = learner.model.draw_latent(batch, learner.noise)
    good = torch.sigmoid(learner.model.classify(x, s))[:, -1:]
    expected = torch.cat([0 * good, 1 + 0 * good, good], -1)
    torch.testing.assert_close(z.unflatten(1, (3, n)).mean((2, 3)), expected, atol=0.03, rtol=0)
    assert ((good > 0.05) & (good < 0.95)).all()


# Policies


@pytest.mark.parametrize("name", POLICIES)
@torch.no_grad()
def test_what_z_says_is_averaged_over_both_branches(
    name: str, make: Make, people: MakePeople, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, n = make(f"model.policy={name}", "model.propensity_samples=4000"), 8000
    x, s = stacked(people(5))
    compiled = own.score(x, s, streams())
    monkeypatch.setattr(native, "kernels", lambda: None)
    measured, expected = own.score(x, s, streams()), torch.sigmoid(own.model.classify(x, s))
    if name != "clf":  # n independent z per person, ũ drawn for each
        x, s, good = (of.repeat_interleave(n, dim=1) for of in (x, s, expected))
        loc, scale = own.model.vae.encode(x, s, torch.bernoulli(good))
        z = loc + scale * torch.randn_like(loc)
        logit = own.model.vae.decode(z.unsqueeze(-1), s)[:, -1] if name == "dec" else own.policy_net(z)
        expected = torch.sigmoid(logit).view(2, 5, n).mean(-1)
    torch.testing.assert_close(compiled, measured, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(measured, expected, atol=0.01 * (name != "clf"), rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "bound"),
    [("z_clf", 100.0), ("z_dec", 100.0), ("z_label", torch.inf), ("z_label", 4.0)],
)
def test_loss_is_the_cross_entropy_with_what_the_policy_is_to_decide(
    name: str, bound: float, make: Make, people: MakePeople
) -> None:
    own = make(f"model.policy={name}", f"protocol.max_ips_weight={'null' if bound > 100 else bound}")
    batch = decided_on(people(400), 2, share=0.5, first=0.005)
    own.noise = noise(0, 1)
    measured = own.policy_loss(batch)
    with torch.no_grad():
        z = own.model.draw_latent(batch, noise(0, 1))
        by_classifier = torch.sigmoid(own.model.classify(batch.x, batch.s))
        by_decoder = torch.sigmoid(own.model.vae.decode(z.unsqueeze(-1), batch.s)[:, -1, :, 0])
    for estimate in (by_classifier, by_decoder):
        assert ((estimate > COST) & (estimate < 0.5)).any(), "people on whom thresholds differ"
    # The classifier's loss weights ũ = 1 with 1 − c, and ũ = 0 with c, so that ½ is p(ũ = 1) = c.
    asked = {"z_clf": by_classifier >= 0.5, "z_dec": by_decoder >= COST, "z_label": batch.label > 0}[name]
    weight = torch.where(asked, 1 - COST, COST)
    if name == "z_label":
        weight = weight * (1 / batch.propensity).clamp(max=bound) * batch.accepted
        weight = weight / batch.accepted.float().mean(-1, keepdim=True)
    entropy = F.binary_cross_entropy_with_logits(
        own.policy_net(z).squeeze(-1), asked.float(), reduction="none"
    )
    torch.testing.assert_close(measured, (entropy * weight).mean(-1))
    measured.sum().backward()
    assert all((of.grad is None) == name.startswith("model") for name, of in own.named_parameters())


# Phases


@pytest.mark.parametrize(("updates", "at"), [("24", [3, 6]), ("15", [2, 3])])
def test_phase1_ends_within_its_updates_and_hands_its_weights_on(
    updates: str, at: list[int], tmp_path: Path
) -> None:
    words = "dataset=credit", "seeds=2", "schedule.phase1_epochs=6", "model.phase1.validate_every=3"
    for limit in (updates, "null"):  # a limit that does not apply leaves the cached Phase I valid
        training = training_of(*words, f"model.phase1.updates={limit}")
        learner: Any = training.learner
        curves = learner.pretrain(training.data, cache_in(tmp_path), lambda **_: None)
        assert curves.epochs.tolist() == (at if limit == updates else [3, 6])
    files = [*(tmp_path / "phase1").glob("*.pt")]
    assert len(files) == 1 + (at != [3, 6])
    weights = learner.model.vae.encoder.layers[1].weight
    kept = [torch.load(file, weights_only=True)["state"]["vae"] for file in files]
    assert any(torch.equal(of["encoder.layers.1.weight"], weights) for of in kept)
