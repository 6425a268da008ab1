"""Small files of public bug reports, each with its right answer, computed here without the package."""

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from fairall.evaluate.analysis import Analysis
from tests.conftest import records, refused, succeeded

A = "decision=decision accepted=yes label=repaid positive=good sensitive=sex"
P = f"{A} propensity=prop"
COST = 0.5


@pytest.fixture(scope="module", autouse=True)
def _undrawn() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Analysis, "figure", lambda *_: None)
        yield


@dataclass
class Report:
    """A file, and a folder for what is said of it."""

    path: Path
    folder: Path

    @property
    def table(self) -> pd.DataFrame:
        """All cells as text."""
        return pd.read_csv(self.path, dtype=str, keep_default_na=False)

    def words(self, words: str, *more: str) -> tuple[str, ...]:
        """Of `fairall evaluate`; later words replace earlier ones of the same key."""
        keys = {word.partition("=")[0]: word for word in (*words.split(), *more)}
        return "evaluate", str(self.path), *keys.values(), "-o", "out"

    def evaluated(self, words: str, *more: str) -> tuple[str, dict[str, Any]]:
        """What was printed, and evaluation.json."""
        said = succeeded(*self.words(words, *more), cwd=self.folder).stdout
        return said, json.loads((self.folder / "out" / "evaluation.json").read_text())


@pytest.fixture
def report(request: pytest.FixtureRequest, tmp_path: Path) -> Report:
    folder = Path(os.environ.get("FAIRALL_DATA") or Path(__file__).parents[3] / "shared" / "data").parent
    path = folder / "reports" / f"{request.param}.csv"
    if not path.is_file():
        pytest.skip(f"files of reports are needed, and {path} is not there; set FAIRALL_DATA")
    return Report(path, tmp_path)


def of(*names: str) -> pytest.MarkDecorator:
    """The test is of these files."""
    return pytest.mark.parametrize("report", names, indirect=True)


def check_utility(plain: dict[str, Any], table: pd.DataFrame, good: str, label: str = "repaid") -> np.ndarray:
    """Observed utility of the decisions, whose labels are all known, and its 95 % interval, are right."""
    accepted = table["decision"] == "yes"
    gain = np.where(accepted, (table[label] == good) - COST, 0.0)
    # As if two more labels had been seen of whom the opposite was expected.
    error = math.sqrt(gain.var(ddof=1) / len(gain) + 2.0 / len(gain) ** 2)
    right = gain.mean() + np.array([0, -1, 1]) * t.ppf(0.975, accepted.sum() - 1) * error
    value = next(row for row in records(plain, "value") if "estimate" in row)
    assert [value[name] for name in ("estimate", "low", "high")] == pytest.approx(right, abs=3e-4)
    return right


@of("rate_by_product_and_group_2", "rate_by_product_and_group_4")
def test_equal_rows_are_of_different_people_and_a_warning_asks(report: Report) -> None:
    said, plain = report.evaluated(A)
    right = check_utility(plain, report.table, "good")
    assert [100 * number for number in right[1:]] == pytest.approx([5.7, 11.5], abs=0.1)
    assert "Log: people 600, accepted 335" in said
    assert said.count("person=COLUMN") == 1
    assert "rows that equal an earlier one" in said


@pytest.mark.parametrize(
    ("report", "words", "told"),
    [
        (
            "person_ids_as_floats",
            "person=person",
            "row 1: '1.152921504606847e+18' is a rounded number",
        ),
        ("label_good_or_none", "", "'None' in 52 rows means no value: leave it out of missing_by_default="),
        ("person_has_all_labels", "person=person", "all 335 labels are of one person"),
        (
            "nobody_repaid",
            "accepted=~yes",
            "accepted=~yes: column 'decision' has no such value; it has 2",
        ),
        ("nobody_repaid", 'accepted="~yes', """cannot read 'accepted="~yes': give a text"""),
    ],
    indirect=["report"],
)
def test_what_is_refused(words: str, told: str, report: Report) -> None:
    assert told in refused(*report.words(P, *words.split()), cwd=report.folder)


