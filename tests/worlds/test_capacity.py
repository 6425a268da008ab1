"""Places: inclusion probabilities against enumeration, and decisions against them."""

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from fairall.config.checks import check_values
from fairall.data.people import Decisions, People
from fairall.errors import FairAllError
from fairall.worlds import capacity as module
from fairall.worlds.capacity import (
    Capacity,
    CapacityConfig,
    PlacesRule,
    QuotasConfig,
    lottery,
    n_places,
    ranks,
    top,
)
from tests.conftest import training_of
from tests.worlds.conftest import close, sampled, setting_of


def top_by_pi(pi: Tensor, places: int) -> Tensor:
    return top(pi, places, ranks(pi))


RULES = {PlacesRule.lottery: lottery, PlacesRule.top: top_by_pi}
BOTH = pytest.mark.parametrize("rule", PlacesRule)
QUOTAS = QuotasConfig(advantaged=0.25, disadvantaged=0.75)


def capacity(n: int, seeds: int = 1, quotas: QuotasConfig | None = None, **values: Any) -> Capacity:
    values = {"share": None, "number": None, "rule": PlacesRule.lottery} | values
    config = CapacityConfig(quotas=quotas or QuotasConfig(None, None), **values)
    check_values(config, "world.capacity")
    return Capacity(config, setting_of(None, list(range(seeds)), n))


def enumerated(pi: list[float], places: int, rule: PlacesRule) -> list[float]:
    """Inclusion probabilities by all wishes of a policy."""
    n = len(pi)
    inclusion = [0.0] * n
    for wants in itertools.product((False, True), repeat=n):
        chance = float(np.prod([p if wanted else 1.0 - p for p, wanted in zip(pi, wants, strict=True)]))
        wanted = [i for i in range(n) if wants[i]]
        for i in wanted:
            before = sum(rule is PlacesRule.top and pi[j] > pi[i] for j in wanted)
            equal = sum(rule is PlacesRule.lottery or pi[j] == pi[i] for j in wanted)
            inclusion[i] += chance * min(1.0, max(places - before, 0) / equal)
    return inclusion


def poisson_binomial(pi: np.ndarray) -> np.ndarray:
    """P(number of wanted people = 0..n)."""
    chance = np.ones(1)
    for p in pi:
        chance = np.convolve(chance, [1.0 - p, p])
    return chance


@BOTH
@pytest.mark.parametrize("n", range(1, 9))
def test_inclusion_is_that_of_all_wishes(n: int, rule: PlacesRule) -> None:
    random = np.random.default_rng(n)
    some = [0.0, 1.0, 0.5, 0.5, 0.25]  # ties, and those without luck
    for places in range(n + 2):
        drawn = np.where(random.random(n) < 0.5, random.random(n), random.choice(some, n))
        for pi in (drawn.tolist(), [0.5] * n, [1.0] * n, [0.0] * n):
            found = RULES[rule](torch.tensor([pi], dtype=torch.float64), places)[0]
            assert found.tolist() == pytest.approx(enumerated(pi, places, rule), abs=1e-12)


@BOTH
def test_inclusion_of_many_is_exact_and_of_the_policy_s_seeds_alone(rule: PlacesRule) -> None:
    random = np.random.default_rng(0)
    pi = torch.tensor(np.stack([random.random(2000), np.full(2000, 0.5), random.integers(0, 2, 2000)]))
    found = RULES[rule](pi, 600)
    assert ((found >= 0) & (found <= pi + 1e-15)).all()
    for own, of_seed in zip(pi.numpy(), found, strict=True):
        expected = poisson_binomial(own) @ np.minimum(np.arange(2001), 600)
        assert of_seed.sum().item() == pytest.approx(expected, rel=1e-9)
    assert torch.equal(RULES[rule](pi[1:2], 600)[0], found[1])
    assert RULES[rule](pi.float(), 600).dtype == torch.float32
    diverged = torch.cat([pi[:2, :64], torch.full((1, 64), torch.nan)])
    assert torch.equal(RULES[rule](diverged, 20)[:2], RULES[rule](pi[:2, :64], 20))


