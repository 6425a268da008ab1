import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from fairall.tuning.objectives import pareto_set, selected

LOSS, DPU = "loss", "dpu"
VALUES = st.lists(st.integers(0, 5).map(float), min_size=3, max_size=3)


def judged(*points: tuple[list[float], list[float]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Means and standard errors of points with values per seed of both objectives."""
    means = pd.DataFrame([[np.mean(values) for values in point] for point in points], columns=[LOSS, DPU])
    errors = [[np.std(values, ddof=1) / len(values) ** 0.5 for values in point] for point in points]
    return means, pd.DataFrame(errors, columns=[LOSS, DPU])


@settings(deadline=None)
@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=12))
def test_what_is_selected_is_never_beaten(drawn: list[tuple[list[float], list[float]]]) -> None:
    costs, errors = judged(*drawn)
    front = pareto_set(costs)
    assert selected(costs, errors) in front.index
    for _, one in front.iterrows():
        for _, other in costs.iterrows():
            gains = one - other
            assert not (gains.max() > 0 and gains.min() >= 0), "another is as good in all and better in one"


def test_what_seeds_cannot_tell_apart_the_next_objective_decides() -> None:
    # The first: mean 1.2, standard error 0.2/√3 = 0.115.
    costs, errors = judged(([1.0, 1.2, 1.4], [0.5] * 3), ([1.3] * 3, [0.2] * 3), ([1.32] * 3, [0.0] * 3))
    assert selected(costs, errors) == 1
    assert selected(costs[[DPU, LOSS]], errors) == 2
    assert selected(costs[[LOSS]], errors) == 0


def test_of_equals_the_first_is_selected() -> None:
    costs, errors = judged(([1.0] * 2, [0.5] * 2), ([1.0] * 2, [0.5] * 2))
    for order in (costs, costs[::-1]):
        assert selected(order, errors) == 0
    assert pareto_set(costs).equals(costs)
