"""The log of a run's decisions: against the raw data, the measures, and the tensors of the run."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from pytest_regressions.data_regression import DataRegressionFixture

from fairall.data.features import Feature, Kind, Schema
from fairall.data.prepared import Scaler
from fairall.measuring.decisions import column_names, decision_table, raw_values, renamed
from fairall.online.training import Training
from fairall.storage.run_folder import RunFolder
from tests.conftest import LOANS, MEANING, run_folder, succeeded
from tests.measuring.conftest import trained
from tests.worlds.conftest import ALL_PARTS

QUICK = """
    model=unfairlog preset=quick seeds=3 schedule.warm_up_epochs=2 tracking.enabled=false
""".split()
OF_LOG = """
    dataset.label=label dataset.positive=1 dataset.sensitive=s dataset.advantaged=1
    dataset.decision=decision dataset.propensity=propensity dataset.drop=[seed,time_step]
""".split()
LOGGED = "evaluation.decisions=true"


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Folders of a run on credit without the log, and of the same with it."""
    folders = []
    for words in ([], [LOGGED]):
        cwd = tmp_path_factory.mktemp("run")
        succeeded(*QUICK, *words, cwd=cwd)
        folders.append(run_folder(cwd / "outputs"))
    return folders[0], folders[1]


@pytest.mark.whole
def test_the_log_changes_no_other_file_and_is_of_another_identity(both: tuple[Path, Path]) -> None:
    without, with_log = both
    assert without.name != with_log.name
    assert not (without / "decisions.csv").exists()
    for name in ("metrics.csv", "summary.json", "policy/weights.safetensors"):
        assert (without / name).read_bytes() == (with_log / name).read_bytes()
    assert "  decisions.csv\n" in (with_log / "DONE").read_text()


def test_the_log_agrees_with_the_measures(both: tuple[Path, Path]) -> None:
    keys = ["seed", "time_step"]
    measures = pd.read_csv(both[1] / "metrics.csv").query("time_step > 0").set_index(keys)
    log = pd.read_csv(both[1] / "decisions.csv")
    gain = (log["label"] - 0.5).fillna(0.0).groupby([log[key] for key in keys]).mean()
    rates = log.groupby([*keys, "s"])["decision"].mean().unstack()
    for name, found in (
        ("acceptance_rate_advantaged", rates[1]),
        ("acceptance_rate_disadvantaged", rates[-1]),
        ("effective_utility", gain.groupby("seed").expanding().mean().droplevel(0)),
    ):
        pd.testing.assert_series_equal(measures[name], found, atol=1e-6, check_names=False)


def test_a_deleted_log_is_written_again_from_the_checkpoint(both: tuple[Path, Path]) -> None:
    path = both[1] / "decisions.csv"
    before = path.read_bytes()
    path.unlink()
    ended = succeeded(*QUICK, LOGGED, cwd=path.parents[5])
    assert "decisions.csv is damaged or missing; the result is made again" in ended.stdout
    assert path.read_bytes() == before


def test_the_log_is_a_data_set(both: tuple[Path, Path], tmp_path: Path) -> None:
    told = succeeded("data", "describe", str(both[1] / "decisions.csv"), *OF_LOG, cwd=tmp_path).stdout
    assert re.search(r"19 features(.|\n)*Ready to run\.", told)


def in_rows(values: torch.Tensor) -> np.ndarray:
    """Values of applicants (T, E, N) in the order of the log."""
    return values.transpose(0, 1).flatten().numpy()


def test_the_log_has_what_the_decision_maker_saw() -> None:
    noise = "world.noise.disadvantaged={positive: 1, negative: 0}"
    training = trained(LOGGED, "dataset=fico", *ALL_PARTS, noise)
    table, history = decision_table(training), training.history
    accepted, lost = in_rows(history.steps["accepted"]), in_rows(history.steps["censored"])
    told, label = table["label"].notna().to_numpy(), table["label"].to_numpy(float, na_value=np.nan)
    assert (told == (accepted & ~lost)).all()
    assert 0.1 < lost[accepted].mean() < 0.3
    assert (label[told] == in_rows(history.steps["revealed_label"])[told]).all()
    assert (label[told] != in_rows(history.steps["label"])[told]).any()


def assert_read_back(training: Training, folder: Path) -> pd.DataFrame:
    """Check that the file gives every tensor of the run back, and return its cells as text."""
    RunFolder(folder).write_decisions([decision_table(training)])
    text = pd.read_csv(folder / "decisions.csv", dtype=str, keep_default_na=False)
    data, history, people = training.data, training.history, [people for _, people in training.replayed()]
    raw, s, doubts = data.reader.read(text, refuse_unknown=True, refuse_empty=True)
    assert doubts == []
    assert torch.equal(data.scaler.transform(raw), torch.stack([of.x for of in people], 1).flatten(0, 2))
    assert (s == in_rows(history.steps["s"])).all()
    decided = text[[*column_names(data).values()][2:]].apply(pd.to_numeric).to_numpy(np.float32)
    label = torch.where(history.steps["accepted"], history.steps["label"], torch.nan)
    expected = [in_rows(of) for of in (history.steps["propensity"], history.steps["accepted"], label)]
    np.testing.assert_array_equal(decided, np.stack(expected, 1))
    return text


