"""VAEs of two and more groups: what they start with, what they hand on, and the frames of their latents."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from fairall.config.schema import NetInputs
from fairall.data.features import Feature, Kind, Schema
from fairall.data.people import People, group_index, take
from fairall.models.alignment import matching_frame
from fairall.models.elbo import elbo
from fairall.models.vae import ConditionalVAE
from fairall.runtime.randomness import SeedStreams
from fairall.tables.groups import sides
from tests.conftest import cache_in, training_of
from tests.models.conftest import CROSSED

GROUPS = pytest.mark.parametrize(
    "groups", [{}, {"n_groups": 5}, {"n_groups": 5, "crossed": CROSSED}], ids=["2", "5", "crossed"]
)


def made(*, utility: bool = False, blind: bool = False, **schema: Any) -> ConditionalVAE:
    """A VAE of two seeds, four features and three axes."""
    of = Schema([Feature(f"x{i}", Kind.REAL) for i in range(4)], **schema)
    streams = SeedStreams([0, 1], "test")
    return ConditionalVAE(of, 3, [16, 8], streams, utility=utility, group_blind=blind)


def frames_of(vae: ConditionalVAE, draw: torch.Generator) -> Tensor:
    """A signed permutation for each seed and group."""
    axes = torch.rand(vae.frame.shape[:3], generator=draw).argsort(-1)
    return torch.eye(3)[axes] * (1 - 2 * torch.randint(2, (*axes.shape, 1), generator=draw))


def crowd(vae: ConditionalVAE, draw: torch.Generator, *shape: int, sizes: tuple[int, ...] = ()) -> People:
    """People of all groups, of as many or of these `sizes`, which are not quite alike in their features."""
    s = torch.tensor(sides(vae.inputs.n_groups))
    s = s.repeat_interleave(torch.tensor(sizes)) if sizes else s.repeat(20)
    x = torch.randn(*shape, len(s), 4, generator=draw) * (1 + 0.03 * s.unsqueeze(-1)) + 0.1 * s.unsqueeze(-1)
    return People(x, s.expand(*shape, -1), torch.full_like(s, torch.nan))


@GROUPS
@pytest.mark.parametrize("inputs", [NetInputs.codes, NetInputs.one_hot])
@pytest.mark.parametrize("utility", [False, True])
def test_a_group_blind_start_differs_in_the_weights_from_s_alone(
    utility: bool, inputs: NetInputs, groups: dict[str, Any]
) -> None:
    blind, random = (made(utility=utility, blind=of, inputs=inputs, **groups) for of in (True, False))
    n_s = blind.inputs.size_with_s - 4
    before_s = {"encoder.layers.0.weight": 4, "decoder.layers.0.weight": 3}
    for (name, weight), usual in zip(blind.named_parameters(), random.parameters(), strict=True):
        expected = usual.detach().clone()
        if name in before_s:
            of_s = slice(before_s[name], before_s[name] + n_s)
            assert (expected[:, of_s] != 0).all()
            expected[:, of_s] = 0
        assert torch.equal(weight, expected), name


@GROUPS
@pytest.mark.parametrize("utility", [False, True])
@torch.no_grad()
def test_frames_move_the_code_of_each_group_and_decoding_undoes_them(
    utility: bool, groups: dict[str, Any], draw: torch.Generator
) -> None:
    vae = made(utility=utility, **groups)
    people = crowd(vae, draw, 2)
    x, s, u = people.x, people.s, (people.x[..., 0] > 0).float() if utility else None
    z = torch.randn(*s.shape, 3, 5, generator=draw)
    decoded, bound = vae.decode(z, s), elbo(vae, x, s, z, beta=0.7, utility=u)
    loc, scale = vae.encode(x, s, u)
    vae.frame.copy_(frames_of(vae, draw))
    own = take(vae.frame, group_index(s, vae.inputs.n_groups))
    expected = ((of.unsqueeze(-2) @ turn).squeeze(-2) for of, turn in ((loc, own), (scale, own.abs())))
    torch.testing.assert_close(vae.encode(x, s, u), tuple(expected))
    torch.testing.assert_close(vae.decode(own.mT @ z, s), decoded)
    torch.testing.assert_close(elbo(vae, x, s, z, beta=0.7, utility=u), bound)


@GROUPS
@torch.no_grad()
def test_weights_frame_and_small_groups_of_phase1_are_handed_on(
    groups: dict[str, Any], draw: torch.Generator
) -> None:
    vae, phase2 = made(**groups), made(utility=True, blind=True, **groups)
    vae.frame.copy_(frames_of(vae, draw))
    vae.seen_as[:] = vae.seen_as.flip(-1) if groups else vae.seen_as
    people = crowd(vae, draw, 2)
    x, s, z = people.x, people.s, torch.randn(*people.s.shape, 3, 5, generator=draw)
    expected, new_input = vae.encode(x, s), phase2.encoder.layers[0].weight[:, -1].clone()
    phase2.transfer_from(vae)
    assert torch.equal(phase2.encoder.layers[0].weight[:, -1], new_input)
    assert (new_input != 0).all()
    # With ũ = 0 the new input is silent: both encoders agree, and so do the decoders on x.
    torch.testing.assert_close(phase2.encode(x, s, torch.zeros_like(s)), expected)
    torch.testing.assert_close(phase2.decode(z, s)[:, :-1], vae.decode(z, s))
    # A frame of its own leaves that of Phase I alone.
    phase2.frame.copy_(frames_of(vae, draw))
    torch.testing.assert_close(vae.encode(x, s), expected)


def test_encoder_decoder_and_frame_take_a_small_group_for_the_other(draw: torch.Generator) -> None:
    own = made(n_groups=4)
    own.frame.copy_(frames_of(own, draw))
    own.seen_as[0, 3] = 1  # of the first seed alone
    x, z = torch.randn(30, 4, generator=draw).expand(2, -1, -1), torch.randn(2, 30, 3, 4, generator=draw)
    small, other = torch.full((2, 30), 3.0), torch.ones(2, 30)
    for read in (lambda s: own.encode(x, s)[0], lambda s: own.decode(z, s)):
        one, two = read(small), read(other)
        assert torch.equal(one[0], two[0])
        assert not torch.allclose(one[1], two[1])


# The frame that matches groups

SIZES = {2: (300, 800), 4: (300, 400, 800, 200)}
FIRST = {2: 1, 4: 2}  # the group that others are matched with: S = +1, or the largest


@pytest.mark.parametrize("n_groups", SIZES)
@pytest.mark.parametrize("seed", range(5))
@torch.no_grad()
def test_the_frame_undoes_another_use_of_the_axes(n_groups: int, seed: int) -> None:
    draw, first = torch.Generator().manual_seed(seed), FIRST[n_groups]
    vae = made(blind=True, n_groups=n_groups)
    # Neither a constant feature nor a loud one that the latent does not depend on decides.
    vae.encoder.layers[0].weight[:, 3] = 0.0
    frames = frames_of(vae, draw)
    vae.frame.copy_(frames)
    people = crowd(vae, draw, sizes=SIZES[n_groups])
    expected = frames.mT @ frames[:, first : first + 1]
    for fourth in (people.x[:, 3:], 1e4 * people.x[:, 3:], torch.full((len(people), 1), 7.3)):
        found = matching_frame(vae, replace(people, x=torch.cat([people.x[:, :3], fourth], -1)))
        assert torch.equal(found, expected)
    vae.frame.copy_(frames @ found)
    x = people.x.expand(2, -1, -1)
    one, *others = (vae.encode(x, torch.full(x.shape[:2], side))[0] for side in sides(n_groups))
    torch.testing.assert_close(others, [one] * len(others), rtol=0, atol=1e-6)
    assert torch.equal(matching_frame(vae, people), torch.eye(3).expand_as(found))
    # A seed that has diverged leaves the others as they are.
    vae.encoder.layers[-1].weight[0] = torch.nan
    vae.frame.copy_(frames)
    assert torch.equal(matching_frame(vae, people)[1], expected[1])


@pytest.mark.parametrize("n_groups", SIZES)
@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("of", [0, -1])
def test_without_two_people_of_a_group_its_frame_is_the_identity(
    of: int, n: int, n_groups: int, draw: torch.Generator
) -> None:
    vae, sizes = made(n_groups=n_groups), [*SIZES[n_groups]]
    sizes[of] = n
    found = matching_frame(vae, crowd(vae, draw, sizes=tuple(sizes)))
    whose = slice(None) if n_groups == 2 else of
    assert torch.equal(found[:, whose], torch.eye(3).expand_as(found[:, whose]))


@pytest.mark.parametrize(("start", "choice"), [("random", "matched"), ("group_blind", "as_learnt")])
def test_protocol_decides_how_the_vae_starts_and_whether_groups_are_read_together(
    start: str, choice: str, tmp_path: Path
) -> None:
    words = f"protocol.vae_start={start}", f"protocol.latent_frame={choice}", "schedule.phase1_epochs=1"
    frames = []
    for _ in range(2):  # trained and cached
        run: Any = training_of("dataset=synthetic", "seeds=6", *words)
        vae = run.learner.model.vae
        blind = vae.encoder.layers[0].weight[:, vae.inputs.size] == 0
        assert blind.all() == blind.any() == (start == "group_blind")
        run.learner.pretrain(run.data, cache_in(tmp_path), lambda **_: None)
        frames.append(vae.frame)
    assert (frames[0] != torch.eye(2)).any() == (choice == "matched")
    assert torch.equal(*frames)
