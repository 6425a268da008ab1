"""Off-policy evaluation and fairness under selective labels."""

from typing import TYPE_CHECKING

from fairall.runtime import imported_lazily

if TYPE_CHECKING:
    from fairall.evaluate.evaluation import Comparison, Evaluation, compare, evaluate, judge

__all__ = ["Comparison", "Evaluation", "compare", "evaluate", "judge"]

# `python -m fairall evaluate --help` needs none of them.
_, __getattr__ = imported_lazily(__name__, {"evaluation": "Comparison Evaluation compare evaluate judge"})
