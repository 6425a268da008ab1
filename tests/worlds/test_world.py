"""Worlds as wholes: unbiased weights, seeds, checkpoints, parts of one's own."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from fairall.config.compose import checked
from fairall.config.compose import compose_config as composed
from fairall.data.prepared import PreparedData
from fairall.errors import FairAllError
from fairall.models.fairlog import FairLog
from fairall.models.learner import Setting
from fairall.online.training import Training
from fairall.worlds.part import World
from tests.conftest import ComposeConfig, assert_resumed_alike, run_online
from tests.worlds.conftest import ALL_PARTS, Fixed, close, lived, online

COST = 0.4
# Of `top`, about as many places as the policy wants people: with fewer, some weights are very large.
PARTS = {
    "lottery": ["world.capacity.share=0.3"],
    "top": ["world.capacity.share=0.52", "world.capacity.rule=top"],
    "delay": ["world.delay.steps=10"],
    "censored": ["world.delay.censored=0.4"],
    "noise": ["world.noise.disadvantaged={positive: 0.3, negative: 0.2}"],
    "drift": ["world.drift.advantaged_share=0.7", "world.drift.label={advantaged: -0.3, disadvantaged: 0.3}"],
    "feedback": ["world.feedback.people=300"],
    "all": [*ALL_PARTS],
    "all, top": [*ALL_PARTS, "world.capacity.rule=top", "world.capacity.share=0.52"],
}


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "parts"), [*(("fico", part) for part in PARTS), ("synthetic", "feedback"), ("synthetic", "all")]
)
def test_weighted_sums_are_those_of_all_applicants(
    parts: str, data: PreparedData, name: str, compose_config: ComposeConfig
) -> None:
    learner = Fixed()
    config = compose_config(f"dataset={name}", "schedule.time_steps=50", *PARTS[parts])
    history = run_online(online(learner, config, data, [*range(100, 140)]), 50)  # 2,000 time steps
    labels = history.steps.read().get("revealed_label", history.steps["label"])
    of_day = {
        s.numpy().tobytes(): (label - COST).sum(1)
        for s, label in zip(history.steps["s"], labels, strict=True)
    }
    assert len(of_day) == 50
    assert len(learner.seen) >= 35
    errors = []
    for decided in learner.seen:
        weight = torch.where(decided.accepted, 1.0 / decided.propensity.double(), 0.0)
        gain = (weight * (decided.label - COST)).sum(1)
        errors.append(torch.stack([weight.sum(1) - 64.0, gain - of_day[decided.s.numpy().tobytes()]]))
    error = torch.cat(errors, 1)
    standard_error = error.std(1) / error.shape[1] ** 0.5
    assert close(error.mean(1), 0.0, standard_error), f"{error.mean(1)} ± {standard_error}"
    assert (standard_error < 1.0).all()
    assert 0.05 < history.steps["accepted"].float().mean() < 0.7


def small(compose_config: ComposeConfig, rule: str, data: PreparedData, seeds: list[int]) -> Training:
    """A method that learns in a world of all parts."""
    words = "schedule.time_steps=20", "schedule.applicants=48", "world.drift.features={score: 0.5}"
    fixed = "preset=quick", "dataset=fico", "model=fairlog", f"world.capacity.rule={rule}"
    config = compose_config(*fixed, *words, *ALL_PARTS)
    learner = FairLog(
        config.model, Setting(data.schema, config.cost.value, seeds, config.schedule, config.protocol)
    )
    return online(learner, config, data, seeds)


@pytest.mark.parametrize("rule", ["lottery", "top"])
def test_going_on_from_a_saved_state_changes_nothing(
    rule: str, fico: PreparedData, compose_config: ComposeConfig
) -> None:
    whole, resumed = (small(compose_config, rule, fico, [0, 1, 2]) for _ in range(2))
    assert_resumed_alike(whole, resumed, 10, 20)
    states = [process.world.state_dict() for process in (whole, resumed)]
    torch.testing.assert_close(*states, rtol=0, atol=0)
    parts: Any = whole.world.parts
    assert [*parts] == ["feedback", "drift", "capacity", "noise", "delay"]
    assert parts["delay"].waiting
    assert (parts["capacity"].counts[:2] > 0).all()
    assert {*whole.history.steps.read()} > {"revealed_label", "censored", "places", "group_score"}
    assert all(len(values) == 20 for values in whole.history.steps.read().values())
    assert torch.equal(whole.world.at_first().next().s, whole.history.steps["s"][0])


def test_a_seed_alone_is_as_among_others(fico: PreparedData, compose_config: ComposeConfig) -> None:
    together, alone = (
        run_online(small(compose_config, "lottery", fico, seeds), 20) for seeds in ([0, 1, 2], [1])
    )
    for mine, of_all in ((alone.steps, together.steps), (alone.measured, together.measured)):
        for name, values in mine.read().items():
            torch.testing.assert_close(of_all[name][:, 1:2], values, rtol=1e-3, atol=1e-4, equal_nan=True)


OWN = """\
from dataclasses import dataclass
import torch
from fairall.config.checks import limited
from fairall.data.people import Decisions
from fairall.runtime.randomness import SeedStreams
from fairall.worlds.part import Part, PartConfig

