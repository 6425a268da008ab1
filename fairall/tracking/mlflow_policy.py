"""The policy as an MLflow model, logged as code: MLflow runs this file when it loads one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlflow
import pandas as pd

from fairall.policy import Policy


class MLflowPolicy(mlflow.pyfunc.PythonModel):
    """Acceptance probabilities, one column per seed, of a table of raw features and `s`."""

    def load_context(self, context: Any) -> None:
        """Loads the policy folder that travels with the model."""
        self.policy = Policy.load(Path(context.artifacts["policy"]))

    def predict(self, context: Any, model_input: pd.DataFrame, params: Any = None) -> pd.DataFrame:
        """Shape (N, E); see `Policy.propensity`."""
        seeds = self.policy.learner.setting.seeds
        columns = [f"seed_{seed}" for seed in seeds]
        return pd.DataFrame(self.policy.propensity(model_input).T, columns=columns, index=model_input.index)


mlflow.models.set_model(MLflowPolicy())
