"""Stored files that may be a stranger's."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from omegaconf import OmegaConf

from fairall.config.compose import typed_config
from fairall.errors import FairAllError
from fairall.storage.stored import of_plain, read_json, read_stored

KNOWN = yaml.safe_load(Path(__file__).with_name("stored.yaml").read_text())


@dataclass
class Inner:
    share: float
    name: str | None = None


@dataclass
class Outer:
    count: int
    side: Literal["left", "right"]
    inner: Mapping[str, Inner | None]
    pairs: Sequence[tuple[float, bool]]


WHOLE = {
    "count": 3,
    "side": "left",
    "inner": {"a": {"share": 1, "name": "é"}, "b": None},
    "pairs": [[0.5, True], [2, False]],
    "more": "is left out",
}


def test_a_file_becomes_an_object_of_its_type(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text(json.dumps(WHOLE))
    made = read_json(path, Outer)
    assert made == Outer(3, "left", {"a": Inner(1.0, "é"), "b": None}, [(0.5, True), (2.0, False)])
    with pytest.raises(ValueError, match="it lacks count"):
        of_plain(Outer, {"side": "left"})


@pytest.mark.parametrize(("key", "value", "reason"), KNOWN["values"])
def test_a_value_of_another_type_is_named(key: str, value: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        of_plain(Outer, WHOLE | {key: value})


def written(plain: Any, folder: Path) -> Path:
    path = folder / "config.yaml"
    path.write_text(OmegaConf.to_yaml(OmegaConf.create(plain)))
    return path


@pytest.mark.parametrize(
    "words", [(), ("model=fairlog", "dataset=fico", "world=feedback", "protocol=published_code")]
)
def test_a_configuration_is_read_back_as_it_was_stored(words: tuple[str, ...], tmp_path: Path) -> None:
    stored = typed_config(*words).stored()
    plain = stored.to_plain()
    assert read_stored(written(plain, tmp_path)) == stored
    plain["model"]["_target_"] = "no_such_module.Class"  # no code of it is imported
    plain["model"]["phase1"] = {"updates": 9}  # as version 0.3.0 stored it
    model = read_stored(written(plain, tmp_path)).model
    assert model["_target_"] == "no_such_module.Class"
    assert model["phase1"] == {"share": 1.0, "annealed": False, "updates": 9}


@pytest.mark.parametrize(("key", "value", "reason"), KNOWN["configurations"])
def test_a_configuration_of_another_version_is_refused(
    key: str, value: Any, reason: str, tmp_path: Path
) -> None:
    changed = OmegaConf.create(typed_config("model=fairlog").to_plain())
    OmegaConf.update(changed, key, value, merge=False, force_add=True)
    if value is None:
        parent, _, last = key.rpartition(".")
        del (OmegaConf.select(changed, parent) if parent else changed)[last]
    with pytest.raises(FairAllError, match=rf"^[^\n]*{re.escape(reason)}[^\n]*$"):
        read_stored(written(OmegaConf.to_container(changed), tmp_path))


REFUSED = {
    "config.yaml": [
        ("path: ${oc.env:SECRET_OF_THE_TEST}\n", "line 1 has an anchor, a tag, an interpolation"),
        ("b: 1\na: &x [1]\n", "line 2 has an anchor"),
        ("a: !!python/name:os.system ''\n", "line 1 has an anchor, a tag"),
        ("a: " + "[" * 50_000, "or more than 20 nested containers"),
        ("a: 2020-01-01\n", "type date is not"),
        ("#" * 300_000, "300000 bytes, of at most 262144"),
        ("- a\n", r'it cannot be \["a"\]'),
        ("a: " + "9" * 9000, "Exceeds the limit"),
        ("a: \udcff", "no UTF-8"),
    ],
    "file.json": [
        (content, r"file\.json is damaged")
        for content in (
            *("{", "null", "\udcff", "[" * 100_000, '{"a": NaN}', '{"a": 1e999}', r'{"a": "\ud800"}'),
            '{"a": ' + "9" * 9000 + "}",
        )
    ],
}


@pytest.mark.parametrize(
    ("name", "content", "reason"), [(name, *case) for name, cases in REFUSED.items() for case in cases]
)
def test_what_no_run_stores_is_refused_in_one_line(
    name: str, content: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_TEST", "hunter2")
    path = tmp_path / name
    path.write_text(content, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(FairAllError, match=rf"^[^\n]*{reason}[^\n]*$") as caught:
        read_json(path, dict[str, Any]) if name == "file.json" else read_stored(path)
    assert "hunter2" not in str(caught.value)
    assert len(str(caught.value)) < 700 + len(str(path))
