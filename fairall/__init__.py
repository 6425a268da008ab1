"""Fair decision making under selective labels."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from fairall.config.compose import compose_config
    from fairall.data.dataset import Dataset
    from fairall.data.load import load_dataset
    from fairall.decide.load import load_policy
    from fairall.experiment import run
    from fairall.models.learner import Learner
    from fairall.results.result import Result
    from fairall.results.runs import load_result, load_results

# Imported at their first use: torch and Hydra take a second, and `--help` needs neither.
_MODULES = {
    "Dataset": "fairall.data.dataset",
    "Learner": "fairall.models.learner",
    "compose_config": "fairall.config.compose",
    "load_dataset": "fairall.data.load",
    "Result": "fairall.results.result",
    "load_policy": "fairall.decide.load",
    "load_result": "fairall.results.runs",
    "load_results": "fairall.results.runs",
    "run": "fairall.experiment",
}

__all__ = [
    "Dataset",
    "Learner",
    "Result",
    "compose_config",
    "load_dataset",
    "load_policy",
    "load_result",
    "load_results",
    "run",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
