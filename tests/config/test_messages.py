"""Mistakes in classes and files of the user's own are told in one line."""

from pathlib import Path

import pytest

from fairall.config.messages import report_error
from fairall.errors import FairAllError
from tests.conftest import refused

OWN = """\
from fairall.data.credit import Credit
from fairall.data.dataset import Dataset

class Mine(Credit): pass
class Lacking(Dataset): pass
class Nothing: pass
"""
TABLE = "_target_: own.Mine\nname: mine\n"


@pytest.mark.parametrize(
    ("file", "content", "words", "said"),
    [
        (
            "initial_policy/mine.yaml",
            "_target_: own.Policy\nname: mine\n",
            [],
            "own.Policy names no class",
        ),
        ("dataset/mine.yaml", "name: mine\n", [], "dataset._target_=None names no class as module.Class"),
        (
            "dataset/mine.yaml",
            TABLE + "nmae: 3\n",
            [],
            "dataset.nmae: no such key, did you mean dataset.name?",
        ),
        ("dataset/mine.yaml", TABLE, [], "dataset.cost has no value: give it one with dataset.cost=VALUE"),
        (
            "dataset/mine.yaml",
            "defaults: [csv, override /experiment: x]\n",
            [],
            "In 'dataset/mine': Could not",
        ),
        ("x.yaml", "", ["dataset.split.pol=3"], "no such key, did you mean dataset.split.pool?; --cfg"),
        ("experiment/x.yaml", "", ["experiment=x"], "use +experiment=x"),
        ("x.yaml", "", ["dataset._target_=own.Nothing"], "config_type is not a dataclass derived from "),
        ("x.yaml", "", ["dataset._target_=own.Lacking"], "it lacks load, prepare"),
        ("x.yaml", "", ["initial_policy._target_=own.Mine"], "schema.InitialPolicyConfig: derive"),
        ("x.yaml", "", ["dataset._target_=wrong.Mine"], "'(' was never closed (wrong.py, line 1)"),
        ("x.yaml", "", ["model._target_=lacking.Mine"], "(ModuleNotFoundError: No module named 'nopandas'"),
    ],
)
def test_a_mistake_in_classes_and_files_of_ones_own_is_one_line(
    file: str, content: str, words: list[str], said: str, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "wrong.py").write_text("x = (\n")
    (tmp_path / "lacking.py").write_text("import nopandas\n")
    path = tmp_path / "conf" / file
    path.parent.mkdir(parents=True)
    path.write_text(content)
    group = path.parent.name
    chosen = [] if group in ("conf", "experiment") else [f"{group}=mine"]
    assert said in refused("-cd", "conf", *chosen, *words, "tracking.enabled=false", cwd=tmp_path)


def test_ends_of_lines_in_a_key_make_no_second_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_error(FairAllError("a\rb: no such key")) == 1
    assert capsys.readouterr().err == "fairall: a b: no such key\n"
