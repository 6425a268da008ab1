"""`python -m fairall evaluate`, in this process."""

import json
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from fairall.cli.main import main
from fairall.display import page
from fairall.runtime.signals import Stopped
from tests.conftest import LOANS, records

ROLES = ("decision=granted", "accepted=yes", "label=repaid", "positive=yes", "dataset.sensitive=sex")
TARGETS = ("new", "strict")


@pytest.fixture(scope="module", autouse=True)
def _coarse_pictures() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "DPI", 40)
        yield


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without pictures, which take seconds."""
    monkeypatch.setattr("fairall.evaluate.analysis.Analysis.figure", lambda *_: None)


def people(n: int = 1200) -> pd.DataFrame:
    """A log with recorded propensities `p` and two target policies."""
    random = np.random.default_rng(0)
    score, sex = random.normal(size=n), random.choice(["f", "m"], n)
    propensity = expit(score + 0.5 * (sex == "m"))
    accepted = random.random(n) < propensity
    repaid = np.where(random.random(n) < expit(score), "yes", "no")
    return pd.DataFrame(
        {
            "score": score,
            "sex": sex,
            "race": random.choice(["black", "white"], n),
            "officer": random.choice(["Ann", "Bob"], n),
            "granted": np.where(accepted, "yes", "no"),
            "p": propensity,
            "repaid": pd.Series(repaid).where(accepted),
            "new": expit(2 * score),
            "strict": (score > 0.5).astype(float),
        }
    )


def run(folder: Path, table: pd.DataFrame, *words: str, roles: Sequence[str] = ROLES) -> tuple[int, Path]:
    """The exit code, and the folder of the files."""
    path = folder / "log.csv"
    table.to_csv(path, index=False)
    places = ["-o", str(folder / "out"), f"outputs_dir={folder / 'outputs'}"]
    code = main(["evaluate", str(path), *roles, *words, *places])
    return code, folder / "out"


def read(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "evaluation.json").read_text())


def rows(folder: Path, key: str, **keys: str) -> list[dict[str, Any]]:
    return records(read(folder), key, **keys)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison of two columns."""
    folder = tmp_path_factory.mktemp("compared")
    both = [word for name in TARGETS for word in ("--policy", name)]
    code, out = run(folder, people(), *both, "--decision-maker", "officer", "propensity=p", "drop=[race]")
    assert code == 0
    return out


@pytest.mark.whole
def test_a_comparison(compared: Path) -> None:
    assert [policy["name"] for policy in read(compared)["policies"]] == ["A: new", "B: strict"]
    first, second, difference = rows(compared, "value", estimator="dr")
    assert difference["estimate"] == pytest.approx(second["estimate"] - first["estimate"])
    assert 0 <= difference["probability"] <= 1
    for key, table in read(compared)["tables"].items():
        records = pd.read_csv(compared / "tables" / f"{key}.csv")
        assert len(records) == len(table)
        assert (compared / "tables" / f"{key}.tex").read_text().isascii()
    figures = {path.stem for path in (compared / "figures").glob("*.png")}
    assert figures == {"estimators", "overlap", "gaps", "sensitivity"}
    page_text = (compared / "index.html").read_text()
    assert not [word for word in ("http", "<script") if word in page_text]
    assert page_text.count("data:image/png;base64,") == len(figures)


@pytest.mark.whole
def test_the_same_command_writes_the_same_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = []
    for _ in range(2):
        assert (
            main(
                [
                    "evaluate",
                    str(LOANS),
                    *"""
                        decision=decision accepted=granted label=repaid positive=yes sensitive=sex
                        propensity=propensity drop=[id]
                    """.split(),
                    f"outputs_dir={tmp_path}",
                ]
            )
            == 0
        )
        folder = tmp_path / "evaluations" / "loans-decisions"
        written.append({path: path.read_bytes() for path in folder.rglob("*") if path.is_file()})
    assert written[0] == written[1]
    assert read(folder)["refused"] is None
    shown = capsys.readouterr().out
    for text in ("Log: 400 people", "doubly robust", "no assumption", "Trust: ", f"Evaluation: {folder}"):
        assert text in shown


def test_a_refusal_is_one_line_and_shows_what_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = people()
    women = table["sex"] == "f"
    table.loc[women, ["granted", "repaid"]] = ["no", None]
    code, out = run(tmp_path, table, "--policy", "new", "propensity=p", "drop=[strict,officer]")
    assert code == 1
    shown = capsys.readouterr()
    assert shown.err.startswith("refused: 1/π of the accepted, by the recorded propensities")
    assert shown.err.count("\n") == 1
    refused = read(out)["refused"]
    assert refused in shown.err
    (value,) = rows(out, "value", estimator="dr")
    assert (value["why"], value.keys() & {"estimate", "low", "high"}) == (refused, set())
    (bounds,) = rows(out, "value", estimator="no assumption")
    assert bounds["low"] < bounds["high"]
    assert "no assumption" in shown.out
    assert "Trust: refused, 1/π of the accepted" in (out / "index.html").read_text()


