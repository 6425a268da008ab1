"""Places: inclusion probabilities against enumeration, and decisions against them."""

import functools
import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

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
    random = np.random.default_rng(0).random(n)
    pi = torch.tensor(np.stack([random, np.full(n, 0.5), np.full(n, np.nan)]))
    found = RULES[rule](pi, 600)
    for own, of_seed in zip(pi[:2].numpy(), found, strict=False):
        # P(number of wanted people = 0..n)
        wanted = functools.reduce(np.convolve, np.stack([1.0 - own, own], 1))
        assert of_seed.sum().item() == pytest.approx(wanted @ np.minimum(np.arange(n + 1), 600), rel=1e-9)
    assert torch.equal(RULES[rule](pi[:1], 600)[0], found[0])


def test_people_who_are_equal_in_margin_too_share_places_by_lot() -> None:
    pi = torch.tensor([[1, 1, 1, 0, 1.0, 1, 1, 0]])
    wanted = Decisions(pi, pi > 0, margin=torch.tensor([[0.1, 2, 1, 5, 1, 1, 0.3, -1]]))
    own = built("capacity", "number=3", "rule=top", n=8)
    taken = [own.admit(sampled(8), wanted, 1) for _ in range(1000)]
    # Person 1 has a place, the three of margin 1 share the others.
    expected = torch.tensor([[0, 1, 2 / 3, 0, 2 / 3, 2 / 3, 0, 0]])
    torch.testing.assert_close(taken[0].propensity, expected)
    accepted = torch.stack([one.accepted for one in taken]).float()
    assert (accepted.sum(-1) == 3).all()
    torch.testing.assert_close(accepted.mean(0), expected, atol=0.075, rtol=0)  # 5 standard errors
    (note,) = own.notes(drawn=True)
    assert "3000 applicants of all seeds shared places" in note
    own.setting = replace(own.setting, fixed_luck=True)
    again = torch.cat([own.admit(sampled(8), wanted, 1).accepted for _ in range(9)])
    assert len(again.unique(dim=0)) == 1


@BOTH
def test_places_and_those_of_counterfactuals_go_as_stated(rule: str) -> None:
    n, by_rank = 20, rule == "top"
    own = built("capacity", "share=0.4", f"rule={rule}", seeds=range(5), n=n)
    lot = own.streams.copy().uniform(n).double()
    pi, other, margin, other_margin = torch.randint(1, 5, (4, 5, n)) / 4
    drawn = torch.rand(5, n)
    wants = drawn < pi
    real = lot + by_rank * (100 * pi + 10 * margin)

    def finds(value: Tensor) -> Tensor:
        """Who has less than eight rivals at other positions before them."""
        before = (real.unsqueeze(1) > value.unsqueeze(2)) & wants.unsqueeze(1)
        return (before & ~torch.eye(n).bool()).sum(2) < 8

    counterfactual = Decisions(other, drawn < other, other_margin)
    taken = own.admit(sampled(n, 5), Decisions(pi, wants, margin, counterfactual=counterfactual), time_step=1)
    also = (drawn < other) & finds(lot + by_rank * (100 * other + 10 * other_margin))
    assert torch.equal(taken.accepted, wants & finds(real))
    assert taken.counterfactual is not None
    assert torch.equal(taken.counterfactual.accepted, also)
    inclusion = top(pi, 8, ranks(pi, margin)) if by_rank else lottery(pi, 8)
    torch.testing.assert_close((taken.propensity, taken.counterfactual.propensity), (inclusion, other))


@pytest.mark.parametrize("words", ["model=greedy", "model=ensemble fairness=demographic_parity"])
def test_a_run_of_a_method_with_a_threshold_gives_places_by_its_log_odds(words: str) -> None:
    training = training_of("world=capacity", "world.capacity.rule=top", *words.split())
    learner = training.learner
    people = training.world.next()
    accepted = training.decide(people).accepted
    usual = torch.full((1, 1, 2), learner.setting.cost, dtype=torch.float64).logit()
    threshold = getattr(learner, "threshold", usual)[:, 0]
    least = torch.where(people.s > 0, threshold[:, 1:], threshold[:, :1])
    margin = learner.log_odds(people.x, people.s, training.process.decisions) - least
    assert (accepted.sum(1) == (margin >= 0).sum(1).clamp(max=19)).all()
    left = margin.where(~accepted, -torch.inf).amax(1)
    assert (margin.where(accepted, torch.inf).amin(1) >= left - 1e-3).all()


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
        ("top", [0.5], True, True),
        ("top", [0.5], False, False),  # `notes` tells of it
        ("top", [0.1], True, False),  # places for nearly all whom the policy wants
        ("top", [0.9] * 8 + [0.001] * 56, True, False),  # whom the policy rejects does not count
        ("lottery", [0.5], True, False),
    ],
)
def test_a_rule_that_leaves_many_next_to_no_chance_is_a_warning(
    rule: str, pi: list[float], drawn: bool, warned: bool
) -> None:
    own = built("capacity", "number=8", f"rule={rule}")
    propensity = torch.tensor(pi).expand(1, 64)
    wanted = Decisions(propensity, propensity > 0, margin=torch.rand(1, 64))  # nobody is equal to another
    share = (own.admit(sampled(64), wanted, 1).propensity < 0.02).double().mean()
    told = [warning.partition(" whom")[0] for warning in own.warnings(drawn=drawn)]
    assert told == [f"world.capacity.rule=top: {share:.0%} of the applicants"] * warned
