"""Memory beside a plain list of people per seed."""

from dataclasses import dataclass
from typing import Literal

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


@dataclass(frozen=True)
class Marked(Decided):
    """Decided people with marks, shape (E, B, 2)."""

    mark: Tensor


def numbered(number: Tensor) -> Marked:
    """People whose fields all follow from their number, shape (E, B); 0 is nobody, odd ones are accepted."""
    x, somebody, accepted = torch.stack([number, -number], -1), (number > 0).float(), number % 2 > 0
    s = somebody * (2.0 * (number // 2 % 2) - 1.0)
    label = accepted * (number % 3 == 0).float()
    return Marked(x, s, somebody / (1.0 + number), accepted, label, mark=torch.stack([s, 5 * x[..., 1]], -1))


def alike(one: Decided, other: Decided) -> bool:
    """Whether people have equal fields."""
    return type(one) is type(other) and all(map(torch.equal, vars(one).values(), vars(other).values()))


@settings(max_examples=examples(60), deadline=None)
@given(
    keep=st.sampled_from(["accepted", "all"]),
    limit=st.none() | st.integers(1, 7),
    n_seeds=st.integers(1, 3),
    sizes=st.lists(st.integers(0, 6), min_size=1, max_size=8),
    saved_before=st.integers(0, 7),
    draw=st.integers(0, 2**31),
)
def test_it_is_a_list_of_people_per_seed(
    keep: Keep, limit: int | None, n_seeds: int, sizes: list[int], saved_before: int, draw: int
) -> None:
    saved_before %= len(sizes)
    memory, alone, twin = (Memory(keep, limit, of=Marked) for _ in range(3))  # alone: the last seed
    known: list[list[int]] = [[] for _ in range(n_seeds)]
    first, luck = 2, torch.Generator().manual_seed(draw)
    rates = torch.tensor([[0.8], [0.0], [0.5]])[:n_seeds]
    for t, size in enumerate(sizes):
        took = torch.rand(n_seeds, size, generator=luck) < rates
        number = first + 2 * torch.arange(took.numel()).view(took.shape) + took
        first += 2 * took.numel()
        for own, numbers in zip(known, number.tolist(), strict=True):
            own += [n for n in numbers if n % 2 or keep == "all"]
        if t == saved_before:
            twin.load_state_dict(as_saved(memory.state_dict()))
        for one in (memory, twin) if t >= saved_before else (memory,):
            added = numbered(number.float())
            one.add(added)
            added.x.zero_()  # what is added is copied
        alone.add(numbered(number[-1:].float()))
        kept = [own[-limit:] if limit else own for own in known]
        assert memory.counts.tolist() == [len(own) for own in kept]
        assert len(memory) == max(map(len, kept))
        expected = torch.zeros(n_seeds, len(memory))
        for place, own, all_of_seed in zip(expected, kept, known, strict=True):
            for age, n in enumerate(own, start=len(all_of_seed) - len(own)):
                place[age % limit if limit else age] = n
        assert alike(memory.rows(), numbered(expected))
        drawn, of_last = (
            one.sample(9, SeedStreams([5] * n, "d")) for one, n in ((memory, n_seeds), (alone, 1))
        )
        assert alike(drawn, numbered(drawn.x[..., 0]))
        for own, numbers in zip(kept, drawn.x[..., 0].tolist(), strict=True):
            assert set(numbers) <= set(own or [0])
        assert torch.equal(drawn.x[-1:], of_last.x)
        if t >= saved_before:
            assert alike(twin.rows(), memory.rows())
            assert alike(twin.sample(9, SeedStreams([5] * n_seeds, "d")), drawn)


def test_draws_are_uniform_with_replacement_and_of_the_seeds_own() -> None:
    memory = Memory("all")
    memory.add(numbered(torch.arange(1.0, 5.0).expand(3, -1)))
    drawn = memory.sample(4000, SeedStreams([5, 6, 5], "draws")).x[..., 0]
    share = torch.stack([(drawn == n).float().mean(-1) for n in range(1, 5)])
    torch.testing.assert_close(share, torch.full((4, 3), 0.25), atol=0.03, rtol=0)
    assert torch.equal(drawn[0], drawn[2])
    assert not torch.equal(drawn[0], drawn[1])


def test_two_memories_loaded_from_one_state_are_independent() -> None:
    memory = Memory("accepted")
    memory.add(numbered(torch.tensor([[1.0, 3.0], [2.0, 4.0]])))
    state = memory.state_dict()
    first, second = Memory("accepted"), Memory("accepted")
    for twin in (first, second):
        twin.load_state_dict(state)
    first.add(numbered(torch.tensor([[2.0], [7.0]])))  # into the room that the second seed has left
    assert second.rows().x[1].abs().sum() == 0
    assert state["columns"]["x"][1].abs().sum() == 0


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
    trained: list[Decided] = []
    for one in (learner, twin):
        if isinstance(one, LatentLearner):
            monkeypatch.setattr(one.epochs, "model_epoch", lambda _, decided: trained.append(decided))
            monkeypatch.setattr(one.epochs, "policy_epoch", lambda *_: None)
        else:
            monkeypatch.setattr(one, "_epoch", trained.append)
        one.update(steps[2])
    (decided, again), n = trained, steps[2].s.shape[1]
    assert decided.s.shape == (2, n if kept == "step" else 3 * n)
    # Of a step, people have the propensity of that step, which tells the steps apart.
    rates = decided.propensity.unique().tolist()
    assert rates == pytest.approx([0.5] if kept == "step" else [0.3, 0.4, 0.5])
    assert alike(decided, again)
