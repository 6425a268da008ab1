"""An evaluation imports neither torch nor Hydra: only a saved policy or a run needs them."""

import json
from pathlib import Path

import pytest

from tests.conftest import LOANS, imported

KEYS = {
    "decision": "decision",
    "accepted": "granted",
    "label": "repaid",
    "positive": "yes",
    "sensitive": "sex",
}
FROM_PYTHON = f"""
import pandas as pd
from fairall.cli.main import main
from fairall.evaluate import evaluate
keys = dict({KEYS}, propensity="propensity", drop=["id"])
keys |= dict(propensity_model="logistic", outcome_model="logistic")
log = pd.read_csv({str(LOANS)!r})
for policy in (lambda people: people["income"] > 2000, "propensity"):
    found = evaluate(policy, log, **keys).to_plain()
assert evaluate("propensity", {str(LOANS)!r}, **keys).to_plain() == found
assert "matplotlib" not in sys.modules
"""


@pytest.mark.whole
def test_neither_python_nor_the_command_imports_a_framework(tmp_path: Path) -> None:
    words = "--policy propensity --outcome-model logistic --propensity-model logistic --groups sex,purpose"
    words += " drop=[id] --json -o"
    typed = ["evaluate", str(LOANS), *(f"{key}={value}" for key, value in KEYS.items()), *words.split()]
    code = f"{FROM_PYTHON}assert main({[*typed, str(tmp_path)]!r}) < 2"
    said, found = imported(code, "torch", "hydra", "omegaconf", "mlflow")
    assert (found, json.loads(said)["log"]["people"]) == ([], 400)
