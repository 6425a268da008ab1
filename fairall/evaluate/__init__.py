"""Off-policy evaluation and fairness under selective labels."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairall.evaluate.comparison import Comparison, compare
    from fairall.evaluate.evaluation import Evaluation, evaluate

# Imported at their first use: `python -m fairall evaluate --help` needs none of them.
_MODULES = {
    "Comparison": "fairall.evaluate.comparison",
    "Evaluation": "fairall.evaluate.evaluation",
    "compare": "fairall.evaluate.comparison",
    "evaluate": "fairall.evaluate.evaluation",
}

__all__ = ["Comparison", "Evaluation", "compare", "evaluate"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
