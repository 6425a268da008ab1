import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairall.tuning.objectives import selected

SMALL = st.integers(0, 5)


@settings(deadline=None)
@given(st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=12), SMALL)
def test_what_is_selected_is_never_beaten(means: list[tuple[int, int]], error: int) -> None:
    costs = pd.DataFrame(means, dtype=float)
    number = selected(costs, costs * 0 + error)
    best = costs.loc[number]
    assert not ((costs <= best).all(axis=1) & (costs < best).any(axis=1)).any()
    assert means.index(means[number]) == number, "of equals the first is selected"
    assert selected(costs[::-1], costs * 0 + error) == number


@pytest.mark.parametrize(("objectives", "number"), [("ab", 1), ("ba", 2), ("a", 0)])
def test_what_seeds_cannot_tell_apart_the_next_objective_decides(objectives: str, number: int) -> None:
    costs = pd.DataFrame({"a": [1.2, 1.3, 1.32], "b": [0.5, 0.2, 0.0]})
    errors = pd.DataFrame({"a": [0.115, 0.0, 0.0], "b": [0.0, 0.0, 0.0]})
    assert selected(costs[[*objectives]], errors) == number
