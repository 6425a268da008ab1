"""The studies of studies/*.yaml, from made-up runs, and their kinds of tables, by hand."""

from __future__ import annotations

import functools
import itertools
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml
from matplotlib.figure import Figure
from pytest_regressions.file_regression import FileRegressionFixture

from fairall import FairAllError
from fairall.display import Item, PageFigure, PageTable, to_markdown
from fairall.metrics import Spread
from fairall.results.result import Group
from reproduction import study as runner
from reproduction.ablation import ablation
from reproduction.kinds import KINDS, table
from reproduction.pages import BEGIN, BESIDE, SETTING
from reproduction.plan import STUDIES, SWEEPS, Planned, plan
from reproduction.questions import ASKED, questions
from reproduction.study_figures import known_difference
from reproduction.values import Facts
from reproduction.worlds import worlds
from tests.made_up import made_up
from tests.models.test_amounts import best, cells

pytestmark = pytest.mark.whole

DOCS = Path(__file__).parents[2] / "docs"
STUDY = {study.name: study for study in (ablation, worlds, *ASKED.values())}
PAGES = {name: f"{name}.md" for name in STUDY} | {"worlds": "worlds_results.md"}
# Few runs, all kinds of them: words that pick from the axes of some studies.
PICKED = {"ablation": ["dataset=compas,synthetic"], "questions_hidden": ["dataset=synthetic"]}
QUICK = ("preset=quick", "seeds=4", "splits=4")
SIZES = (40, 900, 600, 58, 500, 300, 200, 100)  # people of made-up groups
FURTHER = """
    effective_dpu_pooled regret mean_cfu mean_cfu_y_held effective_cfu mean_ground_truth_utility score_gap
    effective_ground_truth_utility latent_s_mmd latent_s_auc effective_revealed_utility adaptation_time
    utility_per_place mean_score_advantaged mean_score_disadvantaged
""".split()


def measured(one: Planned) -> Planned:
    """A run with random values of all measures that studies show, by its words."""
    number = zlib.crc32(one.command.encode())
    random, sizes = np.random.default_rng(number), SIZES[: len(one.config.dataset.get("groups") or SIZES[:4])]
    run = made_up(
        number=number,
        config=vars(one.config),
        further={name: random.uniform(0.0, 0.2, one.config.seeds) for name in FURTHER},
        references={
            policy: {
                name: random.uniform() for name in (*FURTHER, "effective_utility", "mean_utility", "mean_dpu")
            }
            for policy in ("accept_all", "oracle", "oracle_fair")
        },
    )
    groups = {
        f"g{g}": Group([f"g{g}"], {"train": n - 10, "test": 10}, n, 0.5, None, Spread(g / 10, None, None))
        for g, n in enumerate(sizes)
    }
    scores = {name: random.uniform(size=len(run.steps)) for name in FURTHER if "mean_score" in name}
    return replace(one, run=replace(run, groups=groups, steps=run.steps.assign(**scores)))


@functools.cache
def planned(name: str) -> list[Planned]:
    """The runs of a study, made up; not to be changed."""
    return [*map(measured, plan(SWEEPS[name], [*QUICK, *PICKED.get(name, [])], once=False))]


@functools.cache
def items(name: str) -> dict[str, Item]:
    """Tables and figure of the made-up runs of a study."""
    return {item.key: item for some in STUDY[name].sections(planned(name)).values() for item in some}


def described(figure: Figure) -> Iterator[str]:
    """What a figure shows: of each panel its words, and how many lines and points it has by label."""
    for axes in figure.axes:
        yield " | ".join([axes.get_title(), axes.get_xlabel(), axes.get_ylabel()])
        for line in axes.lines:
            yield f"    {line.get_label()}: {len(np.asarray(line.get_xydata()))}"
        yield from (f"    {container.get_label()}" for container in axes.containers)


@pytest.mark.parametrize("name", STUDIES)
def test_a_page_is_as_it_was_once_found_right(name: str, file_regression: FileRegressionFixture) -> None:
    assert {*STUDY} == {*STUDIES}
    shown = []
    for item in items(name).values():
        assert item.shown, item.key
        assert not item.lacking
        if isinstance(item, PageTable):
            shown.append(to_markdown(item))
        if isinstance(item, PageFigure) and item.draw:
            shown += [f"### {item.title}\n\n{item.note}\n", *described(item.draw()), ""]
    file_regression.check("\n".join(shown), extension=".md", encoding="utf-8")


