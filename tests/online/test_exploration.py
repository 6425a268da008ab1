"""Rules of exploration: whom they accept, with what propensity, and what becomes known."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fairall.config.checks import check_values
from fairall.config.schema import ExplorationConfig, ExplorationRule, ModelConfig
from fairall.data.load import load_dataset
from fairall.data.people import Decided
from fairall.data.prepared import PreparedData
from fairall.errors import FairAllError
from fairall.models.fairlog import FairLog
from fairall.models.learner import DecisionRule, Learner, Setting
from fairall.models.rivals.greedy import Greedy
from fairall.online.evaluation import Evaluator
from fairall.online.exploration import Exploration, lower_bound
from fairall.online.history import History, Taken
from fairall.online.loop import OnlineLearning
from fairall.runtime.randomness import SeedStreams
from fairall.worlds.part import WorldSetting
from fairall.worlds.world import World
from tests.conftest import ComposeConfig, as_saved, assert_same_history

THRESHOLD = 0.5
BOUNDED = ExplorationConfig(ExplorationRule.bounded, propensity=0.25)
EPSILON = ExplorationConfig(ExplorationRule.epsilon, propensity=0.25)


class Scores(Learner):
    """Accepts where the first feature is at least `THRESHOLD`, and keeps what it was shown."""

    rule = DecisionRule(THRESHOLD, drawn=False)

    def __init__(self) -> None:
        super().__init__(ModelConfig(), None)  # type: ignore[arg-type]
        self.seen: list[Decided] = []

    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        raise NotImplementedError

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        return x[..., 0]

    def update(self, decided: Decided) -> None:
        self.seen.append(decided)


def scored(score: Tensor, s: Tensor, label: Tensor, propensity: Tensor | None = None) -> Decided:
    """Accepted people of given score, shape (E, B)."""
    sure = torch.ones_like(score) if propensity is None else propensity
    return Decided(score.unsqueeze(-1), s, sure, torch.ones_like(score, dtype=torch.bool), label)


def explored(rule: Exploration, score: Tensor, s: Tensor, steps_done: int = 0) -> Tensor:
    taken = Taken(len(score))
    for _ in range(steps_done):
        taken.add(torch.zeros_like(score, dtype=torch.bool))
    x, learner = score.unsqueeze(-1), Scores()
    return rule.explored(learner, x, s, learner.propensity(x, s, rule.streams), taken)


def by_hand(score: list[float], weight: list[float], threshold: float) -> float:
    """The least score of F₀ with F₀(score) ≥ 1 − F₀(threshold)."""
    mass = sum(weight)
    if mass == 0:
        return 0.0
    below = sum(w for v, w in zip(score, weight, strict=True) if v < threshold)
    for bound in sorted(v for v, w in zip(score, weight, strict=True) if w > 0):
        share = sum(w for v, w in zip(score, weight, strict=True) if v <= bound)
        if share >= mass - below - 1e-7 * mass:
            return bound
    raise AssertionError


def test_lower_bound_is_that_of_trying_all_scores() -> None:
    generator = torch.Generator().manual_seed(1)
    for n in (1, 2, 3, 8, 30):
        score = torch.randint(0, 12, (40, n), generator=generator) / 12  # with ties
        weight = 1 / (0.05 + torch.rand(40, n, generator=generator))
        weight = weight * (torch.rand(40, n, generator=generator) < 0.6)
        found = lower_bound(score, weight, 0.51).squeeze(-1)
        expected = [by_hand(*rows, 0.51) for rows in zip(score.tolist(), weight.tolist(), strict=True)]
        torch.testing.assert_close(found, torch.tensor(expected))


def test_lower_bound_of_known_distributions() -> None:
    generator = torch.Generator().manual_seed(2)
    uniform = torch.rand(2, 40_000, generator=generator)
    normal = 0.5 + 0.1 * torch.randn(1, 40_000, generator=generator)
    # F₀(LB) = 1 − F₀(θ): of a symmetric distribution, the point opposite to the threshold.
    for score, threshold in ((uniform, 0.8), (normal, 0.58)):
        bound = lower_bound(score, torch.ones_like(score), threshold)
        torch.testing.assert_close(bound, torch.full_like(bound, 1.0 - threshold), atol=0.01, rtol=0)
    # Of the exponential distribution, 1 − exp(−LB) = exp(−θ).
    exponential = -torch.log1p(-uniform)
    bound = lower_bound(exponential, torch.ones_like(exponential), 1.2)
    expected = -torch.log1p(-torch.exp(torch.tensor(-1.2)))
    torch.testing.assert_close(bound, expected.expand(2, 1), atol=0.02, rtol=0)
    # Weights undo that few low scores are known.
    propensity = torch.where(uniform < 0.5, 0.1, 1.0)
    known = torch.rand(2, 40_000, generator=generator) < propensity
    weighted = lower_bound(uniform, known / propensity, 0.8)
    torch.testing.assert_close(weighted, torch.full((2, 1), 0.2), atol=0.02, rtol=0)
    assert (lower_bound(uniform, known.float(), 0.8) > 0.5).all()
    # Where most of F₀ is above the threshold nobody is between; where all is below, its least score counts.
    assert lower_bound(torch.tensor([[0.1, 0.6, 0.7, 0.8]]), torch.ones(1, 4), 0.5).item() >= 0.5
    score, weight = torch.tensor([[0.05, 0.2, 0.3, 0.0, 0.0]]), torch.tensor([[0.0, 1.0, 2.0, 0.0, 0.0]])
    assert lower_bound(score, weight, 0.5).item() == pytest.approx(0.2)


def test_before_any_label_everybody_below_the_threshold_may_be_accepted() -> None:
    score = torch.tensor([[0.0, 0.3, 0.49, 0.5, 1.0]])
    raised = explored(Exploration(BOUNDED, [0]), score, torch.ones(1, 5))
    torch.testing.assert_close(raised, torch.tensor([[0.25, 0.25, 0.25, 1.0, 1.0]]))


def test_bounds_are_of_each_group_and_seed() -> None:
    rule = Exploration(BOUNDED, [0, 1])
    grid = torch.arange(100.0).repeat(2) / 100
    s = torch.cat([torch.ones(100), -torch.ones(100)])
    # F₀ of S = +1 is uniform on [0, 0.8], that of S = −1 on [0, 0.5); nobody of seed 1 has label 0.
    score = torch.where(s > 0, 0.8 * grid, grid / 2)
    rule.observe(scored(score.expand(2, -1), s.expand(2, -1), torch.stack([0 * s, torch.ones_like(s)])))
    seen = torch.tensor([[0.28, 0.32, 0.05, 0.49, 0.51]]).expand(2, -1)
    advantaged, disadvantaged = (explored(rule, seen, group * torch.ones(2, 5)) for group in (1, -1))
    # The shares below 0.5 and 0.3 are 0.625 and 0.375.
    torch.testing.assert_close(advantaged[0], torch.tensor([0.0, 0.25, 0.0, 0.25, 1.0]))
    # All of F₀ is below the threshold: no bound but its least score, 0.
    torch.testing.assert_close(disadvantaged[0], torch.tensor([0.25, 0.25, 0.25, 0.25, 1.0]))
    for group in (advantaged, disadvantaged):
        torch.testing.assert_close(group[1], torch.tensor([0.25, 0.25, 0.25, 0.25, 1.0]))


def test_a_seed_alone_explores_as_among_others() -> None:
    generator = torch.Generator().manual_seed(4)
    score = 0.1 + 0.6 * torch.rand(3, 50, generator=generator)
    s = 2.0 * (torch.rand(3, 50, generator=generator) < 0.5) - 1.0
    label = (torch.rand(3, 50, generator=generator) < 0.4).float()
    propensity = 0.1 + 0.9 * torch.rand(3, 50, generator=generator)
    known = scored(score, s, label, propensity)
    known = replace(known, accepted=torch.arange(50) < torch.tensor([[50], [3], [20]]))
    together = Exploration(BOUNDED, [0, 1, 2])
    together.observe(known)
    raised = explored(together, score, s)
    for seed in range(3):
        alone = Exploration(BOUNDED, [seed])
        alone.observe(replace(known, **{name: values[[seed]] for name, values in vars(known).items()}))
        assert torch.equal(explored(alone, score[[seed]], s[[seed]])[0], raised[seed])
    assert not torch.equal(raised[0] > 0, raised[1] > 0)


def test_epsilon_raises_all_and_decays_by_the_root_of_the_time_step() -> None:
    score, s = torch.tensor([[0.1, 0.5]]), torch.ones(1, 2)
    rule = Exploration(replace(EPSILON, decay=True), [0])
    for step in (1, 4, 25):
        raised = explored(rule, score, s, steps_done=step - 1)
        torch.testing.assert_close(raised, torch.tensor([[0.25 / step**0.5, 1.0]]))
    constant = Exploration(EPSILON, [0])
    assert explored(constant, score, s, steps_done=24)[0].tolist() == [0.25, 1.0]
    by_chance = torch.tensor([[0.0, 0.4, 1.0]])
    raised = constant.explored(Scores(), torch.zeros(1, 3, 1), torch.ones(1, 3), by_chance, Taken(1))
    torch.testing.assert_close(raised, torch.tensor([[0.25, 0.55, 1.0]]))


class Stream:
    """People of uniform score, whose label is 1 with a probability of that score, without end."""

    def __init__(self, seeds: list[int]) -> None:
        self.streams = SeedStreams(seeds, "people")

    def next(self) -> Decided:
        score, group, luck = self.streams.uniform(3, 200).unbind(1)
        return scored(score, 2.0 * (group < 0.5).float() - 1.0, (luck < score).float())


@pytest.mark.whole
@pytest.mark.parametrize("config", [BOUNDED, EPSILON], ids=["bounded", "epsilon"])
def test_what_becomes_known_and_that_weights_of_the_recorded_propensities_are_unbiased(
    config: ExplorationConfig,
) -> None:
    seeds = [0, 1]
    rule, stream, luck = Exploration(config, seeds), Stream(seeds), SeedStreams(seeds, "decisions")
    total, explorable, known_below = torch.zeros(3, 2)
    least, bounded = [], config.rule is ExplorationRule.bounded
    for step in range(150):
        people = stream.next()
        score = people.x[..., 0]
        propensity = explored(rule, score, people.s, step)
        accepted = luck.uniform(200) < propensity
        rule.observe(replace(people, propensity=propensity, accepted=accepted, label=people.label * accepted))
        assert not (accepted & (propensity == 0)).any()
        assert (propensity[score >= THRESHOLD] == 1).all()
        if step < 20:  # until bounds rest on many labels
            continue
        between = (score >= (0.25 if bounded else 0.0)) & (score < THRESHOLD)
        assert (propensity[between] == 0.25).all()
        weighted = torch.where(accepted & between, people.label / propensity, 0.0)
        total += weighted.sum(-1)
        explorable += (between * people.label).sum(-1)
        known_below += (accepted & between).sum(-1)
        least.append(score[propensity == 0.25].min().item())
    if bounded:
        # F₀(v) = 1 − (1 − v)², so the bound is 1 − √¾ = 0.134, at the last steps as at the first.
        for part in (least[:40], least[-40:]):
            assert sum(part) / 40 == pytest.approx(0.13, abs=0.03)
    assert (known_below > 500).all()
    torch.testing.assert_close(total / explorable, torch.ones(2), atol=0.12, rtol=0)


def test_exploring_changes_no_state() -> None:
    rule, score, s = Exploration(BOUNDED, [0]), torch.rand(1, 40), torch.ones(1, 40)
    rule.observe(scored(score, s, 0 * s))
    before = rule.state_dict()
    first, second = explored(rule, score, s), explored(rule, score, s)
    assert torch.equal(first, second)
    assert torch.equal(before["streams"]["states"], rule.state_dict()["streams"]["states"])
    assert torch.equal(before["memory"]["columns"]["x"], rule.state_dict()["memory"]["columns"]["x"])


def process(
    model: str, data: PreparedData, compose: ComposeConfig, exploration: ExplorationConfig, *words: str
) -> OnlineLearning:
    """Phase II of an untrained learner."""
    seeds = [0, 1]
    config = compose("preset=quick", f"model={model}", *words)
    given = Setting(data.schema, config.cost.value, seeds, config.schedule, config.protocol)
    learner = {"greedy": Greedy, "fairlog": FairLog}[model](config.model, given)
    world = World(WorldSetting(data, seeds, applicants=64, time_steps=100))
    evaluation = Evaluator(data.test, config.cost.value, seeds)
    return OnlineLearning(learner, world, evaluation, seeds, exploration=exploration, keep_propensity=True)


def run(own: OnlineLearning, time_steps: int) -> History:
    return own.run(time_steps, lambda **_: None, lambda: None)


@pytest.mark.parametrize("name", ["credit"])
def test_bounded_exploration_goes_on_from_a_saved_state(name: str, compose_config: ComposeConfig) -> None:
    data = load_dataset(name).prepare()

    def fresh() -> OnlineLearning:
        words = f"dataset={name}", "model.updates=3", "model.clf_arch=[8]"
        return process("greedy", data, compose_config, BOUNDED, *words)

    undisturbed, resumed = fresh(), fresh()
    run(undisturbed, 4)
    saved = as_saved(undisturbed.state_dict())
    run(undisturbed, 9)
    resumed.load_state_dict(saved)
    run(resumed, 9)
    assert_same_history(undisturbed.history, resumed.history)
    propensity = undisturbed.history.propensity[2:]
    assert {0.0, 0.25, 1.0} == set(propensity.unique().tolist())


def test_a_method_of_deterministic_decisions_explores(
    credit: PreparedData, compose_config: ComposeConfig
) -> None:
    own = process("fairlog", credit, compose_config, EPSILON, "model.decision=deterministic")
    history = run(own, 6)
    propensity, accepted = history.propensity, history.accepted
    assert set(propensity.unique().tolist()) == {0.25, 1.0}
    assert accepted[propensity == 1].all()
    assert accepted[propensity < 1].float().mean().item() == pytest.approx(0.25, abs=0.08)
    # What is measured is the policy, without exploration.
    people = credit.test
    everybody = people.x.expand(2, -1, -1), people.s.expand(2, -1)
    policy = own.learner.propensity(*everybody, SeedStreams([0, 1], "p"))
    torch.testing.assert_close(history.measures["acceptance"][-1], policy.mean(-1))


@pytest.mark.parametrize("rate", ["0", "1.5"])
def test_impossible_rates_are_refused(rate: str, compose_config: ComposeConfig) -> None:
    with pytest.raises(
        FairAllError, match=r"^exploration\.propensity=.* is not possible: it must be above 0"
    ):
        check_values(compose_config("exploration=bounded", f"exploration.propensity={rate}"))
