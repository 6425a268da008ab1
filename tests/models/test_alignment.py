import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from fairall.config.schema import NetInputs
from fairall.data.features import Feature, Kind, Schema
from fairall.data.load import load_dataset
from fairall.data.people import People
from fairall.models.alignment import matching_frame
from fairall.models.elbo import phase1_elbo
from fairall.models.fairall import FairAll
from fairall.models.learner import Setting
from fairall.models.phase1 import Phase1Task, Unlabelled, train_phase1
from fairall.models.vae import ConditionalVAE
from fairall.runtime.randomness import SeedStreams
from tests.conftest import PHASE1, ComposeConfig, MakePeople, MakeSetting, cache_in, no_checkpoint
from tests.models.conftest import stacked

SEEDS = [0, 1]

Signed = tuple[tuple[int, ...], tuple[int, ...]]
"""Where each axis goes, and its sign there."""


def signed_permutations(size: int) -> list[Signed]:
    return [
        (axes, signs)
        for axes in itertools.permutations(range(size))
        for signs in itertools.product((1, -1), repeat=size)
    ]


def matrix(*frames: Signed) -> Tensor:
    """Frames, one per seed, to be multiplied from the right, shape (E, Z, Z)."""
    stacked = torch.zeros(len(frames), len(frames[0][0]), len(frames[0][0]))
    for own, (axes, signs) in zip(stacked, frames, strict=True):
        for i, (axis, sign) in enumerate(zip(axes, signs, strict=True)):
            own[i, axis] = sign
    return stacked


@torch.no_grad()
def moved(z: Tensor, frames: Sequence[Signed], *, signed: bool = True) -> Tensor:
    """Latents z (E, ..., Z) with their axes where `frames`, one per seed, says; scales have no sign."""
    result = torch.empty_like(z)
    for own, before, (axes, signs) in zip(result, z, frames, strict=True):
        for i, (axis, sign) in enumerate(zip(axes, signs, strict=True)):
            own[..., axis] = before[..., i] * (sign if signed else 1)
    return result


def made(
    schema: Schema, *, utility: bool = False, group_blind: bool = False, size: int = 3
) -> ConditionalVAE:
    streams = SeedStreams(SEEDS, "test")
    return ConditionalVAE(schema, size, [16, 8], streams, utility=utility, group_blind=group_blind)


@pytest.mark.parametrize("inputs", [NetInputs.codes, NetInputs.one_hot])
@pytest.mark.parametrize("utility", [False, True])
def test_a_group_blind_start_differs_in_the_weights_from_s_alone(
    schema: Schema, inputs: NetInputs, utility: bool
) -> None:
    schema = schema.seen_as(inputs)
    blind, random = (made(schema, utility=utility, group_blind=choice) for choice in (True, False))
    of_s = {"encoder.layers.0.weight": blind.inputs.size, "decoder.layers.0.weight": blind.latent_size}
    for (name, weight), usual in zip(blind.named_parameters(), random.parameters(), strict=True):
        expected = usual.detach().clone()
        if name in of_s:
            assert (expected[:, of_s[name]] != 0).all()
            expected[:, of_s[name]] = 0
        assert torch.equal(weight, expected), name


def test_training_moves_the_weights_from_s(schema: Schema, people: MakePeople) -> None:
    config = replace(PHASE1, batch_size=32, learning_rate=1e-2, validation_samples=2, margin=0.0)
    crowd = Unlabelled.of(people(64))
    task = Phase1Task(crowd, crowd, schema, SEEDS, 3, [16, 8], True, config, epochs=5)
    vae, _ = train_phase1(task, progress=lambda **_: None, checkpoint=no_checkpoint())
    assert (vae.encoder.layers[0].weight[:, vae.inputs.size].abs().amax(-1) > 1e-3).all()
    assert (vae.decoder.layers[0].weight[:, 3].abs().amax(-1) > 1e-3).all()


FRAMES: list[list[Signed]] = [
    [((1, 2, 0), (1, -1, 1)), ((0, 1, 2), (-1, 1, -1))],
    [((2, 1, 0), (-1, -1, -1)), ((1, 0, 2), (1, 1, 1))],
    [((0, 1, 2), (1, 1, 1)), ((2, 0, 1), (-1, 1, 1))],
]


