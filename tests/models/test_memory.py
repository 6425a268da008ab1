"""Memory beside a plain list of people per seed."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fairall.config.compose import typed_config
from fairall.data.people import Decided
from fairall.models.latent_learner import LatentLearner
from fairall.models.learner import Learner
from fairall.models.memory import Memory
from fairall.runtime.randomness import SeedStreams
from tests.conftest import MakePeople, MakeSetting, as_saved, examples
from tests.models.conftest import someone

Keep = Literal["accepted", "all"]


def decided(accepted: list[list[bool]], first: int) -> Decided:
    """People of every seed, numbered from `first` on; every other field follows from the number."""
    took = torch.tensor(accepted, dtype=torch.bool).view(len(accepted), -1)
    number = first + torch.arange(took.numel(), dtype=torch.float32).view(took.shape)
    x = torch.stack([number, -number], dim=-1)
    s = 2.0 * (number % 2) - 1.0
    return Decided(x, s, 1.0 / (1.0 + number), took, took * (number % 3 == 0))


def reloaded(memory: Memory) -> Memory:
    """A memory that a checkpoint gives back."""
    saved = as_saved(memory.state_dict())
    twin = Memory(memory.keep, memory.limit, of=memory.of)
    twin.load_state_dict(saved)
    return twin


def numbers(rows: Decided, count: int, seed: int) -> list[float]:
    return rows.x[seed, :count, 0].tolist()


Step = list[list[bool]]


@st.composite
def sequences(draw: st.DrawFn) -> tuple[Keep, int | None, list[Step], int]:
    """What to keep, a limit, decisions of some steps on 1 to 3 seeds, and the step to save and load after."""
    n_seeds = draw(st.integers(1, 3))
    steps = []
    for size in draw(st.lists(st.integers(0, 6), min_size=1, max_size=8)):
        one = st.lists(st.booleans(), min_size=size, max_size=size)
        steps.append([draw(one) for _ in range(n_seeds)])
    keep: Keep = draw(st.sampled_from(["accepted", "all"]))
    limit = draw(st.none() | st.integers(1, 7))
    return keep, limit, steps, draw(st.integers(0, len(steps) - 1))


@settings(max_examples=examples(60), deadline=None)
@given(sequences())
def test_it_is_a_list_of_people_per_seed(case: tuple[Keep, int | None, list[Step], int]) -> None:
    keep, limit, steps, saved_after = case
    memory, n_seeds = Memory(keep, limit), len(steps[0])
    known: list[list[float]] = [[] for _ in range(n_seeds)]
    twin, first = None, 1
    for t, step in enumerate(steps):
        one = decided(step, first)
        first += one.s.numel()
        for own, number, took in zip(known, one.x[..., 0].tolist(), step, strict=True):
            own += [n for n, accepted in zip(number, took, strict=True) if accepted or keep == "all"]
        memory.add(one)
        if twin is not None:
            twin.add(one)
        kept = [own[-limit:] if limit else own for own in known]
        assert memory.counts.tolist() == [len(own) for own in kept]
        assert len(memory) == max(map(len, kept))
        rows = memory.rows()
        assert rows.s.shape[1] == len(memory)
        for seed, own in enumerate(kept):
            place: list[float] = [0.0] * len(own)
            for age, number in enumerate(own, start=len(known[seed]) - len(own)):
                place[age % limit if limit else age] = number
            assert numbers(rows, len(own), seed) == place
            numbered = rows.x[seed, : len(own), 0]
            assert torch.equal(rows.x[seed, : len(own), 1], -numbered)
            assert torch.equal(rows.s[seed, : len(own)], 2.0 * (numbered % 2) - 1.0)
            assert torch.equal(rows.propensity[seed, : len(own)], 1.0 / (1.0 + numbered))
            assert torch.equal(
                rows.label[seed, : len(own)], (numbered % 3 == 0) * rows.accepted[seed, : len(own)].float()
            )
            padding = [getattr(rows, name)[seed, len(own) :] for name in vars(rows)]
            assert not any(values.any() for values in padding)
        drawn = memory.sample(9, SeedStreams(range(n_seeds), "draws"))
        for seed, own in enumerate(kept):
            assert set(drawn.x[seed, :, 0].tolist()) <= set(own or [0.0])
            if keep == "accepted":
                assert drawn.accepted[seed].all() == bool(own)
        if twin is not None:
            other = twin.sample(9, SeedStreams(range(n_seeds), "draws"))
            assert all(torch.equal(getattr(drawn, name), getattr(other, name)) for name in vars(drawn))
            assert all(
                torch.equal(a, b)
                for a, b in zip(vars(rows).values(), vars(twin.rows()).values(), strict=True)
            )
        if t == saved_after:
            twin = reloaded(memory)


def test_draws_are_uniform_with_replacement_and_of_the_seeds_own() -> None:
    memory = Memory("all")
    memory.add(decided([[True] * 4] * 3, 1))
    drawn = memory.sample(4000, SeedStreams([5, 6, 5], "draws")).x[..., 0]
    for seed in range(3):
        share = torch.stack([(drawn[seed] == n + 1 + 4 * seed).float().mean() for n in range(4)])
        torch.testing.assert_close(share, torch.full((4,), 0.25), atol=0.03, rtol=0)
    assert torch.equal(drawn[0] + 8, drawn[2])
    assert not torch.equal(drawn[0] + 4, drawn[1])


def test_a_seed_alone_has_the_rows_and_draws_it_has_among_others() -> None:
    steps = [decided([[True, False, True], [False, False, True], [False] * 3], 10 * t) for t in range(4)]
    together = Memory("accepted", 5)
    for step in steps:
        together.add(step)
    for seed in range(3):
        alone = Memory("accepted", 5)
        for step in steps:
            alone.add(replace(step, **{name: values[[seed]] for name, values in vars(step).items()}))
        both = [
            memory.sample(7, SeedStreams(seeds, "draws"))
            for memory, seeds in ((together, [0, 1, 2]), (alone, [seed]))
        ]
        assert torch.equal(both[0].x[seed], both[1].x[0])
        count = int(alone.counts)
        assert numbers(together.rows(), count, seed) == numbers(alone.rows(), count, 0)


def test_two_memories_loaded_from_one_state_are_independent() -> None:
    memory = Memory("accepted")
    memory.add(decided([[True, True], [False, False]], 1))
    state = memory.state_dict()
    first, second = Memory("accepted"), Memory("accepted")
    for twin in (first, second):
        twin.load_state_dict(state)
    first.add(decided([[False], [True]], 7))  # into the room that the second seed has left
    assert second.rows().x[1].abs().sum() == 0
    assert state["columns"]["x"][1].abs().sum() == 0


def test_a_memory_without_anybody_is_saved_and_loaded() -> None:
    empty = reloaded(Memory("accepted"))
    assert len(empty) == 0
    empty.add(decided([[False, True]], 1))
    assert empty.counts.tolist() == [1]


@dataclass(frozen=True)
class Marked(Decided):
    """Decided people with marks, shape (E, B, 2)."""

    mark: Tensor


def test_further_tensors_of_people_are_kept_with_them() -> None:
    memory = Memory("accepted", 3, of=Marked)
    one = decided([[True, False, True]] * 2, 1)
    fields: dict[str, Any] = dict(vars(one))
    memory.add(Marked(**fields, mark=torch.stack([one.s, 5 * one.s], dim=-1)))
    for own in (memory, reloaded(memory)):
        drawn = own.sample(6, SeedStreams([0, 1], "draws"))
        assert isinstance(drawn, Marked)
        torch.testing.assert_close(drawn.mark, torch.stack([drawn.s, 5 * drawn.s], dim=-1))


@pytest.mark.parametrize("limit", [None, 4])
def test_added_people_can_be_changed_afterwards(limit: int | None) -> None:
    memory, one = Memory("all", limit), decided([[True, True]], 1)
    memory.add(one)
    one.x.zero_()
    assert numbers(memory.rows(), 2, 0) == [1.0, 2.0]


@pytest.mark.parametrize("model", ["fairall_II", "fairlab_I_II", "fairlog", "unfairlog"])
@pytest.mark.parametrize("kept", ["step", "all"])
def test_an_update_is_on_the_applicants_or_on_everybody_so_far(
    model: str, kept: str, setting: MakeSetting, people: MakePeople, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = setting([0, 1])
    words = f"model={model}", f"model.memory={kept}", *["model.phase1=null"] * ("_I_" in model)
    config = typed_config(*words).model
    learner, twin = (config.build(own) for _ in range(2))
    assert isinstance(learner, Learner)
    steps = [someone(people(40), step, [0, 1], rate=0.3 + 0.1 * step) for step in range(4)]
    learner.warm_up_epoch(steps[0], 0)
    learner.update(steps[1])
    twin.load_training_state(as_saved(learner.training_state()))
    trained = []

    def noted(decided: Decided) -> None:
        trained.append(decided)

    for one in (learner, twin):
        if isinstance(one, LatentLearner):
            monkeypatch.setattr(one.epochs, "model_epoch", lambda _, decided: noted(decided))
            monkeypatch.setattr(one.epochs, "policy_epoch", lambda *_: None)
        else:
            monkeypatch.setattr(one, "_epoch", noted)
        one.update(steps[2])
    (decided, again), n = trained, steps[2].s.shape[1]
    assert decided.s.shape == (2, n if kept == "step" else 3 * n)
    # Of a step, people have the propensity of that step, which tells the steps apart.
    rates = decided.propensity.unique().numpy()
    np.testing.assert_allclose(rates, [0.5] if kept == "step" else [0.3, 0.4, 0.5])
    for one, other in zip(vars(decided).values(), vars(again).values(), strict=True):
        assert torch.equal(one, other)