@pytest.mark.parametrize("name", STUDIES)
def test_every_block_of_the_documentation_is_of_the_study(name: str) -> None:
    blocks = {key.removeprefix(BESIDE) for key in BEGIN.findall((DOCS / PAGES[name]).read_text())}
    assert blocks - {SETTING, f"{name}_by_seed"} <= {*STUDY[name].keys()}
    assert {SETTING, f"{name}_by_seed"} <= blocks


@pytest.mark.parametrize("name", sorted({*STUDIES} - {"questions_hidden"}))  # with logs, which are no runs
def test_missing_runs_are_named_and_nothing_is_shown_of_them(name: str) -> None:
    missing = [replace(one, run=None) for one in planned(name)]
    made = [*itertools.chain(*STUDY[name].sections(missing).values())]
    assert not any(item.shown for item in made)
    assert {command for item in made for _, command in item.lacking} == {one.command for one in missing}


def test_words_that_pick_runs_of_one_study_leave_a_page_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Planned] = []
    monkeypatch.setattr(runner, "make", lambda planned, *_, **__: made.extend(planned))
    assert worlds(["dataset=credit", f"outputs_dir={tmp_path}"])
    assert {one.dataset for one in made} == {"credit"}
    assert len({one.key for one in made}) == len(made)
    assert (tmp_path / "worlds" / "index.html").is_file()


def test_a_question_that_nobody_has_is_said() -> None:
    for asked in (["truth", "groop"], []):
        with pytest.raises(FairAllError, match=r"(truth groop|none): choose of truth, hidden"):
            questions([], asked=asked)


# Kinds of tables.


def fact(values: Sequence[float], level: float = 0.0, **facts: Any) -> Facts:
    """A finished run with values of a measure `u` by seed, the oracle's level of it, and facts."""
    further, levels = {"u": np.array(values)}, {"oracle": {"u": level}}
    run = made_up(config={"seeds": len(values)}, further=further, references=levels)
    return facts | {"planned": SimpleNamespace(run=run, key=str(facts))}


SURE = [0.1 + 0.002 * seed for seed in range(8)]  # eight seeds, of which the least p is 2/256
UTILITY = {
    ("a", "one"): SURE,
    ("a", "two"): [value - 0.1 for value in SURE],
    ("a", "three"): [value + 0.002 + 0.01 * (-1) ** seed for seed, value in enumerate(SURE)],
    ("b", "two"): SURE[:1],
}


def arms() -> Iterator[Facts]:
    """Runs by decision and memory, where a cut is worth 0.01, the memory of all 0.02; one is missing."""
    levels = {"cut": 0.01, "all": 0.02, "b": 0.1}
    odd = {("a", "cut", "all"): np.nan, ("a", "cut", "step"): 9.0}  # of a seed that not all pairs have
    for arm in [*itertools.product("ab", ("cut", "drawn"), ("all", "step"))][:-1]:
        worth = sum(levels.get(word, 0.0) for word in arm)
        facts: dict[str, Any] = dict(zip(("setting", "decision", "memory"), arm, strict=True))
        yield fact([worth + 0.1, worth + 0.3, odd.get(arm, worth)], **facts, tool="")


def test_kinds_of_tables_are_as_they_were_once_found_right(file_regression: FileRegressionFixture) -> None:
    tools = [
        fact(values, 0.5, setting=setting, tool=tool, policy=tool)
        for (setting, tool), values in UTILITY.items()
    ]
    runs = {"tools": tools, "sure": tools[:2], "arms": [*arms()], "arms of a": [*arms()][:4]}
    usual = {"key": "key", "note": "", "measures": {"utility ↑": "u"}}
    usual |= {"keys": ["setting", "tool"], "group": "{setting}", "name": "{tool}"}
    shown = []
    for spec in yaml.safe_load(Path(__file__).with_suffix("").joinpath("kinds.yaml").read_text()):
        own = runs[spec["of"]]
        made = table(usual | spec, own, KINDS[spec["kind"]](usual | spec, own))
        shown.append(to_markdown(made))
    file_regression.check("\n".join(shown), extension=".md", encoding="utf-8")


# What questions compute themselves.


def test_the_known_difference_is_that_of_the_closed_forms() -> None:
    (one,) = plan(["questions_amounts_fico"], [*QUICK, "model=greedy", "dataset.decide_by=cost"], once=False)
    money, p = cells()["worth"], cells()["p"]
    assert known_difference(one) == pytest.approx(best(cells()) - money[p >= 0.84].sum())
    # The cost of the sweep is nearly the best one, so that a better one is not what amounts earn.
    assert money[p >= 0.84].sum() > max(money[p >= c].sum() for c in p) - 0.05
