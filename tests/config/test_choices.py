from pathlib import Path

import pytest
from omegaconf import OmegaConf

from fairall.config.choices import (
    MAIN,
    choices,
    configuration_keys,
    description,
    flattened,
    nodes_and_keys,
)
from fairall.config.compose import compose_config


@pytest.mark.parametrize("group", MAIN)
def test_every_choice_is_described_in_a_line(group: str) -> None:
    files = choices()[group]
    width = max(map(len, files))
    for name, path in files.items():
        said = description(path)
        assert said.endswith("."), f"{path.name}: {said!r}"
        assert not said.startswith("The same"), path.name
        assert len(f"  {name:<{width}}  {said}") <= 100, path.name


def test_description_is_the_first_comment(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    for text, said in (
        ("# Mine.\n# More.\nname: mine\n", "Mine."),
        ("# @package _global_\n# Mine.\n", "Mine."),
        ("name: mine  # a name\n# Later.\n", ""),
        ("", ""),
    ):
        path.write_text(text)
        assert description(path) == said


def test_own_choices_follow_ours_and_do_not_replace_them(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    for name in ("mine", "greedy"):
        (tmp_path / "model" / f"{name}.yaml").write_text("defaults: [fairlog, _self_]\nextra: 1\n")
    models = choices(str(tmp_path))["model"]
    assert [*models][-1] == "mine"
    assert models["greedy"] == choices()["model"]["greedy"]


@pytest.mark.parametrize(
    "words", [{}, {"model": "adopt", "dataset": "synthetic"}, {"world": "drift", "cost": "fixed"}]
)
def test_keys_are_those_that_hydra_composes(words: dict[str, str]) -> None:
    composed = compose_config(*(f"{group}={name}" for group, name in words.items()))
    keys = nodes_and_keys(flattened(OmegaConf.to_container(composed)))
    known = {key for key in keys if not key.rpartition(".")[2].startswith("_")}
    found = {*configuration_keys(words)} - {"sweeps"}
    assert found <= known, found - known
    assert len(found) > 90
