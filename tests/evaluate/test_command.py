"""`python -m fairall evaluate`, in this process."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from fairall.cli.main import main
from fairall.display import page
from fairall.errors import FairAllError
from tests.conftest import LOANS, records
from tests.evaluate.simulated import applicants, evaluated

HERE = Path(__file__).parent
MISTAKES = yaml.safe_load((HERE / "mistakes.yaml").read_text())
COMMANDS = yaml.safe_load((HERE / "commands.yaml").read_text())
ROLES = ["decision=granted", "accepted=1", "label=repaid", "positive=1"]
# A log with recorded propensities, whose other columns are no features.
USUAL = (
    "dataset.sensitive=sex propensity=p drop=[strict,race,officer,tiny,day,p_f,p_m] "
    "--propensity-model logistic --outcome-model logistic"
)


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
    """A log with recorded propensities `p`, two target policies, and several columns of groups."""
    draw, table = np.random.default_rng(0), applicants(n)[["score", "sex", "granted", "repaid", "p", "new"]]
    female = draw.beta(0.5, 0.5, n).round(3)
    return table.assign(
        strict=(table["score"] > 0.5).astype(float),
        race=draw.choice(["black", "white"], n),
        officer=draw.choice(["Ann", "Bob"], n),
        tiny=table["sex"].where(table.index > 14, "x"),
        day=pd.Timestamp("2025-01-01") + pd.to_timedelta(table.index // 20, unit="D"),
        p_f=female,
        p_m=1 - female,
    )


def run(folder: Path, table: pd.DataFrame, words: str) -> tuple[int, Path]:
    """The exit code, and the folder of the files."""
    path = folder / "log.csv"
    table.to_csv(path, index=False)
    places = ["-o", str(folder / "out"), f"outputs_dir={folder / 'outputs'}"]
    code = main(["evaluate", str(path), *ROLES, *words.split(), *places])
    return code, folder / "out"


def read(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "evaluation.json").read_text())


def rows(folder: Path, key: str, **keys: str) -> list[dict[str, Any]]:
    return records(read(folder), key, **keys)


@pytest.mark.whole
def test_a_comparison_writes_the_same_bytes_again(tmp_path: Path) -> None:
    policies = "--policy new --policy strict --decision-maker officer --score new --monitor time=day"
    words, written = f"{USUAL} {policies} drop=[race,tiny,p_f,p_m]", []
    for _ in range(2):
        code, out = run(tmp_path, people(), words)
        assert code == 0
        written.append({path: path.read_bytes() for path in out.rglob("*") if path.is_file()})
    assert written[0] == written[1]
    assert [policy["name"] for policy in read(out)["policies"]] == ["A: new", "B: strict"]
    for key, table in read(out)["tables"].items():
        assert len(pd.read_csv(out / "tables" / f"{key}.csv")) == len(table)
        assert (out / "tables" / f"{key}.tex").read_text().isascii()
    pictures = {path.stem for path in out.glob("figures/*.png")}
    assert {"gaps", "calibration", "monitor"} < pictures
    page_text = (out / "index.html").read_text()
    assert not [word for word in ("http", "<script") if word in page_text]
    assert page_text.count("data:image/png;base64,") == len(pictures)


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
    code, out = run(tmp_path, table, f"--policy new {USUAL}")
    shown, refused = capsys.readouterr(), read(out)["refused"]
    assert (code, shown.err) == (1, f"refused: {refused}\n")
    assert refused.startswith("1/π of the accepted, by the recorded propensities")
    (value,) = rows(out, "value", estimator="dr")
    assert (value["why"], "estimate" in value) == (refused, False)
    (bounds,) = rows(out, "value", estimator="no assumption")
    assert bounds["low"] < bounds["high"]
    assert "no assumption" in shown.out
    assert "Trust: refused, 1/π of the accepted" in (out / "index.html").read_text()


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command["words"])
def test_what_is_typed_has_these_rows(
    command: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = run(tmp_path, people(), f"{USUAL} {command['words']}")
    shown = capsys.readouterr()
    assert (code, shown.err, command.get("unsaid", "x ≥") in shown.out) == (0, "", False)
    for key, expected in command["rows"].items():
        found = rows(out, key)
        assert [row for row in expected if not any(row.items() <= other.items() for other in found)] == []
        assert command.get("hidden") not in [row.get("group", "") for row in found]


@pytest.mark.usefixtures("undrawn")
def test_a_score_may_be_of_the_negative_label(tmp_path: Path) -> None:
    ginis = []
    for words in ("", "--score-of negative"):
        _, out = run(tmp_path, people(), f"--score new {words} {USUAL}")
        ginis += [row["estimate"] for row in rows(out, "score", about="everybody: Gini", view="dr")]
    assert ginis == pytest.approx([ginis[0], -ginis[0]])


@pytest.mark.parametrize(("given", "words", "told"), MISTAKES["typed"])
def test_bad_input_is_one_line_and_leaves_nothing(
    given: dict[str, Any], words: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = run(tmp_path, people(400).assign(**given), f"dataset.sensitive=sex drop=[day] {words}")
    shown = capsys.readouterr()
    assert told in shown.err
    assert (code, shown.err.count("\n"), shown.out) == (1, 1, "")
    assert [path.name for path in out.parent.iterdir()] == ["log.csv"]


@pytest.mark.parametrize(("given", "options", "told"), MISTAKES["given"])
def test_bad_arguments_are_refused_in_one_line(
    given: dict[str, Any], options: dict[str, Any], told: str
) -> None:
    with pytest.raises(FairAllError) as caught:
        evaluated(applicants(300).assign(**given), **({"propensity": "p"} | options))
    assert str(caught.value).startswith(told)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("undrawn")
def test_the_document_is_alone_on_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(tmp_path, people(), f"--policy decision --policy new --json {USUAL}")
    plain = json.loads(capsys.readouterr().out)
    assert (code, plain) == (0, read(out))
    assert plain["policies"][1]["name"] == "B: new"
    assert not (tmp_path / "outputs").exists(), "nothing is logged"
