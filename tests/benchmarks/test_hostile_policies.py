"""Policies that somebody hostile has written."""

import random
from pathlib import Path

import pytest

from benchmarks.hostile_policies import ATTACKS, CHANGES, Files, hostile
from fairall.errors import FairAllError
from fairall.policy import SUMS, Policy
from fairall.storage.files import write_sums
from tests.conftest import examples
from tests.decide.test_command import built


def probabilities(folder: Path, files: Files) -> str | None:
    """Load a policy with these files, and compute probabilities; the message where it is refused."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    write_sums(folder / SUMS, list(files))
    try:
        policy = Policy.load(folder)
        found = policy.propensity(policy.reader.example())
        policy.combined(found)
    except FairAllError as error:
        return str(error)
    assert found.shape[0] == len(policy.seeds)
    return None


@pytest.mark.filterwarnings("ignore::UserWarning")  # of values that were replaced
@pytest.mark.parametrize("model", ["fairlog", "fairall_I_II"])
def test_a_hostile_policy_gives_probabilities_or_one_line(model: str, tmp_path: Path) -> None:
    built(tmp_path, f"model={model}")
    saved, other = tmp_path / "policy", tmp_path / "other"
    other.mkdir()
    files = {name: (saved / name).read_bytes() for name in CHANGES}
    refused = [probabilities(other, attack(files)) for attack in ATTACKS]
    assert sum(message is None for message in refused) <= 2  # each method lacks keys of the other
    mutated = [probabilities(other, hostile(files, random.Random(number))) for number in range(examples(60))]
    for message in filter(None, (*refused, *mutated)):
        assert "\n" not in message
        assert len(message) < 1000
    assert None in mutated
