"""Fair decision making under selective labels."""

from typing import TYPE_CHECKING

from fairall.runtime import imported_lazily

__version__ = "0.3.0"

if TYPE_CHECKING:
    from fairall.config.choices import hyperparameters as hyperparameters
    from fairall.config.compose import compose_all as compose_all
    from fairall.config.compose import compose_config as compose_config
    from fairall.config.compose import places as places
    from fairall.config.compose import stored_config as stored_config
    from fairall.config.schema import Config as Config
    from fairall.data.dataset import Dataset as Dataset
    from fairall.data.drift import drift_by_column as drift_by_column
    from fairall.data.load import load_dataset as load_dataset
    from fairall.data.load import people_of_run as people_of_run
    from fairall.decide.load import load_policy as load_policy
    from fairall.decide.refer import Refer as Refer
    from fairall.errors import FairAllError as FairAllError
    from fairall.experiment import is_finished as is_finished
    from fairall.experiment import run as run
    from fairall.live.ledger import Ledger as Ledger
    from fairall.models.learner import Learner as Learner
    from fairall.online.load import load_initial_policy as load_initial_policy
    from fairall.results.result import Result as Result
    from fairall.results.runs import load_result as load_result
    from fairall.results.runs import load_results as load_results
    from fairall.storage.identity import configuration_key as configuration_key
    from fairall.storage.identity import determining as determining
    from fairall.tracking.fetch import load_logged_results as load_logged_results

# Torch and Hydra take a second, and `--help` needs neither.
__all__, __getattr__ = imported_lazily(
    __name__,
    {
        "config.compose": "compose_all compose_config places stored_config",
        "config.schema": "Config",
        "config.choices": "hyperparameters",
        "data.dataset": "Dataset",
        "data.drift": "drift_by_column",
        "data.load": "load_dataset people_of_run",
        "decide.load": "load_policy",
        "decide.refer": "Refer",
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
