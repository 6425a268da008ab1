from dataclasses import replace

import pytest

from fairall.report.groups import grouped
from tests.made_up import configuration, made_up

OWN = """
    dataset=csv dataset.label=repaid dataset.positive=yes dataset.sensitive=sex dataset.advantaged=male
""".split()
ANY = made_up()
TITLE = "German Credit, c = 0.5, harsh initial policy"


def titles(*commands: str) -> dict[str, list[int]]:
    """Titles of the groups of some runs, and the numbers of their commands; `|` divides words."""
    runs = {}
    for number, command in enumerate(commands):
        config = configuration("model=fairlog", *(command.split("|") if command else []))
        seeds = range(config.seed, config.seed + config.seeds)
        runs[str(number)] = replace(ANY, config=config, per_seed=ANY.per_seed.reindex(seeds))
    return {title: [*map(int, members)] for title, members in grouped(runs).items()}


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
        "cost=fixed|cost.value=0.5",  # the data set's own, as a number
        "outputs_dir=elsewhere",
    ],
)
def test_what_a_comparison_is_about_may_differ(word: str) -> None:
    assert titles("", word) == {TITLE: [0, 1]}


@pytest.mark.parametrize(
    ("word", "expected"),
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
        ("preset=quick", [TITLE, "do not interpret its numbers"]),
        (
            "dataset.gain={intercept: 3}|dataset.loss={intercept: 1}",
            [TITLE, "utility in money per 100 people, harsh"],
        ),
    ],
)
def test_runs_under_other_conditions_are_groups_whose_titles_say_what_differs(
    word: str, expected: list[str]
) -> None:
    groups = titles("", word, "model=unfairlog")
    assert [*groups.values()] == [[0, 2], [1]]
    assert all(title in " ".join(groups) for title in expected)


def test_tables_of_ones_own_are_known_by_their_path() -> None:
    loans, others = ("|".join([*OWN, f"dataset.path={name}.csv"]) for name in ("loans", "others"))
    groups = titles(loans, others, f"{loans}|dataset.drop=[age]|seeds=2")
    assert [*groups.values()] == [[0, 2], [1]]
    paths = [title.rpartition(", ")[2] for title in groups]
    assert paths == ["dataset.path loans.csv", "dataset.path others.csv"]


def test_only_what_another_name_does_not_explain_is_in_a_title() -> None:
    first, second, third = titles("", "dataset=compas", "dataset.split.random_state=7")
    assert second == TITLE.replace("German Credit", "COMPAS")
    assert all("dataset.split.random_state" in title for title in (first, third))
