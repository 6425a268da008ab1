"""What evaluations of these tests share."""

import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from fairall.evaluate import checks
from fairall.evaluate.log import DecisionLog


@pytest.fixture(scope="session", autouse=True)
def _fitted_once() -> Iterator[None]:
    """Fit once what the same policy knows of the same decisions: half the time of an evaluation."""
    fit, known = checks.knows_decision, {}

    def knows(log: DecisionLog, *of_policy: Any) -> str | None:
        key = pickle.dumps((log.design, log.accepted, *of_policy))
        if key not in known:
            known[key] = fit(log, *of_policy)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "knows_decision", knows)
        yield
