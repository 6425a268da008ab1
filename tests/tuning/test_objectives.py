import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairall.tuning.objectives import selected

LOSS, DPU = "loss", "dpu"
SMALL = st.integers(0, 5)


@settings(deadline=None)
@given(st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=12), SMALL)
def test_what_is_selected_is_never_beaten(means: list[tuple[int, int]], error: int) -> None:
    costs = pd.DataFrame(means, columns=[LOSS, DPU], dtype=float)
    number = selected(costs, costs * 0 + error)
    gains = costs.loc[number] - costs
    assert not ((gains.max(axis=1) > 0) & (gains.min(axis=1) >= 0)).any()
    assert not (costs.loc[: number - 1] == costs.loc[number]).all(axis=1).any(), (
        "of equals the first is selected"
    )
    assert selected(costs[::-1], costs * 0 + error) == number


@pytest.mark.parametrize(("objectives", "number"), [([LOSS, DPU], 1), ([DPU, LOSS], 2), ([LOSS], 0)])
def test_what_seeds_cannot_tell_apart_the_next_objective_decides(objectives: list[str], number: int) -> None:
    costs = pd.DataFrame({LOSS: [1.2, 1.3, 1.32], DPU: [0.5, 0.2, 0.0]})
    errors = pd.DataFrame({LOSS: [0.115, 0.0, 0.0], DPU: [0.0, 0.0, 0.0]})
    assert selected(costs[objectives], errors) == number
