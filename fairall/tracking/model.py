"""The policy as an MLflow model: `log_policy` logs it, and MLflow calls `_load_pyfunc` to load it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from mlflow import pyfunc
from mlflow.exceptions import MlflowException
from mlflow.models import ModelSignature
from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE
from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema
from mlflow.types.schema import AnyType

from fairall.config.schema import Config
from fairall.errors import FairAllError
from fairall.policy import Policy, load_reader
from fairall.storage.run_folder import source_tags


def log_policy(folder: Path, config: Config, tags: dict[str, str]) -> None:
    """Log a saved policy as the model `policy` of MLflow's active run.

    The module of a user's own method, which MLflow has to import to load the model, is recorded only where
    this process has imported it: the module that a stored configuration names may be a stranger's.

    Args:
        folder: of the policy.
        config: of the policy, as it is stored.
        tags: of the model.

    Raises:
        FairAllError: where the policy cannot be read.
    """
    reader, module = load_reader(folder), config.model["_target_"].rpartition(".")[0]
    imported = module in sys.modules and not module.startswith("fairall.")
    # MLflow checks neither types nor presence of columns: the policy does, with messages of one line, and it
    # accepts numbers as text and codes as numbers too.
    outputs = ["probability", *(f"seed_{seed}" for seed in range(config.seed, config.seed + config.seeds))]
    signature = ModelSignature(
        inputs=Schema([ColSpec(AnyType(), name, required=False) for name in reader.columns]),
        outputs=Schema([ColSpec(DataType.float, name) for name in outputs]),
        params=ParamSchema([ParamSpec("strict", DataType.boolean, False)]),
    )
    pyfunc.log_model(
        name="policy",
        loader_module=__name__,
        data_path=str(folder),
        signature=signature,
        input_example=reader.example(),
        pip_requirements=[],  # this package, which is on no index, has to be installed
        model_config={"modules": [module]} if imported else None,
        tags=source_tags() | tags,  # MLflow's own have the user of the server's address
    )


def _load_pyfunc(path: str, model_config: dict[str, Any] | None = None) -> ServedPolicy:
    """Load what was logged.

    The modules were named when the model was logged. To import them adds no risk: whoever can log a model can
    log code.
    """
    earlier = Path(path, "policy")  # of a model that was logged before version 0.4
    modules = (model_config or {}).get("modules", [])
    return ServedPolicy(Policy.load(earlier if earlier.exists() else Path(path), modules=modules))


@dataclass
class ServedPolicy:
    """Acceptance probabilities of a table of raw features and the sensitive attribute."""

    policy: Policy

    def predict(self, model_input: pd.DataFrame, params: dict[str, Any] | None = None) -> pd.DataFrame:
        """Probabilities of N people, shape (N, 1 + E): `probability`, then `seed_k` for each of E seeds.

        `probability` is the mean over the seeds that have not diverged; see `Policy.combined`.

        Args:
            model_input: the people.
            params: `strict`, see `Policy.propensity`.

        Raises:
            MlflowException: where a column or a value is not valid for the policy, or all seeds have
                diverged, in one line.
        """
        try:
            propensity = self.policy.propensity(model_input, **(params or {}))
            combined = self.policy.combined(propensity)
        except FairAllError as error:
            raise MlflowException(str(error), error_code=INVALID_PARAMETER_VALUE) from None
        seeds = {f"seed_{seed}": row for seed, row in zip(self.policy.seeds, propensity, strict=True)}
        return pd.DataFrame({"probability": combined} | seeds, index=model_input.index)
