"""Places: inclusion probabilities against enumeration, and decisions against them."""

import functools
import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from fairall.data.people import Decisions
from fairall.errors import FairAllError
from fairall.worlds.capacity import lottery, n_places, ranks, top
from tests.conftest import training_of
from tests.worlds.conftest import built, sampled

RULES = {"lottery": lottery, "top": lambda pi, places: top(pi, places, ranks(pi))}
BOTH = pytest.mark.parametrize("rule", RULES)


def enumerated(pi: np.ndarray, places: int, rule: str) -> np.ndarray:
    """Inclusion probabilities by all wishes of a policy."""
    inclusion = np.zeros(len(pi))
    for wants in itertools.product((False, True), repeat=len(pi)):
        wanted = np.flatnonzero(wants)
        for i in wanted:
            before = sum((rule == "top") & (pi[wanted] > pi[i]))
            equal = sum((rule == "lottery") | (pi[wanted] == pi[i]))
            share = min(1.0, max(places - before, 0) / equal)
            inclusion[i] += np.prod(np.where(wants, pi, 1.0 - pi)) * share
    return inclusion


@BOTH
@pytest.mark.parametrize("n", range(1, 8))
def test_inclusion_is_that_of_all_wishes(n: int, rule: str) -> None:
    random = np.random.default_rng(n)
    some = [0.0, 1.0, 0.5, 0.5, 0.25]  # ties, and those without luck
    for places in range(n + 2):
        drawn = np.where(random.random(n) < 0.5, random.random(n), random.choice(some, n))
        for pi in (drawn, drawn.round(), np.full(n, 0.5), np.ones(n), np.zeros(n)):
            found = RULES[rule](torch.tensor(pi[None]), places)[0]
            assert found.tolist() == pytest.approx(enumerated(pi, places, rule), abs=1e-12)


@BOTH
def test_inclusion_of_many_is_exact_and_of_the_policy_s_seeds_alone(rule: str) -> None:
    n = 2100  # more than the lottery computes at once
    random = np.random.default_rng(0)
    of = RULES[rule]
    pi = torch.tensor(np.stack([random.random(n), np.full(n, 0.5), random.integers(0, 2, n)]))
    found = of(pi, 600)
    assert ((found >= 0) & (found <= pi + 1e-15)).all()
    for own, of_seed in zip(pi.numpy(), found, strict=True):
        # P(number of wanted people = 0..n)
        wanted = functools.reduce(lambda p, one: np.convolve(p, [1.0 - one, one]), own, np.ones(1))
        assert of_seed.sum().item() == pytest.approx(wanted @ np.minimum(np.arange(n + 1), 600), rel=1e-9)
    few = pi[:2, :64].float()
    diverged = torch.full((1, 64), torch.nan)
    assert torch.equal(of(torch.cat([few, diverged]), 20)[:2], of(few, 20))


def test_people_who_are_equal_in_margin_too_share_places_by_lot() -> None:
    pi = torch.tensor([[1, 1, 1, 0, 1.0, 1, 1, 0]])
    wanted = Decisions(pi, pi > 0, margin=torch.tensor([[0.1, 2, 1, 5, 1, 1, 0.3, -1]]))
    # Person 1 has a place, the three of margin 1 have the others or share them.
    for places, share in ((4, 1.0), (3, 2 / 3)):
        own = built("capacity", f"number={places}", "rule=top", n=8)
        taken = [own.admit(sampled(8), wanted, 1) for _ in range(1000)]
        expected = torch.tensor([[0, 1, share, 0, share, share, 0, 0]])
        torch.testing.assert_close(taken[0].propensity, expected)
        accepted = torch.stack([one.accepted for one in taken]).float()
        assert (accepted.sum(-1) == places).all()
        torch.testing.assert_close(accepted.mean(0), expected, atol=0.075, rtol=0)  # 5 standard errors
        told = "".join(own.notes(drawn=True))
        assert ("3000 applicants of all seeds shared places" in told) is (share < 1)
    own.setting = replace(own.setting, fixed_luck=True)
    assert len({tuple(own.admit(sampled(8), wanted, 1).accepted[0].tolist()) for _ in range(9)}) == 1


