"""Off-policy evaluation and fairness under selective labels."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairall.evaluate.evaluation import evaluate

__all__ = ["evaluate"]


def __getattr__(name: str) -> Any:
    # Imported at its first use: `python -m fairall.evaluate --help` needs none of it.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from fairall.evaluate.evaluation import evaluate

    return evaluate
