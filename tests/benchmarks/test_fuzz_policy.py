"""Policies that somebody hostile has written."""

from pathlib import Path

import pytest

from benchmarks.fuzz_policy import ATTACKS, fuzz_policy
from fairall.policy import Policy
from tests.conftest import examples
from tests.decide.test_command import built


@pytest.mark.parametrize("model", ["fairlog", "fairall_I_II"])
def test_a_mutated_policy_gives_probabilities_or_one_line(model: str, tmp_path: Path) -> None:
    built(tmp_path, f"model={model}")
    (tmp_path / "mutated").mkdir()
    found = fuzz_policy(tmp_path / "policy", tmp_path / "mutated", len(ATTACKS) + examples(60))
    assert found.wrong == []
    assert found.loaded > 0
    assert found.refused >= len(ATTACKS) - 2  # each has keys that the other method lacks
    assert found.memory < 500 * 2**20
    assert Policy.load(tmp_path / "policy").seeds == [0, 1, 2, 3]
