from collections import Counter

import pytest

from fairall import FairAllError
from reproduction.plan import added, missing_runs, plan, sweeps_of, with_runs
from tests.reproduction.collection import planned, result

pytestmark = pytest.mark.whole


def test_every_run_of_the_paper_once() -> None:
    planned = plan(sweeps_of(["all"]), ["dataset=credit,synthetic", "model=fairall_I_II,opt_fair"])
    assert Counter(one.sweep for one in planned) == {
        "paper_harsh": 1,
        "paper_lenient": 1,
        "paper_published_code": 2,
        "paper_optimal": 1,
        "paper_synthetic": 2,
        "paper_policies": 2 * 4,  # the fifth policy is that of the tables and of the synthetic figures
        "paper_costs": 8,  # and so is the ninth cost
        "paper_alignment": 1,  # all others are those of tables and figures
    }
    assert len({one.command for one in planned}) == len(planned)
    costs = {one.config.cost.value for one in planned if one.dataset == "credit"}
    assert costs == {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}
    # Missing runs that differ in one value are told apart.
    lacking = missing_runs([one for one in planned if one.sweep in ("paper_policies", "paper_costs")])
    names = [name for name, _ in lacking]
    assert len({*names}) == len(names) == 16
    assert "FairAll (I+II) on German Credit with cost.value=0.3" in names
    assert "FairAll (I+II) on Synthetic with model.policy=clf" in names


def test_words_pick_from_an_axis_or_are_added() -> None:
    (one,) = plan(["paper_harsh"], ["model=fairlog", "dataset=credit", "preset=quick"])
    assert one.command == "python -m fairall model=fairlog dataset=credit initial_policy=harsh preset=quick"
    assert one.config.schedule.time_steps == 8
    assert len(plan(["paper_harsh"], ["model=fairlog,unfairlog"])) == 6
    (one,) = plan(["paper_costs"], ["cost.value=0.3", "dataset=meps"])
    assert one.config.cost.value == 0.3
    with pytest.raises(FairAllError, match="left by model=opt_fair dataset=credit"):
        plan(["paper_harsh", "paper_optimal"], ["model=opt_fair", "dataset=credit"])
    for sweeps, word in (
        (["paper_harsh"], "dataset=synthetic"),
        (["paper_harsh", "paper_costs"], "model=fairlog,fairlgo"),
    ):
        with pytest.raises(FairAllError, match="not among these runs"):
            plan(sweeps, [word])


def test_a_run_of_fewer_seeds_takes_the_place_of_a_missing_one() -> None:
    runs = []
    needed = planned("paper_harsh", "model=fairlog", "dataset=credit", "seeds=50")
    for number, (seeds, shown) in enumerate(((3, None), (10, 10), (20, 20), (12, 20), (50, 50))):
        words = ("model=fairlog", "dataset=credit", "initial_policy=harsh", f"seeds={seeds}")
        runs.append(result(*words, number=number))
        (one,) = with_runs(needed, runs)
        assert (None if one.run is None else len(one.run.seeds)) == shown


def test_values_of_a_sweep_give_way_to_words_and_presets() -> None:
    pick = ["model=fairlog,opt_fair", "dataset=credit,synthetic", "initial_policy=harsh"]
    sweeps = ["paper_harsh", "paper_synthetic", "paper_optimal"]

    def seeds(*words: str) -> list[int]:
        return [one.config.seeds for one in plan(sweeps, [*pick, *words])]

    assert seeds() == [50, 50, 5]
    assert seeds("seeds=10") == [10, 10, 10]
    assert seeds("preset=quick") == [2, 2, 2]
    assert seeds("preset=quick", "seeds=3") == [3, 3, 3]
    (one,) = plan(["paper_harsh"], ["model=fairlog", "dataset=credit", "seeds=10"])
    assert one.command == "python -m fairall model=fairlog dataset=credit initial_policy=harsh seeds=10"


def test_words_that_change_every_run() -> None:
    words = ["dataset=credit", "cost.value=0.3", "preset=quick", "outputs_dir=x", "tracking.enabled=false"]
    assert added([*words, "seeds=3"]) == ["preset=quick", "seeds=3"]


def test_parts() -> None:
    assert sweeps_of(["tables"]) == ["paper_harsh", "paper_lenient", "paper_published_code"]
    assert sweeps_of(["paper_costs", "paper_costs", "paper_harsh"]) == ["paper_costs", "paper_harsh"]
    with pytest.raises(
        FairAllError,
        match=r"no part 'table', did you mean tables\?; there are all, tables, figures, alignment, "
        "splits, worlds",
    ):
        sweeps_of(["table"])
