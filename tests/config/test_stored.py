"""Configurations that runs have stored."""

from pathlib import Path

import pytest

from fairall.config.stored import read_stored, undownloaded
from fairall.errors import FairAllError


def test_values_are_those_that_were_stored(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("seed: 0\nrate: 1.0e-05\nword: 'yes'\nnothing: null\nlist: [1, a]\nmap: {1: true}\n")
    assert read_stored(path) == {
        "seed": 0,
        "rate": 1e-5,
        "word": "yes",
        "nothing": None,
        "list": [1, "a"],
        "map": {1: True},
    }


def test_the_key_of_a_monitor_that_runs_had_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("evaluation: {split: test, decisions: true, monitor: true}\n")
    assert read_stored(path) == {"evaluation": {"split": "test", "decisions": True}}


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


def test_nothing_is_fetched_from_an_address_in_a_stored_configuration() -> None:
    download = {"url": "https://127.0.0.1:9/people.csv", "sha256": "0"}
    stored = {"name": "compas", "download": download}
    assert undownloaded(stored) == {"name": "compas", "download": download | {"url": None}}
    assert undownloaded({"name": "synthetic"}) == {"name": "synthetic"}
