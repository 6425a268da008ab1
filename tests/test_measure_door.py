"""A measure from outside the package: it appears everywhere, and mistakes are one line."""

import inspect
import json
import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

from fairall import metrics
from fairall.errors import FairAllError
from fairall.metrics import LATENT, STANDARD, load_measures
from fairall.online.evaluation import UTILITY_ERROR
from fairall.results.runs import load_result
from tests.conftest import CHECKOUT, Put, run_folder, succeeded
from tests.test_docs import run, written
from tests.test_extending import COMMANDS, SECTIONS


@pytest.mark.whole
def test_the_example_of_the_page_runs_and_its_measures_are_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_store: Put
) -> None:
    (command,), own = COMMANDS["A measure"], tmp_path / "my_measures.py"
    written(SECTIONS["A measure"], tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    empty_store(tmp_path / "outputs")
    shown = run(f"{command} objective=mean_equalized_odds", tmp_path)
    assert ("mean_equalized_odds" in shown, "missed" in shown) == (True, True)
    result = load_result(run_folder(tmp_path / "outputs"))
    excess = result.steps["equalized_odds"] - result.steps["equal_opportunity"]
    assert (excess.min() >= -1e-6) & (excess.max() > 1e-3)  # no measure that is built in
    assert result.steps["equalized_odds_sampled"].notna().all()
    assert result.last("missed").tolist() == pytest.approx(result.values("missed").tolist(), abs=1e-6)
    assert (result.values("missed") > 0).all()
    described = {measure.name: measure for measure in result.measures}["equalized_odds"]
    label, unit = "equalized-odds gap", "difference of shares"
    assert described == metrics.Quantity("equalized_odds", label, unit, False, metrics.SHARE, "policy")

    with closing(sqlite3.connect(tmp_path / "outputs" / "mlflow.db")) as store:
        logged = {name for (name,) in store.execute("select distinct key from metrics")}
    assert {"equalized_odds", "missed", "summary.mean_equalized_odds.mean", "seeds.missed"} <= logged

    # Another content of the file is another run; readers need no module of the user's.
    own.write_text(own.read_text() + "\nEDITED = True\n")
    run(f"{command} tracking.enabled=false", tmp_path)
    own.unlink()
    first, second = sorted((tmp_path / "outputs" / "runs").glob("*/*/*/DONE"))
    compared = run(f"python -m fairall compare {first.parent} {second.parent}", tmp_path)
    wanted = ("Further measures", "mean equalized-odds gap ↓", "mean acceptance rate")
    assert [words for words in wanted if words not in compared] == []


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of a module that can be imported once."""
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "some_measures.py"
    sys.modules.pop("some_measures", None)


HEAD = """\
import torch
from fairall.metrics import measure

@measure(label='l', unit='u', higher_is_better=None)
"""
MISTAKES = {
    "there is no such module": ("", "nowhere.at_all", "nowhere.at_all cannot be imported"),
    "no module is named": ("", "utility", "utility cannot be imported"),
    "there is no such function": ("x = 1", "some_measures.y", "some_measures.y cannot be imported"),
    "it is not decorated": ("def f(propensity): pass", "some_measures.f", "decorate the function"),
    "it is called like another": (f"{HEAD}def dpu(propensity): pass", "some_measures.dpu", "rename this one"),
    "unknown data": (f"{HEAD}def f(propensity, x): pass", "some_measures.f", "takes propensity, x"),
    "it measures nothing": (f"{HEAD}def f(label): pass", "some_measures.f", "takes label"),
    "it fails": (f"{HEAD}def f(propensity): return 1 / 0", "some_measures.f", "ZeroDivisionError"),
    "its shape is wrong": (
        f"{HEAD}def f(propensity): return propensity",
        "some_measures.f",
        "shape (2, 256)",
    ),
    "it is a number": (f"{HEAD}def f(accepted): return 1.0", "some_measures.f", "returns 1.0 for 2 seeds"),
    "it needs weights": (
        f"{HEAD}def f(propensity, weight): return propensity @ weight",
        "some_measures.f",
        "fails on made-up people with weight=None (TypeError",
    ),
    "it counts": (f"{HEAD}def f(accepted): return accepted.sum(-1)", "some_measures.f", "torch.int64"),
}


@pytest.mark.parametrize(("text", "name", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_one_line(text: str, name: str, message: str, module: Path) -> None:
    module.write_text(text)
    with pytest.raises(FairAllError, match=f"^evaluation.measures: .*{re.escape(message)}.*$"):
        load_measures([name])


def test_the_same_measure_twice_is_refused(module: Path) -> None:
    module.write_text(f"{HEAD}def f(propensity): return propensity.mean(-1)")
    *standard, further = load_measures(["some_measures.f"])
    assert (tuple(standard), further.name) == (STANDARD, "f")
    with pytest.raises(FairAllError, match="called f is there already"):
        load_measures(["some_measures.f", "some_measures.f"])


RIGHT = {
    "a mask of people": "def f(propensity, s): return propensity[:, s > 0].mean(-1)",
    "a loop over seeds": """def f(propensity, label, s):
    return torch.stack([of_seed[(s < 0) & (label > 0)].min() for of_seed in propensity])""",
    "people without weights": """def f(propensity, weight, ground_truth):
    assert ground_truth.shape == propensity.shape[1:]
    return propensity.mean(-1) if weight is None else propensity @ weight / weight.sum()""",
    "a loop over time steps": """def f(accepted, s):
    return torch.stack([(step & (group > 0)).float().mean(-1) for step, group in zip(accepted, s)])""",
    "places of a world": "def f(accepted, places): return accepted.sum(-1) / places",
    "keywords": "def f(accepted, *, places): return accepted.sum(-1) / places",
    "scores of groups": "def f(accepted, group_score): return group_score[..., 1] - group_score[..., 0]",
    "all else of a world": """def f(accepted, revealed_label, censored, oracle_accepted):
    known = accepted & ~censored
    return (known * revealed_label).sum(-1) - (oracle_accepted * revealed_label).sum(-1)""",
}


@pytest.mark.parametrize("text", RIGHT.values(), ids=RIGHT)
def test_measures_of_the_documented_shapes_are_accepted(text: str, module: Path) -> None:
    module.write_text(HEAD + text)
    assert load_measures(["some_measures.f"])[-1].name == "f"


@pytest.mark.parametrize("world", ["capacity", "static"])
def test_a_measure_of_places_has_values_where_there_are_places(world: str, module: Path) -> None:
    module.write_text(f"{HEAD}def filled(accepted, places): return accepted.sum(-1) / places")
    words = ["model=random", f"world={world}", "preset=quick", "seeds=2", "tracking.enabled=false"]
    succeeded(*words, "evaluation.measures=[some_measures.filled]", cwd=module.parent)
    table = pd.read_csv(run_folder(module.parent / "outputs") / "metrics.csv")
    filled = table.query("time_step > 0")["filled"]
    assert filled.between(0, 1).all() if world == "capacity" else filled.isna().all()


def test_names_in_the_results_of_a_run_are_refused(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Bytecode is taken for that of a file of the same length written in the same second.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    words = """
        model=fairall_I_II dataset=synthetic preset=quick seeds=1 schedule.warm_up_epochs=2
        evaluation.split=validation tracking.enabled=false
    """.split()
    succeeded(*words, cwd=module.parent)
    folder = run_folder(module.parent / "outputs")
    summary = json.loads((folder / "summary.json").read_text())
    names = {*pd.read_csv(folder / "metrics.csv"), *summary["per_seed"][0], UTILITY_ERROR}
    measured = {*LATENT} - {"latent_s_mmd"}  # of more than two groups
    assert {"seed", "mean_dpu", "classification_loss", "phase1_best_epoch"} | measured <= names
    for name in sorted(names):
        module.write_text(f"{HEAD}def {name}(propensity): return propensity.mean(-1)")
        sys.modules.pop("some_measures", None)
        with pytest.raises(FairAllError, match=f"called {name} is there already; rename this one"):
            load_measures([f"some_measures.{name}"])


def test_the_page_on_measures_has_a_row_of_each() -> None:
    page = (CHECKOUT / "docs" / "measures.md").read_text()
    for one in STANDARD:
        better = {None: "", True: "higher", False: "lower"}[one.higher_is_better]
        extent = "" if one.bounds == metrics.UNBOUNDED else f"[{one.bounds[0]:g}, {one.bounds[1]:g}]"
        definition = str(inspect.getdoc(one.function)).partition("\n")[0].replace("|", r"\|")
        needs = ", ".join(f"`{name}`" for name in one.needs)
        cells = (f"`{one.name}`", one.label, one.unit, better, extent, definition, needs)
        assert f"| {' | '.join(cells)} |" in page.splitlines()
