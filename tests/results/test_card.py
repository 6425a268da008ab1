"""Model cards, and the groups of people that they describe."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch
from pytest_regressions.file_regression import FileRegressionFixture
from torch import nan

import fairall
from fairall.config.choices import configuration_root, shown
from fairall.data.credit import MALE, raw_applicants
from fairall.data.load import load_dataset
from fairall.display.format import CAUTION
from fairall.measuring.measure import groups
from fairall.metrics import Spread
from fairall.results.card import described, model_card, page_of, texts
from fairall.results.result import Result
from fairall.storage.run_folder import CARD, RunFolder
from tests.conftest import CHECKOUT, LOANS, MEANING, run_folder, succeeded, typed_line
from tests.made_up import made_up

RUN = ["preset=quick", "model=fairlog", "cost.value=0.4", "tracking.enabled=false"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cwd = tmp_path_factory.mktemp("card")
    succeeded(*RUN, cwd=cwd)
    return run_folder(cwd / "outputs")


TABLE = f"dataset=csv dataset.path=loans|x.csv dataset.drop=[id,decision] {' '.join(MEANING)}"


@pytest.mark.parametrize(
    ("preset", "words"), [("quick", "dataset=credit"), (None, "dataset=credit"), (None, TABLE)]
)
def test_the_card_of_a_result(preset: str | None, words: str, file_regression: FileRegressionFixture) -> None:
    """One that decides as the configuration says, and those of a method that has one way to decide."""
    levels = {"accept_all": {"effective_dpu": 0.02}, "oracle": {"mean_utility": 0.21}}
    made = made_up("model=fairlog", *words.split(), references=levels, sensitive_column="sex`|_")
    model = {key: value for key, value in made.config.model.items() if preset or key != "decision"}
    config = replace(made.config, model=model, preset=preset, seeds=10 if preset else 1)
    card = model_card(replace(made, config=config, warnings=[CAUTION] if preset else []), "0" * 12)
    file_regression.check(card.replace(fairall.__version__, "VERSION"), extension=".md", encoding="utf-8")


def test_a_run_has_the_card_of_its_result_among_its_files(folder: Path) -> None:
    card, result = (folder / CARD).read_text(encoding="utf-8"), Result.read(RunFolder(folder))
    assert model_card(result, folder.name) == card
    assert CARD in (folder / "DONE").read_text()
    assert "A94, among the men (S = +1), are single women" in " ".join(card.split())
    assert f"- Warning: {CAUTION}" in card


def test_the_command_of_the_card_makes_the_run_of_its_id(folder: Path) -> None:
    card = (folder / CARD).read_text(encoding="utf-8")
    (line,) = (line for line in card.splitlines() if line.startswith("    python -m fairall "))
    again = typed_line(f"{line} {RUN[-1]}", folder.parents[4])
    assert "Already done" in again.stdout


def test_groups_are_those_of_the_data(folder: Path) -> None:
    male = raw_applicants()["personal_status"].isin(MALE)
    result, table = Result.read(RunFolder(folder)), pd.read_csv(folder / "metrics.csv")
    for group, n, column in (
        ("advantaged", male.sum(), "acceptance_rate_advantaged"),
        ("disadvantaged", (~male).sum(), "acceptance_rate_disadvantaged"),
        ("all", len(male), "acceptance_rate"),
    ):
        people = result.groups[group]
        assert sum(people.people.values()) == people.labelled == n
        later = table[table["time_step"].between(4, 8)]
        for spread, rows in ((people.accepted, table), (people.accepted_in_window, later)):
            assert spread is not None
            assert spread.mean == pytest.approx(rows.groupby("seed")[column].mean().mean(), abs=1e-6)
    assert result.groups["all"].people == {"train": 700, "validation": 150, "test": 150}
    assert result.groups["advantaged"].values == MALE
    assert result.sensitive_column == "personal_status"


# Acceptance rates of two seeds in two time steps, of which the second has diverged.
RATES = {
    "utility": torch.tensor([[0.1, 0.1], [0.1, nan]]),
    "acceptance_rate": torch.tensor([[nan, nan], [0.5, 0.0]]),
    "acceptance_rate_advantaged": torch.tensor([[nan, nan], [0.25, 0.0]]),
    "acceptance_rate_disadvantaged": torch.full((2, 2), nan),
}


def test_base_rates_where_only_the_accepted_have_labels() -> None:
    words = (
        "dataset.drop=[id] dataset.decision=decision dataset.accepted=granted dataset.propensity=propensity"
    )
    data = load_dataset("csv", f"dataset.path={LOANS}", *MEANING, *words.split()).prepare()
    people = data.train
    made = groups(data, RATES, (0, 1))
    assert people.label_weight is not None
    for group, rows in (("advantaged", people.s == 1), ("disadvantaged", people.s == -1)):
        weight = people.label_weight[rows]
        expected = float((weight * people.label[rows]).sum() / weight.sum())
        assert made[group].base_rate == pytest.approx(expected, abs=1e-6)
    assert made["all"].labelled < sum(made["all"].people.values()) == 400
    accepted = [made[group].accepted for group in ("all", "advantaged", "disadvantaged")]
    assert accepted == [Spread(0.5, None, None), Spread(0.25, None, None), None]


def test_every_method_has_a_page_and_every_data_set_terms_and_caveats() -> None:
    for path in (configuration_root() / "conf" / "model").glob("*.yaml"):
        page = page_of(path.stem)
        assert page is not None
        assert (CHECKOUT / page).is_file(), path
        assert shown(path.stem)["label"]
        assert (described("model", path.stem) or "").endswith("."), path
    shipped = {path.stem for path in (configuration_root() / "conf" / "dataset").glob("*.yaml")} - {"csv"}
    assert texts().keys() == shipped
    assert all(of["terms"] and of["caveats"] for of in texts().values())
    assert page_of("mine") is described("model", "mine") is None
