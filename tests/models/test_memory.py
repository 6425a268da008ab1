"""Memory beside a plain list of people per seed."""

from dataclasses import dataclass
from typing import Any, Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fairall.data.people import Decided
from fairall.models.memory import NO_LIMIT, Memory
from fairall.runtime.randomness import SeedStreams
from tests.conftest import MakePeople, as_saved, examples
from tests.models.conftest import built, same, someone

Keep = Literal["accepted", "all"]


@dataclass(frozen=True)
class Marked(Decided):
    """Decided people with marks, shape (E, B, 2)."""

    mark: Tensor


def numbered(number: Tensor) -> Marked:
    """People whose fields all follow from their number, shape (E, B); 0 is nobody, odd ones are accepted."""
    x, accepted = torch.stack([number, -number], -1), number % 2 > 0
    label = accepted * (number % 3 == 0).float()
    return Marked(x, number.sin(), number.tanh(), accepted, label, mark=5 * x)


def alike(one: Decided, other: Decided) -> bool:
    """Whether people have equal fields."""
    return type(one) is type(other) and same(vars(one), vars(other))


@settings(max_examples=examples(60), deadline=None)
@given(
    keep=st.sampled_from(["accepted", "all"]),
    limit=st.just(NO_LIMIT) | st.integers(1, 7),
    n_seeds=st.integers(1, 3),
    sizes=st.lists(st.integers(0, 6), min_size=1, max_size=8),
    saved_before=st.integers(0, 7),
    draw=st.integers(0, 2**31),
)
def test_it_is_a_list_of_people_per_seed(
    keep: Keep, limit: int, n_seeds: int, sizes: list[int], saved_before: int, draw: int
) -> None:
    memory, known = Memory(keep, limit, of=Marked), [list[int]() for _ in range(n_seeds)]
    luck, rates = torch.Generator().manual_seed(draw), torch.tensor([[0.8], [0.0], [0.5]])[:n_seeds]
    for t, size in enumerate(sizes):
        took = torch.rand(n_seeds, size, generator=luck) < rates
        number = (2 * torch.randint(1, 999, took.shape, generator=luck) + took).float()
        if t == saved_before:
            state, memory = memory.state_dict(), Memory(keep, limit, of=Marked)
            memory.load_state_dict(as_saved(state))
        memory.add(added := numbered(number))
        added.x.zero_()  # what is added is copied
        expected = torch.zeros(n_seeds, max(1, sum(sizes)))
        for place, own, numbers in zip(expected, known, number.tolist(), strict=True):
            own += [n for n in numbers if n % 2 or keep == "all"]
            for age, n in enumerate(own):
                place[age % limit] = n
        counts = [min(len(own), limit) for own in known]
        assert memory.counts.tolist() == counts
        assert alike(memory.rows(), numbered(expected[:, : len(memory)]))
        drawn = memory.sample(9, SeedStreams([5] * n_seeds, "d"))
        assert alike(drawn, numbered(drawn.x[..., 0]))
        for own, numbers in zip(known, drawn.x[..., 0].tolist(), strict=True):
            assert {*numbers} <= {*(own[-limit:] or [0])}
        parts = memory.minibatches(3, 3, SeedStreams([5] * n_seeds, "d"))
        assert torch.equal(torch.cat([one.mark for one in parts], 1), drawn.mark)  # type: ignore[attr-defined]


def test_draws_are_uniform_with_replacement_and_of_the_seeds_own() -> None:
    memory = Memory("all", of=Marked)
    memory.add(numbered(torch.arange(1.0, 5.0).expand(3, -1)))
    drawn = memory.sample(4000, SeedStreams([5, 6, 5], "draws")).x[..., 0]
    assert all(abs(of.bincount()[1:] / 4000 - 0.25).max() < 0.03 for of in drawn.long())
    assert torch.equal(drawn[0], drawn[2])
    assert not torch.equal(drawn[0], drawn[1])


def test_a_state_stays_as_it_is_while_more_people_come() -> None:
    memory = Memory("accepted")
    memory.add(numbered(torch.tensor([[1.0, 3.0], [2.0, 4.0]])))
    before = as_saved(state := memory.state_dict())
    memory.add(numbered(torch.tensor([[2.0], [7.0]])))  # into the room that the second seed has left
    assert same(state, before)


@pytest.mark.parametrize("model", ["fairall_II", "fairlog"])
@pytest.mark.parametrize(("kept", "rates"), [("step", [0.5]), ("all", [0.3, 0.4, 0.5])])
def test_an_update_is_on_the_applicants_or_on_everybody_so_far(
    model: str, kept: str, rates: list[float], people: MakePeople, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, trained = built(model, [0, 1], features="abcde", memory=kept), list[Any]()
    trains, epoch = (learner, "train_epoch") if model == "fairlog" else (learner.epochs, "model_epoch")
    for step, learns in enumerate((lambda of: learner.warm_up_epoch(of, 0), learner.update, learner.update)):
        if step == 2:
            monkeypatch.setattr(trains, epoch, lambda *given: trained.append(given[-1]))
        # People have the propensity of their step, which tells the steps apart.
        learns(someone(people(40), step, [0, 1], rate=0.3 + 0.1 * step))
    assert trained[0].s.shape == (2, 16 * len(rates))
    assert trained[0].propensity.unique().tolist() == pytest.approx(rates)
