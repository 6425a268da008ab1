"""The user's own modules that enter the identity of a run."""

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

import fairall
from fairall.storage.cache import Cache
from fairall.storage.own_code import OwnCode, own_code
from tests.conftest import own_process

FILES = {
    "mine/__init__.py": "",
    "mine/method.py": """\
import helper
from . import rates


class Base:
    def step(self):
        return helper.half(rates.RATE)


class Method(Base):
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


@pytest.fixture(autouse=True)
def modules_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Modules of a test's folder are not there for other tests, whose own may have the same names."""
    monkeypatch.setattr("fairall.storage.own_code._late", set())
    yield
    for name, module in [*sys.modules.items()]:
        if (getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files, of which `mine.method` is imported."""
    place = tmp_path / "place"
    for name, text in FILES.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    monkeypatch.syspath_prepend(place)
    importlib.import_module("mine.method")
    return place


def anew() -> OwnCode:
    """What a new process finds, to which the files are as they are now."""
    for name in [name for name in sys.modules if name.partition(".")[0] in ("mine", "helper", "other")]:
        del sys.modules[name]
    importlib.invalidate_caches()
    importlib.import_module("mine.method")
    return own_code(["mine.method"])


@pytest.mark.parametrize("name", FILES)
def test_loaded_modules_count_of_the_same_package_or_folder(name: str, folder: Path) -> None:
    before = own_code(["mine.method"])
    assert before.doubts == []
    (folder / name).write_text(f"# A comment.\n{FILES[name]}")
    assert anew() == before
    (folder / name).write_text(f"{FILES[name]}\nEDITED = True\n")
    assert (anew() != before) == (name in LOADED)


def test_the_same_in_other_processes_and_folders(folder: Path) -> None:
    own = own_code(["mine.method"])
    assert [*own.hashes] == ["helper", "mine", "mine.method", "mine.rates"]
    moved = folder.rename(folder.with_name("moved"))
    ask = f"import sys; sys.path.insert(0, {str(moved)!r})\nimport json, mine.method\n"
    ask += "from fairall.storage.own_code import *\nprint(own_code(['mine.method']).hashes)"
    assert own_process("-c", ask, check=True).stdout == f"{own.hashes}\n"


def test_what_is_made_by_own_code(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mine.method import Method  # type: ignore[import-not-found]

    assert own_code([], Path(), len, int) == OwnCode({}, [], ())
    whole = own_code(["mine.method"])
    for made in (Method(), Method().step, Method.late):
        assert own_code([], made) == whole
    # The name of a class, whose method makes something, is that of no module.
    assert own_code(["mine.method.Method"]) == whole
    # Python's own, and a package without code, have no file.
    assert own_code(["builtins"]) == OwnCode({}, [], ())
    (folder / "bare").mkdir()
    (folder / "bare" / "inner.py").write_text("VALUE = 1\n")
    importlib.import_module("bare.inner")
    within = own_code(["bare.inner"])
    assert within.hashes.keys() == {"bare.inner", *whole.hashes}
    assert not within.doubts
    del sys.modules["bare.inner"]
    # An ancestor in a folder that has nothing else of the kind.
    (folder / "further").mkdir()
    (folder / "further" / "derived.py").write_text(
        "from mine.method import Method\nclass Mine(Method): ...\n"
    )
    monkeypatch.syspath_prepend(folder / "further")
    made = importlib.import_module("derived").Mine()
    assert own_code([], made).hashes.keys() == {"derived", *whole.hashes}


def test_a_file_edited_after_its_import_is_not_what_the_process_runs(folder: Path) -> None:
    import helper  # type: ignore[import-not-found]

    before = own_code(["mine.method"])
    (folder / "helper.py").write_text("def half(x):\n    return x / 3\n")
    after = own_code(["mine.method"])
    assert (helper.half(6), after.hashes) == (3, before.hashes)
    assert after.doubts == [
        "helper.py has changed since this process imported it: start Python anew to run it"
    ]
    importlib.reload(helper)
    again = own_code(["mine.method"])
    assert (helper.half(6), again.hashes != before.hashes, again.doubts) == (2, True, [])


def test_what_is_imported_during_a_run_is_told_and_counts_in_no_run_of_the_process(folder: Path) -> None:
    from mine.method import Method

    before = own_code(["mine.method"])
    assert before.imported_since() == []
    Method().late()
    importlib.import_module("json.tool")
    (told,) = before.imported_since()
    assert told.startswith("mine.lazily was first imported during a run, so that no id has it; editing it ")
    after = own_code(["mine.method"])
    assert (after.hashes, after.doubts, after.imported_since()) == (before.hashes, [told], [])
    assert "mine.lazily" in own_code(["mine.lazily"]).hashes


def test_a_run_says_what_is_imported_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import fairall

    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_late.py").write_text("VALUE = 1\n")
    _, begins = OWN["model"]
    epoch = "def warm_up_epoch(self, *given):\n        import own_late\n"
    text = f"{begins}\n    {epoch}        return super().warm_up_epoch(*given)\n"
    (tmp_path / "my_method.py").write_text(text)
    words = ["model=ensemble", "model._target_=my_method.Mine", "dataset=credit", "preset=quick", "seeds=1"]
    words += [f"outputs_dir={tmp_path}/outputs", "tracking.enabled=false"]
    fairall.run(*words)
    told = "own_late was first imported during a run, so that no id has it"
    assert f"Note: {told}" in capsys.readouterr().out
    fairall.run(*words)
    said = capsys.readouterr().out
    assert told in said
    assert "Already done" in said


def test_modules_in_unusual_places(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = str(folder.with_name("place_2") / "unrelated.py")
    places = {"in_root": "/in_root.py", "by.an.own.loader": "/loaded.py", "unrelated": elsewhere}
    for name, place in places.items():
        module = ModuleType(name)
        module.__file__ = place
        monkeypatch.setitem(sys.modules, name, module)
    whole = own_code(["mine.method"]).hashes.keys()
    assert own_code(["mine.method", "by.an.own.loader"]).hashes.keys() == {"by.an.own.loader", *whole}
    assert own_code(["in_root"]).hashes.keys() >= {*places, *whole}


def test_what_is_typed_is_said() -> None:
    ask = "from fairall.storage.own_code import *\nclass Mine: pass\nprint(own_code([], Mine()))"
    ended = own_process(input=ask, check=True)
    assert ended.stdout.startswith(
        "OwnCode(hashes={'__main__': ''}, doubts=['the code of __main__ is in no file; "
    )


def test_a_script_is_own_code(folder: Path) -> None:
    script = folder / "script.py"
    found = set()
    for value in (1, 2, 1):
        script.write_text(
            "import helper\nfrom fairall.storage.own_code import own_code\n\n\nclass Mine:\n"
            f"    value = {value}\n\n\nprint(own_code([], Mine()), [*own_code(['helper']).hashes])\n"
        )
        path = os.pathsep.join(map(str, (Path(fairall.__file__).parents[1], folder)))
        ended = own_process(script, check=True, env=os.environ | {"PYTHONPATH": path})
        assert "'__main__': " in ended.stdout
        assert "'helper': " in ended.stdout
        assert ended.stdout.endswith(" ['helper']\n")  # a script that only starts runs
        found.add(ended.stdout)
    assert len(found) == 2


def test_installed_modules_count_where_they_are_named(folder: Path) -> None:
    installed = folder / "site-packages"
    installed.mkdir()
    sys.path.insert(0, str(installed))
    (installed / "bought.py").write_text("VALUE = 1\n")
    importlib.import_module("bought")
    assert "bought" not in own_code(["helper", "fairall.metrics"]).hashes
    assert [*own_code(["bought", "fairall.metrics"]).hashes] == ["bought"]


def test_a_module_that_cannot_be_parsed_counts_by_its_bytes(folder: Path) -> None:
    found = set()
    for content in (b"not python (", b"not python [", b"\xff\xfe"):
        module = importlib.import_module("other")
        (folder / "other.py").write_bytes(content)
        found.add(own_code(["mine.method"]).hashes["other"])
        (folder / "other.py").write_text(FILES["other.py"])
        importlib.reload(module)
    assert len(found) == 3


def test_a_cached_result_is_computed_again_by_edited_code(folder: Path, tmp_path: Path) -> None:
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
        return value + 1
"""
MEASURE = """\
from fairall.metrics import measure
from own_helper import value


@measure(label="mine", unit="share", higher_is_better=None)
def mine(propensity):
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
        own, text = (
            tmp_path / f"{target.partition('.')[0]}.py",
            f"from own_helper import value\n{begins}{BODY}",
        )
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

    def kept(config: Config, fingerprint: str, own: list[object]) -> str:
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
    assert made.own_code.doubts == []
