"""The study of reject inference: rejectkit's splits and masks, and differences from accepted only."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from fairall import FairAllError
from fairall.results import Lacking
from reproduction import reject_inference as study

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
    items = study.items_of(made_up(**{"Every label": 0.02, "Heckman": -0.01}), Lacking())
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
