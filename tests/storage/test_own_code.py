"""The user's own modules that enter the identity of a run."""

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import fairall
from fairall.config.compose import compose_config
from fairall.experiment import job
from fairall.storage.checkpoint import Cache
from fairall.storage.identity import OwnCode, own_code
from tests.conftest import CHECKOUT, own_process

FILES = {
    "mine/__init__.py": "",
    "mine/method.py": """\
import helper
from . import rates


class Method:
    def step(self):
        return helper.half(rates.RATE)

    def late(self):
        from mine import lazily
        return lazily
""",
    "mine/rates.py": "RATE = 0.1  # of learning\n",
    "mine/lazily.py": "VALUE = 1\n",
    "helper.py": 'def half(x):\n    """Half of x."""\n    return x / 2\n',
    "other.py": "VALUE = 1\n",
}
LOADED = {"mine/__init__.py", "mine/method.py", "mine/rates.py", "helper.py"}


def forget(folder: Path) -> None:
    """Modules of a folder are not loaded any more: other tests have some of the same names."""
    for name, module in [*sys.modules.items()]:
        if (getattr(module, "__file__", None) or "").startswith(str(folder)):
            del sys.modules[name]
    importlib.invalidate_caches()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The files, of which `mine.method` is imported."""
    monkeypatch.setattr("fairall.storage.identity._late", set())
    place = tmp_path / "place"
    (place / "mine").mkdir(parents=True)
    for name, text in FILES.items():
        (place / name).write_text(text)
    monkeypatch.syspath_prepend(place)
    importlib.import_module("mine.method")
    yield place
    forget(tmp_path)


@pytest.mark.parametrize("name", FILES)
def test_loaded_modules_count_of_the_same_package_or_folder(name: str, folder: Path) -> None:
    def anew(text: str) -> OwnCode:
        """What a new process finds, in which the file has a text."""
        (folder / name).write_text(text)
        forget(folder)
        importlib.import_module("mine.method")
        return own_code(["mine.method"])

    before = own_code(["mine.method"])
    assert before.doubts == []
    assert [*before.hashes] == ["helper", "mine", "mine.method", "mine.rates"]
    assert anew(f"# A comment.\n{FILES[name]}") == before
    assert (anew(f"{FILES[name]}\nEDITED = True\n") != before) == (name in LOADED)
    (folder / name).write_bytes(b"no Python (\xff")
    doubt = f"{Path(name).name} has changed since its import: start Python anew to run it"
    assert own_code(["mine.method"]).doubts == [doubt] * (name in LOADED)


def test_what_is_made_by_own_code(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mine.method import Method  # type: ignore[import-not-found]

    whole = own_code(["mine.method"])
    # The name of a class, whose method makes something, is that of no module.
    assert own_code([], Method()) == own_code([], Method.late) == own_code(["mine.method.Method"]) == whole
    # Python's own have no file, and FairAll's are in every identity.
    assert own_code(["builtins", "fairall.metrics"], Path(), len) == OwnCode({}, [], ())
    # An ancestor, in a package without code, in another folder; and an installed module where it is named.
    text = "from mine.method import Method\nclass Mine(Method): ...\n"
    for place, name in (("further", "bare/derived.py"), ("site-packages", "bought.py")):
        (folder / place / name).parent.mkdir(parents=True)
        (folder / place / name).write_text(text)
        monkeypatch.syspath_prepend(folder / place)
    made = importlib.import_module("bare.derived").Mine()
    assert own_code([], made).hashes.keys() == {"bare.derived", *whole.hashes}
    bought: Any = importlib.import_module("bought")
    assert "bought" not in own_code(["mine.method"]).hashes
    before = own_code(["bought"]).hashes
    assert [*before] == ["bought"]
    # The file that is named says little of an installed package: its release counts too.
    del bought.__spec__._fairall_hash
    bought.__version__ = "2.0"
    assert own_code(["bought"]).hashes != before


def test_a_module_that_is_reloaded_counts_as_it_is_now(folder: Path, tmp_path: Path) -> None:
    text = "import torch\n\n\ndef make(checkpoint):\n    return {'x': torch.ones(1)}\n"
    (folder / "other.py").write_text(text)
    other = importlib.import_module("other")

    def made() -> float:
        return float(Cache(tmp_path / "cache", 3600.0).result("key", other.make)["x"])

    assert made() == 1
    (folder / "other.py").write_text(text.replace("ones", "zeros"))
    assert made() == 1
    importlib.reload(other)
    assert own_code(["other"]).doubts == []
    assert made() == 0


SCRIPT = """
import helper
from fairall.storage.identity import own_code
class Mine: ...
made = own_code([], Mine())
print(*made.hashes, all(made.hashes.values()), *made.doubts)
print(*own_code(['helper']).hashes)
"""


def test_a_script_counts_where_it_defines_what_is_run_and_what_is_typed_is_said(folder: Path) -> None:
    (folder / "script.py").write_text(SCRIPT)
    environment = os.environ | {"PYTHONPATH": f"{CHECKOUT}{os.pathsep}{folder}"}
    ended = own_process(folder / "script.py", check=True, env=environment)
    assert ended.stdout == "__main__ helper True\nhelper\n"
    typed = own_process(input=SCRIPT, check=True, env=environment).stdout
    assert typed.startswith("__main__ False the code of __main__ is in no file: ")


PLACES = yaml.safe_load(Path(__file__).with_name("places.yaml").read_text())
DERIVED = """\
from own_helper import value
from {0} import {1}


class Mine({1}):
    def own(self):
        return value + 1
"""
MEASURE = """\
from own_helper import value
from {0} import {1}


@{1}(label="mine", unit="share", higher_is_better=None)
def mine(propensity):
    return 0 * propensity.mean(-1) + value + 1
"""


def test_a_run_says_what_is_imported_while_it_runs_and_later_runs_do_not_count_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_late.py").write_text("VALUE = 1\n")
    (tmp_path / "my_method.py").write_text(
        "from fairall.models.rivals.ensemble import Ensemble\n\n\nclass Mine(Ensemble):\n"
        "    def warm_up_epoch(self, *given):\n        import own_late\n"
        "        return super().warm_up_epoch(*given)\n"
    )
    words = ["model=ensemble", "model._target_=my_method.Mine", "dataset=credit", "preset=quick", "seeds=1"]
    words += [f"outputs_dir={tmp_path}/outputs", "tracking.enabled=false"]
    fairall.run(*words)
    assert "Note: own_late was first imported during the run: " in capsys.readouterr().out
    fairall.run(*words)
    assert "Already done" in capsys.readouterr().out
    assert own_code(["own_late"]).hashes.keys() >= {"own_late", "my_method"}


USUAL = "preset=quick seeds=1 outputs_dir=x model=ensemble dataset=credit world=capacity".split()


@pytest.mark.parametrize("place", PLACES)
def test_editing_own_code_of_any_kind_makes_a_new_run(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    module, (base, *words) = f"my_{place.replace('.', '_')}", PLACES[place]
    text = (MEASURE if place == "measure" else DERIVED).format(*base.rsplit(".", 1))
    identities = []
    for own, helper in ((text, 1), (text.replace("+ 1", "+ 2"), 1), (text, 2)):
        (tmp_path / f"{module}.py").write_text(own)
        (tmp_path / "own_helper.py").write_text(f"value = {helper}\n")
        forget(tmp_path)
        made = job(compose_config(*USUAL, *(word.replace("MODULE", module) for word in words)))
        identities.append(made.folder.path.name)
    assert len({*identities}) == 3