@pytest.mark.parametrize("utility", [False, True])
@pytest.mark.parametrize("frames", FRAMES)
def test_a_frame_moves_the_code_of_one_group_and_decoding_undoes_it(
    schema: Schema, people: MakePeople, frames: list[Signed], utility: bool
) -> None:
    vae = made(schema, utility=utility)
    x, s = stacked(people(20))
    given = (x, s, (x[..., 0] > 0).float()) if utility else (x, s)
    other = (s < 0).unsqueeze(-1)
    loc, scale = vae.encode(*given)
    restored = vae.decode(loc.unsqueeze(-1), s)
    many = torch.randn(2, 20, 5, 3)
    framed_many = torch.where(other.unsqueeze(-1), moved(many, frames), many)
    decoded = vae.decode(many.mT, s)
    elbo = None if utility else phase1_elbo(vae, x, s, many.mT, beta=0.7)

    vae.apply_frame(matrix(*frames))
    framed_loc, framed_scale = vae.encode(*given)
    torch.testing.assert_close(framed_loc, torch.where(other, moved(loc, frames), loc))
    torch.testing.assert_close(framed_scale, torch.where(other, moved(scale, frames, signed=False), scale))
    assert (framed_scale > 0).all()
    torch.testing.assert_close(vae.decode(framed_loc.unsqueeze(-1), s), restored)
    torch.testing.assert_close(vae.decode(framed_many.mT, s), decoded)
    if not utility:
        torch.testing.assert_close(phase1_elbo(vae, x, s, many.mT, beta=0.7), elbo)


def test_frames_read_one_after_the_other_compose(schema: Schema, people: MakePeople) -> None:
    vae = made(schema)
    x, s = people(20).x.expand(2, -1, -1), torch.full((2, 20), -1.0)
    loc, scale = vae.encode(x, s)
    for frames in FRAMES:
        vae.apply_frame(matrix(*frames))
        loc, scale = moved(loc, frames), moved(scale, frames, signed=False)
    torch.testing.assert_close(vae.encode(x, s), (loc, scale))


def test_the_frame_is_saved_and_handed_on(schema: Schema, people: MakePeople) -> None:
    vae = made(schema)
    vae.apply_frame(matrix(*FRAMES[0]))
    x, s = stacked(people(20))
    expected = vae.encode(x, s)

    restored = made(schema, group_blind=True)
    restored.load_state_dict(vae.state_dict())
    torch.testing.assert_close(restored.encode(x, s), expected)
    phase2 = made(schema, utility=True)
    phase2.transfer_from(vae)
    torch.testing.assert_close(phase2.encode(x, s, torch.zeros_like(s)), expected)
    # A frame of its own, which leaves that of Phase I alone.
    phase2.apply_frame(matrix(*FRAMES[1]))
    torch.testing.assert_close(vae.encode(x, s), expected)


FAR = 50.0


def by_hand(weights: Tensor) -> ConditionalVAE:
    """A VAE that reads z off the features by other weights in each group.

    Args:
        weights: E[z] = x @ weights for S = −1 and S = +1, shape (E, 2, D, Z).
    """
    n_seeds, _, n_features, size = weights.shape
    schema = Schema([Feature(f"x{i}", Kind.REAL) for i in range(n_features)])
    streams = SeedStreams(range(n_seeds), "test")
    vae = ConditionalVAE(schema, size, [2 * n_features], streams, utility=False, group_blind=False)
    gates, outputs = vae.encoder.layers
    with torch.no_grad():
        # A hidden unit per feature and group: the feature shifted where ReLU is linear, or to where it is 0.
        gates.weight[:] = 0.0
        for group, sign in enumerate((-1.0, 1.0)):
            units = slice(group * n_features, (group + 1) * n_features)
            gates.weight[:, :n_features, units] = torch.eye(n_features)
            gates.weight[:, n_features, units] = sign * FAR
            outputs.weight[:, units, :size] = weights[:, group]
    return vae


def crowd(n_features: int, *, n: int = 400) -> People:
    """People of two groups that are not alike in their features."""
    s = torch.where(torch.arange(n) % 3 == 0, 1.0, -1.0)
    x = torch.randn(n, n_features) * torch.where(s > 0, 1.0, 1.7).unsqueeze(-1) + 0.5 * s.unsqueeze(-1)
    return People(x, s, (x[:, 0] > 0).float())


def code(size: int) -> Tensor:
    """Weights (D, Z) with which every axis says mostly one thing, D = Z + 1."""
    return torch.cat([torch.eye(size), torch.zeros(1, size)]) + 0.2 * torch.randn(size + 1, size)


