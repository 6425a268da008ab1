import pytest

from fairall.errors import FairAllError
from fairall.tuning.space import Space, words_of


def test_points_are_all_combinations_as_the_command_line_spells_them() -> None:
    params = {"model.alpha": "choice(1, 5)", "model.clf_arch": "choice([32, 32], [64,64,64])"}
    space, fixed = Space.parse(params, ["dataset=credit", "cost.value=0.3"])
    assert fixed == ["dataset=credit", "cost.value=0.3"]
    assert space.size == 4
    assert [words_of(point) for point in space.points()] == [
        ["model.alpha=1", "model.clf_arch=[32,32]"],
        ["model.alpha=1", "model.clf_arch=[64,64,64]"],
        ["model.alpha=5", "model.clf_arch=[32,32]"],
        ["model.alpha=5", "model.clf_arch=[64,64,64]"],
    ]


def test_the_command_line_wins() -> None:
    params = {"model.alpha": "choice(1, 5)", "model.beta": "choice(0.7, 1.0)"}
    space, fixed = Space.parse(params, ["model.alpha=2", "model.beta=0.1,0.2,0.2", "model.policy=clf,dec"])
    assert fixed == ["model.alpha=2"]
    assert space.values == {"model.beta": [0.1, 0.2], "model.policy": ["clf", "dec"]}


def test_values_survive_the_way_to_a_trial() -> None:
    space, _ = Space.parse({}, ["a=true,null,1e-3,'x y'"])
    assert [words_of(point) for point in space.points()] == [["a=true"], ["a=null"], ["a=0.001"], ["a='x y'"]]
    assert list(Space.parse({}, ["a=range(1,4)"])[0].values["a"]) == [1, 2, 3]
    assert Space.parse(space.words(), [])[0] == space


@pytest.mark.parametrize(
    ("words", "said"),
    [(["a=interval(0,1)"], "needs its values one by one"), (["a=1"], "nothing to sweep")],
)
def test_what_is_no_grid_is_refused(words: list[str], said: str) -> None:
    with pytest.raises(FairAllError, match=said):
        Space.parse({}, words)
