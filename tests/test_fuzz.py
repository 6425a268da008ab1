"""Nonsense in command lines, YAML and CSV: each is an answer or one line, and nothing is written by it.

`make test` tries some; docs/reliability.md says how to try tens of thousands.
"""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fairall import experiment
from fairall.config.compose import compose_config
from fairall.online.training import initially_decided
from fairall.storage.identity import flattened
from tests.conftest import examples, typed

GROUPS = [
    "model", "dataset", "initial_policy", "cost", "protocol", "preset", "sweeps", "hparams", "hydra/launcher",
]  # fmt: skip
CHOICES = [
    "fairlog",
    "fairall_II",
    "credit",
    "synthetic",
    "csv",
    "lenient",
    "logged",
    "quick",
    "fixed",
    "text",
]
VALUES = [
    "null", "nan", "inf", "-inf", "true", "no", "''", '""', "[]", "{}", "[1,2]", "[-1]", "[[1]]", "[0.5,a]",
    "{a: 1}", "{a: {b: []}}", "0", "-1", "1", "7", "1e-300", "1e999", "-0.0", "0x10", "99999999999999999999",
    "2147483648", "${seed}", "${nope}", "${oc.env:HOME}", "${oc.env:NOPE}", "${model}", "${.}", "../x",
    "/etc/passwd", "a/b", "a,b", "1,2", "choice(1,2)", "range(1,3)", "glob(*)", "sort(3,2)", "os.system",
    "torch.nn.Linear", "fairall.main.cli", "=", "==", "=1+1", "\\", "'", '"', "(", ")", "[", "}", "a b", "\t",
    "\x00", "\u202e", "ü", "💥", "x" * 300,
]  # fmt: skip


# What would need more memory or time than a test should have.
BIG = ("dataset.rows", "dataset.path", "dataset.raw_file")


@functools.cache
def keys() -> list[str]:
    """Keys of a configuration, of several models and data sets, but `BIG`."""
    found = set(GROUPS)
    for words in (
        (),
        ("model=fairlog", "dataset=synthetic"),
        ("dataset=compas",),
        ("initial_policy=logged",),
    ):
        for key in flattened(_plain(*words)):
            parts = key.split(".")
            found |= {".".join(parts[: n + 1]) for n in range(len(parts))}
    return sorted(key for key in found if not key.startswith(BIG))


def _plain(*words: str) -> Any:
    from omegaconf import OmegaConf

    return OmegaConf.to_container(compose_config(*words), resolve=False)


KEYS = st.deferred(lambda: st.sampled_from(keys()))
plain_floats = st.floats(
    allow_subnormal=False
)  # in a process in which numbers next to zero are taken for zero
keyword = KEYS | st.text(max_size=12) | KEYS.map(lambda key: key[:-1] + "x")
value = (
    st.sampled_from(VALUES + CHOICES) | st.text(max_size=20) | plain_floats.map(repr) | st.integers().map(str)
)
override = st.builds(
    lambda sign, key, assigned, of: f"{sign}{key}{assigned}{of}",
    st.sampled_from(["", "", "", "", "+", "++", "~"]),
    keyword,
    st.sampled_from(["=", "=", "=", "=", "", "==", "@x="]),
    value,
)
option = st.sampled_from(
    ["--help", "--cfg", "job", "-p", "model", "--foo", "-x", "--multirun", "--resolve", ""]
)
command_line = st.lists(override | override | override | option, min_size=1, max_size=4)


@pytest.fixture(scope="module")
def untrained() -> Iterator[None]:
    """Everything up to the first training step; that is what words can spoil."""

    def prepared(composed: Any, command: str) -> Any:
        job = experiment.job(composed)
        initially_decided(job.initial_policy, job.config, job.data)
        return {"aggregate": {job.config.objective: {"mean": 0.0}}}, Path("nowhere")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(experiment, "run", prepared)
        yield


def check(words: list[str], folder: Path) -> None:
    ended = typed(*words, cwd=folder)
    code, said = ended.returncode, ended.stderr
    assert code in (0, 1), (words, code, said)
    assert "Traceback" not in said, (words, said)
    assert "recursion" not in said, (words, said)
    assert code == 1 or said == "", (words, said)
    assert code == 0 or said.count("\n") >= 1, (words, said)
    if "--multirun" not in words:
        assert said.count("\n") <= 1, (words, said)
    assert {path.name for path in folder.iterdir()} <= {"outputs"}, words


fuzzed = settings(
    max_examples=examples(30), deadline=None, derandomize=True, database=None,
    phases=[Phase.generate],  # the first failure says enough, and shrinking takes minutes
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


@pytest.mark.usefixtures("untrained")
@fuzzed
@given(command_line)
def test_nonsense_on_the_command_line_is_one_line(tmp_path: Path, words: list[str]) -> None:
    check(words, tmp_path)


leaf = (
    st.sampled_from([*VALUES, *CHOICES])
    | st.none()
    | st.booleans()
    | st.integers()
    | plain_floats
    | st.text()
)
node = st.recursive(leaf, lambda of: st.lists(of, max_size=3) | st.dictionaries(keyword, of, max_size=3))
headers = st.sampled_from(["", "# @package _global_\n", "# @package model\n", "# @package ${x}\n"])
yaml_text = st.builds(
    lambda header, content: header + yaml.safe_dump(content, allow_unicode=True),
    headers,
    st.dictionaries(keyword, node, max_size=4) | node,
) | st.text("ab:- {}[]&*!|>%@`'\"#\n\t", max_size=60)


@pytest.mark.usefixtures("untrained")
@fuzzed
@given(yaml_text, st.sampled_from(["preset", "model", "dataset", "protocol"]))
def test_nonsense_in_a_file_of_ones_own_is_one_line(tmp_path: Path, content: str, group: str) -> None:
    own = tmp_path.parent / f"{tmp_path.name} conf"
    (own / group).mkdir(parents=True, exist_ok=True)
    (own / group / "own.yaml").write_text(content)
    check([f"{group}=own", "-cd", str(own)], tmp_path)
