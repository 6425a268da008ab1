"""Small files of public bug reports, each with its right answer, computed here without the package."""

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from fairall.evaluate.analysis import Analysis
from tests.conftest import records, succeeded

A = "decision=decision accepted=yes label=repaid positive=good sensitive=sex"
P = f"{A} propensity=prop"
COST = 0.5


@pytest.fixture(scope="module", autouse=True)
def _undrawn() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Analysis, "figure", lambda *_: None)
        yield


@pytest.mark.parametrize(
    ("name", "words", "good"),
    [
        ("rate_by_product_and_group_4", A, "good"),
        ("nobody_repaid", P, "good"),
        ("everybody_repaid_1.0", f"{P} positive=1", "1.0"),
        ("label_none_or_late", f"{P} label=late positive=None missing_by_default=[NA]", "None"),
        ("monitor_99_rows", f"{P} --monitor=time=t", "good"),
        pytest.param(
            "monitor_new_version_60_rows",
            f"{A} --monitor=time=day policy_version=version",
            "good",
            marks=pytest.mark.whole,
        ),
    ],
)
def test_the_utility_of_decisions_whose_labels_are_all_known(
    name: str, words: str, good: str, tmp_path: Path
) -> None:
    folder = Path(os.environ.get("FAIRALL_DATA") or Path(__file__).parents[3] / "shared" / "data").parent
    path = folder / "reports" / f"{name}.csv"
    if not path.is_file():
        pytest.skip(f"files of reports are needed, and {path} is not there; set FAIRALL_DATA")
    keys = dict(word.split("=", 1) for word in words.split())
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    accepted = table["decision"] == "yes"
    gain = np.where(accepted, (table[keys["label"]] == good) - COST, 0.0)
    # As if two more labels had been seen of whom the opposite was expected.
    error = math.sqrt(gain.var(ddof=1) / len(gain) + 2.0 / len(gain) ** 2)
    right = gain.mean() + np.array([0, -1, 1]) * t.ppf(0.975, accepted.sum() - 1) * error
    succeeded("evaluate", str(path), *map("=".join, keys.items()), "-o", "out", cwd=tmp_path)
    plain = json.loads((tmp_path / "out" / "evaluation.json").read_text())
    value = next(row for row in records(plain, "value") if "estimate" in row)
    assert [value[end] for end in ("estimate", "low", "high")] == pytest.approx(right, abs=3e-4)
    # No interval of a monitor begins before the 100th row.
    assert not any("low" in row for row in records(plain, "monitor", what="utility") if row["rows"] < 100)
