"""Values by seed: a table of every study that is published."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from fairall import places
from reproduction import leaderboard as boards
from reproduction import study
from reproduction.ablation import ablation
from reproduction.leaderboard import leaderboard
from reproduction.pages import BESIDE, BLOCK, publish
from tests.reproduction.collection import planned, result


@pytest.mark.parametrize(("command", "module"), [(leaderboard, boards), (ablation, study)])
def test_values_of_a_study_are_a_file_beside_its_page(
    command: Callable[..., bool], module: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = planned("leaderboard_methods", "dataset=credit", "model=greedy,adopt,plot")
    found = [result(*one.words, number=k) for k, one in enumerate(needed[:2])]
    config, page = replace(places([]), outputs_dir=str(tmp_path), preset="full"), tmp_path / "page.md"
    page.write_text("<!-- begin: tables/report_by_seed -->\n<!-- end: tables/report_by_seed -->\n")
    for name, replaced in {
        "publish": lambda *_, runs, **__: publish("report", "Title", {}, config, into=[page], runs=runs),
        "load_results": lambda *_: SimpleNamespace(results=found),
        "make": lambda *_, **__: [],
        "plan": lambda *_, **__: needed,
    }.items():
        monkeypatch.setattr(module, name, replaced)
    command([])
    ((_, content),) = BLOCK.findall(page.read_text())
    assert content.startswith("[Values by seed](tables/report_by_seed.csv).")
    assert "by seed" not in (tmp_path / "report" / "index.html").read_text()
    text = (tmp_path / BESIDE / "report_by_seed.csv").read_text()
    assert "sampled" not in text
    for run in found:
        of = {"mean_dpu": run.values("mean_dpu"), "utility_after_warm_up": run.curve("utility").iloc[0]}
        for name, values in of.items():
            shown = ",".join(f"{value:.4g}" for value in values)
            assert f"German Credit,model={run.name('model')},{name},{shown}\n" in text