def wanted_by(pi: Tensor, uniform: Tensor, other: Tensor | None = None) -> Decisions:
    if other is None:
        return Decisions(pi, uniform < pi)
    return Decisions(pi, uniform < pi, other, uniform < other)


@BOTH
@pytest.mark.parametrize("quotas", [None, QUOTAS], ids=["one queue", "quotas"])
def test_people_are_accepted_as_often_as_recorded(rule: PlacesRule, quotas: QuotasConfig | None) -> None:
    n, seeds, times = 12, 60, 60
    own = capacity(n, seeds, quotas, number=4, rule=rule)
    s = torch.tensor([1.0, -1.0, 1.0] * 4).expand(seeds, -1)
    pi = torch.tensor([0.9, 0.9, 0.2, 0.5, 0.5, 0.5, 0.5, 0.8, 1.0, 0.0, 0.3, 0.4]).expand(seeds, -1)
    people = People(torch.zeros(seeds, n, 1), s, torch.zeros(seeds, n))
    taken = [own.admit(people, wanted_by(pi, torch.rand(seeds, n)), 1) for _ in range(times)]
    inclusion = taken[0].propensity
    assert all(torch.equal(one.propensity, inclusion.expand(seeds, -1)) for one in taken)
    accepted = torch.stack([one.accepted for one in taken])
    often = accepted.float().mean((0, 1))
    error = (inclusion[0] * (1 - inclusion[0]) / (seeds * times)).sqrt()
    assert close(often, inclusion[0], error + 1e-6, 4.0)
    assert (inclusion < pi - 0.01).any()
    assert accepted.sum(-1).max() == 4
    if quotas is not None:
        assert accepted[..., s[0] > 0].sum(-1).max() == 1
        assert accepted[..., s[0] < 0].sum(-1).max() == 3
        # What is recorded of a group is that of the group alone.
        group = s[0] > 0
        torch.testing.assert_close(inclusion[0, group], RULES[rule](pi[:1, group], 1)[0])


def test_equal_people_go_by_their_margin_and_share_places_by_lot_where_that_is_equal() -> None:
    n, seeds, times = 8, 40, 100
    own = capacity(n, seeds, number=4, rule=PlacesRule.top)
    margin = torch.tensor([0.1, 2.0, 1.0, 5.0, 1.0, 1.0, 0.3, -1.0])
    pi = torch.tensor([1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0]).expand(seeds, -1)
    people = People(torch.zeros(seeds, n, 1), torch.ones(seeds, n), torch.zeros(seeds, n))
    wanted = Decisions(pi, pi > 0, margin=margin.expand(seeds, -1))
    taken = [own.admit(people, wanted, 1) for _ in range(times)]
    # Person 1 has a place, the three of margin 1 have the other three, of four they would share.
    assert taken[0].propensity[0].tolist() == [0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0]
    assert all(torch.equal(one.accepted.float(), one.propensity) for one in taken)
    assert not any("shared places" in note for note in own.notes(drawn=False))
    few = capacity(n, seeds, number=3, rule=PlacesRule.top)
    taken = [few.admit(people, wanted, 1) for _ in range(times)]
    expected = torch.tensor([0, 1, 2 / 3, 0, 2 / 3, 2 / 3, 0, 0])
    torch.testing.assert_close(taken[0].propensity, expected.expand(seeds, -1))
    often = torch.stack([one.accepted for one in taken]).float()
    assert (often.sum(-1) == 3).all()
    # 5 standard errors of 4,000 draws.
    torch.testing.assert_close(often.mean((0, 1)), expected, atol=0.037, rtol=0)
    assert f"{3 * seeds * times} applicants of all seeds shared places" in few.notes(drawn=False)[-1]
    resumed = capacity(n, seeds, number=3, rule=PlacesRule.top)
    resumed.load_state_dict(few.state_dict())
    assert resumed.notes(drawn=True) == few.notes(drawn=True)
    assert torch.equal(resumed.admit(people, wanted, 1).accepted, few.admit(people, wanted, 1).accepted)


