"""Epochs of Phase II compiled against those of torch, with shared noise."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from fairall.config.compose import typed_config
from fairall.data.features import Feature, Kind, Schema
from fairall.data.people import Decided
from fairall.models.fairall import FairAll
from fairall.models.latent_learner import LatentLearner, Phase2Epochs
from fairall.models.learner import Setting
from fairall.nn import native
from fairall.nn.native import calls
from fairall.nn.native.calls import use_threads
from fairall.runtime.randomness import SeedStreams

SCHEMA = Schema(
    [
        Feature("height", Kind.REAL),
        Feature("visits", Kind.COUNT),
        Feature("member", Kind.BINARY, (1.0, 2.0)),
        Feature("job", Kind.CATEGORICAL, (1.0, 2.0, 3.0)),
        Feature("zone", Kind.CATEGORICAL, (0.0, 1.0, 2.0, 5.0)),
    ]
)
FEW = ["protocol.noise=stratified", "model.elbo_samples=7"]
compiled_only = pytest.mark.skipif(calls.kernels() is None, reason="numba is not installed, or switched off")


def people(shares: list[float], n: int = 37) -> Decided:
    """Decided people of replicates with these shares of accepted ones."""
    draw = torch.Generator().manual_seed(0)
    e = len(shares)

    def code(*codes: float) -> Tensor:
        return torch.tensor(codes, dtype=torch.float32)[torch.randint(len(codes), (e, n), generator=draw)]

    x = [torch.randn(e, n, generator=draw), code(0, 1, 2, 5), code(1, 2), code(1, 2, 3), code(0, 1, 2, 5)]
    accepted = torch.rand(e, n, generator=draw) < torch.tensor(shares).unsqueeze(-1)
    propensity = 0.1 + 0.9 * torch.rand(e, n, generator=draw)
    return Decided(torch.stack(x, -1), code(-1, 1), propensity, accepted, code(0, 1) * accepted)


def learner(*words: str, seeds: tuple[int, ...] = (0, 1), kind: type[LatentLearner] | None = None) -> Any:
    """An untrained learner with small nets, whose groups have other latent axes."""
    config = typed_config("preset=quick", "schedule.batches_per_epoch=1", *words)
    model = replace(config.model, vae_arch=[8, 9], clf_arch=[8, 7], phase1=None)
    setting = Setting(SCHEMA, 0.3, list(seeds), config.schedule, config.protocol)
    made: Any = (kind or model.target)(model, setting)
    frame = made.model.vae.frame
    turned = frame[:, torch.randperm(frame.shape[1], generator=torch.Generator().manual_seed(1))]
    turned[:, :3] *= -1
    frame.copy_(turned)
    return made


def gradients(own: Any) -> list[Tensor]:
    """A tenth of the gradients of the model's and of the policy net's first update, each (E, n)."""
    nets = [own.model.vae.encoder, own.model.vae.decoder, own.model.classifier]
    found = []
    for optimiser, of_nets in ((own.epochs.model, nets), (own.epochs.policy, [own.policy_net])):
        if optimiser is None:
            continue
        if isinstance(own.epochs, native.functions.Phase2Epochs):
            found.append(optimiser.moments[0])
            continue
        means = {id(p): mean for p, mean in zip(optimiser.parameters, optimiser.means, strict=True)}
        weights = [weight for net in of_nets for weight in net.weights_and_biases()]
        found.append(torch.cat([means[id(weight)].flatten(1) for weight in weights], dim=1))
    return found


def first_update(decided: Decided, *words: str) -> tuple[float, list[Tensor], Tensor, bool]:
    own = learner(*words)
    loss = own.epochs.model_epoch(own, decided)
    own.epochs.policy_epoch(own, decided)
    return loss, gradients(own), own.noise.state, isinstance(own.epochs, native.functions.Phase2Epochs)


def agree(decided: Decided, *words: str) -> None:
    """Assert that loss, gradients and the use of random numbers are those of torch."""
    loss, own, state, compiled = first_update(decided, *words)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calls, "kernels", lambda: None)
        expected, known, known_state, twin = first_update(decided, *words)
    assert (compiled, twin) == (True, False)
    assert loss == pytest.approx(expected, rel=1e-5)
    assert torch.equal(state, known_state)
    for gradient, other in zip(own, known, strict=True):
        assert (gradient - other).abs().sum() <= 1e-4 * other.abs().sum()
        assert other.abs().max() > 0.0 or "protocol=published_code" in words


@compiled_only
@pytest.mark.parametrize("more", [[], [*FEW, "model.clf_dropout=0.3"]], ids=["as it is", "few"])
@pytest.mark.parametrize("policy", ["z_dec", "z_clf", "z_label", "dec"])
@pytest.mark.parametrize("protocol", ["corrected", "published_code"])
@pytest.mark.parametrize("model", ["fairall_I_II", "fairlab_I_II"])
def test_loss_and_gradients_are_those_of_torch(
    model: str, protocol: str, policy: str, more: list[str]
) -> None:
    agree(people([0.4, 0.6]), f"model={model}", f"protocol={protocol}", f"model.policy={policy}", *more)


@compiled_only
@pytest.mark.parametrize("shares", [[0.0, 1.0], [1.0, 0.5]], ids=str)
@pytest.mark.parametrize("policy", ["z_dec", "z_label"])
@pytest.mark.parametrize("model", ["fairall_II", "fairlab_I_II"])
def test_a_minibatch_without_labels_or_with_nothing_else_is_that_of_torch(
    model: str, policy: str, shares: list[float]
) -> None:
    agree(people(shares), f"model={model}", f"model.policy={policy}")


@compiled_only
@pytest.mark.parametrize("noise", ["stratified", "independent"])
def test_fewer_samples_of_the_kl_term_than_of_the_elbo_and_many_are_as_in_torch(noise: str) -> None:
    agree(people([0.4, 0.6]), f"protocol.noise={noise}", "model.elbo_samples=140", "model.kl_samples=3")


@compiled_only
def test_no_class_of_the_package_is_in_the_signature_of_a_compiled_function() -> None:
    agree(people([0.4, 0.6]))
    compiled = [of for of in vars(calls.kernels()).values() if getattr(of, "signatures", None)]
    assert {"model_epoch", "policy_epoch"} <= {of.py_func.__name__ for of in compiled}
    for signature in (signature for of in compiled for signature in of.signatures):
        assert not re.search("Layout|Objective", str(signature)), signature


@compiled_only
def test_some_epochs_leave_the_weights_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    def trained() -> list[Tensor]:
        own, decided = learner("schedule.batches_per_epoch=3"), people([0.4, 0.6], n=64)
        for _ in range(3):
            own.epochs.model_epoch(own, decided)
            own.epochs.policy_epoch(own, decided)
        return [parameter.detach().clone() for parameter in own.parameters()]

    compiled = trained()
    monkeypatch.setattr(calls, "kernels", lambda: None)
    for own, known in zip(compiled, trained(), strict=True):
        # Adam's first steps have the sign of the gradient alone, which rounding may change near zero.
        assert (own - known).abs().quantile(0.98) < 1e-4


@pytest.mark.parametrize("computed", ["compiled", "torch"])
def test_training_goes_on_from_a_saved_state_to_the_last_bit(
    computed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if computed == "torch":
        monkeypatch.setattr(calls, "kernels", lambda: None)
    decided = people([0.4, 0.6])
    own, again = learner(), learner(seeds=(5, 6))
    own.update(decided)
    again.load_training_state(own.training_state())
    for one in (own, again):
        one.update(decided)
        one.update(decided)
    for values, known in zip(again.parameters(), own.parameters(), strict=True):
        assert torch.equal(values, known)


@compiled_only
def test_no_number_depends_on_threads_or_on_other_seeds() -> None:
    decided = people([0.3, 0.5, 0.7])

    def trained(rows: list[int], threads: int = 1) -> list[Tensor]:
        own = learner(seeds=tuple(rows))
        use_threads(threads)
        some = Decided(*(values[rows] for values in vars(decided).values()))
        for _ in range(2):
            own.epochs.model_epoch(own, some)
            own.epochs.policy_epoch(own, some)
        return [parameter.detach().clone() for parameter in own.parameters()]

    together = trained([0, 1, 2])
    for own, known in zip(trained([0, 1, 2], threads=2), together, strict=True):
        assert torch.equal(own, known)
    for own, known in zip(trained([2]), together, strict=True):
        assert torch.equal(own[0], known[2])


@compiled_only
def test_a_policy_of_a_seed_is_the_same_among_others_whose_people_come_in_other_chunks() -> None:
    decided, among, alone = people([0.5] * 10, n=700), learner(seeds=tuple(range(10))), learner(seeds=(3,))
    x, s = decided.x, decided.s
    known = among.propensity(x, s, SeedStreams(range(10), "test"))[3]
    own = alone.propensity(x[3:4], s[3:4], SeedStreams([3], "test"))[0]
    assert torch.equal(own, known)
    assert own.std() > 0.01


class Halved(FairAll):
    """A subclass with another loss."""

    def loss(self, batch: Decided) -> Tensor:
        return 0.5 * super().loss(batch)


class Mixin:
    """A loss that is mixed in."""

    loss = Halved.loss


class Mixed(Mixin, FairAll):
    """A subclass with the loss of a mixin."""


class Same(FairAll):
    """A subclass that changes nothing about training."""


@compiled_only
def test_a_subclass_with_a_loss_of_its_own_is_trained_by_torch() -> None:
    halved, same = learner(kind=Halved), learner(kind=Same)
    assert isinstance(halved.epochs, Phase2Epochs)
    assert learner(kind=Mixed).objective() is None
    assert isinstance(same.epochs, native.functions.Phase2Epochs)
    decided = people([0.4, 0.6])
    assert halved.epochs.model_epoch(halved, decided) == pytest.approx(
        0.5 * same.epochs.model_epoch(same, decided), rel=1e-5
    )
