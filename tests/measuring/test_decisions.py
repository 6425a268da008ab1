"""The log of a run's decisions: against the raw data, the measures, and the tensors of the run."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from fairall.data.features import Feature, Kind, Schema
from fairall.data.prepared import Scaler
from fairall.display.progress import Display
from fairall.measuring.decisions import column_names, decision_table, raw_values, renamed
from fairall.online.training import Training
from fairall.storage.checkpoint import Checkpoint
from fairall.storage.run_folder import RunFolder
from tests.conftest import LOANS, no_cache, run_folder, succeeded, training_of
from tests.worlds.conftest import ALL_PARTS

QUICK = """
    model=unfairlog preset=quick seeds=3 schedule.warm_up_epochs=2 tracking.enabled=false
""".split()
OF_LOANS = """
    dataset=csv dataset.label=repaid dataset.positive=yes dataset.sensitive=sex dataset.advantaged=male
    dataset.drop=[id]
""".split()
OF_LOG = """
    dataset.label=label dataset.positive=1 dataset.sensitive=s dataset.advantaged=1
    dataset.decision=decision dataset.propensity=propensity dataset.drop=[seed,time_step]
""".split()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Folders of a run on credit without the log, and of the same with it."""
    folders = []
    for decisions in ("false", "true"):
        cwd = tmp_path_factory.mktemp(decisions)
        succeeded(*QUICK, f"evaluation.decisions={decisions}", cwd=cwd)
        folders.append(run_folder(cwd / "outputs"))
    return folders[0], folders[1]


@pytest.fixture(scope="module")
def log(both: tuple[Path, Path]) -> pd.DataFrame:
    return pd.read_csv(both[1] / "decisions.csv", float_precision="round_trip")


@pytest.mark.whole
def test_the_log_changes_no_other_file_and_is_of_another_identity(both: tuple[Path, Path]) -> None:
    without, with_log = both
    assert without.name != with_log.name
    assert not (without / "decisions.csv").exists()
    for name in ("metrics.csv", "summary.json", "policy/weights.safetensors"):
        assert (without / name).read_bytes() == (with_log / name).read_bytes()
    assert "  decisions.csv\n" in (with_log / "DONE").read_text()


def test_the_log_agrees_with_the_measures(both: tuple[Path, Path], log: pd.DataFrame) -> None:
    measures = pd.read_csv(both[1] / "metrics.csv").query("time_step > 0").set_index(["seed", "time_step"])
    log = log.assign(gain=(log["label"] - 0.5).fillna(0.0)).set_index(["seed", "time_step"])
    means = log.groupby(level=[0, 1])[["decision", "gain"]].mean()
    rates = log.groupby([*log.index.names, "s"])["decision"].mean().unstack()
    for name, found in (
        ("acceptance_rate", means["decision"]),
        ("acceptance_rate_advantaged", rates[1]),
        ("acceptance_rate_disadvantaged", rates[-1]),
        ("effective_utility", means["gain"].groupby("seed").expanding().mean().droplevel(0)),
    ):
        pd.testing.assert_series_equal(measures[name], found, atol=1e-6, check_names=False)


def test_weighted_decisions_stand_for_everybody(log: pd.DataFrame) -> None:
    propensity = log["propensity"]
    assert propensity.between(0.0, 1.0, inclusive="neither").all()
    standard_error = np.sqrt(((1 - propensity) / propensity).sum())
    assert abs((log["decision"] / propensity).sum() - len(log)) < 4 * standard_error


def test_a_deleted_log_is_written_again_from_the_checkpoint(both: tuple[Path, Path]) -> None:
    path = both[1] / "decisions.csv"
    before = path.read_bytes()
    path.unlink()
    cwd = path.parents[5]
    ended = succeeded(*QUICK, "evaluation.decisions=true", cwd=cwd)
    assert "decisions.csv is damaged or missing; the result is made again" in ended.stdout
    assert path.read_bytes() == before