@pytest.mark.whole
def test_a_score_is_validated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--score", "new", "--smallest-cell", "20", "propensity=p", "drop=[strict,officer]"]
    code, out = run(tmp_path, people(), *words)
    assert code == 0
    plain = read(out)
    assert plain["calibration"]["of"] == "score"
    assert {len(one["bins"]) > 3 for one in plain["calibration"]["groups"].values()} == {True}
    assert len(plain["thresholds"]) == 19
    assert "new" in plain["balance"]["f"]["features"]
    assert plain["scorecard"]["everybody"]["gini"]["dr"]["low"] > 0
    tables = {path.stem for path in out.glob("tables/*")}
    assert {"discrimination", "calibration", "thresholds", "balance", "costs"} <= tables
    assert {"curves", "ranks"} <= {path.stem for path in out.glob("figures/*.png")}
    reversed_, folder = run(tmp_path, people(), *words, "--score-of", "negative")
    gini = read(folder)["scorecard"]["everybody"]["gini"]
    assert (reversed_, gini["dr"]["estimate"]) == (
        0,
        pytest.approx(-plain["scorecard"]["everybody"]["gini"]["dr"]["estimate"]),
    )
    assert "thresholds" not in capsys.readouterr().out  # on the page only


@pytest.mark.usefixtures("undrawn")
def test_small_cells_are_not_shown(tmp_path: Path) -> None:
    table = people()
    table.loc[:14, "sex"] = "x"
    for least, groups in ((10, ["f", "m", "x"]), (20, ["f", "m"]), (2000, [])):
        words = ["--smallest-cell", str(least), "propensity=p", "drop=[strict,officer,new]"]
        words += ["--outcome-model", "logistic"]
        code, out = run(tmp_path, table, *words)
        assert code == 0
        assert list(dict.fromkeys(row["group"] for row in read(out)["tables"].get("groups", []))) == groups


def test_an_interrupted_command_starts_anew(capsys: pytest.CaptureFixture[str]) -> None:
    def stop(*args: Any, **options: Any) -> None:
        raise Stopped(signal.SIGINT)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairall.evaluate.log.DecisionLog.read", stop)
        assert main(["evaluate", str(LOANS)]) == 130
    assert (
        capsys.readouterr().err
        == "fairall: interrupted; the same command starts anew, or goes on from what was saved\n"
    )


@pytest.mark.usefixtures("undrawn")
def test_a_log_without_labels_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    roles = [word for word in ROLES if not word.startswith(("label", "positive", "dataset"))]
    words = ["--groups", "sex,race", "drop=[repaid,p,officer,new,strict]"]
    code, out = run(tmp_path, people(), *words, roles=roles)
    assert code == 0
    assert capsys.readouterr().err == ""
    people_of = rows(out, "groups", measure="people")
    assert [row["group"] for row in people_of] == ["f, black", "f, white", "m, black", "m, white"]
    assert rows(out, "fairness", measure="dpu", view="dr")[0]["estimate"] > 0
    assert "estimate" not in rows(out, "value", estimator="dr")[0]


@pytest.mark.whole
@pytest.mark.parametrize("policies", [("new",), ("decision", "new")])
def test_a_monitor(policies: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    day = (pd.Timestamp("2025-01-01") + pd.to_timedelta(np.arange(1200) // 20, unit="D")).astype(str)
    words = [word for name in policies for word in ("--policy", name)]
    words += ["--monitor", "time=day", "--gap", "0.02", "propensity=p", "drop=[strict,officer]"]
    words += ["--outcome-model", "logistic"]
    code, out = run(tmp_path, people().assign(day=day), *words)
    assert code == 0
    gaps = pd.read_csv(out / "tables" / "monitor.csv").query("rows > 0 and what == 'gap of acceptance rates'")
    assert gaps.groupby("policy").size().tolist() == [60] * len(policies)
    assert rows(out, "monitor", period="all rows so far")[-1]["time"] == "2025-03-01"
    assert "intervals that hold at every moment" in capsys.readouterr().out
    assert (out / "figures" / "monitor.png").exists()
    assert "Over time" in (out / "index.html").read_text()


def never_rejected(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(granted="yes")


def zero_propensity(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(p=table["p"].where(table["granted"] != "yes", 0.0))


@pytest.mark.parametrize(
    ("words", "change", "told"),
    [
        (["propensity=p"], never_rejected, "a decision must have two"),
        (["drop=[score,race,officer,p,new,strict]"], None, "no propensity is recorded"),
        (["propensity=p"], zero_propensity, "propensity"),
        (["propensty=p"], None, "did you mean propensity"),
        (["sensitive_features=race"], None, "did you mean sensitive?"),
        (["--policy", "nwe", "propensity=p"], None, "did you mean the column new?"),
        (["--policy", "officer", "propensity=p"], None, "policy officer"),
        (["--policy", "models:/bank/1", "propensity=p"], None, "fairall: models:/bank/1: "),
        (["--score", "nope"], None, "--score nope: the log has no such column"),
        (["--score", "officer", "propensity=p"], None, "score officer: column 'officer', row 1: "),
        (["--policy", "new"] * 3, None, "two are compared"),
        (["--monitor", "time=dya", "propensity=p"], None, "time= is --monitor"),
        (["--monitor", "time=officer", "propensity=p"], None, "row 1: "),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    words: list[str], change: Any, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = people(400)
    code, out = run(tmp_path, table if change is None else change(table), *words)
    assert code == 1
    shown = capsys.readouterr()
    assert told in shown.err
    assert shown.err.count("\n") == 1 + ("--monitor" in told)
    assert shown.out == ""
    assert [path.name for path in out.parent.iterdir()] == ["log.csv"]


@pytest.mark.usefixtures("undrawn")
def test_the_document_is_alone_on_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--policy", "decision", "--policy", "new", "propensity=p", "drop=[strict,officer]", "--json"]
    words += ["--outcome-model", "logistic"]
    code, out = run(tmp_path, people(), *words)
    assert code == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain == read(out)
    assert plain["policies"][1]["name"] == "B: new"
    assert not (tmp_path / "outputs").exists(), "nothing is logged"
