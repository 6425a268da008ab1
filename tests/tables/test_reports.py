"""Small files of public bug reports, each with its right answer, computed here without the package."""

import json
import math
import os
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from fairall.evaluate.shown import write
from tests.conftest import Ended, typed

A = ("decision=decision", "accepted=yes", "label=repaid", "positive=good", "sensitive=sex")
P = (*A, "propensity=prop")
COST = 0.5


@pytest.fixture(scope="module", autouse=True)
def _undrawn() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write, "pictures", lambda _: [])
        yield


@pytest.fixture(scope="module")
def reports() -> Path:
    given = os.environ.get("FAIRALL_DATA")
    folder = Path(given) if given else Path(__file__).parents[3] / "shared" / "data"
    folder = folder.parent / "reports"
    if not folder.is_dir():
        pytest.skip(f"files of reports are needed, and {folder} is not there; set FAIRALL_DATA")
    return folder


def evaluated(path: Path, folder: Path, *words: str) -> tuple[Ended, dict[str, Any]]:
    """What was printed, and evaluation.json."""
    ended = typed("evaluate", str(path), *words, "-o", "out", cwd=folder)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended, json.loads((folder / "out" / "evaluation.json").read_text())


def refused(path: Path, folder: Path, *words: str) -> str:
    """The one line of a refusal."""
    ended = typed("evaluate", str(path), *words, "-o", "out", cwd=folder)
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    return line


def raw(path: Path) -> pd.DataFrame:
    """All cells as text."""
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def utility(table: pd.DataFrame, good: str, label: str = "repaid") -> tuple[float, float, float]:
    """Observed utility of the decisions, whose labels are all known, and its 95 % interval."""
    accepted = table["decision"] == "yes"
    gain = np.where(accepted, (table[label] == good) - COST, 0.0)
    # As if two more labels had been seen of whom the opposite was expected.
    error = math.sqrt(gain.var(ddof=1) / len(gain) + 2.0 / len(gain) ** 2)
    half = t.ppf(0.975, accepted.sum() - 1) * error
    return gain.mean(), gain.mean() - half, gain.mean() + half


def check_value(plain: dict[str, Any], right: tuple[float, float, float], estimator: str = "dr") -> None:
    value = plain["value"][estimator]
    found = [value[name] for name in ("estimate", "low", "high")]
    assert found == pytest.approx(right, abs=3e-4)


def pasted(message: str) -> list[str]:
    """Words that a message proposes, as a shell reads them."""
    return [shlex.split(word)[0] for word in re.findall(r"'\w[\w.]*=[^']*'", message)]


@pytest.mark.parametrize("products", [2, 4])
def test_equal_rows_may_be_of_different_people(products: int, reports: Path, tmp_path: Path) -> None:
    path = reports / f"rate_by_product_and_group_{products}.csv"
    said, plain = evaluated(path, tmp_path, *A)
    right = utility(raw(path), "good")
    check_value(plain, right)
    assert [100 * number for number in right[1:]] == pytest.approx([5.7, 11.5], abs=0.1)
    assert "Log: 600 people, 335 accepted" in said.stdout
    assert "perhaps by chance, and are taken to be of other people; if not, give person=COLUMN" in said.stdout


def test_identifiers_that_were_rounded_are_refused(reports: Path, tmp_path: Path) -> None:
    path = reports / "person_ids_as_floats.csv"
    assert raw(path)["person"].nunique() == 3
    said = refused(path, tmp_path, *P, "person=person")
    assert "column 'person', row 1: '1.152921504606847e+18' is" in said
    assert "beyond 2^53" in said
    assert said.endswith("write them as text")


