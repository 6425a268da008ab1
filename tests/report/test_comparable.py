from dataclasses import replace

import pytest

from fairall import Result
from fairall.report.comparable import difference, grouped
from tests.made_up import configuration, made_up

OWN = """
    dataset=csv dataset.label=repaid dataset.positive=yes dataset.sensitive=sex dataset.advantaged=male
""".split()


ANY = made_up()


def run(*words: str, preset: str | None = None) -> Result:
    """A result that has a configuration and seeds, and nothing else of its own."""
    config = configuration("model=fairlog", *words)
    config = replace(config, preset=config.preset if preset is None else preset)
    seeds = range(config.seed, config.seed + config.seeds)
    return replace(ANY, config=config, per_seed=ANY.per_seed.reindex(seeds))


@pytest.mark.parametrize(
    "word",
    [
        "model=unfairlog",
        "model.lambda_=7",
        "protocol.kl=cdf",
        "seeds=3",
        "seed=5",
        "schedule.warm_up_epochs=3",
        "protocol.inputs=one_hot",
        "exploration=epsilon",  # as model=epsilon_greedy chooses it
        "cost=fixed cost.value=0.5",  # the data set's own, as a number
        "outputs_dir=elsewhere",
    ],
)
def test_what_a_comparison_is_about_may_differ(word: str) -> None:
    (group,) = grouped({"a": run(), "b": run(*word.split())})
    assert list(group.runs) == ["a", "b"]
    assert group.title == "German Credit, c = 0.5, harsh initial policy"


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("dataset=compas", "data set (German Credit, COMPAS)."),
        ("cost.value=0.7", "cost (0.5, 0.7)."),
        ("initial_policy=lenient", "initial policy (harsh, lenient)."),
        ("initial_policy.intercept=-3", "initial_policy.intercept (-10.0, -3.0)."),
        ("schedule.time_steps=220", "schedule.time_steps (200, 220)."),
        ("schedule.applicants=32", "schedule.applicants (64, 32)."),
        ("evaluation.split=validation", "evaluation.split (test, validation)."),
        ("evaluation.window=[100,200]", "evaluation.window ([125, 200], [100, 200])."),
        ("dataset.split.random_state=7", "dataset.split.random_state ("),
        ("protocol.effective=decided_again", "protocol.effective (taken, decided_again)."),
    ],
)
def test_under_other_conditions_nothing_is_compared(word: str, said: str) -> None:
    groups = grouped({"a": run(), "b": run(word), "c": run("model=unfairlog")})
    assert [list(group.runs) for group in groups] == [["a", "c"], ["b"]]
    line = difference(groups)
    assert line.startswith("Not compared across groups, which differ in ")
    assert said in line
    assert "\n" not in line
    assert groups[0].title != groups[1].title


def test_a_preset_makes_another_group() -> None:
    groups = grouped({"a": run(), "b": run(preset="fast"), "c": run(preset="fast")})
    assert [list(group.runs) for group in groups] == [["a"], ["b", "c"]]
    assert "preset (none, fast)" in difference(groups)


def test_tables_of_ones_own_are_known_by_their_path() -> None:
    one, other = (run(*OWN, f"dataset.path={name}.csv") for name in ("loans", "others"))
    same = run(*OWN, "dataset.path=loans.csv", "dataset.drop=[age]", "seeds=2")
    groups = grouped({"a": one, "b": other, "c": same})
    assert [list(group.runs) for group in groups] == [["a", "c"], ["b"]]
    assert difference(groups) == (
        "Not compared across groups, which differ in dataset.path (loans.csv, others.csv). "
        "Seeds differ (0 to 9; 0 to 1): tests pair those that both runs have."
    )


def test_three_groups_of_two_data_sets_have_titles_of_their_own() -> None:
    groups = grouped({"a": run(), "b": run("dataset=compas"), "c": run("dataset.split.random_state=7")})
    assert len({group.title for group in groups}) == 3
    line = difference(groups)
    assert "data set (German Credit, COMPAS)" in line
    assert "dataset.split.random_state" in line
    assert "_target_" not in line
    assert "held_out" not in line  # which another data set has anyway
    assert difference(groups[:1]) == ""


def test_a_title_says_what_people_with_amounts_are_decided_by() -> None:
    words = ("dataset.gain={intercept: 3}", "dataset.loss={intercept: 1}")
    by_amounts, by_cost = (
        grouped({"a": run(*words, *more)})[0].title for more in ((), ("dataset.decide_by=cost",))
    )
    assert "amounts by person, money per 100 people" in by_amounts
    assert "decided by c = 0.5, money per 100 people" in by_cost
