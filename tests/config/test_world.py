"""The node `world`: its choices, several at once, and values that are not possible."""

from pathlib import Path
from typing import Any

import pytest

from fairall.config import validation
from fairall.config.compose import compose_config as composed
from fairall.config.target import target_class
from fairall.config.validation import checked
from fairall.data.load import load_dataset
from fairall.errors import FairAllError
from fairall.worlds.capacity import Capacity, CapacityConfig, PlacesRule
from fairall.worlds.drift import Course
from fairall.worlds.part import WorldSetting
from fairall.worlds.world import World
from tests.config.test_config import choices
from tests.conftest import training_of, typed

CHOICES = [name for name in choices("world") if not name.startswith("_")]
WRONG = [
    ("world.capacity.share=0", "world.capacity.share=0.0", "above 0 and at most 1"),
    ("world.capacity.share=1.2", "world.capacity.share=1.2", "above 0 and at most 1"),
    ("world.capacity.share=nan", "world.capacity.share=nan", "a finite number"),
    ("world.capacity.number=0", "world.capacity.number=0", "at least 1"),
    ("world=capacity world.capacity.number=5", "world.capacity.number=5", "add world.capacity.share=null"),
    (
        "world=capacity world.capacity.quotas={advantaged: 0.7, disadvantaged: 0.4}",
        "world.capacity.quotas=[0.7, 0.4]",
        "1 in sum at most",
    ),
    ("world=capacity world.capacity.quotas.advantaged=0.7", "world.capacity.quotas=[0.7, None]", "for both"),
    (
        "world=capacity world.capacity.quotas={advantaged: -0.1, disadvantaged: 0.4}",
        "world.capacity.quotas.advantaged=-0.1",
        "0 or more",
    ),
    (
        "world.capacity.quotas={advantaged: 0.5, disadvantaged: 0.4}",
        "world.capacity.quotas=[0.5, 0.4]",
        "null without world.capacity.share or world.capacity.number",
    ),
    ("world.delay.steps=-1", "world.delay.steps=-1", "at least 0"),
    ("world.delay.mean=0", "world.delay.mean=0.0", "positive"),
    ("world=delay world.delay.mean=3", "world.delay.mean=3.0", "add world.delay.steps=0"),
    ("world.delay.censored=1", "world.delay.censored=1.0", "at least 0 and below 1"),
    ("world.delay.censored=-0.1", "world.delay.censored=-0.1", "at least 0 and below 1"),
    ("world.noise.advantaged.positive=1.1", "world.noise.advantaged.positive=1.1", "from 0 to 1"),
    ("world.noise.disadvantaged.negative=-0.1", "world.noise.disadvantaged.negative=-0.1", "from 0 to 1"),
    ("world.drift.start=-1", "world.drift.start=-1", "at least 0"),
    ("world.drift.period=1", "world.drift.period=1", "at least 2"),
    ("world.drift.advantaged_share=0", "world.drift.advantaged_share=0.0", "between 0 and 1"),
    ("world.drift.advantaged_share=1", "world.drift.advantaged_share=1.0", "between 0 and 1"),
    ("world.drift.features={age: inf}", "world.drift.features.age=inf", "a finite number"),
    ("world.drift.label.advantaged=-1.5", "world.drift.label.advantaged=-1.5", "from -1 to 1"),
    ("world.feedback.people=0", "world.feedback.people=0", "at least 1"),
]


def words(line: str) -> list[str]:
    """A line of overrides, mappings with blanks among them."""
    parts: list[str] = []
    for word in line.split():
        if "=" in word or not parts:
            parts.append(word)
        else:
            parts[-1] += f" {word}"
    return parts


def parts(*overrides: str) -> dict[str, Any]:
    return checked(composed(*overrides)).parts


def test_every_choice_has_its_part_and_static_has_none() -> None:
    found = {name: [*parts(f"world={name}")] for name in CHOICES}
    assert found == {name: [] if name == "static" else [name] for name in CHOICES}
    assert set(CHOICES) == {"static", "capacity", "delay", "noise", "drift", "feedback"}
    assert checked(composed()) == checked(composed("world=static"))


