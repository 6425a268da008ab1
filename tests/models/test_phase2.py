"""Epochs of Phase II compiled against those of torch, with shared noise."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from fairall.data.features import Schema
from fairall.data.people import Decided
from fairall.models.fairall import FairAll
from fairall.models.latent_learner import LatentLearner, Phase2Epochs
from fairall.models.learner import Setting
from fairall.nn import native
from fairall.runtime.process import use_threads
from fairall.runtime.randomness import SeedStreams
from tests.conftest import MakePeople, as_saved
from tests.models.conftest import CROSSED, decided_on, same, typed_config

Make = Callable[..., Any]
compiled_only = pytest.mark.skipif(native.kernels() is None, reason="numba is not installed, or switched off")


@pytest.fixture
def decided(people: MakePeople) -> Make:
    """People decided on in replicates with these shares of accepted ones."""

    def made(shares: list[float], n: int = 37, n_groups: int = 2) -> Decided:
        found = decided_on(people(n), len(shares), share=torch.tensor(shares).unsqueeze(-1))
        return (
            found if n_groups == 2 else replace(found, s=torch.arange(n).remainder(n_groups) + 0.0 * found.s)
        )

    return made


@pytest.fixture
def learner(schema: Schema) -> Make:
    """An untrained learner with small nets, whose groups have other latent axes, one seen as another."""

    def made(
        *words: str, seeds: tuple[int, ...] = (0, 1), kind: type[LatentLearner] | None = None, **groups: Any
    ) -> Any:
        config = typed_config("preset=quick", "schedule.batches_per_epoch=1", *words)
        model = replace(config.model, vae_arch=[8, 9], clf_arch=[8, 7], phase1=None)
        of = replace(schema, **groups)
        setting = Setting(of, 0.3, list(seeds), config.schedule, config.protocol)
        own: Any = (kind or model.target)(model, setting)
        vae = own.model.vae
        turned = vae.frame[:, torch.randperm(vae.frame.shape[1], generator=torch.Generator().manual_seed(1))]
        turned[:, :3] *= -1
        vae.frame.copy_(turned)
        if groups:
            vae.seen_as[-1, -1] = 1
        return own

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


PARTS = [f"model.policy={policy}" for policy in ("z_dec", "z_clf", "z_label", "dec")]
HALF = [0.4, 0.6]
CASES: list[tuple[str, list[float], dict[str, Any]]] = [
    *(
        (f"model={model}_I_II protocol={protocol} {part} {more}", HALF, {})
        for model in ("fairall", "fairlab")
        for protocol in ("corrected", "published_code")
        for part in PARTS
        for more in ("", "protocol.noise=stratified model.elbo_samples=7 model.clf_dropout=0.3")
    ),
    *(
        (f"model={model} {part}", shares, groups)
        for model in ("fairall_II", "fairlab_I_II")
        for part in (PARTS[0], PARTS[2])
        for shares, groups in (
            ([0.0, 1.0], {}),
            ([1.0, 0.5], {}),
            (HALF, {"n_groups": 5}),
            (HALF, {"n_groups": 5, "crossed": CROSSED}),
        )
    ),
    *(
        (f"protocol.noise={noise} model.elbo_samples=140 model.kl_samples=3", HALF, {})
        for noise in ("stratified", "independent")
    ),
]


@compiled_only
@pytest.mark.parametrize(("words", "shares", "groups"), CASES)
def test_loss_and_gradients_are_those_of_torch(
    words: str,
    shares: list[float],
    groups: dict[str, Any],
    learner: Make,
    decided: Make,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So is the use of random numbers, and no class of the package is in a compiled function's signature."""
    people = decided(shares, n_groups=groups.get("n_groups", 2))
    compiled = trained(learner(*words.split(), **groups), people, epochs=1)
    monkeypatch.setattr(native, "kernels", lambda: None)
    known = trained(learner(*words.split(), **groups), people, epochs=1)
    assert isinstance(compiled.epochs, native.Phase2Epochs)
    assert compiled.loss_of_last == pytest.approx(known.loss_of_last, rel=3e-5)
    assert torch.equal(compiled.noise.state, known.noise.state)
    for gradient, other in zip(gradients(compiled), gradients(known), strict=True):
        assert (gradient - other).abs().sum() <= 1e-4 * other.abs().sum()
        assert other.abs().max() > 0.0 or "protocol=published_code" in words


@compiled_only
def test_no_class_of_the_package_is_in_the_signature_of_a_compiled_function(
    learner: Make, decided: Make
) -> None:
    trained(learner(), decided(HALF))
    compiled = [of for of in vars(native.kernels()).values() if getattr(of, "signatures", None)]
    assert {"model_epoch", "policy_epoch"} <= {of.py_func.__name__ for of in compiled}
    assert not re.search("Layout|Objective", str([of.signatures for of in compiled]))


def test_some_epochs_leave_the_weights_of_torch_which_goes_on_from_a_saved_state_to_the_last_bit(
    learner: Make, decided: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, people = "schedule.batches_per_epoch=3", decided(HALF, n=64)
    compiled = trained(learner(words), people, epochs=3)
    monkeypatch.setattr(native, "kernels", lambda: None)
    known, again = trained(learner(words), people), learner(words, seeds=(5, 6))
    again.load_training_state(as_saved(known.training_state()))
    assert same(*(trained(one, people, epochs=1).state_dict() for one in (known, again)))
    for one, other in zip(compiled.parameters(), known.parameters(), strict=True):
        # Adam's first steps have the sign of the gradient alone, which rounding may change near zero.
        assert (one - other).abs().quantile(0.98) < 1e-4


@compiled_only
def test_no_number_depends_on_threads_or_on_other_seeds(learner: Make, decided: Make) -> None:
    people = decided([0.5] * 10, n=700)  # who come in other chunks than those of a seed alone
    together = trained(learner(seeds=tuple(range(10))), people)
    use_threads(2)
    assert same(trained(learner(seeds=tuple(range(10))), people).state_dict(), together.state_dict())
    few = Decided(*(of[3:4] for of in vars(people).values()))
    alone = trained(learner(seeds=(3,)), few)
    assert same([of[0] for of in alone.parameters()], [of[3] for of in together.parameters()])
    one, among = (
        own.score(of.x, of.s, SeedStreams(own.setting.seeds, "test"))[seed]
        for own, of, seed in ((alone, few, 0), (together, people, 3))
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
def test_a_subclass_with_a_loss_of_its_own_is_trained_by_torch(learner: Make, decided: Make) -> None:
    halved, unchanged = learner(kind=Halved), learner(kind=Same)
    assert isinstance(halved.epochs, Phase2Epochs)
    assert learner(kind=Mixed).objective() is None
    assert isinstance(unchanged.epochs, native.Phase2Epochs)
    losses = [trained(own, decided(HALF), epochs=1).loss_of_last for own in (halved, unchanged)]
    assert losses[0] == pytest.approx(0.5 * losses[1], rel=1e-5)