def test_a_counterfactual_is_ranked_by_its_own_margin_among_the_others() -> None:
    own = capacity(3, number=1, rule=PlacesRule.top)
    ones, s = torch.ones(1, 3), torch.tensor([[1.0, -1.0, 1.0]])
    people = People(torch.zeros(1, 3, 1), s, torch.zeros(1, 3))
    margin, other = torch.tensor([[2.0, 1.0, 0.0]]), torch.tensor([[0.5, 3.0, 1.5]])
    taken = own.admit(people, Decisions(ones, ones > 0, ones, ones > 0, margin, other), 1)
    assert taken.accepted.tolist() == [[True, False, False]]
    # 0.5 is below the 1 of the second, 3 above all, 1.5 below the 2 of the first.
    assert taken.counterfactually_accepted is not None
    assert taken.counterfactually_accepted.tolist() == [[False, True, False]]


@pytest.mark.parametrize("words", ["model=greedy", "model=ensemble fairness=demographic_parity"])
def test_a_run_of_a_method_with_a_threshold_gives_places_by_its_log_odds(words: str) -> None:
    training = training_of("world=capacity", "world.capacity.rule=top", *words.split())
    learner, people = training.learner, training.world.next()
    taken = training._online._decide(people)
    log_odds = learner.log_odds(people.x, people.s, training.process.decisions)
    least = torch.full_like(people.s, learner.setting.cost, dtype=torch.float64).logit()
    if "fairness" in words:
        least = torch.where(people.s > 0, learner.threshold[:, 1:], learner.threshold[:, :1])
    margin = log_odds - least
    for own, accepted in zip(margin, taken.accepted, strict=True):
        n = min(int((own >= 0).sum()), training.world.capacity.places)  # type: ignore[union-attr]
        assert accepted.sum() == n > 0
        assert own[accepted].min() >= own[~accepted].max() - 1e-3


@BOTH
@pytest.mark.parametrize("quotas", [None, QUOTAS], ids=["one queue", "quotas"])
def test_places_and_those_of_counterfactuals_go_as_stated(
    rule: PlacesRule, quotas: QuotasConfig | None
) -> None:
    n, seeds = 20, 5
    own, twin = (capacity(n, seeds, quotas, share=0.4, rule=rule) for _ in range(2))
    people, levels = sampled(n, seeds), torch.tensor([0.25, 0.5, 0.75, 1.0])
    pi, other = (levels[torch.randint(4, (seeds, n))] for _ in range(2))
    wanted = wanted_by(pi, torch.rand(seeds, n), other)
    taken, lot = own.admit(people, wanted, 1), twin.streams.uniform(n)
    by_lot = rule is PlacesRule.lottery

    def value(of: Tensor, k: int, i: int) -> tuple[float, float]:
        return (0.0 if by_lot else of[k, i].item()), lot[k, i].item()

    def finds(k: int, i: int, mine: tuple[float, float], s: float) -> bool:
        places = 8 if quotas is None else 2 if s > 0 else 6
        rivals = [
            j
            for j in range(n)
            if j != i and wanted.accepted[k, j] and (quotas is None or people.s[k, j] == s)
        ]
        return sum(value(pi, k, j) > mine for j in rivals) < places

    assert wanted.counterfactually_accepted is not None
    assert taken.counterfactually_accepted is not None
    assert torch.equal(taken.counterfactual_propensity, other)  # type: ignore[arg-type]
    for k, i in itertools.product(range(seeds), range(n)):
        s = people.s[k, i].item()
        real = wanted.accepted[k, i].item() and finds(k, i, value(pi, k, i), s)
        imagined = wanted.counterfactually_accepted[k, i].item() and finds(k, i, value(other, k, i), -s)
        assert taken.accepted[k, i] == real
        assert taken.counterfactually_accepted[k, i] == imagined
    assert (wanted.accepted & ~taken.accepted).any()


@BOTH
def test_where_s_does_not_matter_a_counterfactual_is_decided_alike(rule: PlacesRule) -> None:
    people, pi = sampled(30, 20), torch.rand(20, 30)
    taken = capacity(30, 20, share=0.2, rule=rule).admit(people, wanted_by(pi, torch.rand(20, 30), pi), 1)
    assert torch.equal(taken.accepted, taken.counterfactually_accepted)  # type: ignore[arg-type]
    assert (taken.accepted.sum(1) <= 6).all()
    assert taken.accepted.any()