def test_the_log_is_a_data_set(both: tuple[Path, Path], tmp_path: Path) -> None:
    told = succeeded("data", "describe", str(both[1] / "decisions.csv"), *OF_LOG, cwd=tmp_path)
    assert "Ready to run." in told.stdout
    assert "19 features" in told.stdout


def trained(folder: Path, *words: str) -> Training:
    """A run with the log, of random decisions unless other words are given."""
    training = training_of("model=random", "evaluation.decisions=true", *words)
    checkpoint = Checkpoint(folder / "checkpoint.pt", "none", seconds=float("inf"))
    training.run(checkpoint, no_cache(), Display(progress_only=True))
    return training


def in_rows(values: torch.Tensor) -> np.ndarray:
    """Values of applicants (T, E, N) in the order of the log."""
    return values.transpose(0, 1).flatten().numpy()


def test_the_log_has_what_the_decision_maker_saw(tmp_path: Path) -> None:
    training = trained(
        tmp_path, "dataset=fico", *ALL_PARTS, "world.noise.disadvantaged={positive: 1, negative: 0}"
    )
    table, history = decision_table(training), training.history
    accepted, lost = in_rows(history.accepted), in_rows(history.steps.read()["censored"])
    told, label = table["label"].notna().to_numpy(), table["label"].to_numpy(float, na_value=np.nan)
    assert (told == (accepted & ~lost)).all()
    assert 0.1 < lost[accepted].mean() < 0.3
    assert (label[told] == in_rows(history.steps.read()["revealed_label"])[told]).all()
    others = told & (in_rows(history.s) < 0)
    assert (label[others] == 0).all()
    assert (in_rows(history.label)[others] == 1).any()
    assert (table["propensity"].to_numpy() == in_rows(history.propensity)).all()
    assert (table.groupby(["seed", "time_step"])["decision"].sum() <= 32).all()


def assert_read_back(training: Training, folder: Path) -> pd.DataFrame:
    """Check that the file gives every tensor of the run back, and return its cells as text."""
    RunFolder(folder).write_decisions([decision_table(training)])
    text = pd.read_csv(folder / "decisions.csv", dtype=str, keep_default_na=False)
    history, people = training.history, [people for _, people in training.replayed()]
    raw, s, doubts = training.data.reader.read(text, refuse_unknown=True, refuse_empty=True)
    assert doubts == []
    x = training.data.scaler.transform(raw)
    assert torch.equal(x, torch.stack([step.x for step in people], 1).flatten(0, 2))
    assert (s == in_rows(history.s)).all()
    names = column_names(training.data)
    accepted, label = in_rows(history.accepted), in_rows(history.label)
    for column, expected in (
        ("propensity", in_rows(history.propensity)),
        ("decision", accepted),
        ("label", np.where(accepted, label, np.nan)),
    ):
        cells = pd.to_numeric(text[names[column]]).astype(np.float32)
        np.testing.assert_array_equal(cells, expected)
        assert column == "propensity" or set(text[names[column]]) <= {"0", "1", ""}
    return text


@pytest.mark.parametrize(
    "words",
    [
        ["dataset=synthetic"],
        ["dataset=credit", "protocol=published_code"],
        ["dataset=credit", "protocol.effective=decided_again", "model.acceptance_probability=0.3"],
        [
            "dataset=csv",
            *OF_LOANS,
            f"dataset.path={LOANS}",
            *"""
                dataset.decision=decision dataset.accepted=granted dataset.propensity=propensity
                dataset.max_categories=3
            """.split(),
        ],
    ],
    ids=["synthetic", "published code", "decided again", "csv"],
)
def test_the_file_gives_the_tensors_back(words: list[str], tmp_path: Path) -> None:
    assert_read_back(trained(tmp_path, *words), tmp_path)


def test_a_column_with_one_fraction_has_no_integers(tmp_path: Path) -> None:
    loans = pd.read_csv(LOANS, dtype=str, keep_default_na=False)
    late = loans["income"].ne("") & (loans.index % 100 == 17)  # the first rows have whole numbers only
    loans["dependants"] = np.where(late, "0.5", loans["dependants"])
    loans.to_csv(tmp_path / "loans.csv", index=False)
    words = "dataset.decision=decision dataset.accepted=granted dataset.kinds={dependants:real}".split()
    text = assert_read_back(
        trained(tmp_path, *OF_LOANS, f"dataset.path={tmp_path / 'loans.csv'}", *words), tmp_path
    )
    assert {"0.5", "1.0"} < set(text["dependants"])
    assert text["dependants"].str.contains(".", regex=False).all()


