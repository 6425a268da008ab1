"""The policy as an MLflow model, logged as code: MLflow runs this file to load the model."""

from __future__ import annotations

from typing import Any

import mlflow
import numpy as np
import pandas as pd
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE

from fairall.errors import FairAllError
from fairall.policy import Policy
from fairall.tracking.logger import columns


class MLflowPolicy(mlflow.pyfunc.PythonModel):
    """Acceptance probabilities of a table of raw features and the sensitive attribute."""

    def load_context(self, context: Any) -> None:
        """Load the policy folder logged with the model; MlflowException where it is damaged.

        The module of the method was named when the model was logged. That adds no risk: whoever can log a
        model can log code, of which this file is a part.
        """
        modules = (context.model_config or {}).get("modules", [])
        try:
            self.policy = Policy.load(context.artifacts["policy"], modules=modules)
        except FairAllError as error:
            raise MlflowException(str(error)) from None

    def predict(
        self, context: Any, model_input: pd.DataFrame, params: dict[str, Any] | None = None
    ) -> pd.DataFrame:
        """Probabilities of N people, shape (N, 1 + E): `probability`, then `seed_k` for each of E seeds.

        `probability` is the mean over the seeds that have not diverged; see `Policy.combined`.

        Args:
            context: not used.
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


mlflow.models.set_model(MLflowPolicy())
