"""The policy as an MLflow model: MLflow calls `save_model` to log it and `_load_pyfunc` to load it."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from mlflow import pyfunc
from mlflow.exceptions import MlflowException
from mlflow.models import Model, ModelSignature
from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE
from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema
from mlflow.types.schema import AnyType

from fairall.errors import FairAllError
from fairall.policy import Policy
from fairall.tables.people import PeopleReader

REQUIREMENTS, ENVIRONMENT, EXAMPLE = "requirements.txt", "python_env.yaml", "input_example.json"


def save_model(
    path: str,
    mlflow_model: Model,
    files: Sequence[Path],
    modules: Sequence[str],
    reader: PeopleReader,
    seeds: Sequence[int],
    requirements: Sequence[str],
) -> None:
    """Write the folder of a model, as `Model.log` asks of a flavor.

    `pyfunc.save_model` would list the files of all installed packages, to compare the versions of a few, and
    load the model again: together more than half the time of logging a run.

    Args:
        path: of the folder.
        mlflow_model: its description.
        files: the policy's folder and other files.
        modules: that have to be imported to load the policy.
        reader: of the people that the policy takes.
        seeds: of the policy.
        requirements: of pip, to serve it.
    """
    folder = Path(path)
    folder.mkdir(parents=True)
    for one in files:
        (shutil.copytree if one.is_dir() else shutil.copy)(one, folder / "artifacts" / one.name)
    (folder / REQUIREMENTS).write_text("\n".join(requirements))
    (folder / ENVIRONMENT).write_text(
        yaml.safe_dump({"python": platform.python_version(), "dependencies": [f"-r {REQUIREMENTS}"]})
    )
    reader.example().to_json(folder / EXAMPLE, orient="split", index=False)
    # MLflow checks neither types nor presence of columns: the policy does, with messages of one line, and it
    # accepts numbers as text and codes as numbers too.
    mlflow_model.signature = ModelSignature(
        inputs=Schema([ColSpec(AnyType(), name, required=False) for name in reader.columns]),
        outputs=Schema([ColSpec(DataType.float, name) for name in columns(seeds)]),
        params=ParamSchema([ParamSpec("strict", DataType.boolean, False)]),
    )
    mlflow_model.saved_input_example_info = {
        "artifact_path": EXAMPLE,
        "type": "dataframe",
        "pandas_orient": "split",
    }
    pyfunc.add_to_model(
        mlflow_model,
        __name__,
        data="artifacts",
        python_env=ENVIRONMENT,
        model_config={"modules": [*modules]},
    )
    mlflow_model.save(str(folder / "MLmodel"))


def columns(seeds: Iterable[int]) -> list[str]:
    """Columns of what the model predicts: all seeds together, and each of them."""
    return ["probability", *(f"seed_{seed}" for seed in seeds)]


def _load_pyfunc(path: str, model_config: dict[str, Any] | None = None) -> ServedPolicy:
    """Load what was logged; MlflowException where it is damaged.

    The module of the method was named when the model was logged. That adds no risk: whoever can log a model
    can log code.
    """
    modules = (model_config or {}).get("modules", [])
    try:
        return ServedPolicy(Policy.load(Path(path) / "policy", modules=modules))
    except FairAllError as error:
        raise MlflowException(str(error)) from None


class ServedPolicy:
    """Acceptance probabilities of a table of raw features and the sensitive attribute."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def get_raw_model(self) -> Policy:
        """The policy, for MLflow's `get_raw_model`."""
        return self.policy

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
            propensity = self.policy.propensity(model_input, strict=bool((params or {}).get("strict")))
            together = self.policy.combined(propensity)
        except FairAllError as error:
            raise MlflowException(str(error), error_code=INVALID_PARAMETER_VALUE) from None
        return pd.DataFrame(
            np.vstack([together, propensity]).T,
            columns=columns(self.policy.seeds),
            index=model_input.index,
        )