@pytest.mark.parametrize(
    "words",
    [
        "dataset=synthetic",
        "dataset=credit protocol=published_code",
        "dataset=credit protocol.effective=decided_again model.acceptance_probability=0.3",
        f"""
            dataset=csv dataset.path={LOANS} {" ".join(MEANING)} dataset.drop=[id] dataset.decision=decision
            dataset.accepted=granted dataset.propensity=propensity dataset.max_categories=3
        """,
    ],
    ids=["synthetic", "published code", "decided again", "csv"],
)
def test_the_file_gives_the_tensors_back(words: str, tmp_path: Path) -> None:
    text = assert_read_back(trained(LOGGED, *words.split()), tmp_path)
    assert {*text["decision"], *text["label"]} == {"0", "1", ""}


def test_words_and_groups_are_those_of_the_raw_file(raw_data: Path, tmp_path: Path) -> None:
    file = raw_data / "compas" / "compas-scores-two-years.csv"
    text = assert_read_back(trained(LOGGED, "dataset=compas", f"dataset.raw_file={file}"), tmp_path)
    columns = "seed time_step age_cat priors_count c_charge_degree race propensity decision label"
    assert " ".join(text) == columns
    assert set(text["race"]) == {"Caucasian", "African-American"}
    assert set(text["age_cat"]) == {"Less than 25", "25 - 45", "Greater than 45"}


def test_columns_of_the_log_make_room_and_one_with_a_fraction_has_no_integers(
    tmp_path: Path, data_regression: DataRegressionFixture
) -> None:
    loans = pd.read_csv(LOANS, dtype=str, keep_default_na=False)
    late = loans["income"].ne("") & (loans.index % 100 == 17)  # the first rows have whole numbers only
    loans["dependants"] = np.where(late, "0.5", loans["dependants"])
    loans = loans.rename(columns={"purpose": "seed", "job": "run_seed", "sex": "time_step"})
    loans.to_csv(tmp_path / "loans.csv", index=False)
    words = "dataset.sensitive=time_step dataset.drop=[id,decision] dataset.kinds={dependants:real}".split()
    words = ["dataset=csv", *MEANING, f"dataset.path={tmp_path / 'loans.csv'}", *words]
    training = trained(LOGGED, *words)
    text = assert_read_back(training, tmp_path)
    assert set(text["time_step"]) == {"male", "female"}
    data_regression.check({"columns": [*text], "told": renamed(training.data)})
    assert {"0.5", "1.0"} < set(text["dependants"])
    assert text["dependants"].str.contains(".", regex=False).all()


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_numbers_have_the_digits_they_were_written_with(shift: float) -> None:
    raw = shift + np.round(np.random.default_rng(0).normal(30, 20, (500, 1)), 1)
    raw[0] = 0.0
    income = Feature("income", Kind.REAL)
    scaler = Scaler(Schema([income]).measured(raw))
    x = scaler.transform(raw)
    found = raw_values(income, scaler, x.numpy()[:, 0])
    assert shift or (found == raw[:, 0]).all()
    assert torch.equal(scaler.transform(found[:, None]), x)
    assert max(len(re.sub(r"\D|\.0$", "", str(number))) for number in found) <= 8
    assert not np.signbit(found[0])


@pytest.mark.parametrize(
    ("feature", "expected"),
    [
        (Feature("visits", Kind.COUNT), [0, 3, 50]),
        (
            Feature("size", Kind.CATEGORICAL, (0.0, 3.0, 50.0), ("small", "(missing)", "L, XL")),
            ["small", "(missing)", "L, XL"],
        ),
        (Feature("size", Kind.CATEGORICAL, (0.0, 3.0, 50.0)), ["0", "3", "50"]),
    ],
)
def test_whole_numbers_and_words(feature: Feature, expected: list[int | str]) -> None:
    found = raw_values(feature, Scaler(Schema([feature])), np.array([0, 3, 50], dtype=np.float32))
    assert found.tolist() == expected


def test_a_diverged_seed_has_no_propensities(tmp_path: Path) -> None:
    training = trained(LOGGED)
    training.history.steps["propensity"].fill_(torch.nan)
    training.history.steps["accepted"].zero_()
    RunFolder(tmp_path).write_decisions([decision_table(training)])
    text = pd.read_csv(tmp_path / "decisions.csv", dtype=str, keep_default_na=False)
    assert {*text["propensity"], *text["label"]} == {""}
