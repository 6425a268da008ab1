"""What a mistake is told as: one line that says what is wrong and what to type instead."""

from pathlib import Path

import pytest

from fairall.config.messages import report_error
from fairall.errors import FairAllError
from tests.conftest import refused, typed

OWN = """\
from fairall.data.credit import Credit
from fairall.data.dataset import Dataset

class Mine(Credit): pass
class Lacking(Dataset): pass
class Nothing: pass
class Untyped(Credit):
    config_type = dict
class Unmade(Credit):
    def __init__(self): pass
"""
TABLE = "_target_: own.Mine\nname: mine\n"


@pytest.mark.parametrize(
    ("file", "content", "words", "said"),
    [
        (
            "initial_policy/mine.yaml",
            "_target_: own.Policy\nname: mine\n",
            [],
            "initial_policy._target_=own.Policy: there is no such class",
        ),
        ("dataset/mine.yaml", "name: mine\n", [], "dataset._target_ has no value: it names the class, as "),
        ("dataset/mine.yaml", TABLE + "sede: 3\n", [], "dataset.sede: no such key, did you mean seed?"),
        ("x.yaml", "", ["dataset.cots=3"], "dataset.cots: no such key, did you mean dataset.cost?; --help "),
        ("x.yaml", "", ["dataset.split.pol=3"], "no such key, did you mean dataset.split.pool?; --help"),
        ("x.yaml", "", ["+dataset.cots=3"], "dataset.cots: no such key, did you mean dataset.cost?; --help "),
        ("x.yaml", "", ["initial_policy.scroe={a: 1}"], "did you mean initial_policy.score?"),
        ("x.yaml", "", ["model.alhpa=1"], "model.alhpa: no such key, did you mean model.alpha?; --help"),
        ("dataset/mine.yaml", TABLE + "cost: low\n", [], "dataset.cost: Value 'low' of type 'str' could not"),
        ("experiment/x.yaml", "", ["experiment=x"], "no such key, did you mean +experiment=CHOICE?; --help"),
        (
            "dataset/mine.yaml",
            "defaults: [csv, override /experiment: x]\n",
            [],
            "dataset/mine.yaml: experiment@dataset.experiment: no such key, did you mean tracking.exp",
        ),
        ("x.yaml", "", ["~initial_policy"], "initial_policy was deleted with ~initial_policy, and"),
        ("x.yaml", "", ["~seed"], "seed was deleted with ~seed, and every run needs it"),
        ("dataset/mine.yaml", TABLE, [], "dataset.cost has no value: give it one with dataset.cost=VALUE"),
        ("preset/mine.yaml", "# @package _global_\nsede: 3\n", [], "sede: no such key, did you mean seed?"),
        ("x.yaml", "", ["dataset._target_=own.Nothing"], "not a fairall.data.dataset.Dataset; derive the"),
        ("x.yaml", "", ["dataset._target_=own.Untyped"], "config_type is not a dataclass derived from "),
        ("x.yaml", "", ["dataset._target_=own.Lacking"], "lacks load, prepare, which every Dataset has"),
        ("x.yaml", "", ["dataset._target_=own.Unmade"], "so it begins `def __init__(self, config)`"),
        ("x.yaml", "", ["initial_policy._target_=own.Mine"], "not a fairall.online.initial_policy."),
        ("x.yaml", "", ["model._target_=Nobody"], "it names the class with its module"),
        ("x.yaml", "", ["dataset._target_=wrong.Mine"], "SyntaxError: '(' was never closed, "),
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


def test_a_key_of_many_runs_that_is_not_there(tmp_path: Path) -> None:
    ended = typed("--multirun", "experiment=foo,bar", cwd=tmp_path)
    said = "fairall: experiment: no such key, did you mean tracking.experiment?; --help lists them all\n"
    assert (ended.returncode, ended.stderr) == (1, said)


def test_ends_of_lines_in_a_key_make_no_second_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_error(FairAllError("a\rb: no such key"), []) == 1
    assert capsys.readouterr().err == "fairall: a b: no such key\n"
