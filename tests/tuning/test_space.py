import pytest

from fairall.errors import FairAllError
from fairall.tuning.space import Space, words_of


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
    assert [space.number(["dataset=credit", *reversed(point)]) for point in words] == [0, 1, 2, 3]
    assert words_of(space.points[2]) == words[2]


def test_the_command_line_wins() -> None:
    params = {"model.alpha": "choice(1, 5)", "model.beta": "choice(0.7, 1.0)"}
    space = Space.parse(params, ["model.alpha=2", "model.beta=0.1,0.2,0.2", "model.policy=clf,dec"])
    assert space.values == {"model.beta": [0.1, 0.2], "model.policy": ["clf", "dec"]}


def test_values_are_spelt_as_optuna_gets_them() -> None:
    space = Space.parse({}, ["a=true,false", "b=1e-3,2", "c='x y',z"])
    assert words_of(space.points[0]) == ["a=True", "b=0.001", "c='x y'"]
    assert list(Space.parse({}, ["a=range(1,4)"]).values["a"]) == [1, 2, 3]


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
