from dataclasses import replace

import pytest

from fairall import Result
from fairall.report.comparable import grouped
from tests.made_up import configuration, made_up

OWN = """
    dataset=csv dataset.label=repaid dataset.positive=yes dataset.sensitive=sex dataset.advantaged=male
""".split()
ANY = made_up()
TITLE = "German Credit, c = 0.5, harsh initial policy"


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
    assert grouped({"a": run(), "b": run(*word.split())}).keys() == {TITLE}


@pytest.mark.parametrize(
    ("word", "titles"),
    [
        ("dataset=compas", [TITLE, TITLE.replace("German Credit", "COMPAS")]),
        ("cost.value=0.7", [TITLE, TITLE.replace("0.5", "0.7")]),
        ("initial_policy=lenient", [TITLE, TITLE.replace("harsh", "lenient")]),
        ("initial_policy.intercept=-3", ["initial_policy.intercept -10.0", "initial_policy.intercept -3.0"]),
        ("schedule.applicants=32", ["schedule.applicants 64", "schedule.applicants 32"]),
        ("evaluation.split=validation", ["evaluation.split test", "evaluation.split validation"]),
        ("dataset.split.random_state=7", ["dataset.split.random_state 7"]),
        (
            "protocol.effective=decided_again",
            ["protocol.effective taken", "protocol.effective decided_again"],
        ),
        ("preset=fast", ["preset none", "preset fast"]),
        (
            "dataset.gain={intercept: 3} dataset.loss={intercept: 1}",
            [TITLE, "utility in money per 100 people, harsh"],
        ),
    ],
)
def test_runs_under_other_conditions_are_groups_whose_titles_say_what_differs(
    word: str, titles: list[str]
) -> None:
    words = () if word == "preset=fast" else tuple(word.replace("} ", "}|").split("|"))
    other = run(*words, preset="fast" if word == "preset=fast" else None)
    groups = grouped({"a": run(), "b": other, "c": run("model=unfairlog")})
    assert [[*members] for members in groups.values()] == [["a", "c"], ["b"]]
    assert all(title in " ".join(groups) for title in titles)


def test_tables_of_ones_own_are_known_by_their_path() -> None:
    first, other = (run(*OWN, f"dataset.path={name}.csv") for name in ("loans", "others"))
    same = run(*OWN, "dataset.path=loans.csv", "dataset.drop=[age]", "seeds=2")
    groups = grouped({"a": first, "b": other, "c": same})
    assert [[*members] for members in groups.values()] == [["a", "c"], ["b"]]
    assert [title.rpartition(", ")[2] for title in groups] == [
        "dataset.path loans.csv",
        "dataset.path others.csv",
    ]


def test_only_what_another_name_does_not_explain_is_in_a_title() -> None:
    titles = [*grouped({"a": run(), "b": run("dataset=compas"), "c": run("dataset.split.random_state=7")})]
    assert len(titles) == 3
    assert titles[1] == TITLE.replace("German Credit", "COMPAS")
    assert all("dataset.split.random_state" in title for title in (titles[0], titles[2]))
