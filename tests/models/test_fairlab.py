from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import expit
from torch import Tensor, distributions

from fairall.data.people import Decided, People
from fairall.models.fairlab import FairLab
from fairall.models.latent_learner import LatentConfig
from fairall.models.learner import Setting
from fairall.models.objectives import classification_risk
from fairall.nn.noise import RandomNumbers
from fairall.runtime.randomness import SeedStreams
from tests.conftest import ComposeConfig, warm_up
from tests.models.conftest import decided_on

MakePeople = Callable[[int], People]
MakeSetting = Callable[..., Setting]
WEIGHTS = ["inverse_propensity", "propensity"]


@pytest.fixture
def config(compose_config: ComposeConfig) -> LatentConfig:
    return replace(
        compose_config("model=fairlab_I_II").model,
        learning_rate=0.01,
        latent_size=2,
        vae_arch=[8],
        clf_arch=[8, 8],
        clf_dropout=0.0,
        alpha=3.0,
        elbo_samples=3,
        phase1=None,
    )


def loss_on_the_same_noise(learner: FairLab, batch: Decided) -> Tensor:
    learner.noise = RandomNumbers(learner.setting.seeds, "the same noise each time")
    return learner.loss(batch)


@torch.no_grad()
def elbos(learner: FairLab, batch: Decided) -> Tensor:
    """E_q[log p(x, ũ | z, s)] − β·KL of labelled rows on the noise of `loss_on_the_same_noise`, (E, B)."""
    config, vae = learner.config, learner.model.vae
    n_seeds, n_rows = batch.s.shape
    streams = RandomNumbers(learner.setting.seeds, "the same noise each time")
    counts = batch.accepted.sum(-1).tolist()
    drawn = streams.samples(max(counts), config.latent_size, config.elbo_samples, counts=counts)
    noise = torch.zeros(n_seeds, n_rows, config.latent_size, config.elbo_samples)
    for own, accepted, packed, count in zip(noise, batch.accepted, drawn, counts, strict=True):
        own[accepted] = packed[:count]
    posterior = distributions.Normal(*vae.encode(batch.x, batch.s, batch.label))
    kl = distributions.kl_divergence(posterior, distributions.Normal(0.0, 1.0)).sum(-1)
    values = torch.zeros(n_seeds, n_rows)
    for sample in range(config.elbo_samples):
        z = posterior.loc + posterior.scale * noise[..., sample]
        outputs = vae.decode(z.unsqueeze(-1), batch.s)
        of_utility = distributions.Bernoulli(logits=outputs[:, -1, :, 0]).log_prob(batch.label)
        values += (vae.likelihood.log_prob(outputs[:, :-1], batch.x) + of_utility) / config.elbo_samples
    return values - config.beta * kl


@pytest.mark.parametrize("classifier", ["trained", "untrained"])
@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("bound", [None, 100.0, 5.0])
def test_loss_is_the_weighted_labelled_elbo_and_the_weighted_risk(
    bound: float | None,
    weight: str,
    classifier: str,
    config: LatentConfig,
    setting: MakeSetting,
    people: MakePeople,
) -> None:
    cost = 0.3
    learner = FairLab(
        config,
        setting(
            [0, 1],
            f"cost.value={cost}",
            f"protocol.fairlab_weight={weight}",
            f"protocol.fairlab_classifier={classifier}",
            f"protocol.max_ips_weight={'null' if bound is None else bound}",
        ),
    )
    batch = decided_on(people(12), 2, first=0.005)
    measured = loss_on_the_same_noise(learner, batch)
    elbo = elbos(learner, batch)
    with torch.no_grad():
        logits = learner.model.classify(batch.x, batch.s).double()
    for k in range(2):
        labelled, risk = [], []
        for row in np.flatnonzero(batch.accepted[k]):
            q, y, pi = (values[k, row].item() for values in (expit(logits), batch.label, batch.propensity))
            inverse = 1 / pi if bound is None else min(1 / pi, bound)
            labelled.append((inverse if weight == "inverse_propensity" else pi) * elbo[k, row].item())
            risk.append(-inverse * (cost * (1 - y) * np.log(1 - q) + (1 - cost) * y * np.log(q)))
        assert 0 < len(labelled) < 12
        expected = -np.mean(labelled)
        if classifier == "trained":
            expected += config.alpha * np.mean(risk)
        assert measured[k].item() == pytest.approx(expected, rel=1e-4)


def trained(config: LatentConfig, given: Setting, crowd: People, epochs: int) -> FairLab:
    learner = FairLab(config, given)
    warm_up(learner, decided_on(crowd, len(given.seeds), first=0.005))
    for _ in range(epochs):
        learner.update(decided_on(crowd, len(given.seeds), first=0.005))
    return learner


def test_an_untrained_classifier_stays_as_it_starts_and_a_trained_one_lowers_its_risk(
    config: LatentConfig, setting: MakeSetting, people: MakePeople
) -> None:
    crowd, start = people(60), FairLab(config, setting([0, 1])).model
    batch = decided_on(crowd, 2, first=0.005)
    risks, propensities = {}, []
    for how in ("trained", "untrained"):
        given = setting([0, 1], f"protocol.fairlab_classifier={how}", "schedule.warm_up_epochs=3")
        learner = trained(config, given, crowd, 40)
        own = learner.model
        for now, first in zip(own.classifier.parameters(), start.classifier.parameters(), strict=True):
            assert torch.equal(now, first) is (how == "untrained")
        assert not any(map(torch.equal, own.vae.parameters(), start.vae.parameters()))
        with torch.no_grad():
            risks[how] = classification_risk(own.classify(batch.x, batch.s), batch, given)
        propensities.append(learner.propensity(batch.x, batch.s, SeedStreams([0, 1], "p")))
    assert (risks["trained"] < 0.7 * risks["untrained"]).all()
    assert ((propensities[0] - propensities[1]).abs().amax(-1) > 1e-4).all()


@pytest.mark.parametrize("protocol", ["corrected", "published_code"])
def test_with_nobody_accepted_nothing_changes(
    protocol: str, config: LatentConfig, setting: MakeSetting, people: MakePeople
) -> None:
    batch = decided_on(people(20), 2, first=0.005)
    accepted = batch.accepted & torch.tensor([[False], [True]])
    nobody_in_the_first = replace(
        batch,
        accepted=accepted,
        label=batch.label * accepted,
        propensity=torch.where(accepted, batch.propensity, torch.zeros(())),
    )
    learner = FairLab(config, setting([0, 1], f"protocol={protocol}"))
    start = [parameter.detach().clone() for parameter in learner.parameters()]
    assert learner.loss(nobody_in_the_first)[0] == 0
    for _ in range(3):
        learner.update(nobody_in_the_first)
    moved = []
    for now, first in zip(learner.parameters(), start, strict=True):
        assert now.isfinite().all()
        assert torch.equal(now[0], first[0])
        moved.append(not torch.equal(now[1], first[1]))
    assert any(moved)
