"""The node `world`: its choices, several at once, and values that are not possible."""

from typing import Any

import pytest

from fairall.config import validation
from fairall.config.compose import compose_config as composed
from fairall.config.target import target_class
from fairall.config.validation import checked
from fairall.data.load import load_dataset
from fairall.worlds.capacity import Capacity, CapacityConfig, PlacesRule
from fairall.worlds.drift import Course
from fairall.worlds.part import WorldSetting
from fairall.worlds.world import World
from tests.config.test_config import choices
from tests.conftest import training_of

CHOICES = [name for name in choices("world") if not name.startswith("_")]


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


@pytest.mark.parametrize("name", CHOICES)
def test_every_choice_is_a_world_of_fico(name: str) -> None:
    config = checked(composed("dataset=fico", f"world={name}"))
    world = World.of(config, load_dataset("fico").prepare(), [0])
    assert [*world.parts] == [*config.parts]
    assert world.next().x.shape == (1, 64, 1)
