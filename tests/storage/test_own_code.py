"""The user's own modules that enter the identity of a run."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import fairall
from fairall.storage.cache import Cache
from fairall.storage.own_code import OwnCode, own_code
from tests.conftest import own_process

FILES = {
    "mine/__init__.py": "from .rates import RATE\n",
    "mine/method.py": """\
import json

import helper
from . import rates
from .deep.losses import *
import mine.steps as steps
from importlib import import_module


class Base:
    def step(self):
        return helper.half(rates.RATE)


class Method(Base):
    def late(self):
        from lazily import value
        return value, import_module("by_name").VALUE, __import__("by_word").VALUE
""",
    "mine/rates.py": "RATE = 0.1  # of learning\n",
    "mine/deep/__init__.py": "__all__ = ['losses']\n",
    "mine/deep/losses.py": "from .. import scales\n\n\ndef loss(x):\n    return x * scales.SCALE\n",
    "mine/scales.py": "SCALE = 2\n",
    "mine/steps.py": "STEPS = 3\n",
    "mine/elsewhere.py": "VALUE = 9\n",
    "helper.py": "import second\n\n\ndef half(x):\n    return second.part(x)\n",
    "second.py": 'def part(x):\n    """Half of x."""\n    return x / 2\n',
    "lazily.py": "value = 1\n",
    "by_name.py": "VALUE = 1\n",
    "by_word.py": "VALUE = 1\n",
    "other.py": "from mine import elsewhere\n\nVALUE = 1\n",
}
USED = [name for name in FILES if name not in ("mine/elsewhere.py", "other.py")]


@pytest.fixture(autouse=True)
def modules_forgotten(tmp_path: Path) -> Iterator[None]:
    """Modules of a test's folder are not there for other tests, whose own may have the same names."""
    yield
    for name, module in [*sys.modules.items()]:
        if (getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files, of which modules can be imported."""
    place = tmp_path / "place"
    for name, text in FILES.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    monkeypatch.syspath_prepend(place)
    return place


@pytest.mark.parametrize("name", FILES)
def test_a_module_counts_that_the_method_imports_at_whatever_remove(name: str, folder: Path) -> None:
    before = own_code(["mine.method"])
    assert before.doubts == ()
    (folder / name).write_text(FILES[name].replace("1", "2").replace("2", "4") + "\nEDITED = True\n")
    assert (own_code(["mine.method"]).hashes != before.hashes) == (name in USED)


def test_contents_that_change_places_are_another_code(folder: Path) -> None:
    before = own_code(["mine.method"])
    (folder / "by_name.py").write_text("VALUE = 2\n")
    one = own_code(["mine.method"])
    (folder / "by_name.py").write_text("VALUE = 1\n")
    (folder / "by_word.py").write_text("VALUE = 2\n")
    other = own_code(["mine.method"])
    assert len({before, one, other}) == 3


def elsewhere(folder: Path, code: str) -> OwnCode:
    """What another process finds, in which `code` ran before."""
    ask = f"import sys; sys.path.insert(0, {str(folder)!r})\n{code}\n"
    ask += "from fairall.storage.own_code import *\nprint(repr(own_code(['mine.method'])))"
    ended = own_process("-c", ask, check=True)
    found = eval(ended.stdout, {"OwnCode": OwnCode})
    assert isinstance(found, OwnCode)
    return found


def test_the_same_in_other_processes_and_folders_whatever_else_is_imported(folder: Path) -> None:
    own = own_code(["mine.method"])
    assert [line.split()[0] for line in own.hashes] == sorted(
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in USED
    )
    moved = folder.rename(folder.with_name("moved"))
    for code in ("", "import other", "import mine.method", "import json, mine.elsewhere, helper"):
        assert elsewhere(moved, code) == own


def test_classes_of_objects_within_objects(folder: Path) -> None:
    from functools import partial
    from types import SimpleNamespace

    import helper  # type: ignore[import-not-found]
    from mine.method import Method  # type: ignore[import-not-found]

    assert own_code([], SimpleNamespace(a=1)) == own_code([], len, int) == OwnCode()
    whole = own_code(["mine.method"])
    for made in (Method(), Method().step, {"a": [Method()]}, SimpleNamespace(learner=(Method(),))):
        assert own_code([], made) == whole
    of_helper = [line for line in whole.hashes if line.split()[0] in ("helper", "second")]
    assert list(own_code([], partial(print, helper.half)).hashes) == of_helper


def test_a_file_edited_after_its_import_is_not_what_the_process_runs(folder: Path) -> None:
    import importlib

    import second  # type: ignore[import-not-found]

    before = own_code(["mine.method"])
    (folder / "second.py").write_text("def part(x):\n    return x / 3\n")
    after = own_code(["mine.method"])
    assert (second.part(6), after.hashes) == (3, before.hashes)
    assert after.doubts == (
        "second.py has changed since this process imported it: start Python anew to run it",
    )
    importlib.reload(second)
    again = own_code(["mine.method"])
    assert (second.part(6), again.hashes != before.hashes, again.doubts) == (2, True, ())


def test_what_cannot_be_followed_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "from importlib import import_module\nNAME = 'by_name'\nloaded = import_module(NAME)\n"
    (folder / "lazily.py").write_text(text)
    (said,) = own_code(["mine.method"]).doubts
    assert said.startswith("lazily.py, line 3: runs code whose name is computed; ")
    ask = "from fairall.storage.own_code import *\nclass Mine: pass\nprint(own_code([], Mine()))"
    ended = own_process(input=ask, check=True)
    assert ended.stdout.startswith(
        "OwnCode(hashes=('__main__ ',), doubts=('the code of __main__ is in no file; "
    )


def test_a_script_is_own_code(folder: Path) -> None:
    script = folder / "script.py"
    found = set()
    for value in (1, 2, 1):
        script.write_text(
            "import helper\nfrom fairall.storage.own_code import own_code\n\n\nclass Mine:\n"
            f"    value = {value}\n\n\nprint(own_code([], Mine()))\n"
        )
        path = os.pathsep.join(map(str, (Path(fairall.__file__).parents[1], folder)))
        ended = own_process(script, check=True, env=os.environ | {"PYTHONPATH": path})
        assert "'__main__ " in ended.stdout
        assert "'helper " in ended.stdout
        found.add(ended.stdout)
    assert len(found) == 2


def test_installed_modules_count_where_they_are_named(folder: Path) -> None:
    (folder / "site-packages").mkdir()
    sys.path.insert(0, str(folder / "site-packages"))
    (folder / "site-packages" / "bought.py").write_text("VALUE = 1\n")
    (folder / "helper.py").write_text("import bought\nimport numpy\nimport json\n")
    names = [line.split()[0] for line in own_code(["helper"]).hashes]
    assert names == ["helper"]
    assert [line.split()[0] for line in own_code(["bought", "fairall.metrics"]).hashes] == ["bought"]


def test_a_module_that_cannot_be_parsed_counts_by_its_bytes(folder: Path) -> None:
    found = set()
    for content in (b"not python (", b"not python [", b"\xff\xfe"):
        (folder / "second.py").write_bytes(content)
        found.add(own_code(["mine.method"]).hashes)
    assert len(found) == 3


def test_a_cached_result_is_computed_again_by_edited_code(folder: Path, tmp_path: Path) -> None:
    import importlib

    import torch

    (folder / "pretraining.py").write_text(
        "import torch\n\n\ndef make(checkpoint):\n    return {'x': torch.ones(1)}\n"
    )
    import pretraining  # type: ignore[import-not-found]

    cache = Cache(tmp_path / "cache", 3600.0)
    make: Callable[..., dict[str, torch.Tensor]] = pretraining.make
    assert float(cache.result("key", make)["x"]) == 1
    text = (folder / "pretraining.py").read_text()
    (folder / "pretraining.py").write_text(text.replace("ones", "zeros"))
    importlib.reload(pretraining)
    assert float(cache.result("key", pretraining.make)["x"]) == 0


OWN = {
    "model": (
        "my_method.Mine",
        "from fairall.models.rivals.ensemble import Ensemble\n\n\nclass Mine(Ensemble):",
    ),
    "dataset": ("my_data.Mine", "from fairall.data.credit import Credit\n\n\nclass Mine(Credit):"),
    "initial_policy": (
        "my_policy.Mine",
        "from fairall.online.initial_policy import LogisticPolicy\n\n\nclass Mine(LogisticPolicy):",
    ),
    "world.capacity": (
        "my_world.Mine",
        "from fairall.worlds.capacity import Capacity\n\n\nclass Mine(Capacity):",
    ),
}
BODY = """
    def own(self):
        from own_helper import value

        return value + 1
"""
MEASURE = """\
from fairall.metrics import measure


@measure(label="mine", unit="share", higher_is_better=None)
def mine(propensity):
    from own_helper import value

    return 0 * propensity.mean(-1) + value + 1
"""


def identity_of(*words: str) -> str:
    """The id of a run by a process that has imported none of the user's modules yet."""
    from fairall.config.compose import compose_config
    from fairall.experiment import job

    for name in [*sys.modules]:  # of other folders too
        if name == "own_helper" or name.startswith("my_"):
            del sys.modules[name]
    return job(compose_config("preset=quick", "seeds=1", "outputs_dir=x", *words)).identity


@pytest.mark.parametrize("place", [*OWN, "fairness", "measure"])
def test_editing_own_code_of_any_kind_makes_a_new_run(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    words = ["model=ensemble", "dataset=credit", "world=capacity"]
    if place == "measure":
        words.append("evaluation.measures=[my_measures.mine]")
        own, text = tmp_path / "my_measures.py", MEASURE
    else:
        key = "model" if place == "fairness" else place
        target, begins = OWN[key]
        words += [f"{key}._target_={target}"] + ["fairness=demographic_parity"] * (place == "fairness")
        own, text = tmp_path / f"{target.partition('.')[0]}.py", begins + BODY
    helper, other = tmp_path / "own_helper.py", tmp_path / "other.py"
    other.write_text("VALUE = 1\n")
    helper.write_text("value = 1\n")
    own.write_text(text)
    before = identity_of(*words)
    other.write_text("VALUE = 2\n")
    own.write_text(f"# A comment.\n{text}")
    assert identity_of(*words) == before
    own.write_text(text.replace("value + 1", "value + 2"))
    edited = identity_of(*words)
    own.write_text(text)
    helper.write_text("value = 2\n")
    assert len({before, edited, identity_of(*words)}) == 3


def test_without_own_code_the_names_of_the_measures_are_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import hashlib
    from typing import Any

    from fairall import experiment
    from fairall.config.compose import compose_config
    from fairall.config.schema import Config
    from fairall.storage import identity

    seen: dict[str, Any] = {}

    def kept(config: Config, fingerprint: str, own: list[str]) -> str:
        seen.update(config=config, fingerprint=fingerprint, own=own)
        return identity.run_id(config, fingerprint, own)

    monkeypatch.setattr(experiment, "run_id", kept)
    monkeypatch.setattr(identity, "code_and_versions", lambda: "code")
    words = ("model=fairlog", "dataset=synthetic", "fairness=demographic_parity", "preset=quick")
    made = experiment.job(compose_config(*words))
    assert seen["own"] == [measure.function.__qualname__ for measure in made.measures]
    key = identity.configuration_key(seen["config"])
    determined_by = (key, False, seen["fingerprint"], "code", seen["own"])
    assert made.identity == hashlib.sha256(repr(determined_by).encode()).hexdigest()[:12]
    assert made.doubts == ()
