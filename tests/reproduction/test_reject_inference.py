"""The study of reject inference: rejectkit's splits and masks, and differences from accepted only."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from sklearn.model_selection import train_test_split

from fairall import FairAllError
from reproduction import reject_inference as study
from reproduction.pages import read_table

PAGE = Path(__file__).parents[2] / "docs" / "reject_inference.md"
SENTENCES = yaml.safe_load(Path(__file__).with_suffix("").joinpath("sentences.yaml").read_text())
SMALL: dict[str, Any] = {
    "states": 2,
    "most": 600,
    "FairAll": {name: {"model": "accepted_only"} for name in ("Every label", "Accepted only")},
    "rejectkit": {
        "Every label": {},
        "Accepted only": {},
        "Parcelling": {"method": "parcelling", "parameters": {"uplift": 1.5}},
        "Heckman": {"method": "heckman"},
    },
}


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The package, and a study of two random states of German Credit."""
    monkeypatch.setattr(study, "STUDY", study.STUDY | SMALL)
    monkeypatch.setitem(study.AXES, "dataset", ["credit"])
    return pytest.importorskip("rejectkit", reason="pip install rejectkit==0.3.0")


def test_differences_are_within_people_split_and_mask() -> None:
    # On two data sets and three states; in the first state methods gain nothing, which is no recovery.
    gains = {"Accepted only": 0.0, "Every label": 0.02, "Heckman": -0.01}
    axes = ({"credit": 0.7, "compas": 0.6}, range(3), gains)
    index = pd.MultiIndex.from_product(axes, names=["dataset", "state", "method"])
    auc = [axes[0][data] + state * (0.01 + gains[method]) for data, state, method in index]
    found = pd.DataFrame({"auc": auc, "ks": auc, "utility": auc, "parity_utility": np.nan}, index)
    found = found.assign(selection="mar", code="FairAll", dpu=0.1, parity_dpu=0.0).reset_index()
    items: list[Any] = study.items_of(found, [])
    figure, table, by_data = items
    names = [f"{name} (FairAll)" for name in gains]
    assert [*table.frame.index] == [("by features", name) for name in names]
    assert [*map(str, table.frame.iloc[1, :3])] == ["2.0 [−3.0, 7.0]", "100", "2.0 [−3.0, 7.0]"]
    assert [*map(str, table.frame.iloc[2, [0, 1, 4, 5]])] == ["−1.0 [−3.5, 1.5]", "−50", "", "10.0"]
    assert [*map(str, by_data.frame.iloc[2])] == ["−1.0 [−3.5, 1.5]"] * 4
    drawn = [line.get_xydata()[0].tolist() for line in figure.draw().axes[0].get_lines()[:2]]
    assert np.allclose(drawn, [[2.0, 1.15], [-1.0, 0.15]])


@pytest.mark.parametrize(
    ("installed", "word", "why"),
    [
        (None, "selection=mar", r"^reject_inference: .*; pip install rejectkit==0\.3\.0$"),
        (object(), "selection=nar", "^selection=nar: not possible; there are mar, mnar, cutoff$"),
    ],
)
def test_mistakes_are_one_line(
    installed: object, word: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rejectkit", installed)
    with pytest.raises(FairAllError, match=why):
        study.reject_inference([word, f"outputs_dir={tmp_path}"])


@pytest.mark.parametrize("selection", ["mar", "mnar", "cutoff"])
def test_masks_and_measures_are_those_of_the_package(
    selection: str, package: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole: list[np.ndarray] = []

    def split(*arrays: np.ndarray, **options: Any) -> list[np.ndarray]:
        whole.extend(arrays)
        return train_test_split(*arrays, **options)

    monkeypatch.setattr(study, "train_test_split", split)
    people = study.masked("credit", selection, 1)
    strength = 1.0 if selection == "mnar" else 2.0
    assert abs(people.accepted.mean() - 0.6) < 0.01
    benchmark = package.MaskedRejectBenchmark(selection, selection_strength=strength, random_state=1)
    everybody, given = np.column_stack(whole[:2]), {"parcelling": {"uplift": 1.5}}
    table = benchmark.compare(["parcelling", "heckman"], everybody, 1 - whole[2], method_params=given)
    ours = {row["method"]: row for row in study.judged(people, 1) if row["code"] == study.THEIRS}
    for theirs, name in zip(("oracle", "naive", "parcelling", "heckman"), SMALL["rejectkit"], strict=True):
        assert [ours[name][key] for key in ("auc", "ks")] == pytest.approx(
            [*table.loc[theirs, ["auc", "ks"]]], abs=1e-12
        )


def test_a_study_goes_on_from_what_it_has(
    package: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["selection=mar", f"outputs_dir={tmp_path}"]
    assert study.reject_inference(words)
    assert "credit, mar: 12 fits" in capsys.readouterr().out
    assert "Accepted only (FairAll)" in (tmp_path / "reject_inference" / "index.html").read_text()
    assert study.reject_inference(words)
    assert "fits" not in capsys.readouterr().out


class Cell(str):
    """A shown cell, in sentences by its mean."""

    def __format__(self, form: str) -> str:
        mean = self.split(" ")[0]
        return {"": mean, "all": str(self), "loss": mean[1:]}[form]


def test_what_the_page_says_is_in_its_tables() -> None:
    page = " ".join(PAGE.read_text().replace("\\", "").split())
    table, by_data = (read_table(f"reject_inference{of}") for of in ("", "_data"))
    assert len(table) == len(by_data) == 3 * sum(len(study.STUDY[code]) for code in ("FairAll", "rejectkit"))
    shown = table.join(by_data)
    for sentence in SENTENCES:
        cells = [Cell(shown.loc[(selection, name), column]) for selection, name, column in sentence["of"]]
        assert sentence["say"].format(*cells) in page
    mean = shown.map(lambda cell: float(cell.split(" ")[0].replace("−", "-") or "nan"))
    gain = mean[["AUC ↑", "utility ↑"]]
    features, label, score = (gain.loc[selection] for selection in study.SELECTIONS.values())
    assert (features.drop(["Every label (FairAll)", "Every label (rejectkit)"]) <= 0).all(axis=None)
    assert label.loc["Parcelling, uplift 1 (FairAll)"].max() <= 0
    parcelling = score.filter(like="(FairAll)", axis=0).filter(like="Parcelling", axis=0)
    assert parcelling["utility ↑"].idxmax() == "Parcelling, uplift 1.5 (FairAll)"
    assert (
        mean.loc["by features and the label", "Parcelling, uplift 2 (FairAll)"].filter(regex="AUC,|utility,")
        > 0
    ).all()
    names = shown.index.get_level_values("name")
    fuzzy = shown[names.str.startswith("Fuzzy")].filter(regex="^(AUC|KS|utility) ↑")
    assert {*fuzzy.to_numpy().flat} == {"0.0 [0.0, 0.0]"}
    ours = gain[names.str.match(r"(Reweighting|Parcelling|Fuzzy).*\(FairAll")]
    theirs = gain.loc[[(selection, name.replace("FairAll", "rejectkit")) for selection, name in ours.index]]
    assert abs(ours.to_numpy() - theirs.to_numpy()).max() < 0.11
