import pytest

from fairall.results.paper import paper_metrics
from tests.conftest import ComposeConfig


def test_printed_measures_stand_beside_the_papers_own_run_only(compose_config: ComposeConfig) -> None:
    def metrics(*overrides: str) -> dict[str, tuple[float, float]]:
        return paper_metrics(compose_config(*overrides).stored())

    whole = metrics()
    assert whole["effective_utility"] == pytest.approx((0.203, 0.005))
    assert whole["mean_dpu"] == pytest.approx((0.05, 0.05))
    assert metrics("model=unfairlog", "dataset=compas")["effective_utility"] == pytest.approx((0.046, 0.007))
    for other in """
        cost.value=0.3 dataset.cost=0.3 initial_policy=random preset=quick model.policy=clf
        model.decision=deterministic
    """.split():
        assert metrics(other) == {}, other
    for other in ("evaluation.split=validation", "evaluation.window=[100,200]"):
        assert set(metrics(other)) == {"effective_utility", "effective_dpu"}, other
