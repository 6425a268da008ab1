"""What evaluations of these tests share."""

from collections.abc import Iterator

import numpy as np
import pytest

from fairall.evaluate import checks
from fairall.evaluate.log import DecisionLog


@pytest.fixture(scope="session", autouse=True)
def _fitted_once() -> Iterator[None]:
    """Fit once what the same policy knows of the same decisions: half the time of an evaluation."""
    fit, known = checks.knows_decision, {}

    def knows(log: DecisionLog, propensity: np.ndarray, target: np.ndarray, seed: int) -> str | None:
        arrays = (log.design, log.accepted, propensity, target)
        key = (seed, *(np.ascontiguousarray(one).tobytes() for one in arrays))
        if key not in known:
            known[key] = fit(log, propensity, target, seed)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "knows_decision", knows)
        yield
