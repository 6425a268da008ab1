"""Applicants of every kind of source."""

import pytest
import torch

from fairall.data.load import load_dataset
from tests.conftest import LOANS, MEANING

LOGGED = "dataset.decision=decision dataset.accepted=granted dataset.propensity=propensity dataset.drop=[id]"
SOURCES = {
    "recycled": ["credit"],
    "weighted": ["csv", f"dataset.path={LOANS}", *MEANING, *LOGGED.split()],
    "drawn": ["synthetic"],
}


@pytest.mark.parametrize("source", SOURCES)
def test_applicants_are_the_seeds_own_and_go_on_from_a_state(source: str) -> None:
    data = load_dataset(*SOURCES[source]).prepare()
    stream, alone, resumed = (data.applicants(64, seeds) for seeds in ([0, 1], [1], [0, 1]))
    first = stream.next().x
    assert torch.equal(alone.next().x[0], first[1])
    resumed.load_state_dict(stream.state_dict())
    second = stream.next().x
    assert torch.equal(resumed.next().x, second)
    assert not torch.equal(first, second)
