"""The study of reject inference: rejectkit's splits and masks, and differences from accepted only."""

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from fairall import FairAllError
from reproduction import reject_inference as study
from reproduction.pages import read_table

DOCS = Path(__file__).parents[2] / "docs"
SMALL = {
    "dataset": ["credit"],
    "selection": ["mar", "mnar", "cutoff"],
    "states": 2,
    "most": 600,
    "accept_rate": 0.6,
    "strength": 2.0,
    "weaker": {"credit": 1.0},
    "test_size": 0.3,
    "ours": {
        "Accepted only": {"model": "accepted_only"},
        "Fuzzy augmentation": {"model": "fuzzy_augmentation"},
    },
    "theirs": {
        "Parcelling": {"method": "parcelling", "parameters": {"uplift": 1.5}},
        "Heckman": {"method": "heckman"},
    },
}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A study of two random states of German Credit, which is in the package."""
    monkeypatch.setattr(study, "axes", lambda: SMALL)


def made_up(**gains: float) -> pd.DataFrame:
    """Measures of three methods on two data sets and three states, with known differences."""
    rows = []
    for dataset, level in (("credit", 0.7), ("compas", 0.6)):
        for state in range(3):
            for method, gain in {"Accepted only": 0.0, **gains}.items():
                value = level + 0.01 * state + gain * (1 + state - 1)
                row = {"dataset": dataset, "selection": "mar", "state": state, "code": "FairAll"}
                row |= dict.fromkeys(("auc", "ks", "utility", "parity_utility"), value)
                rows.append({**row, "method": method, "dpu": 0.1, "parity_dpu": 0.0})
    return pd.DataFrame(rows)


def test_differences_are_within_people_split_and_mask() -> None:
    found = made_up(**{"Every label": 0.02, "Heckman": -0.01})
    gain = study.differences(found, "auc")
    np.testing.assert_allclose(
        gain.loc["mar", "FairAll", "Heckman", "credit"], [0.0, -0.01, -0.02], atol=1e-12
    )
    spread = study.over_data_sets(gain, ("mar", "FairAll", "Every label"))
    assert spread is not None
    assert spread.mean == pytest.approx(0.02)
    assert spread.std == pytest.approx(0.02)
    assert study.over_data_sets(gain, ("mar", "rejectkit", "Heckman")) is None


def test_recovery_is_of_cells_with_a_clear_gap() -> None:
    recovery = study.recovered(made_up(**{"Every label": 0.02, "Heckman": -0.01}))
    # In the first state the oracle gains nothing.
    assert recovery["mar", "FairAll", "Heckman"] == pytest.approx(-0.5)
    assert recovery["mar", "FairAll", "Every label"] == pytest.approx(1.0)


def test_tables_have_a_row_per_method_and_the_figure_is_drawn() -> None:
    items = study.items_of(made_up(**{"Every label": 0.02, "Heckman": -0.01}), [])
    table, by_data = (item for item in items if isinstance(item, study.PageTable))
    assert [name for _, name in table.frame.index] == [
        "Accepted only (FairAll)",
        "Every label (FairAll)",
        "Heckman (FairAll)",
    ]
    assert table.frame.iloc[2, 0].startswith("−1.0 [")
    assert by_data.frame.shape == (3, 4)
    (figure,) = (item for item in items if isinstance(item, study.PageFigure))
    assert figure.draw is not None
    assert len(figure.draw().axes) == 2


def test_a_missing_package_is_one_line_that_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rejectkit", None)
    with pytest.raises(FairAllError, match=r"^reject_inference: .*; pip install rejectkit==0\.3\.0$"):
        study.reject_inference([])


def test_a_wrong_word_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rejectkit", object())
    with pytest.raises(FairAllError, match=r"^selection=nar: not possible; there are mar, mnar, cutoff$"):
        study.reject_inference(["selection=nar", f"outputs_dir={tmp_path}"])


@pytest.mark.parametrize("selection", ["mar", "mnar", "cutoff"])
def test_masks_and_measures_are_those_of_the_package(selection: str, small: None) -> None:
    package = pytest.importorskip("rejectkit", reason="pip install rejectkit==0.3.0")
    people = study.masked("credit", selection, 1)
    bad, train = 1 - people.label, people.train
    x, draw = people.seen[train], np.random.default_rng(1)
    if selection == "cutoff":
        score = -LogisticRegression(max_iter=1000).fit(x, bad[train]).predict_proba(x)[:, 1]
    else:
        own = StandardScaler().fit_transform(x) @ draw.normal(size=x.shape[1])
        strength = 2.0 if selection == "mar" else 1.0
        score = strength * own / own.std() + draw.normal(size=len(x))
        score += 0.0 if selection == "mar" else 1.0 - 2.0 * bad[train]
    assert (people.accepted == (score >= np.quantile(score, 0.4))).all()
    assert abs(people.accepted.mean() - 0.6) < 0.01

    strength = 1.0 if selection == "mnar" else 2.0
    benchmark = package.MaskedRejectBenchmark(selection, selection_strength=strength, random_state=1)
    parameters = {"parcelling": {"uplift": 1.5}}
    table = benchmark.compare(["parcelling", "heckman"], people.seen, bad, method_params=parameters)
    ours: dict[str, Any] = {name: of for code, name, of in study.judged(people, 1) if code == study.THEIRS}
    named = {
        "oracle": "Every label",
        "naive": "Accepted only",
        "parcelling": "Parcelling",
        "heckman": "Heckman",
    }
    for theirs, name in named.items():
        assert [ours[name][key] for key in ("auc", "ks")] == pytest.approx(
            table.loc[theirs, ["auc", "ks"]].tolist(), abs=1e-12
        )


def test_a_study_goes_on_from_what_it_has(small: None, tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip("rejectkit", reason="pip install rejectkit==0.3.0")
    words = ["selection=mar", f"outputs_dir={tmp_path}"]
    assert study.reject_inference(words)
    assert "credit, mar: 14 fits" in capsys.readouterr().out
    page = (tmp_path / "reject_inference" / "index.html").read_text()
    assert "Fuzzy augmentation (FairAll)" in page
    assert study.reject_inference(words)
    assert "fits" not in capsys.readouterr().out


FEATURES, LABEL, SCORE = study.SELECTIONS.values()


def test_what_the_page_says_is_in_its_tables() -> None:
    text = (DOCS / "reject_inference.md").read_text()
    page = " ".join(text.split())
    rows = re.findall(r"^\| (by [\w ]+) \| (.+?) \((\w+)\) \| (.+) \|$", text, re.MULTILINE)
    assert len(rows) == 3 * (len(study.axes()["ours"]) + len(study.axes()["theirs"]) + 3)
    table = {(code, selection, method): cells.split(" | ") for selection, method, code, cells in rows}

    def shown(selection: str, method: str, column: int, code: str = study.OURS) -> str:
        return table[code, selection, method][column]

    def mean(selection: str, method: str, column: int, code: str = study.OURS) -> str:
        return shown(selection, method, column, code).split(" ")[0]

    def loss(*cell: Any) -> str:
        value = mean(*cell)
        assert value.startswith("−")
        return value.removeprefix("−")

    auc, utility, fair, dpu, fair_dpu = 0, 3, 4, 5, 6
    two, basl = "Parcelling, uplift 2", "BASL"
    every = [mean(FEATURES, "Every label", column) for column in (auc, utility)]
    assert f"every label would add but {every[0]} of AUC and {every[1]} of utility" in page
    for column in (auc, utility):
        assert not [
            key
            for key, cells in table.items()
            if key[1] == FEATURES and key[2] != "Every label" and not re.match("−|0.0 ", cells[column])
        ]
    assert (
        f"uplift 2 costs {loss(FEATURES, two, utility)} of utility and BASL {loss(FEATURES, basl, utility)}"
        in page
    )
    every = [mean(LABEL, "Every label", column) for column in (auc, utility)]
    assert f"worth {every[0]} of AUC and {every[1]} of utility there" in page
    assert f"uplift 2 gains {shown(LABEL, two, auc)} and {shown(LABEL, two, utility)}" in page
    assert [mean(LABEL, "Parcelling, uplift 1", column) for column in (auc, utility)] == ["0.0", "−0.1"]
    assert f"Reweighting gains {shown(SCORE, 'Reweighting', utility)} of utility" in page
    assert f"rejectkit's Heckman {shown(SCORE, 'Heckman', utility, study.THEIRS)}" in page
    least = min(float(loss(SCORE, f"Parcelling, uplift {uplift}", utility)) for uplift in ("1", "1.5", "2"))
    assert f"parcelling loses {least} or more" in page
    lost = [loss(SCORE, name, auc, study.THEIRS) for name in ("Reclassification", "Self-learning")]
    assert f"BASL loses {loss(SCORE, basl, auc)} of AUC, rejectkit's reclassification {lost[0]}" in page
    assert f"its self-learning {lost[1]}" in page
    assert f"uplift 2 earns {shown(LABEL, two, fair)} more" in page
    assert f"a DPU of {shown(LABEL, two, fair_dpu)} in the place of {shown(LABEL, two, dpu)}" in page
    fuzzy = [cells for key, cells in table.items() if key[2] == "Fuzzy augmentation"]
    assert {cell for cells in fuzzy for cell in cells[:1] + cells[2:4]} == {"0.0 \\[0.0, 0.0\\]"}
    for code, selection, method in table:
        if code == study.OURS and method.startswith(("Reweighting", "Parcelling", "Fuzzy")):
            for column in (auc, utility):
                both = [
                    mean(selection, method, column, one).replace("−", "-") for one in (code, study.THEIRS)
                ]
                assert abs(float(both[0]) - float(both[1])) < 0.11

    by_data = read_table("reject_inference_data").T.to_dict()

    def of(selection: str, method: str, dataset: str) -> str:
        return by_data[selection, f"{method} (FairAll)"][f"AUC, {dataset}"].split(" ")[0]

    compas, made_up = (of(LABEL, "Heckman", name) for name in ("COMPAS", "Synthetic"))
    assert (
        f"Heckman gains {compas} of AUC on COMPAS and loses {made_up.removeprefix('−')} on synthetic" in page
    )
    compas, meps = of(LABEL, basl, "COMPAS"), of(SCORE, basl, "MEPS")
    assert (
        f"BASL gains {compas} on COMPAS, and behind a cut-off loses {meps.removeprefix('−')} on MEPS" in page
    )
    gains = by_data[LABEL, f"{two} (FairAll)"]
    assert all(re.match(r"(?!0\.0)\d", gains[column]) for column in gains if re.match("AUC|utility", column))
