"""Fair decision making under selective labels."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from fairall.config.compose import compose_all, compose_config, plain_config
    from fairall.config.sources import hyperparameters
    from fairall.data.dataset import Dataset
    from fairall.data.load import load_dataset
    from fairall.decide.load import load_policy
    from fairall.errors import FairAllError
    from fairall.experiment import is_finished, run
    from fairall.models.learner import Learner
    from fairall.online.load import load_initial_policy
    from fairall.results.result import Result
    from fairall.results.runs import load_result, load_results
    from fairall.storage.identity import configuration_key
    from fairall.tracking.store import load_logged_results

# Imported at their first use: torch and Hydra take a second, and `--help` needs neither.
_MODULES = {
    "Dataset": "fairall.data.dataset",
    "FairAllError": "fairall.errors",
    "Learner": "fairall.models.learner",
    "Result": "fairall.results.result",
    "compose_all": "fairall.config.compose",
    "compose_config": "fairall.config.compose",
    "configuration_key": "fairall.storage.identity",
    "hyperparameters": "fairall.config.sources",
    "is_finished": "fairall.experiment",
    "load_dataset": "fairall.data.load",
    "load_initial_policy": "fairall.online.load",
    "load_logged_results": "fairall.tracking.store",
    "load_policy": "fairall.decide.load",
    "load_result": "fairall.results.runs",
    "load_results": "fairall.results.runs",
    "plain_config": "fairall.config.compose",
    "run": "fairall.experiment",
}

__all__ = [
    "Dataset",
    "FairAllError",
    "Learner",
    "Result",
    "compose_all",
    "compose_config",
    "configuration_key",
    "hyperparameters",
    "is_finished",
    "load_dataset",
    "load_initial_policy",
    "load_logged_results",
    "load_policy",
    "load_result",
    "load_results",
    "plain_config",
    "run",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