def test_words_and_groups_are_those_of_the_raw_file(raw_data: Path, tmp_path: Path) -> None:
    file = raw_data / "compas" / "compas-scores-two-years.csv"
    text = assert_read_back(trained(tmp_path, "dataset=compas", f"dataset.raw_file={file}"), tmp_path)
    columns = "seed time_step age_cat priors_count c_charge_degree race propensity decision label"
    assert " ".join(text) == columns
    assert set(text["race"]) == {"Caucasian", "African-American"}
    assert set(text["age_cat"]) == {"Less than 25", "25 - 45", "Greater than 45"}


def test_columns_of_the_log_make_room_for_those_of_the_data(tmp_path: Path) -> None:
    loans = pd.read_csv(LOANS, dtype=str, keep_default_na=False)
    loans = loans.rename(columns={"purpose": "seed", "job": "run_seed", "sex": "time_step"})
    loans.to_csv(tmp_path / "loans.csv", index=False)
    words = [*OF_LOANS, f"dataset.path={tmp_path / 'loans.csv'}", "dataset.sensitive=time_step"]
    training = trained(tmp_path, *words, "dataset.drop=[id,decision]")
    text = assert_read_back(training, tmp_path)
    assert " ".join(text) == (
        "run_run_seed run_time_step age income dependants seed home_owner run_seed propensity time_step "
        "run_propensity decision label"
    )
    assert set(text["time_step"]) == {"male", "female"}
    assert renamed(training.data) == [
        f"decisions.csv has the run's {word} in 'run_{name}'; {name.removeprefix('run_')!r} is a column of "
        "the data set"
        for word, name in (("seed", "run_seed"), ("time step", "time_step"), ("propensity", "propensity"))
    ]


@pytest.mark.parametrize("shift", [0.0, 1e6], ids=["near 0", "far from 0"])
def test_numbers_have_the_digits_they_were_written_with(shift: float) -> None:
    raw = shift + np.round(np.random.default_rng(0).normal(30, 20, 500), 1)
    raw[0] = 0.0
    income = Feature("income", Kind.REAL)
    scaler = Scaler(Schema([income]).measured(raw[:, None]))
    x = scaler.transform(raw[:, None]).numpy()[:, 0]
    found = raw_values(income, scaler, x)
    if shift == 0:
        np.testing.assert_array_equal(found, raw)
    np.testing.assert_array_equal(scaler.transform(found[:, None]).numpy()[:, 0], x)
    digits = [len(re.sub(r"\D|\.0$", "", str(number))) for number in found]
    assert max(digits) <= 8


def test_whole_numbers_and_words() -> None:
    values = 0.0, 3.0, 50.0
    visits = Feature("visits", Kind.COUNT)
    plain, x = Scaler(Schema([visits])), np.array(values, dtype=np.float32)
    counts = raw_values(visits, plain, x)
    assert counts.tolist() == [0, 3, 50]
    assert counts.dtype == np.int64
    words = "small", "(missing)", "L, XL"
    assert raw_values(Feature("size", Kind.CATEGORICAL, values, words), plain, x).tolist() == [*words]
    assert raw_values(Feature("size", Kind.CATEGORICAL, values), plain, x[1:]).tolist() == ["3", "50"]


def test_a_diverged_seed_has_no_propensities(tmp_path: Path) -> None:
    training = trained(tmp_path)
    history = training.history
    history.propensity.fill_(torch.nan)
    history.accepted.zero_()
    RunFolder(tmp_path).write_decisions([decision_table(training)])
    text = pd.read_csv(tmp_path / "decisions.csv", dtype=str, keep_default_na=False)
    assert set(text["propensity"]) == {""}
    assert set(text["label"]) == {""}
