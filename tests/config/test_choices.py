import re
from pathlib import Path

import pytest

from fairall.cli.verbs import LISTS
from fairall.config.choices import choices, description


@pytest.mark.parametrize("group", LISTS.values())
def test_every_choice_is_described_in_a_line(group: str) -> None:
    for path in choices()[group].values():
        assert re.fullmatch(r".{1,86}\.", description(path)), path.name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# Mine.\n# More.\nname: mine\n", "Mine."),
        ("# @package _global_\n# Mine.\n", "Mine."),
        ("", ""),
    ],
)
def test_description_is_the_first_comment(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    assert description(path) == said


def test_own_choices_follow_ours_and_do_not_replace_them(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    for name in ("mine", "greedy"):
        (tmp_path / "model" / f"{name}.yaml").write_text("defaults: [fairlog, _self_]\nextra: 1\n")
    models = choices(str(tmp_path))["model"]
    assert [*models][-1] == "mine"
    assert models["greedy"] == choices()["model"]["greedy"]
