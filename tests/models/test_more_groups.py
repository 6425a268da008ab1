"""More than two groups as inputs, small groups, penalties, and measures of the latent."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist, pdist

from fairall.data.features import FeatureInputs
from fairall.data.people import People
from fairall.errors import FairAllError
from fairall.measuring.latent_quality import mmd, pairs_of_groups, readability_of_s
from fairall.models.fairlog import gap_of_groups
from fairall.models.phase1 import Phase1Task, train_phase1
from fairall.models.vae import FEW, nearest_large_groups
from fairall.tables.groups import Sensitive
from tests.conftest import PHASE1, no_checkpoint, training_of
from tests.models.conftest import CROSSED, setting_of

# Nets


def test_weights_of_crossed_groups_are_a_sum_of_embeddings() -> None:
    inputs = FeatureInputs(setting_of([0], features="xyz", n_groups=5, crossed=CROSSED).schema)
    assert inputs.size_with_s == 3 + 3 + 2
    weights = torch.tensor([1.0, 2, 4, 8, 16])  # of a, b, c, f, m
    assert (inputs.of_s(torch.arange(5.0)) @ weights).tolist() == [9, 17, 10, 18, 12]


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


def test_equal_rates_and_absent_groups_leave_a_finite_gradient() -> None:
    accepts = torch.full((2, 12), 0.4, requires_grad=True)
    gap_of_groups(accepts, torch.tensor([[0, 1, 2] * 4, [2] * 12])).sum().backward()
    assert accepts.grad is not None
    assert accepts.grad.isfinite().all()


def test_the_penalty_of_fairtorch_is_for_two_groups() -> None:
    words = ["model=fairlog", "dataset=fico", "dataset.groups=[white,black,asian]"]
    with pytest.raises(FairAllError, match=r"protocol.fairlog_penalty=fairtorch is for two groups.*squared"):
        training_of(*words, "protocol.fairlog_penalty=fairtorch")


# Independence of the latent, against a known world


def test_mmd_is_that_of_the_definition_without_pairs_of_a_person_with_itself() -> None:
    draw = np.random.default_rng(0)
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


def test_pairs_leave_out_groups_of_few_people() -> None:
    many, few = (np.repeat([0.0, 1, 2], [FEW, n, FEW]) for n in (FEW, FEW - 1))
    assert pairs_of_groups(3, many, many) == [(0.0, 1.0), (0.0, 2.0), (1.0, 2.0)]
    assert pairs_of_groups(3, many, few) == [(0.0, 2.0)]
    assert pairs_of_groups(2, np.array([1.0]), np.array([-1.0])) == [(1.0, -1.0)]  # as it was


def test_the_latent_is_less_dependent_on_three_groups_where_the_vae_sees_them(draw: torch.Generator) -> None:
    """X = a·talent + shift of the group + noise, and the talent is independent of the group."""
    talent, s = torch.randn(3000, 1, generator=draw), torch.randint(3, (3000,), generator=draw)
    shift = torch.tensor([[0.0, 0, 0], [1.5, 0.5, 0], [-1.0, 0, 1.5]])
    noise = 0.3 * torch.randn(3000, 3, generator=draw)
    x, group = talent * torch.tensor([1.0, -0.8, 0.6]) + noise + shift[s], s[1::2].numpy()
    schema, apart = setting_of([0], features="xyz", n_groups=3).schema, []
    config = replace(PHASE1, batch_size=100, learning_rate=5e-3)
    for seen in (s * 0.0, s * 1.0):
        known, held_out = (People(x[of::2], seen[of::2], seen[of::2]) for of in (0, 1))
        task = Phase1Task(known, held_out, schema, [0], 2, [16], True, config, epochs=40)
        vae, _ = train_phase1(task, progress=lambda **_: None, checkpoint=no_checkpoint())
        z = vae.encode(held_out.x[None], held_out.s[None])[0][0].detach().numpy()
        # The largest distance of two groups of held-out people.
        apart.append(max(mmd(z[group == a], z[group == b]) for a, b in pairs_of_groups(3, group)))
    blind, own = apart
    assert own < 0.05 < 0.2 < blind
    # The talent is still there.
    assert abs(np.corrcoef(z.T, talent[1::2, 0] > 0)[-1, :-1]).max() > 0.6
