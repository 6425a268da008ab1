"""The registered policy in MLflow's own commands."""

import json
import sys
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import pytest
from mlflow.exceptions import MlflowException
from mlflow.pyfunc.scoring_server import invocations

from fairall.policy import Policy
from tests.conftest import LOANS, Put, run_folder, succeeded
from tests.tracking.conftest import RUN, client_of

pytestmark = pytest.mark.whole


def test_served_probabilities_are_those_of_the_policy(outputs: Path) -> None:
    people = pd.read_csv(outputs.parent / "loans.csv").drop(columns=["repaid", "decision"])
    assert people.isna().any(axis=None)
    propensity = Policy.load(run_folder(outputs) / "policy").propensity(people)
    expected = np.vstack([propensity.mean(axis=0), propensity]).T
    client_of(outputs)

    # What `mlflow models serve` makes of a request, and `mlflow models predict` of a file.
    model = mlflow.pyfunc.load_model("models:/loans/1")
    assert model.metadata.signature.outputs.input_names() == ["probability", "seed_0", "seed_1"]
    assert model.predict(model.input_example, params={"strict": True}).shape == (2, 3)
    texts = people.astype(object).where(people.notna(), None).map(lambda value: value and str(value))

    def served(table: pd.DataFrame) -> Any:
        content = json.dumps({"dataframe_records": table.to_dict("records")})
        return invocations(content, "application/json", model, model.metadata.get_input_schema())

    served_rows = json.loads(served(texts).response)["predictions"]
    np.testing.assert_allclose(pd.DataFrame(served_rows), expected, atol=1e-6)
    with pytest.raises(MlflowException, match="must be one of male, female") as caught:
        served(texts.assign(sex="unheard of"))
    assert caught.value.error_code == "INVALID_PARAMETER_VALUE"


def test_a_model_of_ones_own_method_loads_where_the_method_is_not_imported(
    tmp_path: Path, empty_store: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "served_method.py").write_text(
        "from fairall.models.fairlog import FairLog\n\n\nclass Own(FairLog):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    method = ["model=fairlog", "model._target_=served_method.Own", f"dataset.path={LOANS}"]
    succeeded(*RUN, *method, "tracking.register=own", cwd=tmp_path)
    client_of(tmp_path / "outputs")
    people = pd.read_csv(LOANS).head(3)
    monkeypatch.delitem(sys.modules, "served_method", raising=False)
    assert mlflow.pyfunc.load_model("models:/own/1").predict(people)["probability"].between(0, 1).all()
    monkeypatch.delitem(sys.modules, "served_method")
    # `sync` does not know who wrote the configuration of a run.
    succeeded("mlflow", "sync", f"tracking.uri={empty_store(tmp_path / 'elsewhere')}", cwd=tmp_path)
    models = [path.read_text() for path in tmp_path.rglob("MLmodel")]
    assert sorted("served_method" in model for model in models) == [False, True]
