"""FairAll, FairLab and FairLog with more than two groups: nets, frames, small groups, penalty, whole runs."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

import fairall
from fairall.config.compose import typed_config
from fairall.data.features import Feature, FeatureInputs, Kind, Schema
from fairall.data.people import Decided, People
from fairall.errors import FairAllError
from fairall.measuring.latent_quality import mmd, pairs_of_groups, readability_of_s
from fairall.models.alignment import matching_frame
from fairall.models.fairlog import FairLog, gap_of_groups
from fairall.models.latent_learner import Phase2Epochs
from fairall.models.learner import Setting
from fairall.models.phase1 import Phase1Task, Unlabelled, train_phase1
from fairall.models.vae import FEW, ConditionalVAE, nearest_large_groups
from fairall.nn import native
from fairall.nn.native import calls
from fairall.policy import Policy
from fairall.runtime.randomness import SeedStreams
from fairall.tables.groups import Sensitive
from tests.conftest import PHASE1, as_saved, no_cache, no_checkpoint, run_folder, training_of

pytestmark = pytest.mark.usefixtures("undrawn")

SEEDS = [0, 1]
CROSSED = [("a", "f"), ("a", "m"), ("b", "f"), ("b", "m"), ("c", "f")]
compiled_only = pytest.mark.skipif(calls.kernels() is None, reason="numba is not installed, or switched off")


def schema(n_groups: int, **more: Any) -> Schema:
    return Schema([Feature(f"x{i}", Kind.REAL) for i in range(3)], n_groups=n_groups, **more)


def vae_of(of: Schema, *, utility: bool = False, size: int = 2) -> ConditionalVAE:
    streams = SeedStreams(SEEDS, "test")
    return ConditionalVAE(of, size, [8, 6], streams, utility=utility, group_blind=False)


# Nets


def test_weights_of_crossed_groups_are_a_sum_of_embeddings() -> None:
    inputs = FeatureInputs(schema(5, crossed=CROSSED))
    seen = inputs.of_s(torch.arange(5.0))
    assert inputs.size_with_s == 3 + 3 + 2
    weights = torch.tensor([1.0, 2, 4, 8, 16])  # of a, b, c, f, m
    assert (seen @ weights).tolist() == [9, 17, 10, 18, 12]
    assert FeatureInputs(schema(3)).of_s(torch.tensor([2.0, 0.0])).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert repr(schema(5)) != repr(schema(5, crossed=CROSSED))
    measured = schema(5, crossed=CROSSED).measured(np.ones((4, 3)))
    assert measured.crossed == tuple(CROSSED)
    assert measured.seen_as(measured.inputs).crossed == tuple(CROSSED)


def test_words_say_whether_groups_are_crossed() -> None:
    rest = (("c+f",),)
    assert Sensitive("race+sex", ("a+f",), ("a+m",), rest).crossed == (("a", "f"), ("a", "m"), ("c", "f"))
    assert Sensitive("race", ("a+f",), ("a+m",), rest).crossed == ()
    assert Sensitive("race+sex", ("a+f",), ("a+m",), (("c",),)).crossed == ()
    assert Sensitive("race+sex", ("a+f",), ("a+m",)).crossed == ()  # two groups are S = ±1


@pytest.mark.parametrize("crossed", [False, True])
def test_each_group_has_a_frame_and_decoding_undoes_it(crossed: bool) -> None:
    own = vae_of(schema(5, crossed=CROSSED) if crossed else schema(5), utility=True, size=3)
    generator = torch.Generator().manual_seed(0)
    x, s = torch.randn(2, 40, 3, generator=generator), torch.arange(40.0).remainder(5).expand(2, -1)
    given = (x, s, (x[..., 0] > 0).float())
    loc, scale = own.encode(*given)
    decoded = own.decode(loc.unsqueeze(-1), s)
    frames = torch.zeros(2, 5, 3, 3)
    for e, g in itertools.product(range(2), range(5)):
        order = torch.randperm(3, generator=generator)
        frames[e, g, torch.arange(3), order] = torch.tensor([1.0, -1.0])[
            torch.randint(2, (3,), generator=generator)
        ]
    own.apply_frame(frames)
    framed_loc, framed_scale = own.encode(*given)
    for e, i in itertools.product(range(2), range(40)):
        frame = frames[e, int(s[e, i])]
        torch.testing.assert_close(framed_loc[e, i], loc[e, i] @ frame)
        torch.testing.assert_close(framed_scale[e, i], scale[e, i] @ frame.abs())
    torch.testing.assert_close(own.decode(framed_loc.unsqueeze(-1), s), decoded)


@compiled_only
@pytest.mark.parametrize("policy", ["z_dec", "z_label", "z_clf"])
@pytest.mark.parametrize("model", ["fairall_II", "fairlab_I_II"])
@pytest.mark.parametrize("crossed", [(), CROSSED])
def test_compiled_training_is_that_of_torch(
    model: str, policy: str, crossed: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["preset=quick", "schedule.batches_per_epoch=2", f"model={model}", f"model.policy={policy}"]
    config = typed_config(*words)

    def trained() -> tuple[Any, list[Tensor]]:
        model = replace(config.model, vae_arch=[8, 9], clf_arch=[8, 7], phase1=None)
        setting = Setting(schema(5, crossed=crossed), 0.3, SEEDS, config.schedule, config.protocol)
        own = model.target(model, setting)
        vae, generator = own.model.vae, torch.Generator().manual_seed(1)
        vae.frame.copy_(vae.frame[..., torch.randperm(vae.latent_size, generator=generator)])
        vae.frame[:, 1:3] *= -1
        vae.seen_as[1, 4] = 2
        x, s = (
            torch.randn(2, 60, 3, generator=generator),
            torch.randint(5, (2, 60), generator=generator).float(),
        )
        accepted = torch.rand(2, 60, generator=generator) < 0.5
        label = (x[..., 0] + 0.5 * s > 1).float() * accepted
        own.update(Decided(x, s, torch.full_like(s, 0.5), accepted, label))
        return own, [weight.detach().clone() for weight in own.parameters()]

    compiled, weights = trained()
    monkeypatch.setattr(calls, "kernels", lambda: None)
    plain, expected = trained()
    assert isinstance(compiled.epochs, native.functions.Phase2Epochs)
    assert isinstance(plain.epochs, Phase2Epochs)
    for one, other in zip(weights, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=2e-3)


# Alignment


def by_hand(codes: Tensor) -> ConditionalVAE:
    """A VAE that reads z off the features by other weights in each group: E[z] = x @ codes[g], (G, D, Z)."""
    n_groups, n_features, size = codes.shape
    of = Schema([Feature(f"x{i}", Kind.REAL) for i in range(n_features)], n_groups=n_groups)
    streams = SeedStreams([0], "test")
    vae = ConditionalVAE(of, size, [n_groups * n_features], streams, utility=False, group_blind=False)
    gates, outputs = vae.encoder.layers
    far = 50.0
    with torch.no_grad():
        # A hidden unit per feature and group: the feature shifted where ReLU is linear, or to where it is 0.
        gates.weight[:], gates.bias[:] = 0.0, -far
        for g in range(n_groups):
            units = slice(g * n_features, (g + 1) * n_features)
            gates.weight[:, :n_features, units] = torch.eye(n_features)
            gates.weight[:, n_features + g, units] = 2.0 * far
            outputs.weight[:, units, :size] = codes[g]
    return vae


def test_all_groups_are_matched_with_the_largest() -> None:
    generator = torch.Generator().manual_seed(0)
    code = torch.cat([torch.eye(3), torch.zeros(1, 3)]) + 0.2 * torch.randn(4, 3, generator=generator)
    frames = torch.zeros(4, 3, 3)
    for frame, (order, signs) in zip(
        frames,
        [((1, 2, 0), (1, -1, 1)), ((0, 2, 1), (-1, 1, 1)), ((0, 1, 2), (1, 1, 1)), ((2, 1, 0), (-1, -1, 1))],
        strict=True,
    ):
        frame[torch.arange(3), torch.tensor(order)] = torch.tensor(signs, dtype=torch.float)
    vae = by_hand(torch.stack([code @ frame.T for frame in frames]))
    s = torch.tensor([0.0] * 150 + [1] * 200 + [2] * 400 + [3] * 100)
    x = torch.randn(850, 4, generator=generator) * (1 + 0.3 * s.unsqueeze(-1)) + s.unsqueeze(-1)
    people = People(x, s, torch.full_like(s, torch.nan))
    found = matching_frame(vae, people)
    assert torch.equal(found[0], frames)
    vae.apply_frame(found)
    read = [vae.encode(x.unsqueeze(0), torch.full((1, 850), float(g)))[0] for g in range(4)]
    for other in read:
        torch.testing.assert_close(other, read[2], rtol=0, atol=1e-3)


# Small groups


def test_a_small_group_is_seen_as_the_nearest_large_one() -> None:
    sizes, centres = [200, FEW, FEW - 1, 1, 0], [0.0, 4.0, 3.0, -1.0, 0.0]
    s = torch.cat([torch.full((n,), float(g)) for g, n in enumerate(sizes)])
    x = torch.randn(len(s), 2, generator=torch.Generator().manual_seed(0)) * torch.tensor([1.0, 1000.0])
    x[:, 0] += torch.tensor(centres)[s.long()]
    assert nearest_large_groups(x, s, 5).tolist() == [[0, 1, 1, 0, 0]]  # the last has nobody
    assert nearest_large_groups(x[-40:], s[-40:], 5).tolist() == [[0, 1, 2, 3, 4]]  # none is large
    of_two = nearest_large_groups(torch.stack([x, x]), torch.stack([s, s.flip(0)]), 5)
    assert of_two[0].tolist() == [0, 1, 1, 0, 0]


def test_encoder_decoder_classifier_and_frame_take_a_small_group_for_the_other() -> None:
    own = vae_of(schema(4), size=2)
    own.apply_frame(torch.tensor([[[0.0, 1], [-1, 0]]]).expand(2, 4, 2, 2).contiguous())
    own.seen_as[0, 3] = 1  # of the first seed alone
    x = torch.randn(1, 30, 3, generator=torch.Generator().manual_seed(0)).expand(2, -1, -1)
    small, other = torch.full((2, 30), 3.0), torch.ones(2, 30)
    one, two = (own.encode(x, s)[0] for s in (small, other))
    assert torch.equal(one[0], two[0])
    assert not torch.allclose(one[1], two[1])
    z = torch.randn(2, 30, 2, 4)
    restored = own.decode(z, small), own.decode(z, other)
    assert torch.equal(restored[0][0], restored[1][0])
    assert not torch.allclose(restored[0][1], restored[1][1])


def test_a_run_says_which_group_is_seen_as_which(raw_data: Path) -> None:
    for model, told in (("fairall_I_II", True), ("fairall_II", True), ("fairlog", False)):
        training = training_of(
            f"model={model}", "dataset=compas", "dataset.groups=[Caucasian,African-American,Asian,Hispanic]"
        )
        notes = [note for note in training.notes() if "see it as" in note]
        assert len(notes) == told
        if told:
            assert "group Asian has fewer than 50 people in the pool" in notes[0]


# The penalty


def direct(accepts: list[float], group: list[int]) -> float:
    """The definition, person by person."""
    rates = {g: np.mean([a for a, own in zip(accepts, group, strict=True) if own == g]) for g in set(group)}
    pairs = [(a, b) for a, b in itertools.permutations(group, 2) if a != b]
    return float(np.sqrt(np.mean([(rates[a] - rates[b]) ** 2 for a, b in pairs]))) if pairs else 0.0


@pytest.mark.parametrize("n_groups", [1, 2, 3, 5])
def test_the_gap_of_groups_is_that_over_all_pairs_of_people(n_groups: int) -> None:
    generator = torch.Generator().manual_seed(n_groups)
    accepts, group = (
        torch.rand(6, 30, generator=generator),
        torch.randint(n_groups, (6, 30), generator=generator),
    )
    found = gap_of_groups(accepts, group)
    expected = [direct(a, g) for a, g in zip(accepts.tolist(), group.tolist(), strict=True)]
    assert found.tolist() == pytest.approx(expected, abs=2e-6)
    if n_groups == 2:
        rates = [torch.where(group == g, accepts, 0.0).sum(-1) / (group == g).sum(-1) for g in (0, 1)]
        torch.testing.assert_close(found, (rates[0] - rates[1]).abs())


def test_equal_rates_and_absent_groups_leave_a_finite_gradient() -> None:
    accepts = torch.full((2, 12), 0.4, requires_grad=True)
    group = torch.tensor([[0, 1, 2] * 4, [2] * 12])
    gap_of_groups(accepts, group).sum().backward()
    assert accepts.grad is not None
    assert accepts.grad.isfinite().all()


def test_fairlog_closes_the_gap_of_three_groups() -> None:
    config = typed_config("model=fairlog", "preset=quick")
    generator = torch.Generator().manual_seed(0)
    s = torch.randint(3, (1, 900), generator=generator).float()
    worth = torch.randn(1, 900, generator=generator)
    label = (worth + 1.2 * (s - 1) > 0).float()
    sure = torch.ones_like(s)
    people = Decided(worth.unsqueeze(-1), s, sure, sure.bool(), label)

    def gap(lambda_: float) -> float:
        model = replace(config.model, clf_arch=[8], lambda_=lambda_, learning_rate=0.02)
        of = Schema([Feature("worth", Kind.REAL)], n_groups=3)
        learner = FairLog(model, Setting(of, 0.5, [0], config.schedule, config.protocol))
        for _ in range(60):
            learner.update(people)
        accepts = learner.score(people.x, s, learner.streams)
        rates = [accepts[s == g].mean().item() for g in range(3)]
        return max(rates) - min(rates)

    assert gap(0.0) > 0.5
    assert gap(10.0) < 0.15


def test_the_penalty_of_fairtorch_is_for_two_groups() -> None:
    words = ["model=fairlog", "dataset=fico", "dataset.groups=[white,black,asian]"]
    with pytest.raises(FairAllError, match=r"protocol.fairlog_penalty=fairtorch is for two groups.*squared"):
        training_of(*words, "protocol.fairlog_penalty=fairtorch")


# Independence of the latent, against a known world


def drawn(n: int, seed: int) -> tuple[People, People]:
    """People of three groups, x = a·talent + shift of the group + noise, and what they would be in the next.

    The noise and the talent, which is independent of the group, are those of the person.
    """
    generator = torch.Generator().manual_seed(seed)
    talent, s = torch.randn(n, 1, generator=generator), torch.randint(3, (n,), generator=generator).float()
    own = talent * torch.tensor([1.0, -0.8, 0.6]) + 0.3 * torch.randn(n, 3, generator=generator)
    shift = torch.tensor([[0.0, 0, 0], [1.5, 0.5, 0], [-1.0, 0, 1.5]])
    there = (s + 1) % 3
    label = (talent.squeeze(-1) > 0).float()
    return People(own + shift[s.long()], s, label), People(own + shift[there.long()], there, label)


def test_the_latent_is_less_dependent_on_three_groups_where_the_vae_sees_them() -> None:
    (people, _), (held_out, counterfactual) = drawn(1500, 1), drawn(1500, 2)
    config = replace(PHASE1, batch_size=100, learning_rate=5e-3)

    def latents(seen: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        def as_seen(of: People) -> Unlabelled:
            return Unlabelled(of.x, of.s if seen else torch.zeros_like(of.s))

        task = Phase1Task(
            as_seen(people), as_seen(held_out), schema(3), [0], 2, [16], True, config, epochs=40
        )
        vae, _ = train_phase1(task, progress=lambda **_: None, checkpoint=no_checkpoint())
        read = [
            vae.encode(of.x.unsqueeze(0), of.s.unsqueeze(0))[0][0].detach().numpy()
            for of in map(as_seen, (people, held_out, counterfactual))
        ]
        return read[0], read[1], read[2]

    s = held_out.s.numpy()
    seen, blind = latents(True), latents(False)

    def apart(z: np.ndarray) -> float:
        return max(mmd(z[s == a], z[s == b]) for a, b in pairs_of_groups(3, s))

    def moved(z: tuple[np.ndarray, np.ndarray, np.ndarray]) -> float:
        """Squared distance of a person's latent from the counterfactual's, per variance of the latent."""
        return float(np.square(z[1] - z[2]).sum(-1).mean() / z[1].var(0).sum())

    assert apart(seen[1]) < 0.03 < 0.2 < apart(blind[1])
    assert moved(seen) < 0.2 * moved(blind)
    # The talent is still there.
    assert abs(np.corrcoef(seen[1].T, np.where(held_out.label, 1.0, 0.0))[-1, :-1]).max() > 0.6


def test_mmd_is_about_zero_of_one_distribution_and_that_of_the_definition() -> None:
    draw = np.random.default_rng(0)
    same = [mmd(draw.normal(size=(60, 2)), draw.normal(size=(80, 2))) for _ in range(200)]
    assert abs(np.mean(same)) < 3 * np.std(same) / np.sqrt(200)
    z, other = draw.normal(size=(5, 2)), draw.normal(size=(4, 2)) + 1.0
    both = [*z, *other]
    median = np.median([((a - b) ** 2).sum() for a in both for b in both])

    def mean(pairs: Iterator[tuple[np.ndarray, np.ndarray]]) -> float:
        return float(np.mean([np.exp(-((a - b) ** 2).sum() / median) for a, b in pairs]))

    within = mean(itertools.permutations(z, 2)) + mean(itertools.permutations(other, 2))
    assert mmd(z, other) == pytest.approx(within - 2 * mean(itertools.product(z, other)))
    assert np.isnan(mmd(z * np.nan, other))


def test_s_is_read_from_the_worst_pair_of_groups() -> None:
    draw = np.random.default_rng(0)
    s = np.repeat([0.0, 1.0, 2.0, 3.0], [300, 300, 300, FEW - 1])  # the last one, far away, does not count
    z, other = (draw.normal(size=(len(s), 2)) + np.array([0, 0, 1, 9])[s.astype(int), None] for _ in range(2))
    _, worst = readability_of_s(z, other, s, s, 4)
    assert worst == pytest.approx(0.84, abs=0.03)  # Φ(√2·1/√2) of two axes a standard deviation apart
    same = readability_of_s(z[s < 2], other[s < 2], s[s < 2], s[s < 2], 4)
    assert same[1] == pytest.approx(0.5, abs=0.06)


def test_pairs_leave_out_groups_of_few_people() -> None:
    many, few = np.repeat([0.0, 1, 2], [FEW, FEW, FEW]), np.repeat([0.0, 1, 2], [FEW, FEW - 1, FEW])
    assert pairs_of_groups(3, many, many) == [(0.0, 1.0), (0.0, 2.0), (1.0, 2.0)]
    assert pairs_of_groups(3, many, few) == [(0.0, 2.0)]
    assert pairs_of_groups(2, np.array([1.0]), np.array([-1.0])) == [(1.0, -1.0)]  # as it was


# Whole runs


RUN = ["dataset=fico", "dataset.groups=[white,black,asian]", "preset=quick", "tracking.enabled=false"]


@pytest.mark.parametrize("model", ["fairall_I_II", "fairall_II", "fairlab_I_II", "fairlog"])
def test_training_is_resumed_as_it_was(model: str) -> None:
    whole, half, resumed = (training_of(f"model={model}", *RUN) for _ in range(3))

    def epochs(training: Any, number: range) -> None:
        for epoch in number:
            training.learner.warm_up_epoch(training.decided, epoch)

    for training in (whole, half):
        training.learner.pretrain(training.data, no_cache(), lambda **_: None)
    epochs(whole, range(4))
    epochs(half, range(2))
    resumed.learner.load_training_state(as_saved(half.learner.training_state()))
    epochs(resumed, range(2, 4))
    people = whole.data.test
    x, s = people.x.expand(2, -1, -1), people.s.expand(2, -1)
    propensity = [of.learner.propensity(x, s, SeedStreams([0, 1], "p")) for of in (whole, resumed)]
    assert torch.equal(*propensity)
    assert propensity[0].std() > 0


@pytest.mark.parametrize("model", ["fairall_I_II", "fairlab_I_II", "fairlog"])
def test_a_saved_policy_decides_on_new_people_of_three_groups(model: str, tmp_path: Path) -> None:
    result = fairall.run(fairall.compose_config(f"model={model}", *RUN, f"outputs_dir={tmp_path}"))
    assert result.spread("mean_dpu") is not None
    assert (result.spread("latent_s_mmd") is not None) == (model != "fairlog")
    policy = Policy.load(run_folder(tmp_path) / "policy")
    words = ["white", "black", "asian"]
    people = pd.DataFrame({"score": [30.0, 60.0, 90.0] * 3, "race": np.repeat(words, 3)})
    propensity = policy.propensity(people)
    assert propensity.shape == (2, 9)
    assert ((propensity >= 0) & (propensity <= 1)).all()
    if model != "fairlog":
        vae: ConditionalVAE = policy.learner.model.vae  # type: ignore[union-attr, assignment]
        assert vae.seen_as.shape == (2, 3)
    by_code = people.drop(columns="race").assign(s=np.repeat(range(3), 3))
    assert (policy.propensity(by_code) == propensity).all()
    with pytest.raises(FairAllError, match="white, black, asian"):
        policy.propensity(people.assign(race="green"))
