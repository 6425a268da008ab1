"""Places: inclusion probabilities against enumeration, and decisions against them."""

import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from fairall.data.people import Decisions
from fairall.errors import FairAllError
from fairall.worlds import capacity as module
from fairall.worlds.capacity import lottery, n_places, ranks, top
from tests.conftest import training_of
from tests.worlds.conftest import built, sampled

RULES = {"lottery": lottery, "top": lambda pi, places: top(pi, places, ranks(pi))}
BOTH = pytest.mark.parametrize("rule", RULES)
QUEUES = pytest.mark.parametrize("quotas", [[], ["quotas={advantaged: 0.25, disadvantaged: 0.75}"]])


def enumerated(pi: list[float], places: int, rule: str) -> list[float]:
    """Inclusion probabilities by all wishes of a policy."""
    inclusion = [0.0] * len(pi)
    for wants in itertools.product((False, True), repeat=len(pi)):
        chance = float(np.prod([p if wanted else 1.0 - p for p, wanted in zip(pi, wants, strict=True)]))
        wanted = np.flatnonzero(wants)
        for i in wanted:
            before = sum(rule == "top" and pi[j] > pi[i] for j in wanted)
            equal = sum(rule == "lottery" or pi[j] == pi[i] for j in wanted)
            inclusion[i] += chance * min(1.0, max(places - before, 0) / equal)
    return inclusion


@BOTH
@pytest.mark.parametrize("n", range(1, 9))
def test_inclusion_is_that_of_all_wishes(n: int, rule: str) -> None:
    random = np.random.default_rng(n)
    some = [0.0, 1.0, 0.5, 0.5, 0.25]  # ties, and those without luck
    for places in range(n + 2):
        drawn = np.where(random.random(n) < 0.5, random.random(n), random.choice(some, n))
        for pi in (drawn.tolist(), [0.5] * n, [1.0] * n, [0.0] * n):
            found = RULES[rule](torch.tensor([pi], dtype=torch.float64), places)[0]
            assert found.tolist() == pytest.approx(enumerated(pi, places, rule), abs=1e-12)


