"""The node `world`: its choices, several at once, and values that are not possible."""

from typing import Any

import pytest

from fairall.config.compose import checked
from fairall.config.compose import compose_config as composed
from tests.config.test_config import choices

CHOICES = [name for name in choices("world") if not name.startswith("_")]


def parts(*overrides: str) -> dict[str, Any]:
    return checked(composed(*overrides)).parts


def test_several_worlds_are_one_with_all_their_parts() -> None:
    both = parts("world=[capacity,delay]")
    assert [*both] == ["capacity", "delay"]
    assert (both["capacity"].share, both["delay"].steps) == (0.3, 10)
    assert parts("world=[delay,capacity]") == both
    every = " ".join(parts("world=[delay,noise,capacity,drift,feedback]"))
    assert every == "feedback drift capacity noise delay"


def test_keys_of_a_part_can_be_set_in_every_world() -> None:
    changed = parts("world=delay", "world.capacity.number=7", "world.drift.features={age: 0.5}")
    assert [*changed] == ["drift", "capacity", "delay"]
    assert (changed["capacity"].number, changed["drift"].features) == (7, {"age": 0.5})
    assert parts("world.drift.features={age: 0}") == {}


def test_a_run_stores_the_parts_that_change_anything() -> None:
    assert checked(composed("world.capacity.rule=top")).to_plain()["world"] == {}
    stored = checked(composed("world=delay")).to_plain()["world"]
    target = "fairall.worlds.delay.Delay"
    assert stored == {"delay": {"_target_": target, "steps": 10, "mean": None, "censored": 0.0}}


@pytest.mark.parametrize("name", CHOICES)
def test_every_choice_is_the_part_of_its_name(name: str) -> None:
    assert [*parts("dataset=fico", f"world={name}")] == ([] if name == "static" else [name])