@pytest.mark.parametrize(
    ("name", "label", "good", "share"),
    [("label_good_or_none", "repaid", "good", 0.090), ("label_none_or_late", "late", "None", 0.090)],
)
def test_a_label_none_is_settled_by_the_words_of_the_refusal(
    name: str, label: str, good: str, share: float, reports: Path, tmp_path: Path
) -> None:
    path, words = reports / f"{name}.csv", [*P[:2], *P[4:], f"label={label}", f"positive={good}"]
    table = raw(path)
    n_none = int((table[label] == "None").sum())
    said = refused(path, tmp_path, *words)
    assert f"beside 'None' in {n_none} rows, which means no value" in said
    is_label, is_none = pasted(said)
    right = utility(table, good, label)
    assert right[0] == pytest.approx(share, abs=5e-4)
    check_value(evaluated(path, tmp_path, *words, is_label)[1], right)
    check_value(evaluated(path, tmp_path, *words, 'missing_by_default=["NA"]')[1], right)
    # Without the word only one label is left: all of the known ones are good, or none.
    others = [word for word in words if not word.startswith("positive=")]
    other = next(word for word in table[label].unique() if word not in ("None", ""))
    ended, _ = evaluated(path, tmp_path, *others, f"positive={other}", is_none)
    n_known = int((table[label] == other).sum())
    assert f"158 accepted, {n_known} with a label" in ended.stdout


def test_a_group_na_is_named_with_the_key_that_keeps_it(reports: Path, tmp_path: Path) -> None:
    path = reports / "group_NA.csv"
    n = int((raw(path)["sex"] == "NA").sum())
    said, plain = evaluated(path, tmp_path, *P)
    (note,) = plain["notes"]
    assert note.startswith(f"column 'sex': {n} cells without a value, such as 'NA' (")
    assert "empty cell" not in said.stdout
    assert set(plain["groups"]) == {"(missing)", "WH"}
    (kept,) = pasted(note)
    _, plain = evaluated(path, tmp_path, *P, kept)
    assert set(plain["groups"]) == {"NA", "WH"}
    assert plain["groups"]["NA"]["people"] == n
    words = [f"dataset.{word}" for word in (*P, "advantaged=WH")]
    check = typed("data", "describe", str(path), *words, cwd=tmp_path)
    (fault,) = (line for line in check.stdout.splitlines() if line.startswith("To fix: "))
    assert fault.startswith("To fix: column 'sex', row 2: 'NA', which means no value (")
    (kept,) = pasted(fault)
    assert kept.startswith("dataset.missing_by_default=")
    check = typed("data", "describe", str(path), *words, kept, cwd=tmp_path)
    assert check.returncode == 0
    assert "S = −1 (NA)" in check.stdout


def test_groups_of_values_with_commas(reports: Path, tmp_path: Path) -> None:
    path = reports / "groups_with_commas.csv"
    words = [word for word in P if word != "sensitive=sex"]
    _, plain = evaluated(path, tmp_path, *words, "--groups", "race,eth")
    sizes = raw(path).groupby(["race", "eth"]).size()
    assert len(plain["groups"]) == len(sizes) == 6
    assert sorted(of["people"] for of in plain["groups"].values()) == sorted(sizes)


def test_a_log_in_which_nobody_repaid(reports: Path, tmp_path: Path) -> None:
    path = reports / "nobody_repaid.csv"
    said, plain = evaluated(path, tmp_path, *P)
    right = utility(raw(path), "good")
    check_value(plain, right, "ips")
    assert right[0] == -COST * (raw(path)["decision"] == "yes").mean()
    assert "Note: column 'repaid' is always 'bad': no label is positive=good" in said.stdout


@pytest.mark.parametrize("positive", ["1", "1.0", '"1"', "true"])
def test_a_log_in_which_everybody_repaid(positive: str, reports: Path, tmp_path: Path) -> None:
    path, words = reports / "everybody_repaid_1.0.csv", [word for word in P if word != "positive=good"]
    _, plain = evaluated(path, tmp_path, *words, f"positive={positive}")
    check_value(plain, utility(raw(path), "1.0"), "ips")
    assert plain["value"]["ips"]["estimate"] > 0.2