@BOTH
def test_inclusion_of_many_is_exact_and_of_the_policy_s_seeds_alone(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(0)
    of = RULES[rule]
    pi = torch.tensor(np.stack([random.random(2000), np.full(2000, 0.5), random.integers(0, 2, 2000)]))
    found = of(pi, 600)
    assert ((found >= 0) & (found <= pi + 1e-15)).all()
    for own, of_seed in zip(pi.numpy(), found, strict=True):
        wanted = np.ones(1)  # P(number of wanted people = 0..n)
        for p in own:
            wanted = np.convolve(wanted, [1.0 - p, p])
        assert of_seed.sum().item() == pytest.approx(wanted @ np.minimum(np.arange(2001), 600), rel=1e-9)
    assert torch.equal(of(pi[1:2], 600)[0], found[1])
    assert of(pi.float(), 600).dtype == torch.float32
    diverged = torch.full((1, 64), torch.nan)
    few = pi[:2, :64]
    assert torch.equal(of(torch.cat([few, diverged]), 20)[:2], of(few, 20))
    at_once = of(few, 20)
    monkeypatch.setattr(module, "CHUNK", 65 * 7)
    torch.testing.assert_close(of(few, 20), at_once, rtol=1e-12, atol=0)


def test_people_who_are_equal_in_margin_too_share_places_by_lot() -> None:
    pi = torch.tensor([[1, 1, 1, 0, 1.0, 1, 1, 0]])
    margin = torch.tensor([[0.1, 2, 1, 5, 1, 1, 0.3, -1]])
    # Person 1 has a place, the three of margin 1 have the others or share them.
    for places, share in ((4, 1.0), (3, 2 / 3)):
        own = built("capacity", f"number={places}", "rule=top", n=8)
        wanted = Decisions(pi, pi > 0, margin=margin)
        taken = [own.admit(sampled(8), wanted, 1) for _ in range(1000)]
        expected = torch.tensor([[0, 1, share, 0, share, share, 0, 0]])
        torch.testing.assert_close(taken[0].propensity, expected)
        accepted = torch.stack([one.accepted for one in taken]).float()
        assert (accepted.sum(-1) == places).all()
        torch.testing.assert_close(accepted.mean(0), expected, atol=0.075, rtol=0)  # 5 standard errors
        told = [
            note for note in own.notes(drawn=True) if "3000 applicants of all seeds shared places" in note
        ]
        assert len(told) == (share < 1)


@BOTH
@QUEUES
def test_places_and_those_of_counterfactuals_go_as_stated(rule: str, quotas: list[str]) -> None:
    n = 20
    seeds = 5
    words = "share=0.4", f"rule={rule}", *quotas
    own, twin = (built("capacity", *words, seeds=range(seeds), n=n) for _ in range(2))
    people = sampled(n, seeds)
    levels = torch.tensor([0.25, 0.5, 0.75, 1.0])
    pi, other, margin, other_margin = levels[torch.randint(4, (4, seeds, n))]
    drawn = torch.rand(seeds, n)
    lot = twin.streams.uniform(n)
    wants = drawn < pi
    taken = own.admit(people, Decisions(pi, wants, other, drawn < other, margin, other_margin), 1)
    real, imagined = (
        torch.stack([*(keys if rule == "top" else ()), lot], -1)
        for keys in ((pi, margin), (other, other_margin))
    )

    def finds(k: int, i: int, mine: Tensor, s: float) -> bool:
        rivals = [j for j in range(n) if j != i and wants[k, j] and (not quotas or people.s[k, j] == s)]
        before = sum(real[k, j].tolist() > mine.tolist() for j in rivals)
        return before < (8 if not quotas else 2 if s > 0 else 6)

    assert torch.equal(taken.counterfactual_propensity, other)
    for queue, places in ((people.s > 0, 2), (people.s < 0, 6)) if quotas else ((wants | True, 8),):
        for k in range(seeds):  # what is recorded of a group is that of the group alone
            own_pi = pi[k : k + 1, queue[k]]
            own_margin = margin[k : k + 1, queue[k]]
            order = ranks(own_pi, own_margin)
            alone = lottery(own_pi, places) if rule == "lottery" else top(own_pi, places, order)
            torch.testing.assert_close(taken.propensity[k, queue[k]], alone[0])
    for k, i in itertools.product(range(seeds), range(n)):
        s = people.s[k, i].item()
        assert taken.accepted[k, i] == (wants[k, i] and finds(k, i, real[k, i], s))
        also = drawn[k, i] < other[k, i] and finds(k, i, imagined[k, i], -s)
        assert taken.counterfactually_accepted[k, i] == also
    assert (wants & ~taken.accepted).any()


@pytest.mark.parametrize("words", ["model=greedy", "model=ensemble fairness=demographic_parity"])
def test_a_run_of_a_method_with_a_threshold_gives_places_by_its_log_odds(words: str) -> None:
    training = training_of("world=capacity", "world.capacity.rule=top", *words.split())
    learner = training.learner
    people = training.world.next()
    taken = training.decide(people)
    least = torch.full_like(people.s, learner.setting.cost, dtype=torch.float64).logit()
    if "fairness" in words:
        least = torch.where(people.s > 0, learner.threshold[:, 1:], learner.threshold[:, :1])
    margin = learner.log_odds(people.x, people.s, training.process.decisions) - least
    for own, accepted in zip(margin, taken.accepted, strict=True):
        n = min(int((own >= 0).sum()), training.world.capacity.places)  # type: ignore[union-attr]
        assert accepted.sum() == n > 0
        assert own[accepted].min() >= own[~accepted].max() - 1e-3


def test_places_are_a_share_or_the_number_that_a_value_equals() -> None:
    for word, places in (("share=0.3", 19), ("share=0.29", 18), ("share=1", 64), ("number=5", 5)):
        assert built("capacity", word).places == places
    assert built("capacity", "number=500", seeds=[0] * 3).observed()["places"].tolist() == [64.0] * 3
    for seven in (7, 7.0, np.int64(7), np.float32(7), np.array(7), pd.Series([7]).iloc[0]):
        assert n_places(seven, 200, "places") == 7
    for half in (0.5, np.float32(0.5), np.array(0.5)):
        assert n_places(half, 15, "places") == 7
    assert n_places(0.29, 100, "places") == 29
    assert [n_places(one, 200, "places") for one in (1, 1.0, 10**30, 1e300)] == [1, 200, 200, 200]
    for wrong in (2.5, 0, 0.0, -1, np.nan, np.inf, True, np.True_, "7", [7], np.array([7]), pd.NA, None):
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
        ("model=accept_all", True),
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
    expected = [f"world.capacity.rule=top: {share:.0%} of the applicants"] * warned
    warnings = own.warnings(drawn=drawn)
    assert [warning.partition(" whom")[0] for warning in warnings] == expected
