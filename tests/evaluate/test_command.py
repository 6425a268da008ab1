"""`python -m fairall evaluate`, in this process."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairall.cli.main import main
from fairall.display import page
from tests.conftest import LOANS, records
from tests.evaluate.simulated import applicants

ROLES = ("decision=granted", "accepted=1", "label=repaid", "positive=1", "dataset.sensitive=sex")


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
    draw, table = np.random.default_rng(0), applicants(n)[["score", "sex", "granted", "repaid", "p", "new"]]
    return table.assign(
        strict=(table["score"] > 0.5).astype(float),
        race=draw.choice(["black", "white"], n),
        officer=draw.choice(["Ann", "Bob"], n),
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


@pytest.mark.whole
def test_a_comparison_writes_the_same_bytes_again(tmp_path: Path) -> None:
    words = ["--policy", "new", "--policy", "strict", "--decision-maker", "officer", "propensity=p"]
    written = []
    for _ in range(2):
        code, out = run(tmp_path, people(), *words, "drop=[race]")
        assert code == 0
        written.append({path: path.read_bytes() for path in out.rglob("*") if path.is_file()})
    assert written[0] == written[1]
    assert [policy["name"] for policy in read(out)["policies"]] == ["A: new", "B: strict"]
    for key, table in read(out)["tables"].items():
        assert len(pd.read_csv(out / "tables" / f"{key}.csv")) == len(table)
        assert (out / "tables" / f"{key}.tex").read_text().isascii()
    page_text = (out / "index.html").read_text()
    assert not [word for word in ("http", "<script") if word in page_text]
    assert page_text.count("data:image/png;base64,") == len([*out.glob("figures/*.png")]) > 0


@pytest.mark.usefixtures("undrawn")
def test_the_folder_has_the_names_of_log_and_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "decision=decision accepted=granted sensitive=sex propensity=propensity drop=[id,repaid]".split()
    assert main(["evaluate", str(LOANS), *words, f"outputs_dir={tmp_path}"]) == 0
    folder = tmp_path / "evaluations" / "loans-decisions"
    shown = capsys.readouterr().out
    for text in ("Log: people 400, ", "Trust: ", f"Evaluation: {folder}"):
        assert text in shown


def test_a_refusal_is_one_line_and_shows_what_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = people()
    table.loc[table["sex"] == "f", ["granted", "repaid"]] = [0, np.nan]
    code, out = run(tmp_path, table, "--policy", "new", "propensity=p", "drop=[strict,officer]")
    shown, refused = capsys.readouterr(), read(out)["refused"]
    assert (code, shown.err) == (1, f"refused: {refused}\n")
    assert refused.startswith("1/π of the accepted, by the recorded propensities")
    (value,) = rows(out, "value", estimator="dr")
    assert (value["why"], value.keys() & {"estimate", "low", "high"}) == (refused, set())
    (bounds,) = rows(out, "value", estimator="no assumption")
    assert bounds["low"] < bounds["high"]
    assert "no assumption" in shown.out
    assert "Trust: refused, 1/π of the accepted" in (out / "index.html").read_text()


@pytest.mark.usefixtures("undrawn")
def test_adverse_impact_beside_a_group(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "--score", "new", "propensity=p", "drop=[strict,officer]", "--reference"
    code, out = run(tmp_path, people(), *words, "f")
    assert code == 0
    (ratio,) = rows(out, "impact", measure="ratio", group="m")
    assert (ratio["reference"], ratio["low"] < ratio["estimate"] < ratio["high"]) == ("f", True)
    assert f"{100 * ratio['estimate']:.1f} [{100 * ratio['low']:.1f}, " in capsys.readouterr().out
    assert run(tmp_path, people(), *words, "x")[0] == 1
    assert capsys.readouterr().err == "fairall: reference 'x': no such group; there are f, m\n"


@pytest.mark.usefixtures("undrawn")
def test_probabilities_of_groups(tmp_path: Path) -> None:
    p = np.random.default_rng(1).beta(0.5, 0.5, 1200).round(3)
    table = people()[["score", "granted", "p", "repaid"]].assign(p_f=p, p_m=1 - p)
    code, out = run(tmp_path, table, "propensity=p", roles=[*ROLES[:-1], "sensitive=[p_f,p_m]"])
    assert code == 0
    assert "only probabilities are known" in rows(out, "fairness", measure="dpu", view="dr")[0]["why"]
    for group in ("p_f", "p_m"):
        (weighted,) = rows(out, "impact", measure="weighted_rate", group=group)
        (bounds,) = rows(out, "impact", measure="rate", group=group)
        assert 0 <= bounds["low"] < weighted["estimate"] < bounds["high"] <= 1


@pytest.mark.whole
def test_a_score_is_validated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--score", "new", "--smallest-cell", "20", "propensity=p", "drop=[strict,officer]"]
    code, out = run(tmp_path, people(), *words)
    assert code == 0
    (gini,) = rows(out, "score", group="everybody", measure="gini", view="dr")
    assert gini["low"] > 0
    assert {row["group"] for row in rows(out, "score", view="bin")} == {"f", "m"}
    assert (
        len({row["threshold"] for row in rows(out, "choices", measure="value") if "threshold" in row}) == 19
    )
    assert "new" in [row["feature"] for row in rows(out, "groups", group="f", measure="balance")]
    assert (out / "figures" / "calibration.png").exists()
    assert "score ≥" not in capsys.readouterr().out  # on the page only
    reversed_, folder = run(tmp_path, people(), *words, "--score-of", "negative")
    (turned,) = rows(folder, "score", group="everybody", measure="gini", view="dr")
    assert (reversed_, turned["estimate"]) == (0, pytest.approx(-gini["estimate"]))


@pytest.mark.usefixtures("undrawn")
def test_small_cells_are_not_shown(tmp_path: Path) -> None:
    table = people()
    table.loc[:14, "sex"] = "x"
    words = "--smallest-cell", "20", "--outcome-model", "logistic", "propensity=p", "drop=[strict,officer]"
    _, out = run(tmp_path, table, *words)
    assert {row["group"] for row in rows(out, "groups")} == {"f", "m"}


@pytest.mark.usefixtures("undrawn")
def test_a_log_without_labels_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "--groups", "sex,race", "drop=[repaid,p,officer,new,strict]"
    code, out = run(tmp_path, people(), *words, roles=ROLES[:2])
    assert (code, capsys.readouterr().err) == (0, "")
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
    assert gaps.groupby("policy")["rows"].max().tolist() == [1200] * len(policies)
    assert rows(out, "monitor", period="all rows so far")[-1]["time"] == "2025-03-01"
    assert "all rows so far" in capsys.readouterr().out
    assert (out / "figures" / "monitor.png").exists()
    assert "Over time" in (out / "index.html").read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["drop=[score,race,officer,p,new,strict]"], "no propensity is recorded"),
        (["propensity=score"], "propensity"),
        (["propensty=p"], "did you mean propensity"),
        (["--policy", "nwe", "propensity=p"], "did you mean new?"),
        (["--policy", "officer", "propensity=p"], "column 'officer', row 1: "),
        (["--policy", "models:/bank/1", "propensity=p"], "fairall: models:/bank/1: "),
        (["--score", "nope"], "score=nope is not possible: it must be a column of the log"),
        (["--score", "officer", "propensity=p"], "column 'officer', row 1: "),
        (["--policy", "new"] * 3, "two are compared"),
        (["--monitor", "time=dya", "propensity=p"], "time=dya: "),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = run(tmp_path, people(400), *words)
    shown = capsys.readouterr()
    assert told in shown.err
    assert (code, shown.err.count("\n"), shown.out) == (1, 1, "")
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
