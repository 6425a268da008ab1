"""What Python and notebooks show of results, evaluations, ledgers and tables; runs by keywords."""

import base64
import io
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image

import fairall
from fairall.display.progress import Display
from fairall.display.viewed import Viewed
from fairall.errors import FairAllError
from fairall.evaluate import evaluate
from tests.conftest import LOANS, MEANING

QUICK: dict[str, Any] = {"preset": "quick", "tracking": {"enabled": False}}
QUIET = Display(progress_only=True)
DATA = [f"dataset.path={LOANS}", *MEANING, "dataset.drop=[id]"]
OF_LOG = {"decision": "decision", "accepted": "granted", "label": "repaid", "positive": "yes", "cost": 0.6}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Viewed]:
    """One of each class that is shown."""
    folder = tmp_path_factory.mktemp("shown")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPLBACKEND", "agg")
        result = fairall.run(
            "model=greedy", "dataset=credit", seeds=2, outputs_dir=folder, display=QUIET, **QUICK
        )
    words = ["model=greedy", "preset=quick", "seeds=1", "tracking.enabled=false", f"outputs_dir={folder}"]
    ledger = fairall.Ledger.start(folder / "ledger.db", *words, "dataset=csv", *DATA)
    people = pd.read_csv(LOANS).drop(columns="repaid")
    ledger.decide(people)
    log = pd.read_csv(LOANS).replace({"sex": {"female": "<b>female</b>"}})
    judged = evaluate("propensity", log, propensity="propensity", sensitive="sex", drop=["id"], **OF_LOG)
    return {
        "result": result,
        "evaluation": judged,
        "ledger": ledger,
        "table": fairall.load_dataset("credit").table(),
    }


EACH = pytest.mark.parametrize("name", ["result", "evaluation", "ledger", "table"])


@EACH
def test_notebooks_and_terminals_show_what_is_there(name: str, shown: dict[str, Viewed]) -> None:
    viewed = shown[name]
    assert repr(viewed).startswith(f"{type(viewed).__name__}: {viewed.title}")
    assert len(repr(viewed).splitlines()) <= 10
    html = viewed._repr_html_()
    (picture,) = re.findall(r"base64,([^\"]+)", html)
    assert Image.open(io.BytesIO(base64.b64decode(picture))).size[0] > 300
    assert html.count("<tr") == len(viewed.summary()) + 1
    assert not re.search("<b>female|href=|<html", html)  # neither markup of the data nor links to files
    frame = viewed.to_frame()
    rows = len(frame)
    frame.drop(frame.index, inplace=True)
    assert len(viewed.to_frame()) == rows > 0


@EACH
def test_plot_draws_each_figure_on_axes(name: str, shown: dict[str, Viewed]) -> None:
    for what in shown[name].figures:
        axes = Figure().subplots()
        assert shown[name].plot(what, axes=axes) is axes
        assert axes.lines or axes.patches
    with pytest.raises(FairAllError, match="plot 'nothing': the figures are "):
        shown[name].plot("nothing", axes=axes)
    with mpl.rc_context():
        plt.switch_backend("agg")
        figure = shown[name].plot().figure  # of pyplot, which notebooks show
        assert plt.get_fignums() == [figure.number]  # type: ignore[union-attr]
        plt.close("all")


def test_a_summary_of_a_table_counts_groups(shown: dict[str, Viewed]) -> None:
    summary = shown["table"].summary()
    assert summary["people"].tolist() == [310, 690, 1000]
    assert summary["base_rate"].tolist() == pytest.approx([201 / 310, 499 / 690, 0.7])
    assert [*shown["table"].to_frame()][-2:] == ["s", "label"]


def test_a_ledger_that_is_not_there_is_shown_in_one_line() -> None:
    ledger = fairall.Ledger("<nowhere>.db")
    assert repr(ledger).startswith("Ledger: <nowhere>.db: no ledger there")
    assert ledger._repr_html_().startswith("<pre>Ledger: &lt;nowhere&gt;.db: no ledger")


def test_words_keywords_and_a_configuration_are_one_run(shown: dict[str, Any]) -> None:
    place = shown["result"].path.parents[3]
    words = ["model=greedy", "dataset=credit", "preset=quick", "seeds=2", "tracking.enabled=false"]
    composed = fairall.compose_config(*words, outputs_dir=place)
    assert fairall.run(composed, display=QUIET).identity == shown["result"].identity
    again = fairall.run(model="greedy", dataset="credit", seeds=2, outputs_dir=place, display=QUIET, **QUICK)
    assert again.identity == shown["result"].identity


def test_values_keep_their_types() -> None:
    made = fairall.compose_config(
        dataset={"split": {"random_state": np.int64(3)}},
        outputs_dir=Path("a b,c"),
        evaluation={"window": (1, 2)},
        threads=None,
        tracking={"experiment": "null"},
    )
    assert (made.dataset.split.random_state, made.outputs_dir) == (3, "a b,c")
    assert (made.evaluation.window, made.threads, made.tracking.experiment) == ([1, 2], None, "null")


@pytest.mark.parametrize(
    ("words", "values", "told"),
    [
        ([["seeds=2"]], {}, "cannot read "),
        ([3], {}, "cannot read '3': it is not KEY=VALUE"),
        ([], {"model": pd.DataFrame()}, "model: DataFrame is no text, number"),
        ([], {"model": "gredy"}, "model=gredy: no such model, did you mean greedy?"),
        ([fairall.compose_config()], {"seeds": 2}, "seeds: give a configuration, or words"),
    ],
)
def test_what_cannot_be_meant_is_said_in_one_line(
    words: list[Any], values: dict[str, Any], told: str
) -> None:
    with pytest.raises(FairAllError) as raised:
        fairall.run(*words, **values)
    assert str(raised.value).startswith(told)
    assert "\n" not in str(raised.value)
