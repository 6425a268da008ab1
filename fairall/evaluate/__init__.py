"""Off-policy evaluation and fairness under selective labels."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairall.evaluate.comparison import compare
    from fairall.evaluate.evaluation import evaluate

# Imported at their first use: `import fairall.evaluate` alone needs neither.
_MODULES = {"compare": "fairall.evaluate.comparison", "evaluate": "fairall.evaluate.evaluation"}

__all__ = ["compare", "evaluate"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