def in_other_frames(weights: Tensor, frames: Sequence[Signed]) -> ConditionalVAE:
    """VAEs with the code `weights` (D, Z) for S = +1, and for S = −1 one that `frames` turn into it."""
    back = weights @ matrix(*frames).mT
    return by_hand(torch.stack([back, weights.expand_as(back)], dim=1))


@pytest.mark.parametrize(
    "frame",
    [*signed_permutations(2), *signed_permutations(3)[5::6], ((3, 0, 4, 1, 2), (1, -1, -1, 1, -1))],
    ids=str,
)
def test_the_frame_undoes_another_use_of_the_axes(frame: Signed) -> None:
    size = len(frame[0])
    identity = (tuple(range(size)), (1,) * size)
    vae, people = in_other_frames(code(size), [frame, identity]), crowd(size + 1)
    found = matching_frame(vae, people)
    assert torch.equal(found, matrix(frame, identity))
    vae.apply_frame(found)
    x = people.x.expand(2, -1, -1)
    of_one, of_the_other = (vae.encode(x, torch.full(x.shape[:2], s))[0] for s in (1.0, -1.0))
    torch.testing.assert_close(of_one, of_the_other, rtol=0, atol=1e-3)
    assert torch.equal(matching_frame(vae, people), matrix(identity, identity))


def test_scale_constant_features_labels_and_diverged_seeds_do_not_decide() -> None:
    frame = ((1, 0), (-1, 1))
    weights = torch.tensor([[1.0, 0.1], [0.1, 1.0], [0.0, 0.0]])
    people = crowd(3)
    vae = in_other_frames(weights, [frame, frame])
    with torch.no_grad():
        vae.encoder.layers[0].weight[:, 2] = 0.0
    loud = people.x * torch.tensor([1.0, 1.0, 1e4])
    constant = torch.cat([people.x[:, :2], torch.full((len(people), 1), 7.3)], dim=1)
    unlabelled = torch.full_like(people.label, torch.nan)
    for other in (replace(people, x=loud), replace(people, x=constant), replace(people, label=unlabelled)):
        assert torch.equal(matching_frame(vae, other), matrix(frame, frame))
    with torch.no_grad():
        vae.encoder.layers[1].weight[0] = torch.nan
    assert torch.equal(matching_frame(vae, people)[1], matrix(frame)[0])


@pytest.mark.parametrize("alone", [None, -1.0, 1.0])
def test_without_two_people_of_each_group_the_frame_is_the_identity(alone: float | None) -> None:
    vae, people = in_other_frames(code(2), [((1, 0), (-1, 1))]), crowd(3)
    for s in (-1.0, 1.0) if alone is None else (-alone,):
        group = torch.full_like(people.s, s)
        if alone is not None:
            group[0] = alone
        assert torch.equal(matching_frame(vae, replace(people, s=group)), torch.eye(2).unsqueeze(0))


@pytest.mark.parametrize(("choice", "turned"), [("as_learnt", False), ("matched", True)])
def test_protocol_decides_whether_groups_are_read_together(
    choice: str, turned: bool, compose_config: ComposeConfig, tmp_path: Path
) -> None:
    config = compose_config(
        "dataset=synthetic",
        "preset=quick",
        "seeds=6",
        "schedule.phase1_epochs=1",
        "protocol.vae_start=random",
        f"protocol.latent_frame={choice}",
    )
    data = load_dataset("synthetic", "dataset.rows.pool=200", "dataset.rows.validation=50").prepare()
    trained, cached = (FairAll(config.model, Setting.of(data.schema, config)) for _ in range(2))
    for learner in (trained, cached):
        learner.pretrain(data, cache_in(tmp_path), lambda **_: None)
    frame = trained.model.vae.frame
    assert bool((frame != torch.eye(2)).any()) is turned
    assert torch.equal(frame.abs().sum(-1), torch.ones(6, 2))
    assert torch.equal(cached.model.vae.frame, frame)


@pytest.mark.parametrize(("choice", "blind"), [("group_blind", True), ("random", False)])
def test_protocol_decides_how_the_vae_starts(
    choice: str, blind: bool, compose_config: ComposeConfig, setting: MakeSetting
) -> None:
    vae = FairAll(compose_config().model, setting(SEEDS, f"protocol.vae_start={choice}")).model.vae
    assert bool((vae.encoder.layers[0].weight[:, vae.inputs.size] == 0).all()) is blind
    assert bool((vae.decoder.layers[0].weight[:, vae.latent_size] == 0).all()) is blind
