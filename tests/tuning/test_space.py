import pytest

from fairall.errors import FairAllError
from fairall.tuning.space import Range, Space, listed, words_of


def test_points_are_all_combinations_as_the_command_line_spells_them() -> None:
    params = {"model.alpha": "choice(1, 5)", "model.clf_arch": "choice([32, 32], [64,64,64])"}
    space = Space.parse(params, ["dataset=credit", "cost.value=0.3"])
    assert space.size == 4
    words = [words_of(point) for point in space.points]
    assert words == [
        ["model.alpha=1", "model.clf_arch=[32,32]"],
        ["model.alpha=1", "model.clf_arch=[64,64,64]"],
        ["model.alpha=5", "model.clf_arch=[32,32]"],
        ["model.alpha=5", "model.clf_arch=[64,64,64]"],
    ]
    assert [space.point(["dataset=credit", *reversed(point)]) for point in words] == space.points
    assert words_of(space.points[2]) == words[2]


def test_the_command_line_wins() -> None:
    params = {"model.alpha": "choice(1, 5)", "model.beta": "choice(0.7, 1.0)"}
    space = Space.parse(params, ["model.alpha=2", "model.beta=0.1,0.2,0.2", "model.policy=clf,dec"])
    assert space.values == {"model.beta": [0.1, 0.2], "model.policy": ["clf", "dec"]}


def test_values_are_spelt_as_optuna_gets_them() -> None:
    space = Space.parse({}, ["a=true,false", "b=1e-3,2", "c='x y',z"])
    assert words_of(space.points[0]) == ["a=True", "b=0.001", "c='x y'"]
    assert Space.parse({}, ["a=range(1,4)"]).points == [{"a": 1}, {"a": 2}, {"a": 3}]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a=interval(0,1)"], "needs its values one by one"),
        (["a=1"], "nothing to sweep"),
        (["a=null,1"], "not null"),
        (["a=b,1"], "values of one kind"),
    ],
)
def test_what_is_no_grid_is_refused(words: list[str], said: str) -> None:
    with pytest.raises(FairAllError, match=said):
        Space.parse({}, words)


INTERVALS = {
    "interval(0, 2)": Range(0.0, 2.0, log=False),
    "int(interval(0, 2))": Range(0, 2, log=False),
    "tag(log, interval(1e-4, 1))": Range(1e-4, 1.0, log=True),
    "tag(log, int(interval(1, 64)))": Range(1, 64, log=True),
}


@pytest.mark.parametrize(("words", "interval"), INTERVALS.items())
def test_an_interval_is_read_as_optuna_gets_it_and_from_its_own_words(words: str, interval: Range) -> None:
    space = Space.parse({"b": words}, ["a=1,2"], intervals=True)
    assert space.values == {"b": interval, "a": [1, 2]}
    assert (space.size, space.points, space.grid) == (None, [], None)
    assert Space.parse({"b": str(interval)}, [], intervals=True).values == {"b": interval}
    point = space.point([f"b={interval.high}", "a=2", "c=3"])
    assert point == {"b": interval.high, "a": 2}
    assert type(point["b"]) is type(interval.high)


@pytest.mark.parametrize("words", ["interval(2, 1)", "tag(log, interval(0, 1))", "interval(1, 1)"])
def test_an_interval_has_two_ends(words: str) -> None:
    with pytest.raises(FairAllError, match="the smaller one first"):
        Space.parse({"a": words}, [], intervals=True)


def test_the_values_of_a_range_are_given_to_optuna_one_by_one() -> None:
    words = ["a=range(1,4)", "+b=range(0,1,0.25)", "c=1,2", "d=interval(0,1)", "e=5"]
    assert listed(words) == ["a=choice(1,2,3)", "+b=choice(0.0,0.25,0.5,0.75)", *words[2:]]
