"""Off-policy evaluation and fairness under selective labels."""

from fairall.evaluate.evaluation import evaluate

__all__ = ["evaluate"]
