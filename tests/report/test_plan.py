import math
from collections import Counter
from pathlib import Path

import pytest
from fairall.results.finished import collect
from omegaconf import OmegaConf

from fairall.config.paths import sweeps_folder
from fairall.errors import FairAllError
from fairall.report.plan import PREFIX, added, missing_runs, plan, sweeps_of, with_runs
from tests.report.conftest import MakeRun


def test_every_run_of_the_paper_once() -> None:
    planned = plan(sweeps_of(["all"]), ["dataset=credit,synthetic", "model=fairall_I_II,opt_fair"])
    assert Counter(one.sweep for one in planned) == {
        "harsh": 1, "lenient": 1, "published_code": 2, "optimal": 1, "synthetic": 2,
        "policies": 2 * 4,  # the fifth policy is that of the tables and of the synthetic figures
        "costs": 8,  # and so is the ninth cost
        "alignment": 3,  # all others are those of tables and figures
    }  # fmt: skip
    assert len({one.command for one in planned}) == len(planned)
    costs = {one.config["cost"]["value"] for one in planned if one.dataset == "credit"}
    assert costs == {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}
    # Missing runs that differ in one value are told apart.
    lacking = missing_runs([one for one in planned if one.sweep in ("policies", "costs")])
    names = [name for name, _ in lacking.commands]
    assert len({*names}) == len(names) == 16
    assert "FairAll (I+II) on German Credit with cost.value=0.3" in names
    assert "FairAll (I+II) on Synthetic with model.policy=clf" in names


def test_points_of_the_sweeps() -> None:
    points = {}
    for sweep in sweeps_of(["all"]):
        axes = OmegaConf.load(sweeps_folder() / f"{PREFIX}{sweep}.yaml").hydra.sweeper.params
        points[sweep] = math.prod(len(str(values).split(",")) for values in axes.values())
    assert points == {
        "harsh": 15, "lenient": 15, "published_code": 30, "optimal": 2, "synthetic": 10, "policies": 20,
        "costs": 27, "alignment": 12,
    }  # fmt: skip


def test_words_pick_from_an_axis_or_are_added() -> None:
    (one,) = plan(["harsh"], ["model=fairlog", "dataset=credit", "preset=quick"])
    assert one.command == "python -m fairall model=fairlog dataset=credit initial_policy=harsh preset=quick"
    assert one.config["schedule"]["time_steps"] == 8
    assert len(plan(["harsh"], ["model=fairlog,unfairlog"])) == 6
    assert [p.config["cost"]["value"] for p in plan(["costs"], ["cost.value=0.3", "dataset=meps"])] == [0.3]
    with pytest.raises(FairAllError, match="left by model=opt_fair dataset=credit"):
        plan(["harsh", "optimal"], ["model=opt_fair", "dataset=credit"])
    for sweeps, word in (["harsh"], "dataset=synthetic"), (["harsh", "costs"], "model=fairlog,fairlgo"):
        with pytest.raises(FairAllError, match="not among these runs"):
            plan(sweeps, [word])


def test_a_run_of_fewer_seeds_takes_the_place_of_a_missing_one(make_run: MakeRun, tmp_path: Path) -> None:
    def found() -> int | None:
        runs = collect(tmp_path / "outputs" / "runs").runs
        (one,) = with_runs(plan(["harsh"], ["model=fairlog", "dataset=credit"]), runs)
        return None if one.run is None else len(one.run.seeds)

    for number, (seeds, shown) in enumerate(((3, None), (10, 10), (20, 20), (12, 20), (50, 50))):
        make_run("model=fairlog", "dataset=credit", "initial_policy=harsh", f"seeds={seeds}", number=number)
        assert found() == shown


def test_values_of_a_sweep_give_way_to_words_and_presets() -> None:
    pick = ["model=fairlog,opt_fair", "dataset=credit,synthetic", "initial_policy=harsh"]
    sweeps = ["harsh", "synthetic", "optimal"]

    def seeds(*words: str) -> list[int]:
        return [one.config["seeds"] for one in plan(sweeps, [*pick, *words])]

    assert seeds() == [50, 50, 5]
    assert seeds("seeds=10") == [10, 10, 10]
    assert seeds("preset=quick") == [2, 2, 2]
    assert seeds("preset=quick", "seeds=3") == [3, 3, 3]
    (one,) = plan(["harsh"], ["model=fairlog", "dataset=credit", "seeds=10"])
    assert one.command == "python -m fairall model=fairlog dataset=credit initial_policy=harsh seeds=10"


def test_words_that_change_every_run() -> None:
    words = ["dataset=credit", "cost.value=0.3", "preset=quick", "outputs_dir=x", "tracking.enabled=false"]
    assert added([*words, "seeds=3"]) == ["preset=quick", "seeds=3"]


def test_parts() -> None:
    assert sweeps_of(["tables"]) == ["harsh", "lenient", "published_code"]
    assert sweeps_of(["costs", "costs", "harsh"]) == ["costs", "harsh"]
    with pytest.raises(
        FairAllError,
        match=r"no part 'table', did you mean tables\?; there are all, tables, figures, alignment, worlds",
    ):
        sweeps_of(["table"])
