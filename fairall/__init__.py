"""Fair decision making under selective labels."""

from typing import TYPE_CHECKING

from fairall.runtime import imported_lazily

__version__ = "0.3.0"

if TYPE_CHECKING:
    from fairall.config.choices import hyperparameters
    from fairall.config.compose import compose_all, compose_config, places, stored_config
    from fairall.config.schema import Config
    from fairall.data.dataset import Dataset
    from fairall.data.drift import drift_by_column
    from fairall.data.load import load_dataset, people_of_run
    from fairall.decide.load import load_policy
    from fairall.errors import FairAllError
    from fairall.experiment import is_finished, run
    from fairall.live.ledger import Ledger
    from fairall.models.learner import Learner
    from fairall.online.load import load_initial_policy
    from fairall.results.result import Result
    from fairall.results.runs import load_result, load_results
    from fairall.storage.identity import configuration_key, determining
    from fairall.tracking.fetch import load_logged_results

__all__ = [
    "Config",
    "Dataset",
    "FairAllError",
    "Learner",
    "Ledger",
    "Result",
    "compose_all",
    "compose_config",
    "configuration_key",
    "determining",
    "drift_by_column",
    "hyperparameters",
    "is_finished",
    "load_dataset",
    "load_initial_policy",
    "load_logged_results",
    "load_policy",
    "load_result",
    "load_results",
    "people_of_run",
    "places",
    "run",
    "stored_config",
]

# Torch and Hydra take a second, and `--help` needs neither.
_, __getattr__ = imported_lazily(
    __name__,
    {
        "config.compose": "compose_all compose_config places stored_config",
        "config.schema": "Config",
        "config.choices": "hyperparameters",
        "data.dataset": "Dataset",
        "data.drift": "drift_by_column",
        "data.load": "load_dataset people_of_run",
        "decide.load": "load_policy",
        "errors": "FairAllError",
        "experiment": "is_finished run",
        "live.ledger": "Ledger",
        "models.learner": "Learner",
        "online.load": "load_initial_policy",
        "results.result": "Result",
        "results.runs": "load_result load_results",
        "storage.identity": "configuration_key determining",
        "tracking.fetch": "load_logged_results",
    },
)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
