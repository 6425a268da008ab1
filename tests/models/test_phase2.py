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
from fairall.runtime.process import use_threads
from fairall.runtime.randomness import SeedStreams
from tests.conftest import as_saved
from tests.models.conftest import same

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
compiled_only = pytest.mark.skipif(native.kernels() is None, reason="numba is not installed, or switched off")


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


def trained(own: Any, decided: Decided, epochs: int = 2) -> Any:
    """The learner after some epochs of the model, each with one of the policy."""
    for _ in range(epochs):
        own.loss_of_last = own.epochs.model_epoch(own, decided)
        own.epochs.policy_epoch(own, decided)
    return own


def gradients(own: Any) -> list[Tensor]:
    """A tenth of the gradients of the model's and of the policy net's first update, each (E, n)."""
    optimisers = [one for one in (own.epochs.model, own.epochs.policy) if one is not None]
    if isinstance(own.epochs, Phase2Epochs):
        return [torch.cat([mean.flatten(1) for mean in one.means], dim=1) for one in optimisers]
    return [one.moments[0] for one in optimisers]


def agree(decided: Decided, *words: str) -> None:
    """Assert that loss, gradients and the use of random numbers are those of torch."""
    compiled = trained(learner(*words), decided, epochs=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "kernels", lambda: None)
        known = trained(learner(*words), decided, epochs=1)
    assert isinstance(compiled.epochs, native.Phase2Epochs)
    assert compiled.loss_of_last == pytest.approx(known.loss_of_last, rel=1e-5)
    assert torch.equal(compiled.noise.state, known.noise.state)
    for gradient, other in zip(gradients(compiled), gradients(known), strict=True):
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
    compiled = [of for of in vars(native.kernels()).values() if getattr(of, "signatures", None)]
    assert {"model_epoch", "policy_epoch"} <= {of.py_func.__name__ for of in compiled}
    for signature in (signature for of in compiled for signature in of.signatures):
        assert not re.search("Layout|Objective", str(signature)), signature


@compiled_only
def test_some_epochs_leave_the_weights_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    words, decided = "schedule.batches_per_epoch=3", people([0.4, 0.6], n=64)
    compiled = trained(learner(words), decided, epochs=3)
    monkeypatch.setattr(native, "kernels", lambda: None)
    known = trained(learner(words), decided, epochs=3)
    for one, other in zip(compiled.parameters(), known.parameters(), strict=True):
        # Adam's first steps have the sign of the gradient alone, which rounding may change near zero.
        assert (one - other).abs().quantile(0.98) < 1e-4


def test_training_by_torch_goes_on_from_a_saved_state_to_the_last_bit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(native, "kernels", lambda: None)
    decided = people([0.4, 0.6])
    own, again = trained(learner(), decided), learner(seeds=(5, 6))
    again.load_training_state(as_saved(own.training_state()))
    assert same(*(trained(one, decided).state_dict() for one in (own, again)))


@compiled_only
def test_no_number_depends_on_threads_or_on_other_seeds() -> None:
    decided = people([0.5] * 10, n=700)  # whose people come in other chunks than those of a seed alone
    together = trained(learner(seeds=tuple(range(10))), decided)
    use_threads(2)
    assert same(trained(learner(seeds=tuple(range(10))), decided).state_dict(), together.state_dict())
    few = Decided(*(of[3:4] for of in vars(decided).values()))
    alone = trained(learner(seeds=(3,)), few)
    assert same([of[0] for of in alone.parameters()], [of[3] for of in together.parameters()])
    one, among = (
        own.score(of.x, of.s, SeedStreams(own.setting.seeds, "test"))[seed]
        for own, of, seed in ((alone, few, 0), (together, decided, 3))
    )
    assert torch.equal(one, among)
    assert one.std() > 0.01


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
    halved, unchanged = learner(kind=Halved), learner(kind=Same)
    assert isinstance(halved.epochs, Phase2Epochs)
    assert learner(kind=Mixed).objective() is None
    assert isinstance(unchanged.epochs, native.Phase2Epochs)
    decided = people([0.4, 0.6])
    losses = [trained(own, decided, epochs=1).loss_of_last for own in (halved, unchanged)]
    assert losses[0] == pytest.approx(0.5 * losses[1], rel=1e-5)
