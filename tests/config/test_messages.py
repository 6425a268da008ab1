"""What a mistake is told as: one line that says what is wrong and what to type instead."""

from pathlib import Path

import pytest

from fairall.config.messages import report_error
from fairall.errors import FairAllError
from tests.config.test_config import NEEDED
from tests.conftest import typed

EXPERIMENT = "fairall: experiment: no such key, did you mean tracking.experiment?; --help lists them all\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["dataset.positive=zurückgezahlt"], """write 'dataset.positive="zurückgezahlt"'\n"""),
        (["dataset.drop=[größe,id]"], """write 'dataset.drop=["größe",id]'\n"""),
        (["dataset.separator=;"], """write 'dataset.separator=";"'\n"""),
        (
            ["dataset=csv", *(f"dataset.{key}=x" for key in NEEDED), "dataset.separator="],
            """it must be one character, quoted as in 'dataset.separator=";"'\n""",
        ),
        (["outputs_dir=~/x y"], f"write 'outputs_dir={Path.home()}/x y'\n"),
        (["dataset.kinds.größe=real"], "a key on the command line has letters a to z"),
        (["credit"], "cannot read 'credit': did you mean dataset=credit?"),
        (["phase1"], "did you mean --multirun sweeps=phase1?"),
        (["fairlgo"], "did you mean model=fairlog?"),
        (["xyzzy"], "it is not KEY=VALUE, without spaces; `python -m fairall list` lists all names"),
        (["version"], "did you mean --version?"),
        (["hepl"], "did you mean --help?"),
        (["lsit"], "did you mean python -m fairall list?"),
        (["evalute"], "did you mean python -m fairall evaluate?"),
        (["seed=1", "list"], "did you mean python -m fairall list?"),
        (["model=fairal"], "no such model, did you mean fairall_II or fairall_I_II?"),
        (["model=unfair"], "no such model, did you mean unfairlog?"),
        (["model=farial"], "no such model, did you mean fairall_II?"),
        (["seed=1", "decide"], "did you mean python -m fairall decide?"),
        (["preset"], "did you mean preset=CHOICE?"),
        (["model", "=", "fairlog"], "did you mean model=CHOICE?"),
        (["model=", "fairlog"], "did you mean model=fairlog?"),
        (["model=fairlog,unfairlog"], "several values are several runs: add --multirun\n"),
        (["evaluation.window=3,4"], "add --multirun; a list is 'evaluation.window=[3,4]'\n"),
        (["evaluation.measures=my.gap"], "it must be a list, 'evaluation.measures=[my.gap]'\n"),
        (["shedule.time_steps=3"], "shedule: no such key, did you mean schedule?"),
        (["model=FairLog"], "no such model, did you mean fairlog?"),
        (["dataset=laws"], "dataset=laws: no such dataset"),
        (["dataset=loans.csv"], "fairall: loans.csv is a file: dataset=csv dataset.path=loans.csv\n"),
        (["dataset=a/b.PQ"], "fairall: a/b.PQ is a file: dataset=csv dataset.path=a/b.PQ\n"),
        (["dataset=my loans.csv"], "is a file: dataset=csv 'dataset.path=my loans.csv'\n"),
        (["loans.csv"], "did you mean dataset=csv dataset.path=loans.csv?"),
        (["train"], "cannot read 'train': did you mean python -m fairall run?"),
        (["train", "model=fairlog"], "did you mean python -m fairall run?"),
        (["predict", "RUN", "people.csv", "-o", "out.csv"], "did you mean python -m fairall decide?"),
        (["audit", "loans.csv", "--policy", "x"], "did you mean python -m fairall evaluate?"),
        (["experiment=foo"], EXPERIMENT),
        (["experiment/x=foo"], "experiment/x: no such key, did you mean tracking.experiment?"),
        (["experiment@x=foo"], "experiment@x: no such key, did you mean tracking.experiment?"),
        (["experiment@x={a: 1}"], "experiment@x: no such key, did you mean tracking.experiment?"),
        (["~experiment"], EXPERIMENT),
        (["~experiment=foo"], EXPERIMENT),
        (["--multirun", "experiment=foo,bar"], EXPERIMENT),
        (["~sede"], "sede: no such key, did you mean seed?; --help lists them all\n"),
        (["model@x=fairlog"], "model@x: no such key, did you mean model?; --help lists them all\n"),
        (["~model@x"], "model@x: no such key, did you mean model?; --help lists them all\n"),
        (["~model"], "~model: every run needs a choice of model; choose another with model=CHOICE\n"),
        (["~model=foo"], "~model=foo: every run needs a choice of model; choose another with model=CHOICE\n"),
        (["+model=fairlog"], "+model=fairlog: it has a value already; write model=fairlog\n"),
        (["++model=fairlog"], "++model=fairlog: it has a value already; write model=fairlog\n"),
        (["+seed=3"], "+seed=3: it has a value already; write seed=3\n"),
        (["model=[plot,random]"], "it must be one choice; a run for each: --multirun model=plot,random\n"),
        (["sensitive_features=sex"], "sensitive_features: no such key, did you mean dataset.sensitive of "),
        (["dataset=csv", "sensitive_features=sex"], "no such key, did you mean dataset.sensitive?; --help"),
        (
            ["dataset=csv", *(f"dataset.{key}=x" for key in NEEDED), "dataset.target=y"],
            "mean dataset.label?;",
        ),
        (["model.lr=1"], "model.lr: no such key, did you mean model.learning_rate?; --help"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_words_that_cannot_be_read_are_spelt(words: list[str], said: str, tmp_path: Path) -> None:
    ended = typed(*words, cwd=tmp_path)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1), ended.stderr
    assert ended.stderr.startswith("fairall: ")
    assert said in ended.stderr


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
    ended = typed("-cd", "conf", *chosen, *words, "tracking.enabled=false", cwd=tmp_path)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1), ended.stderr
    assert said in ended.stderr


def test_ends_of_lines_in_a_key_make_no_second_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_error(FairAllError("a\rb: no such key"), []) == 1
    assert capsys.readouterr().err == "fairall: a b: no such key\n"
