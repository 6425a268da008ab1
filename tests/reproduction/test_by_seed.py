"""Values by seed: a table of every study that is published, from which its intervals can be computed anew."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from fairall import places
from reproduction.by_seed import FIRST_UTILITY
from reproduction.pages import BESIDE, BLOCK, publish
from reproduction.plan import Planned, with_runs
from tests.reproduction.collection import planned, result

DOCS = Path(__file__).parents[2] / "docs"


def finished() -> list[Planned]:
    """The made-up runs of greedy and AdOpt of the leaderboard on two data sets."""
    needed = planned("leaderboard_methods", "dataset=credit,compas", "model=greedy,adopt,plot")
    runs = [result(*one.words, number=k) for k, one in enumerate(needed) if one.model != "plot"]
    return with_runs(needed, runs)


def test_values_can_be_read_from_the_file(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- begin: tables/leaderboard_by_seed -->\n<!-- end: tables/leaderboard_by_seed -->\n")
    config = replace(places([]), outputs_dir=str(tmp_path), preset="full")
    publish("leaderboard", "Title", {}, config, into=[page], runs=finished())
    ((_, content),) = BLOCK.findall(page.read_text())
    assert content.startswith("[Values by seed](tables/leaderboard_by_seed.csv).")
    assert "by seed" not in (tmp_path / "leaderboard" / "index.html").read_text()
    read = pd.read_csv(
        tmp_path / BESIDE / "leaderboard_by_seed.csv", index_col=["group", "name", "measure"]
    ).sort_index()
    runs = {(one.dataset, one.model): one.run for one in finished() if one.run is not None}
    labels = {"credit": "German Credit", "compas": "COMPAS"}
    assert {key[:2] for key in read.index} == {(labels[of], f"model={model}") for of, model in runs}
    assert not [name for *_, name in read.index if "sampled" in name]
    for (dataset, model), run in runs.items():
        own = read.loc[labels[dataset], f"model={model}"]
        for measure in ("effective_utility", "mean_dpu"):
            assert [*own.loc[measure]] == pytest.approx([*run.values(measure)], rel=1e-3)
        assert [*own.loc[FIRST_UTILITY]] == pytest.approx([*run.curve("utility").iloc[0]], rel=1e-3)


@pytest.mark.parametrize(
    ("command", "page"),
    [
        ("leaderboard", "leaderboard_tables"),
        ("ablation", "ablation"),
        ("worlds", "worlds_results"),
        ("questions", "questions_truth"),
    ],
)
def test_every_study_publishes_its_values_by_seed(
    command: str, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    module = import_module("reproduction.leaderboard" if command == "leaderboard" else "reproduction.study")
    monkeypatch.setattr(module, "publish", lambda name, *_, runs, **__: told.append((name, runs)))
    monkeypatch.setattr(module, "load_results", lambda *_: SimpleNamespace(results=[]))
    monkeypatch.setattr(module, "make", lambda *_, **__: [])
    monkeypatch.setattr(module, "plan", lambda *_, **__: finished())
    asked = {"asked": ["truth"]} if command == "questions" else {}
    getattr(import_module(f"reproduction.{command}"), command)([], **asked)
    ((name, runs),) = told
    assert [one.key for one in runs] == [one.key for one in finished()]
    assert f"<!-- begin: {BESIDE}{name}_by_seed -->" in (DOCS / f"{page}.md").read_text()
