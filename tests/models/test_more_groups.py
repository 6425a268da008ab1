"""More than two groups as inputs, small groups, penalties, and measures of the latent."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist, pdist

from fairall.config.compose import typed_config
from fairall.data.features import Feature, FeatureInputs, Kind, Schema
from fairall.data.people import Decided, People
from fairall.errors import FairAllError
from fairall.measuring.latent_quality import mmd, pairs_of_groups, readability_of_s
from fairall.models.fairlog import FairLog, gap_of_groups
from fairall.models.learner import Setting
from fairall.models.phase1 import Phase1Task, train_phase1
from fairall.models.vae import FEW, nearest_large_groups
from fairall.tables.groups import Sensitive
from tests.conftest import PHASE1, no_checkpoint, training_of

CROSSED = [("a", "f"), ("a", "m"), ("b", "f"), ("b", "m"), ("c", "f")]


def schema(n_groups: int, **more: Any) -> Schema:
    return Schema([Feature(f"x{i}", Kind.REAL) for i in range(3)], n_groups=n_groups, **more)


@pytest.fixture
def draw() -> torch.Generator:
    return torch.Generator().manual_seed(0)


# Nets


def test_weights_of_crossed_groups_are_a_sum_of_embeddings() -> None:
    of = schema(5, crossed=CROSSED)
    inputs = FeatureInputs(of)
    assert inputs.size_with_s == 3 + 3 + 2
    weights = torch.tensor([1.0, 2, 4, 8, 16])  # of a, b, c, f, m
    assert (inputs.of_s(torch.arange(5.0)) @ weights).tolist() == [9, 17, 10, 18, 12]
    assert repr(schema(5)) != repr(of)
    measured = of.measured(np.ones((4, 3)))
    assert measured.crossed == measured.seen_as(measured.inputs).crossed == tuple(CROSSED)


@pytest.mark.parametrize(
    ("column", "rest", "crossed"),
    [
        ("race+sex", (("c+f",),), (("a", "f"), ("a", "m"), ("c", "f"))),
        ("race", (("c+f",),), ()),
        ("race+sex", (("c",),), ()),
        ("race+sex", (), ()),  # two groups are S = ±1
    ],
)
def test_words_say_whether_groups_are_crossed(column: str, rest: Any, crossed: Any) -> None:
    assert Sensitive(column, ("a+f",), ("a+m",), rest).crossed == crossed


# Small groups


def test_a_small_group_is_seen_as_the_nearest_large_one(draw: torch.Generator) -> None:
    s = torch.arange(5.0).repeat_interleave(torch.tensor([200, FEW, FEW - 1, 1, 0]))
    x = torch.randn(len(s), 2, generator=draw) * torch.tensor([1.0, 1000.0])
    x[:, 0] += torch.tensor([0.0, 4.0, 3.0, -1.0, 0.0])[s.long()]
    assert nearest_large_groups(x, s, 5).tolist() == [[0, 1, 1, 0, 0]]  # the last has nobody
    assert nearest_large_groups(x[-40:], s[-40:], 5).tolist() == [[0, 1, 2, 3, 4]]  # none is large
    of_two = nearest_large_groups(torch.stack([x, x]), torch.stack([s, s.flip(0)]), 5)
    assert of_two[0].tolist() == [0, 1, 1, 0, 0]


@pytest.mark.parametrize(("model", "told"), [("fairall_I_II", 1), ("fairall_II", 1), ("fairlog", 0)])
def test_a_run_says_which_group_is_seen_as_which(model: str, told: int, raw_data: Path) -> None:
    groups = "dataset.groups=[Caucasian,African-American,Asian,Hispanic]"
    notes = training_of(f"model={model}", "dataset=compas", groups).notes()
    assert sum("group Asian has fewer than 50 people in the pool" in note for note in notes) == told
    assert sum("see it as" in note for note in notes) == told


# The penalty


@pytest.mark.parametrize("n_groups", [1, 2, 3, 5])
def test_the_gap_of_groups_is_that_over_all_pairs_of_people(n_groups: int, draw: torch.Generator) -> None:
    accepts, group = torch.rand(6, 30, generator=draw), torch.randint(n_groups, (6, 30), generator=draw)
    for found, a, g in zip(gap_of_groups(accepts, group), accepts, group, strict=True):
        rate = torch.stack([a[g == own].mean() for own in g])
        squared = (rate - rate.unsqueeze(-1)).square()[g != g.unsqueeze(-1)]  # of each pair, person by person
        assert found.item() == pytest.approx(squared.mean().sqrt().item() if n_groups > 1 else 0.0, abs=2e-6)
        if n_groups == 2:
            assert found.item() == pytest.approx((a[g == 0].mean() - a[g == 1].mean()).abs().item(), abs=2e-6)


def test_equal_rates_and_absent_groups_leave_a_finite_gradient() -> None:
    accepts = torch.full((2, 12), 0.4, requires_grad=True)
    gap_of_groups(accepts, torch.tensor([[0, 1, 2] * 4, [2] * 12])).sum().backward()
    assert accepts.grad is not None
    assert accepts.grad.isfinite().all()


def test_fairlog_closes_the_gap_of_three_groups(draw: torch.Generator) -> None:
    config = typed_config("model=fairlog", "preset=quick")
    s, worth = torch.randint(3, (1, 900), generator=draw).float(), torch.randn(1, 900, generator=draw)
    sure = torch.ones_like(s)
    label = (worth + 1.2 * (s - 1) > 0).float()
    people = Decided(worth.unsqueeze(-1), s, sure, sure.bool(), label)
    setting = Setting(
        Schema([Feature("worth", Kind.REAL)], n_groups=3), 0.5, [0], config.schedule, config.protocol
    )

    def gap(lambda_: float) -> float:
        learner = FairLog(replace(config.model, clf_arch=[8], lambda_=lambda_, learning_rate=0.02), setting)
        for _ in range(60):
            learner.update(people)
        accepts = learner.score(people.x, s, learner.streams)
        return float(np.ptp([accepts[s == g].mean() for g in range(3)]))

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
    draw = torch.Generator().manual_seed(seed)
    talent, s = torch.randn(n, 1, generator=draw), torch.randint(3, (n,), generator=draw).float()
    own = talent * torch.tensor([1.0, -0.8, 0.6]) + 0.3 * torch.randn(n, 3, generator=draw)
    shift = torch.tensor([[0.0, 0, 0], [1.5, 0.5, 0], [-1.0, 0, 1.5]])
    label = (talent.squeeze(-1) > 0).float()
    one, other = (People(own + shift[of.long()], of, label) for of in (s, (s + 1) % 3))
    return one, other


def test_the_latent_is_less_dependent_on_three_groups_where_the_vae_sees_them() -> None:
    (people, _), (held_out, counterfactual) = drawn(1500, 1), drawn(1500, 2)
    config, s = replace(PHASE1, batch_size=100, learning_rate=5e-3), held_out.s.numpy()

    def latents(seen: bool) -> tuple[np.ndarray, float, float]:
        """The latent, the largest distance of two groups, and how far it is from the counterfactual's.

        That is the squared distance of a person's, per variance of the latent.
        """
        of = [replace(of, s=of.s * seen) for of in (people, held_out, counterfactual)]
        task = Phase1Task(of[0], of[1], schema(3), [0], 2, [16], True, config, epochs=40)
        vae, _ = train_phase1(task, progress=lambda **_: None, checkpoint=no_checkpoint())
        z, other = (vae.encode(one.x[None], one.s[None])[0][0].detach().numpy() for one in of[1:])
        apart = max(mmd(z[s == a], z[s == b]) for a, b in pairs_of_groups(3, s))
        return z, apart, np.square(z - other).sum(-1).mean() / z.var(0).sum()

    (z, apart, moved), (_, blind_apart, blind_moved) = latents(True), latents(False)
    assert apart < 0.03 < 0.2 < blind_apart
    assert moved < 0.2 * blind_moved
    # The talent is still there.
    assert abs(np.corrcoef(z.T, np.where(held_out.label, 1.0, 0.0))[-1, :-1]).max() > 0.6


def test_mmd_is_about_zero_of_one_distribution_and_that_of_the_definition() -> None:
    draw = np.random.default_rng(0)
    same = [mmd(draw.normal(size=(60, 2)), draw.normal(size=(80, 2))) for _ in range(200)]
    assert abs(np.mean(same)) < 3 * np.std(same) / np.sqrt(200)
    z, other = draw.normal(size=(5, 2)), draw.normal(size=(4, 2)) + 1.0
    both = np.concatenate([z, other])
    median = np.median(cdist(both, both, "sqeuclidean"))
    within = sum(np.exp(-pdist(of, "sqeuclidean") / median).mean() for of in (z, other))
    between = np.exp(-cdist(z, other, "sqeuclidean") / median).mean()
    assert mmd(z, other) == pytest.approx(within - 2 * between)
    assert np.isnan(mmd(z * np.nan, other))


def test_s_is_read_from_the_worst_pair_of_groups() -> None:
    draw = np.random.default_rng(0)
    s = np.repeat([0.0, 1.0, 2.0, 3.0], [300, 300, 300, FEW - 1])  # the last one, far away, does not count
    z, other = draw.normal(size=(2, len(s), 2)) + np.array([0, 0, 1, 9])[s.astype(int), None]
    _, worst = readability_of_s(z, other, s, s, 4)
    assert worst == pytest.approx(0.84, abs=0.03)  # Φ(√2·1/√2) of two axes a standard deviation apart
    alike = s < 2
    same = readability_of_s(z[alike], other[alike], s[alike], s[alike], 4)
    assert same[1] == pytest.approx(0.5, abs=0.06)


def test_pairs_leave_out_groups_of_few_people() -> None:
    many, few = (np.repeat([0.0, 1, 2], [FEW, n, FEW]) for n in (FEW, FEW - 1))
    assert pairs_of_groups(3, many, many) == [(0.0, 1.0), (0.0, 2.0), (1.0, 2.0)]
    assert pairs_of_groups(3, many, few) == [(0.0, 2.0)]
    assert pairs_of_groups(2, np.array([1.0]), np.array([-1.0])) == [(1.0, -1.0)]  # as it was
