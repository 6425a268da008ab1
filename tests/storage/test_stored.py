"""Configurations that runs have stored."""

import functools
import re
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from fairall.config.compose import typed_config
from fairall.errors import FairAllError
from fairall.storage.stored import read_stored


@pytest.fixture
def plain() -> dict[str, Any]:
    return typed_config("model=fairlog", "world=drift", "evaluation.window=[3,9]").to_plain()


def written(plain: dict[str, Any], folder: Path) -> Path:
    path = folder / "config.yaml"
    path.write_text(OmegaConf.to_yaml(OmegaConf.create(plain)))
    return path


@pytest.mark.parametrize("words", [(), ("model=fairlog", "dataset=fico", "world=feedback", "protocol=text")])
def test_a_configuration_is_read_back_as_it_was_stored(words: tuple[str, ...], tmp_path: Path) -> None:
    stored = typed_config(*words).stored()
    assert read_stored(written(stored.to_plain(), tmp_path)) == stored


def test_what_earlier_versions_stored_is_read(plain: dict[str, Any], tmp_path: Path) -> None:
    now = read_stored(written(plain, tmp_path))
    plain["evaluation"]["monitor"] = True
    plain["dataset"]["_target_"] = "fairall.data.csv.dataset.OwnCsv"
    plain["model"]["phase1"] = {"updates": 9}
    read = read_stored(written(plain, tmp_path))
    assert read.evaluation == now.evaluation
    assert read.dataset["_target_"] == "fairall.data.own_table.OwnTable"
    assert read.model["phase1"] == {"share": 1.0, "annealed": False, "updates": 9}


def test_no_code_of_a_stored_configuration_is_run(plain: dict[str, Any], tmp_path: Path) -> None:
    for group in ("model", "dataset", "initial_policy"):
        plain[group]["_target_"] = "no_such_module.Class"
    assert read_stored(written(plain, tmp_path)).model["_target_"] == "no_such_module.Class"


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("evaluation.strange", 1, "it has evaluation.strange"),
        ("cost.value", None, "it lacks cost.value"),
        ("seeds", None, "it lacks seeds"),
        ("cost", 0.3, "cost cannot be 0.3"),
        ("protocol.kl", "sum", 'protocol.kl cannot be "sum"'),
        ("evaluation.window", [1, "b"], 'evaluation.window.1 cannot be "b"'),
        ("model.name", 3, "model.name cannot be 3"),
        ("dataset._target_", None, "dataset lacks _target_"),
        ("seeds", 0, "seeds=0 is not possible"),
    ],
)
def test_a_configuration_of_another_version_is_refused(
    key: str, value: Any, told: str, plain: dict[str, Any], tmp_path: Path
) -> None:
    *above, last = key.split(".")
    node = functools.reduce(dict.__getitem__, above, plain)
    if value is None:
        del node[last]
    else:
        node[last] = value
    with pytest.raises(FairAllError, match=re.escape(told)) as caught:
        read_stored(written(plain, tmp_path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("path: ${oc.env:SECRET_OF_THE_TEST}\n", "path is an interpolation"),
        ("a: {b: [1, '${seed}']}\n", "a.b is an interpolation"),
        ("a: &x [1]\nb: *x\n", "line 1: is an anchor or alias"),
        ("a: !!python/name:os.system ''\n", "line 1: has a tag"),
        ("a: 2020-01-01\n", "a is a date, not a plain value"),
        ("a: " + "[" * 50 + "]" * 50, "more than 20 containers inside each other"),
        ("a: " + "x" * 20_000, "a value has more than 10000 characters"),
        ("#" * 300_000, "300000 bytes, of at most 262144"),
        ("- a\n", "cannot be read as the configuration of a run"),
        ("a: [\n", r"cannot be read as YAML \("),
        ("a: \udcff", "no UTF-8"),
    ],
)
def test_what_no_run_stores_is_refused_in_one_line(
    content: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_TEST", "hunter2")
    path = tmp_path / "config.yaml"
    path.write_text(content, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(FairAllError, match=told) as caught:
        read_stored(path)
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)