@pytest.mark.parametrize("name", ["index_column_shuffled", "index_column_filtered"])
def test_an_index_without_a_name_is_no_feature(name: str, reports: Path, tmp_path: Path) -> None:
    path = reports / f"{name}.csv"
    rows = raw(path).iloc[:, 0].astype(int)
    assert rows.is_unique
    _, plain = evaluated(path, tmp_path, *P)
    check_value(plain, utility(raw(path), "good"))
    (note,) = (note for note in plain["notes"] if "'column 1' is left out" in note)
    assert note.endswith("; kinds={column 1: real} keeps it")
    words = [f"dataset.{word}" for word in (*P, "advantaged=m")]
    check = typed("data", "describe", str(path), *words, cwd=tmp_path).stdout
    kept = "dataset.kinds={column 1: real}"
    assert "3 features" in check
    assert "4 features" in typed("data", "describe", str(path), *words, kept, cwd=tmp_path).stdout
    assert "column 1" not in json.dumps(plain["balance"])


def test_quotation_marks_are_needed_in_pairs_only(reports: Path, tmp_path: Path) -> None:
    path, words = reports / "nobody_repaid.csv", [word for word in P if word != "accepted=yes"]
    for word in ("accepted=~yes", 'accepted="~yes"'):
        assert refused(path, tmp_path, *words, word).startswith(
            "fairall: accepted=~yes: column 'decision' has no such value; it has no, yes"
        )
    said = refused(path, tmp_path, *words, 'accepted="~yes')
    assert said.startswith("""fairall: cannot read 'accepted="~yes': accepted takes a text in a pair""")


def test_a_monitor_of_99_rows_says_that_they_are_too_few(reports: Path, tmp_path: Path) -> None:
    path = reports / "monitor_99_rows.csv"
    said, plain = evaluated(path, tmp_path, *P, "--monitor", "time=t")
    assert plain["value"]["dr"]["estimate"] == pytest.approx(utility(raw(path), "good")[0])
    few = "no intervals over time yet: they begin at 100 rows, and the log has 99"
    assert f"Warning: {few}\n" in said.stdout
    assert few in plain["warnings"]
    assert set(plain["monitor"]["value"]["low"]) == {None}
    assert plain["monitor"]["value"]["why"] == few
    assert plain["monitor"]["rows"][-1] == len(raw(path))


@pytest.mark.whole
def test_labels_of_a_version_of_60_rows_do_not_count_yet(reports: Path, tmp_path: Path) -> None:
    path = reports / "monitor_new_version_60_rows.csv"
    table = raw(path)
    assert (table["version"] == "new").sum() == 60
    said, plain = evaluated(path, tmp_path, *A, "--monitor", "time=day", "policy_version=version")
    assert plain["value"]["dr"]["estimate"] == pytest.approx(utility(table, "good")[0])
    (told,) = (one for one in plain["warnings"] if one.startswith("over time"))
    assert "labels of policy version new count for the value of the decisions taken only" in told
    assert told.endswith("and it has 60 rows")
    assert told in said.stdout
    monitor = plain["monitor"]
    assert monitor["value"]["low"][-1] < utility(table, "good")[0] < monitor["value"]["high"][-1]
    # No label of the new version moves the rate by label.
    old = raw(path)[table["version"] == "old"]
    rate = monitor["rates"]["equal_opportunity"]["m"]["estimate"]
    assert len(set(rate[monitor["rows"].index(len(old)) :])) == 1


def test_labels_of_one_person_are_refused(reports: Path, tmp_path: Path) -> None:
    path = reports / "person_has_all_labels.csv"
    line = refused(path, tmp_path, *P, "person=person")
    labels = (raw(path)["repaid"] != "").sum()
    assert f"all {labels} labels are of one person" in line


def test_a_precision_of_labels_that_are_all_good_has_a_width(reports: Path, tmp_path: Path) -> None:
    path = reports / "all_labels_of_f_good.csv"
    _, plain = evaluated(path, tmp_path, *P)
    table = raw(path)
    labels = table["repaid"][(table["sex"] == "f") & (table["decision"] == "yes")]
    assert set(labels) == {"good"}
    found = plain["groups"]["f"]["rates"]["predictive_parity"]["dr"]
    assert (found["estimate"], found["high"]) == (1.0, 1.0)
    # With two good and two bad labels more (Agresti and Coull).
    middle = (len(labels) + 1.92) / (len(labels) + 3.84)
    assert found["low"] == pytest.approx(
        middle - 1.96 * math.sqrt(middle * (1 - middle) / (len(labels) + 3.84)), abs=1e-3
    )
