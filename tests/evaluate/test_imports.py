"""An evaluation imports neither torch nor Hydra: only a saved policy or a run needs them."""

import json
from pathlib import Path

from tests.conftest import LOANS, imported

FRAMEWORKS = ("torch", "hydra", "omegaconf", "mlflow")
KEYS = {
    "decision": "decision",
    "accepted": "granted",
    "label": "repaid",
    "positive": "yes",
    "sensitive": "sex",
}
FROM_PYTHON = f"""
import pandas as pd
from fairall.evaluate import compare, evaluate
keys = dict({KEYS}, propensity="propensity", cost=0.6, drop=["id"], outcome_model="logistic")
log = pd.read_csv({str(LOANS)!r})
for policy in (None, lambda people: people["income"] > 2000, log["propensity"].to_numpy(), "propensity"):
    found = evaluate(policy, log, **keys).to_plain()
assert evaluate("propensity", {str(LOANS)!r}, **keys).to_plain() == found
"""


def test_an_evaluation_of_a_table_imports_no_framework() -> None:
    assert imported(FROM_PYTHON, *FRAMEWORKS, "matplotlib") == ("", [])


def test_the_command_imports_no_framework(tmp_path: Path) -> None:
    words = "--policy propensity --groups sex,purpose drop=[id] --outcome-model logistic --json -o".split()
    typed = ["evaluate", str(LOANS), *(f"{key}={value}" for key, value in KEYS.items()), *words]
    code = f"from fairall.cli.main import main\nassert main({[*typed, str(tmp_path)]!r}) < 2"
    said, found = imported(code, *FRAMEWORKS)
    assert found == []
    assert json.loads(said)["log"]["people"] == 400


def test_a_saved_policy_imports_torch() -> None:
    assert imported("import fairall.evaluate.saved", "torch", "omegaconf") == ("", ["torch", "omegaconf"])
