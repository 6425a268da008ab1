"""Small files of public bug reports, each with its right answer, computed by hand."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import records, succeeded

REPORTS = yaml.safe_load(Path(__file__).with_name("reports.yaml").read_text())


@pytest.mark.parametrize("name", REPORTS)
def test_the_utility_of_decisions_whose_labels_are_all_known(
    name: str, raw_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = raw_data.parent / "reports" / f"{name}.csv"
    if not path.is_file():
        pytest.skip(f"files of reports are needed, and {path} is not there")
    monkeypatch.setattr("fairall.evaluate.analysis.Analysis.figure", lambda *_: None)
    succeeded("evaluate", str(path), *REPORTS[name]["words"].split(), "-o", "out", cwd=tmp_path)
    plain: dict[str, Any] = json.loads((tmp_path / "out" / "evaluation.json").read_text())
    value = next(row for row in records(plain, "value") if "estimate" in row)
    found = [value[end] for end in ("estimate", "low", "high")]
    assert found == pytest.approx(REPORTS[name]["utility"], abs=3e-4)
    # No interval of a monitor begins before the 100th row.
    assert not any("low" in row for row in records(plain, "monitor", what="utility") if row["rows"] < 100)