def test_several_worlds_are_one_with_all_their_parts() -> None:
    found = parts("world=[capacity,delay]")
    assert [*found] == ["capacity", "delay"]
    assert (found["capacity"].share, found["delay"].steps) == (0.3, 10)
    assert parts("world=[delay,capacity]") == found
    every = parts("world=[delay,noise,capacity,drift,feedback]")
    assert [*every] == ["feedback", "drift", "capacity", "noise", "delay"]


def test_keys_of_a_part_can_be_set_in_every_world() -> None:
    found = parts("world=delay", "world.capacity.number=7", "world.capacity.rule=top")
    assert [*found] == ["capacity", "delay"]
    assert (found["capacity"].number, found["capacity"].rule) == (7, PlacesRule.top)
    other = parts("world.drift.features={age: 0.5}", "world.drift.course=seasonal")
    assert [*other] == ["drift"]
    assert (other["drift"].course, other["drift"].features) == (Course.seasonal, {"age": 0.5})
    assert parts("world.drift.features={age: 0}") == {}


def test_a_run_stores_the_parts_that_change_anything() -> None:
    assert checked(composed("world.capacity.rule=top")).to_plain()["world"] == {}
    stored = checked(composed("world=delay")).to_plain()["world"]
    target = "fairall.worlds.delay.Delay"
    assert stored == {"delay": {"_target_": target, "steps": 10, "mean": None, "censored": 0.0}}


def test_a_run_finds_each_class_and_builds_each_part_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found, built = [], []

    def noted(node: Any, place: str) -> Any:
        found.append(place)
        return target_class(node, place)

    def building(self: Capacity, config: CapacityConfig, setting: WorldSetting) -> None:
        built.append(config)
        made(self, config, setting)

    made = Capacity.__init__
    monkeypatch.setattr(validation, "target_class", noted)
    monkeypatch.setattr(Capacity, "__init__", building)
    training_of("dataset=synthetic", "model=fairlog", "world=capacity", "preset=quick")
    parts = ("feedback", "drift", "capacity", "noise", "delay")
    assert found == ["model", "dataset", "initial_policy", *(f"world.{name}" for name in parts)]
    assert len(built) == 1


@pytest.mark.parametrize(("line", "key", "allowed"), WRONG, ids=[key for _, key, _ in WRONG])
def test_a_value_that_is_not_possible_is_named_with_what_is(line: str, key: str, allowed: str) -> None:
    with pytest.raises(FairAllError) as refused:
        checked(composed(*words(line)))
    said = str(refused.value)
    assert said.startswith(f"{key} is not possible: it must be ")
    assert allowed in said
    assert "\n" not in said


def test_the_command_says_it_in_one_line(tmp_path: Path) -> None:
    for line, said in (
        ("world.capacity.share=0.01", "world.capacity.share=0.01 is not possible"),
        ("world.capacity.rule=best", "world.capacity.rule"),
        ("world=capcity", "no such world, did you mean capacity?"),
        ("world.capcity.share=0.3", "world.capcity: no such key, did you mean world.capacity?"),
        ("world.drift.features={agee: 1}", "world.drift.features=agee is not possible"),
        ("world=feedback", "world.feedback: "),
    ):
        ended = typed(*words(line), "preset=quick", "tracking.enabled=false", cwd=tmp_path)
        assert (ended.returncode, ended.stderr.count("\n")) == (1, 1), ended.stderr
        assert said in ended.stderr


@pytest.mark.parametrize("name", CHOICES)
def test_every_choice_is_a_world_of_fico(name: str) -> None:
    config = checked(composed("dataset=fico", f"world={name}"))
    world = World.of(config, load_dataset("fico").prepare(), [0])
    assert [*world.parts] == [*config.parts]
    assert world.next().x.shape == (1, 64, 1)