def test_places_are_a_share_or_a_number() -> None:
    assert capacity(64, share=0.3).places == 19
    assert capacity(100, share=0.29).places == 29
    assert capacity(64, share=1.0).places == 64
    assert capacity(64, number=5).places == 5
    assert capacity(64, number=np.array(500.0)).places == 64
    assert capacity(64, quotas=QUOTAS, number=8).by_group == [6, 2]
    assert capacity(10, 3, number=4).observed()["places"].tolist() == [4.0] * 3
    with pytest.raises(FairAllError, match=r"world.capacity.share=0.01 is not possible: it must be a place"):
        capacity(64, share=0.01)


def test_places_for_all_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    people, pi = sampled(16, 3), torch.rand(3, 16)
    wanted = wanted_by(pi, torch.rand(3, 16))
    for rule in PlacesRule:
        taken = capacity(16, 3, share=1.0, rule=rule).admit(people, wanted, 1)
        assert torch.equal(taken.accepted, wanted.accepted)
        torch.testing.assert_close(taken.propensity, pi)
    at_once = lottery(pi.double(), 10)
    monkeypatch.setattr(module, "CHUNK", 51 * 7)
    torch.testing.assert_close(lottery(pi.double(), 10), at_once, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("words", "noted"),
    [
        ("model=fairlog", False),
        ("model=fairlog model.decision=deterministic", True),
        ("model=greedy", True),
        ("model=epsilon_greedy", False),
        ("model=plot", False),
        ("model=accept_all", True),
    ],
)
def test_a_run_notes_that_nothing_is_left_to_chance(words: str, noted: bool) -> None:
    notes = training_of("world=capacity", "world.capacity.rule=top", *words.split()).notes()
    assert any("nothing to chance" in note for note in notes) is noted
    assert capacity(8, share=0.5).notes(drawn=False) == []


@pytest.mark.parametrize(
    ("rule", "pi", "drawn", "warned"),
    [
        (PlacesRule.top, 0.5, True, True),
        (PlacesRule.top, 0.5, False, False),  # `notes` tells of it
        (PlacesRule.top, 0.1, True, False),  # places for nearly all whom the policy wants
        (PlacesRule.top, [0.9] * 8 + [0.001] * 56, True, False),  # whom the policy rejects does not count
        (PlacesRule.lottery, 0.5, True, False),
    ],
)
def test_a_rule_that_leaves_many_next_to_no_chance_is_a_warning(
    rule: PlacesRule, pi: float | list[float], drawn: bool, warned: bool
) -> None:
    own, resumed = (capacity(64, 2, number=8, rule=rule) for _ in range(2))
    assert own.warnings(drawn=drawn) == []
    propensity = torch.tensor(pi).expand(2, 64)
    margin = torch.rand(2, 64)  # nobody is equal to another
    wanted = Decisions(propensity, torch.rand(2, 64) < propensity, margin=margin)
    admitted = own.admit(sampled(64, 2), wanted, 1)
    share = (admitted.propensity < 0.02).double().mean().item()
    warnings = own.warnings(drawn=drawn)
    assert len(warnings) == warned
    resumed.load_state_dict(own.state_dict())
    assert resumed.warnings(drawn=drawn) == warnings
    if warned:
        assert f"world.capacity.rule=top: {share:.0%} of the applicants" in warnings[0]


def test_places_are_the_number_that_they_equal() -> None:
    for seven in (7, 7.0, np.int64(7), np.float32(7), np.array(7), pd.Series([7]).iloc[0]):
        assert n_places(seven, 200, "places") == 7
    for half in (0.5, np.float32(0.5), np.array(0.5)):
        assert n_places(half, 15, "places") == 7
    assert [n_places(one, 200, "places") for one in (1, 1.0, 10**30, 1e300)] == [1, 200, 200, 200]
    for wrong in (2.5, 0, 0.0, -1, np.nan, np.inf, True, np.True_, "7", [7], np.array([7]), pd.NA, None):
        with pytest.raises(
            FairAllError, match="is not possible: it must be a whole number of at least 1, or"
        ):
            n_places(wrong, 200, "places")
    with pytest.raises(FairAllError, match="must be a place for one of 200 people"):
        n_places(0.001, 200, "places")
