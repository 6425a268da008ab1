"""What every learner of this folder is checked for, and people to learn from."""

import io
from collections.abc import Callable
from dataclasses import fields

import torch

from fairall.data.people import Decided, People
from fairall.models.learner import Learner
from fairall.randomness import SeedStreams

MakeLearner = Callable[[list[int]], Learner]


def someone(people: People, step: int, seeds: list[int], rate: float = 0.5) -> Decided:
    """A time step: some 16 of the people in an order of the seed's own, accepted with probability `rate`."""
    streams = SeedStreams(seeds, f"step {step}")
    rows = (streams.uniform(16) * len(people)).long()
    propensity = torch.full((len(seeds), 16), rate)
    return Decided.reveal(people.rows(rows), propensity, streams.uniform(16) < propensity)


def taught(learner: Learner, people: People, seeds: list[int], steps: range) -> Learner:
    """The learner after its warm-up, if `steps` begins with 0, and updates on people of further steps."""
    for step in steps:
        decided = someone(people, step, seeds)
        if step == 0:
            for epoch in range(2):
                learner.warm_up_epoch(decided, epoch)
        else:
            learner.update(decided)
    return learner


def propensities(learner: Learner, people: People) -> torch.Tensor:
    """Those of all people, shape (E, N)."""
    n_seeds = len(learner.setting.seeds)
    x, s = people.x.expand(n_seeds, -1, -1), people.s.expand(n_seeds, -1)
    return learner.propensity(x, s, SeedStreams(learner.setting.seeds, "p"))


def assert_all(make: MakeLearner, people: People) -> None:
    """All of the checks below."""
    assert_resumes(make, people)
    assert_policy_is_in_the_modules(make, people)
    assert_alone_as_stacked(make, people)
    learner = taught(make([0, 1]), people, [0, 1], range(3))
    assert_propensity_is_of_the_person(learner, people)
    assert_deterministic_is_0_or_1(learner, people)
    assert_learns_nothing_wrong_from_nobody(make, people)
    assert_draws_as_it_says(taught(make([0, 1]), people, [0, 1], range(3)), people)


def assert_draws_as_it_says(learner: Learner, people: People) -> None:
    """Rule and `explore` say whether decisions on applicants have probabilities other than 0 and 1."""
    x, s = people.x.expand(2, -1, -1), people.s.expand(2, -1)
    decided = learner.explore(
        x, s, propensities(learner, people), SeedStreams([0, 1], "u").uniform(len(people))
    )
    draws = learner.rule.drawn or type(learner).explore is not Learner.explore
    assert draws == ((decided > 0) & (decided < 1)).any()


def assert_deterministic_is_0_or_1(learner: Learner, people: People) -> None:
    """π is 0 or 1 where the rule says that it is."""
    if not learner.rule.drawn:
        assert set(propensities(learner, people).flatten().tolist()) <= {0.0, 1.0}


def assert_resumes(make: MakeLearner, people: People) -> None:
    """A learner loaded from a checkpoint has the next updates of the one saved, to the last bit."""
    seeds = [0, 3]
    first = taught(make(seeds), people, seeds, range(3))
    buffer = io.BytesIO()
    torch.save(first.training_state(), buffer)
    buffer.seek(0)
    second = make(seeds)
    second.load_training_state(torch.load(buffer, weights_only=True))
    for learner in (first, second):
        taught(learner, people, seeds, range(3, 6))
    for own, other in zip(first.state_dict().values(), second.state_dict().values(), strict=True):
        assert torch.equal(own, other)
    assert torch.equal(propensities(first, people), propensities(second, people))


def assert_policy_is_in_the_modules(make: MakeLearner, people: People) -> None:
    """Parameters and buffers, which a saved policy has, are all that propensities depend on."""
    seeds = [0, 3]
    first, second = taught(make(seeds), people, seeds, range(3)), make(seeds)
    before = propensities(second, people)
    second.load_state_dict(first.state_dict())
    assert torch.equal(propensities(second, people), propensities(first, people))
    assert not torch.equal(before, propensities(first, people))


def assert_alone_as_stacked(make: MakeLearner, people: People) -> None:
    """A seed has the weights alone that it has among others, to rounding."""
    seeds = [0, 3, 4]
    stacked = taught(make(seeds), people, seeds, range(4))
    for k, seed in enumerate(seeds):
        alone = taught(make([seed]), people, [seed], range(4))
        for own, among in zip(alone.parameters(), stacked.parameters(), strict=True):
            copies = len(own)  # replicates of a seed
            torch.testing.assert_close(own, among[k * copies : (k + 1) * copies], atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(
            propensities(alone, people)[0], propensities(stacked, people)[k], atol=1e-5, rtol=1e-4
        )


def assert_propensity_is_of_the_person(learner: Learner, people: People) -> None:
    """In [0, 1], the same in other company and for other random numbers."""
    everybody = propensities(learner, people)
    assert ((everybody >= 0) & (everybody <= 1)).all()
    n_seeds, few = len(everybody), people.rows(torch.tensor([5, 2]))
    x, s = few.x.expand(n_seeds, -1, -1), few.s.expand(n_seeds, -1)
    alone = learner.propensity(x, s, SeedStreams(learner.setting.seeds, "others"))
    torch.testing.assert_close(alone, everybody[:, [5, 2]])


def assert_learns_nothing_wrong_from_nobody(make: MakeLearner, people: People) -> None:
    """With nobody accepted in a seed all numbers stay finite, and the other seed learns as ever."""
    seeds = [0, 3]
    learner = make(seeds)
    for step in range(3):
        decided = someone(people, step, seeds)
        for field in fields(decided):
            if field.name not in ("x", "s"):
                getattr(decided, field.name)[0] = 0
        if step == 0:
            learner.warm_up_epoch(decided, 0)
        else:
            learner.update(decided)
    assert all(parameter.isfinite().all() for parameter in learner.parameters())
    other = taught_once(make([3]), people)
    torch.testing.assert_close(propensities(learner, people)[1], propensities(other, people)[0])


def taught_once(learner: Learner, people: People) -> Learner:
    """One warm-up epoch and two updates of seed 3."""
    learner.warm_up_epoch(someone(people, 0, [3]), 0)
    for step in (1, 2):
        learner.update(someone(people, step, [3]))
    return learner
