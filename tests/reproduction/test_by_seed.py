"""Values by seed: a table of every study that is published."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from fairall import places
from reproduction import leaderboard as boards
from reproduction import study
from reproduction.leaderboard import leaderboard
from reproduction.pages import BESIDE, BLOCK, publish
from reproduction.plan import Planned, with_runs
from reproduction.worlds import worlds
from tests.reproduction.collection import planned, result


def finished() -> list[Planned]:
    """Two made-up runs of the leaderboard, and one that is missing."""
    needed = planned("leaderboard_methods", "dataset=credit", "model=greedy,adopt,plot")
    return with_runs(needed, [result(*one.words, number=k) for k, one in enumerate(needed[:2])])


def test_values_are_a_file_beside_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- begin: tables/leaderboard_by_seed -->\n<!-- end: tables/leaderboard_by_seed -->\n")
    config = replace(places([]), outputs_dir=str(tmp_path), preset="full")
    publish("leaderboard", "Title", {}, config, into=[page], runs=finished())
    ((_, content),) = BLOCK.findall(page.read_text())
    assert content.startswith("[Values by seed](tables/leaderboard_by_seed.csv).")
    assert "by seed" not in (tmp_path / "leaderboard" / "index.html").read_text()
    text = (tmp_path / BESIDE / "leaderboard_by_seed.csv").read_text()
    for one in finished()[:2]:
        assert one.run is not None
        of = {
            "mean_dpu": one.run.values("mean_dpu"),
            "utility_after_warm_up": one.run.curve("utility").iloc[0],
        }
        for name, values in of.items():
            shown = ",".join(f"{value:.4g}" for value in values)
            assert f"German Credit,model={one.model},{name},{shown}\n" in text
    assert "sampled" not in text


@pytest.mark.parametrize(("command", "module"), [(leaderboard, boards), (worlds, study)])
def test_every_study_publishes_its_values_by_seed(
    command: Callable[..., bool], module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    for name, replaced in {
        "publish": lambda *_, runs, **__: told.extend(one.key for one in runs),
        "load_results": lambda *_: SimpleNamespace(results=[]),
        "make": lambda *_, **__: [],
        "plan": lambda *_, **__: finished(),
    }.items():
        monkeypatch.setattr(module, name, replaced)
    command([])
    assert told == [one.key for one in finished()]
