"""Values by seed: a table of every study that is published, from which its intervals can be computed anew."""

import csv
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fairall import places
from fairall.report import paired_difference
from reproduction.by_seed import FIRST_UTILITY, by_seed_table
from reproduction.pages import BESIDE, BLOCK, publish
from reproduction.plan import Planned, with_runs
from tests.reproduction.collection import planned, result

DOCS = Path(__file__).parents[2] / "docs"


def finished() -> list[Planned]:
    """The made-up runs of greedy and AdOpt of the leaderboard on two data sets."""
    needed = planned("leaderboard_methods", "dataset=credit,compas", "model=greedy,adopt,plot")
    runs = [
        replace(result(*one.words, number=number), path=Path(f"{number}"))
        for number, one in enumerate(needed)
        if one.model != "plot"
    ]
    return with_runs(needed, runs)


def test_intervals_of_differences_can_be_computed_from_the_file(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- begin: tables/leaderboard_by_seed -->\n<!-- end: tables/leaderboard_by_seed -->\n")
    own = finished()
    config = replace(places([]), outputs_dir=str(tmp_path), preset="full")
    publish("leaderboard", "Title", {}, config, into=[page], runs=own)
    ((_, content),) = BLOCK.findall(page.read_text())
    assert content.startswith("[Values by seed](tables/leaderboard_by_seed.csv).")
    assert "by seed" not in (tmp_path / "leaderboard" / "index.html").read_text()
    with (tmp_path / BESIDE / "leaderboard_by_seed.csv").open(newline="") as stream:
        rows = {(row["group"], row["name"], row["measure"]): row for row in csv.DictReader(stream)}
    runs = {(one.dataset, one.model): one.run for one in own if one.run is not None}
    assert {(group, name) for group, name, _ in rows} == {
        (label, f"model={model}") for label in ("German Credit", "COMPAS") for model in ("greedy", "adopt")
    }
    for dataset, label in (("credit", "German Credit"), ("compas", "COMPAS")):
        first, second = runs[dataset, "adopt"], runs[dataset, "greedy"]
        for measure in ("effective_utility", "mean_dpu"):
            expected = paired_difference(first.values(measure), second.values(measure))
            read = [
                np.array([float(rows[label, f"model={name}", measure][str(seed)]) for seed in first.seeds])
                for name in ("adopt", "greedy")
            ]
            apart = read[0] - read[1]
            assert expected is not None
            assert apart.mean() == pytest.approx(expected.mean, abs=1e-4)
            assert apart.std(ddof=1) == pytest.approx(expected.std, abs=1e-4)


def test_the_utility_of_the_first_policy_is_a_measure_and_drawn_ones_are_not() -> None:
    one = next(one for one in finished() if one.run is not None)
    assert one.run is not None
    frame = by_seed_table("worlds", [one]).frame.set_index("measure")
    first = one.run.curve("utility").iloc[0]
    assert frame.loc[FIRST_UTILITY].to_list() == [f"{value:.4g}" for value in first]
    assert not [name for name in frame.index if "sampled" in name]
    assert not by_seed_table("worlds", [replace(one, run=None)]).shown


@pytest.mark.parametrize(
    ("command", "page"),
    [
        ("leaderboard", "leaderboard_tables"),
        ("ablation", "ablation"),
        ("worlds", "worlds_results"),
        ("questions", "questions_groups"),
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
    asked = {"asked": ["groups"]} if command == "questions" else {}
    getattr(import_module(f"reproduction.{command}"), command)([], **asked)
    ((name, runs),) = told
    assert [one.key for one in runs] == [one.key for one in finished()]
    assert f"<!-- begin: {BESIDE}{name}_by_seed -->" in (DOCS / f"{page}.md").read_text()