@dataclass
class StrikeConfig(PartConfig):
    share: float = limited("from 0 to 1", lambda share: 0 <= share <= 1, default=0.5)

class Strike(Part):
    config_type = StrikeConfig
    kept = ("closed",)
    def __init__(self, config, setting):
        super().__init__(config, setting)
        self.streams = SeedStreams(setting.seeds, "strike")
        self.closed = 0
    def admit(self, people, wanted, time_step):
        share = self.config.share
        opened = self.streams.uniform(people.s.shape[1]) >= share
        self.closed += int((~opened).sum())
        return Decisions(wanted.propensity * (1 - share), wanted.accepted & opened)
    def notes(self, *, drawn):
        return ["on strike"]

class Bare(Part):
    pass

class Other:
    pass
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "of_mine.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "of_mine", raising=False)


@pytest.mark.usefixtures("own")
def test_a_part_of_ones_own_acts_after_the_others_and_is_resumed(fico: PreparedData) -> None:
    words = ["dataset=fico", "world.capacity.number=30"]
    config = checked(composed(*words, "world.strike={_target_: of_mine.Strike, share: 0.25}"))
    whole, resumed = (online(Fixed(), config, fico, [0, 1]) for _ in range(2))
    parts: Any = whole.world.parts
    assert [*parts] == ["capacity", "strike"]
    assert whole.world.notes(drawn=True) == ["on strike"]
    assert_resumed_alike(whole, resumed, 10, 25)
    assert parts["strike"].closed == resumed.world.parts["strike"].closed > 0  # type: ignore[attr-defined]
    plainly = lived(checked(composed(*words)), fico, 1)[1]
    torch.testing.assert_close(whole.history.steps["propensity"][0], 0.75 * plainly.steps["propensity"][0])


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("world.strike._target_=of_mine.Other", "its config_type is not a dataclass"),
        ("world.strike={_target_: of_mine.Strike, shrae: 0.5}", "did you mean world.strike.share?"),
        ("world.strike={_target_: of_mine.Strike, share: 2}", "world.strike.share=2.0 is not possible"),
        ("world.delay._target_=of_mine.Bare", "world.delay.steps: no such key"),
        ("world.further={strike: {_target_: of_mine.Strike}}", "world.further: no such key"),
    ],
)
def test_a_wrong_part_of_ones_own_is_refused(word: str, said: str, fico: PreparedData) -> None:
    with pytest.raises(FairAllError) as refused:  # noqa: PT012
        config = checked(composed("dataset=fico", word))
        World(config, fico, [0])
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_part_of_the_documentation_takes_everybody_on_strike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fico: PreparedData
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "worlds.md").read_text()
    found = re.search(r"```python\n(.*?)```.*'(world\.strike=.*?)'", page, re.DOTALL)
    assert found
    (tmp_path / "strike.py").write_text(found[1])
    monkeypatch.syspath_prepend(tmp_path)
    accepted = lived(checked(composed("dataset=fico", found[2])), fico, 10)[1].steps["accepted"]
    assert accepted.flatten(1).any(1).tolist() == 2 * [True, True, True, True, False]
