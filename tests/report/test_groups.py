from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from fairall.report.groups import grouped
from tests.made_up import configuration, made_up

OWN = """
    dataset=csv dataset.label=repaid dataset.positive=yes dataset.sensitive=sex dataset.advantaged=male
""".split()
WORDS = yaml.safe_load(Path(__file__).with_name("groups.yaml").read_text())
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


@pytest.mark.parametrize("word", WORDS["comparable"])
def test_what_a_comparison_is_about_may_differ(word: str) -> None:
    assert titles("", word) == {TITLE: [0, 1]}


@pytest.mark.parametrize(("word", "expected"), WORDS["other"].items())
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
