from hypothesis import given
from hypothesis import strategies as st

from fairall.tuning.objectives import Objective, Trial, pareto_set, selected

LOSS, DPU = Objective("loss", "minimize"), Objective("dpu", "minimize")


def judged(number: int, loss: list[float], dpu: list[float]) -> Trial:
    return Trial(number, "complete", {}, {"loss": loss, "dpu": dpu}, {})


VALUES = st.lists(st.integers(0, 5).map(float), min_size=3, max_size=3)


@given(st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=12), st.integers(1, 3))
def test_what_is_selected_is_never_beaten(drawn: list[tuple[list[float], ...]], n_objectives: int) -> None:
    objectives = [
        Objective("a", "minimize"), Objective("b", "maximize"), Objective("c", "minimize")
    ][:n_objectives]  # fmt: skip
    trials = [
        Trial(k, "complete", {}, dict(zip("abc", values, strict=True)), {}) for k, values in enumerate(drawn)
    ]
    chosen, front = selected(trials, objectives), pareto_set(trials, objectives)
    assert chosen in front
    for one in front:
        for other in trials:
            gains = [o.sign * (one.mean(o) - other.mean(o)) for o in objectives]
            assert not (max(gains) > 0 and min(gains) >= 0), "another is as good in all and better in one"


def test_what_seeds_cannot_tell_apart_the_next_objective_decides() -> None:
    best = judged(0, [1.0, 1.2, 1.4], [0.5] * 3)  # mean 1.2, standard error 0.2/√3 = 0.115
    within, beyond = judged(1, [1.3] * 3, [0.2] * 3), judged(2, [1.32] * 3, [0.0] * 3)
    assert selected([best, within, beyond], [LOSS, DPU]) is within
    assert selected([best, within, beyond], [DPU, LOSS]) is beyond
    assert selected([best, within, beyond], [LOSS]) is best


def test_one_seed_says_nothing_of_its_error() -> None:
    trials = [judged(0, [1.0], [0.5]), judged(1, [1.01], [0.0])]
    assert selected(trials, [LOSS, DPU]) is trials[0]
    assert trials[0].std(LOSS) is None


def test_of_equals_the_first_is_selected_and_of_none_none() -> None:
    twins = [judged(3, [1.0] * 2, [0.5] * 2), judged(4, [1.0] * 2, [0.5] * 2)]
    assert selected(twins, [LOSS, DPU]) is twins[0]
    assert selected([], [LOSS]) is None
    assert pareto_set(twins, [LOSS, DPU]) == twins