@BOTH
def test_places_and_those_of_counterfactuals_go_as_stated(rule: str) -> None:
    seeds, n = 5, 20
    own, twin = (built("capacity", "share=0.4", f"rule={rule}", seeds=range(seeds), n=n) for _ in range(2))
    pi, other, margin, other_margin = torch.randint(1, 5, (4, seeds, n)) / 4
    drawn = torch.rand(seeds, n)
    wants = drawn < pi
    wanted = Decisions(pi, wants, other, drawn < other, margin, other_margin)
    taken = own.admit(sampled(n, seeds), wanted, 1)
    by_rank = rule == "top"
    inclusion = top(pi, 8, ranks(pi, margin)) if by_rank else lottery(pi, 8)
    torch.testing.assert_close((taken.propensity, taken.counterfactual_propensity), (inclusion, other))
    lot = twin.streams.uniform(n).double()
    real = lot + by_rank * (100 * pi + 10 * margin)
    imagined = lot + by_rank * (100 * other + 10 * other_margin)
    for k, i in itertools.product(range(seeds), range(n)):
        rivals = real[k][wants[k] & (torch.arange(n) != i)]
        finds, also = ((rivals > value[k, i]).sum() < 8 for value in (real, imagined))
        assert taken.accepted[k, i] == wants[k, i] & finds
        assert taken.counterfactually_accepted[k, i] == (drawn < other)[k, i] & also
    assert (wants & ~taken.accepted).any()


@pytest.mark.parametrize("words", ["model=greedy", "model=ensemble fairness=demographic_parity"])
def test_a_run_of_a_method_with_a_threshold_gives_places_by_its_log_odds(words: str) -> None:
    training = training_of("world=capacity", "world.capacity.rule=top", *words.split())
    learner = training.learner
    people = training.world.next()
    taken = training._online._decide(people)
    least = torch.full_like(people.s, learner.setting.cost, dtype=torch.float64).logit()
    if "fairness" in words:
        least = torch.where(people.s > 0, learner.threshold[:, 1:], learner.threshold[:, :1])
    margin = learner.log_odds(people.x, people.s, training.process.decisions) - least
    assert (taken.accepted.sum(1) == (margin >= 0).sum(1).clamp(max=19)).all()
    left = margin.where(~taken.accepted, -torch.inf).amax(1)
    assert (margin.where(taken.accepted, torch.inf).amin(1) >= left - 1e-3).all()


def test_places_are_a_share_or_the_number_that_a_value_equals() -> None:
    for word, places in (("share=0.3", 19), ("share=0.29", 18), ("share=1", 64), ("number=500", 64)):
        own = built("capacity", word, seeds=[0, 1])
        assert own.values["places"].tolist() == [own.places] * 2 == [places] * 2
    for limit, n, places in (
        (7.0, 9, 7),
        (np.int64(7), 9, 7),
        (0.29, 100, 29),
        (1, 9, 1),
        (1.0, 9, 9),
        (1e300, 9, 9),
    ):
        assert n_places(limit, n, "places") == places
    for wrong in (2.5, 0, np.nan, True, [7]):
        with pytest.raises(FairAllError, match="not possible: it must be a whole number of at least 1, or"):
            n_places(wrong, 200, "places")
    with pytest.raises(
        FairAllError, match=r"world.capacity.share=0.01 is not possible: it must be a place f"
    ):
        built("capacity", "share=0.01")


@pytest.mark.parametrize(
    ("words", "noted"),
    [
        ("model=fairlog", False),
        ("model=fairlog model.decision=deterministic", True),
        ("model=greedy", True),
        ("model=epsilon_greedy", False),
        ("model=plot", False),
        ("model=accept_all world.capacity.rule=lottery", False),
    ],
)
def test_a_run_notes_that_nothing_is_left_to_chance(words: str, noted: bool) -> None:
    notes = training_of("world=capacity", "world.capacity.rule=top", *words.split()).notes()
    assert any("nothing to chance" in note for note in notes) is noted


@pytest.mark.parametrize(
    ("rule", "pi", "drawn", "warned"),
    [
        ("top", 0.5, True, True),
        ("top", 0.5, False, False),  # `notes` tells of it
        ("top", 0.1, True, False),  # places for nearly all whom the policy wants
        ("top", [0.9] * 8 + [0.001] * 56, True, False),  # whom the policy rejects does not count
        ("lottery", 0.5, True, False),
    ],
)
def test_a_rule_that_leaves_many_next_to_no_chance_is_a_warning(
    rule: str, pi: float | list[float], drawn: bool, warned: bool
) -> None:
    own = built("capacity", "number=8", f"rule={rule}")
    assert own.warnings(drawn=drawn) == []
    propensity = torch.tensor(pi).expand(1, 64)
    # Nobody is equal to another.
    wanted = Decisions(propensity, torch.rand(1, 64) < propensity, margin=torch.rand(1, 64))
    share = (own.admit(sampled(64), wanted, 1).propensity < 0.02).double().mean().item()
    told = [warning.partition(" whom")[0] for warning in own.warnings(drawn=drawn)]
    assert told == [f"world.capacity.rule=top: {share:.0%} of the applicants"] * warned