@of("label_good_or_none", "label_none_or_late")
def test_a_label_none_is_settled_by_the_keys_of_the_refusal(report: Report) -> None:
    table, label = report.table, "late" if "late" in report.path.name else "repaid"
    good, other = ("None", "Late") if label == "late" else ("good", "good")
    words = f"label={label}", f"positive={good}"
    _, plain = report.evaluated(P, *words, "missing_by_default=[NA]")
    assert check_utility(plain, table, good, label)[0] == pytest.approx(0.09, abs=5e-4)
    # As no label, all of the known ones are good.
    _, plain = report.evaluated(P, *words, f"positive={other}", "missing=[None]")
    counts = plain["log"]["accepted"], plain["log"]["labelled"]
    assert counts == (158, (table[label] == other).sum())


@of("group_NA")
def test_a_group_na_is_named_with_the_key_that_makes_it_one(report: Report) -> None:
    n = int((report.table["sex"] == "NA").sum())
    _, plain = report.evaluated(P)
    (note,) = plain["notes"]
    assert f"{n} rows without a value, taken for a group, (missing); 'NA' in {n} rows means" in note
    assert [row["group"] for row in records(plain, "groups", measure="people")] == ["(missing)", "WH"]
    _, plain = report.evaluated(P, "missing_by_default=[None]")
    sizes = {row["group"]: row["value"] for row in records(plain, "groups", measure="people")}
    assert sizes == {"NA": n, "WH": len(report.table) - n}


@of("nobody_repaid")
def test_a_log_in_which_nobody_repaid(report: Report) -> None:
    said, plain = report.evaluated(P)
    check_utility(plain, report.table, "good")
    assert "Note: column 'repaid' is always 'bad': no label is positive=good" in said


@of("everybody_repaid_1.0")
@pytest.mark.parametrize("positive", ["1", '"1"', "true"])
def test_a_log_in_which_everybody_repaid(positive: str, report: Report) -> None:
    _, plain = report.evaluated(P, f"positive={positive}")
    assert check_utility(plain, report.table, "1.0")[0] > 0.2


@of("index_column_shuffled", "index_column_filtered")
def test_an_index_without_a_name_is_no_feature(report: Report) -> None:
    assert report.table.iloc[:, 0].is_unique
    _, plain = report.evaluated(P)
    check_utility(plain, report.table, "good")
    assert sum("'column 1' is left out" in note for note in plain["notes"]) == 1
    assert "column 1" not in json.dumps(records(plain, "groups", measure="balance"))


@of("monitor_99_rows")
def test_a_monitor_of_99_rows_says_that_they_are_too_few(report: Report) -> None:
    said, plain = report.evaluated(P, "--monitor=time=t")
    check_utility(plain, report.table, "good")
    seen = records(plain, "monitor", what="utility")
    assert not any("low" in row for row in seen)
    assert seen[-1]["rows"] == len(report.table)
    assert "intervals that hold" not in said


@pytest.mark.whole
@of("monitor_new_version_60_rows")
def test_labels_of_a_version_of_60_rows_do_not_count_yet(report: Report) -> None:
    table = report.table
    assert (table["version"] == "new").sum() == 60
    said, plain = report.evaluated(A, "--monitor=time=day", "policy_version=version")
    value = check_utility(plain, table, "good")[0]
    assert "without recorded propensities count from its 100th row on" in " ".join(said.split())
    last = records(plain, "monitor", what="utility")[-1]
    assert last["low"] < value < last["high"]
    # No label of the new version moves the gap by label.
    gaps = records(plain, "monitor", what="gap of true-positive rates")
    assert (
        len({row["estimate"] for row in gaps if row.get("rows", 0) >= (table["version"] == "old").sum()}) == 1
    )


@of("all_labels_of_f_good")
def test_a_precision_of_labels_that_are_all_good_has_a_width(report: Report) -> None:
    _, plain = report.evaluated(P)
    table = report.table
    labels = table["repaid"][(table["sex"] == "f") & (table["decision"] == "yes")]
    (found,) = records(plain, "groups", group="f", measure="precision")
    assert (found["estimate"], found["high"]) == (1.0, 1.0)
    # With two good and two bad labels more (Agresti and Coull).
    n = len(labels) + 3.84
    middle = (n - 1.92) / n
    assert found["low"] == pytest.approx(middle - 1.96 * math.sqrt(middle * (1 - middle) / n), abs=1e-3)
