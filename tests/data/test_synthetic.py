"""People of the structural model: its equations, counterfactuals, streams, and what is refused."""

import numpy as np
import pytest
import torch
from scipy.special import expit
from scipy.stats import norm

from fairall.config.compose import typed_config
from fairall.data.generated import Individuals
from fairall.data.load import load_dataset
from fairall.data.prepared import PreparedData
from fairall.data.synthetic import Synthetic
from fairall.errors import FairAllError
from fairall.metrics import STANDARD, cfu_y_held, registered
from fairall.online.evaluation import Evaluator
from fairall.online.initial_policy import LogisticPolicy
from fairall.runtime.randomness import SeedStreams
from fairall.storage.identity import configuration_key

N = 200_000
MODEL = "dataset.structural_model"
SHARE = f"{MODEL}.ground_truth_share"
BY_GROUP = f"{SHARE}={{-1: 0.3, 1: 0.7}}"
Drawn = tuple[Synthetic, Individuals]


def drawn(*words: str) -> Drawn:
    """A structural model, and N people of it."""
    model = load_dataset("synthetic", *words)
    assert isinstance(model, Synthetic)
    return model, model.draw(SeedStreams([0], "test"), N)


def parts(people: Individuals) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return people.s, people.values["K"], people.hidden["y"]


def near(shares: np.ndarray, expected: float) -> bool:
    """Whether a mean of numbers within an interval of length 1 is within four standard errors."""
    return bool(abs(shares.mean() - expected) < 2 / shares.size**0.5)


@pytest.fixture(scope="module")
def usual() -> Drawn:
    return drawn()


@pytest.fixture(scope="module")
def by_group() -> Drawn:
    return drawn(BY_GROUP)


@pytest.fixture(scope="module")
def prepared() -> PreparedData:
    return load_dataset("synthetic").prepare()


@pytest.mark.parametrize(
    ("name", "of_k", "of_s", "std"), [("LSAT", 4, 3.5, 0.1), ("GPA", 0.75, 1, 0.01), ("FYA", 1.3, 1, 0.05)]
)
def test_residuals_have_the_stated_deviations(
    usual: Drawn, name: str, of_k: float, of_s: float, std: float
) -> None:
    s, k, y = parts(usual[1])
    residual = usual[1].values[name] - of_k * k - of_s * s
    assert (residual.mean(), residual.std()) == pytest.approx((0, std), abs=0.01 * std)
    assert np.abs(np.corrcoef([residual[0], s[0], k[0], y[0]])[0, 1:]).max() < 0.01


def test_talent_groups_and_ground_truth_are_as_stated(usual: Drawn) -> None:
    s, k, y = parts(usual[1])
    assert near(s / 2, 0)
    assert near(y, 0.5)
    for truth, mean in ((0, -1), (1, 1)):
        assert (k[y == truth].mean(), k[y == truth].std()) == pytest.approx((mean, 0.5), abs=0.01)
    assert abs(np.corrcoef(s[0], k[0])[0, 1]) < 0.01
    assert (usual[1].label == (usual[1].values["FYA"] > 0)).all()
    given_k = expit(8 * k)
    for low in np.arange(0, 1, 0.1):
        inside = (given_k >= low) & (given_k < low + 0.1)
        assert near(y[inside], given_k[inside].mean())


@pytest.mark.parametrize("name", ["usual", "by_group"])
def test_a_counterfactual_has_the_other_s_and_twice_is_the_original(
    name: str, request: pytest.FixtureRequest
) -> None:
    model, people = request.getfixturevalue(name)
    other = model.counterfactual(people)
    (s, k, y), (other_s, other_k, other_y) = parts(people), parts(other)
    assert (other_s == -s).all()
    np.testing.assert_allclose(other.hidden["noise"], people.hidden["noise"], atol=1e-12)
    np.testing.assert_allclose(other_k, k + 2 * (other_y - y), atol=1e-12)
    shift = other.values["LSAT"] - people.values["LSAT"]
    np.testing.assert_allclose(shift, -7 * s + 4 * (other_k - k), atol=1e-12)
    twice = model.counterfactual(other)
    for variable, values in people.values.items():
        np.testing.assert_allclose(twice.values[variable], values, rtol=0, atol=1e-12)


def test_people_carry_their_ground_truth_and_their_counterfactuals(prepared: PreparedData) -> None:
    assert [len(part) for part in (prepared.pool, prepared.validation, prepared.test)] == [5000, 2500, 5000]
    test = prepared.test
    assert test.counterfactual_x is not None
    assert test.ground_truth is not None
    shift = (test.counterfactual_x - test.x) * prepared.scaler.scale
    expected = torch.stack([-7.0 * test.s, -2.0 * test.s], dim=-1).double()
    torch.testing.assert_close(shift, expected, rtol=1e-4, atol=1e-4)
    # K as GPA tells it predicts the ground truth, whatever the group.
    k = ((test.x * prepared.scaler.scale + prepared.scaler.mean)[:, 1] - test.s) / 0.75
    assert ((k > 0) == (test.ground_truth > 0)).double().mean() > 0.95


def test_applicants_never_come_twice_are_the_seeds_own_and_go_on_from_a_state(
    prepared: PreparedData,
) -> None:
    stream, alone, resumed = (prepared.applicants(64, seeds) for seeds in ([0, 1], [1], [0, 1]))
    people = torch.cat([stream.next().x for _ in range(50)], dim=1)
    assert len(people.flatten(0, 1).unique(dim=0)) == 2 * 50 * 64
    assert torch.equal(alone.next().x[0], people[1, :64])
    resumed.load_state_dict(stream.state_dict())
    assert torch.equal(resumed.next().x, stream.next().x)


def test_random_state_decides_who_is_drawn() -> None:
    first, again, other = (
        load_dataset("synthetic", f"dataset.random_state={state}").prepare().fingerprint()
        for state in (5, 5, 6)
    )
    assert first == again != other


def test_every_coefficient_can_be_changed() -> None:
    table = load_dataset(
        "synthetic",
        f"{MODEL}.advantaged_share=0.2",
        f"{MODEL}.variables.GPA.s=0",
        f"{MODEL}.variables.ESSAY={{k: 2, s: 0, std: 0.3}}",
        "dataset.observed=[LSAT,GPA,ESSAY]",
        f"{MODEL}.threshold=100",
    ).table()
    assert table.schema.names == ["LSAT", "GPA", "ESSAY"]
    assert near(table.s == 1, 0.2)
    assert not table.label.any()
    assert abs(np.corrcoef(table.s, table.x["GPA"])[0, 1]) < 0.05
    assert (table.x["ESSAY"] - 2 * table.x["K"]).std() == pytest.approx(0.3, abs=0.02)


def test_an_interaction_turns_the_order_of_one_group() -> None:
    model, people = drawn(f"{MODEL}.variables.FYA={{k: 0.5, ks: 0.8, s: 0.3, std: 0.5}}")
    (s, k, y), other = parts(people), model.counterfactual(people)
    shift = -2 * s * (0.3 + 0.8 * k)  # K and the noise are held
    np.testing.assert_allclose(other.values["FYA"] - people.values["FYA"], shift, atol=1e-12)
    for group, slope in ((1, 1.3), (-1, -0.3)):
        assert np.polyfit(k[s == group], people.values["FYA"][s == group], 1) == pytest.approx(
            [slope, 0.3 * group], abs=0.02
        )
        for truth in (0, 1):  # K is N(2y - 1, 0.5²)
            mean, std = 0.3 * group + slope * (2 * truth - 1), np.hypot(slope * 0.5, 0.5)
            assert near(people.label[(s == group) & (y == truth)], norm.cdf(mean / std))


def test_ground_truth_labels_and_talent_by_group_are_their_closed_forms(by_group: Drawn) -> None:
    model, people = by_group
    (s, k, y), other = parts(people), model.counterfactual(people)
    for group, share in ((-1, 0.3), (1, 0.7)):
        rows = s == group
        assert near(y[rows], share)
        # The people of the counterfactual world have the distribution of the other group.
        assert near(other.hidden["y"][other.s == group], share)
        # K is a mixture of N(-1, 0.5²) and N(1, 0.5²), and FYA is 1.3 K + s plus noise.
        expected = (2 * share - 1, np.hypot(0.5, 2 * (share * (1 - share)) ** 0.5))
        assert (k[rows].mean(), k[rows].std()) == pytest.approx(expected, abs=0.02)
        good = [norm.cdf((1.3 * sign + group) / np.hypot(1.3 * 0.5, 0.05)) for sign in (-1, 1)]
        assert near(people.label[rows], (1 - share) * good[0] + share * good[1])


def test_the_counterfactual_keeps_the_number_of_y_which_may_flip(by_group: Drawn) -> None:
    model, people = by_group
    (s, k, y), uniform = parts(people), people.hidden["uniform"]
    other, held = (model.counterfactual(people, hold_y=hold) for hold in (False, True))
    flips = other.hidden["y"] != y
    assert (other.hidden["y"][flips] == (s[flips] < 0)).all()  # the disadvantaged gain, the advantaged lose
    assert (flips == ((uniform >= 0.3) & (uniform < 0.7))).all()
    assert (held.hidden["y"] == y).all()
    assert (held.values["K"] == k).all()
    np.testing.assert_allclose(held.values["LSAT"], people.values["LSAT"] - 7 * s, atol=1e-12)


def test_equal_shares_by_group_are_the_same_people_as_one_number(prepared: PreparedData) -> None:
    equal, other = (
        load_dataset("synthetic", word).prepare() for word in (f"{SHARE}={{-1: 0.5, 1: 0.5}}", BY_GROUP)
    )
    assert '"-1": 0.3' in configuration_key(typed_config("dataset=synthetic", BY_GROUP))
    assert equal.fingerprint() == prepared.fingerprint() != other.fingerprint()
    first, same = equal.applicants(64, [0, 1]).next(), prepared.applicants(64, [0, 1]).next()
    assert torch.equal(first.x, same.x)
    assert first.counterfactual_x_y_held is None


def test_cfu_counts_flips_of_y_and_with_y_held_it_does_not() -> None:
    data = load_dataset("synthetic", BY_GROUP, "dataset.rows.test=40000").prepare()
    evaluator = Evaluator(data.test, 0.5, [0], (*STANDARD, registered(cfu_y_held)))
    scale, mean = (torch.as_tensor(values)[1] for values in (data.scaler.scale, data.scaler.mean))

    def measured(of_s: float) -> dict[str, float]:
        """Measures of accepting who has GPA > of_s * s, where GPA = 0.75 K + s and small noise."""
        measures = evaluator.measure_by(lambda x, s: (x[..., 1] * scale + mean > of_s * s).float())
        return {name: float(value) for name, value in measures.items()}

    # K moves by 2 with Y, from N(±1, 0.5²): the decision changes unless K is beyond the other mean.
    talent, beyond = measured(1), norm.cdf(2) - norm.cdf(-2)
    assert talent["cfu"] == pytest.approx(0.4 * beyond, abs=0.01)
    assert talent["cfu_y_held"] == pytest.approx(0.0, abs=0.001)
    assert talent["dpu"] == pytest.approx(0.4 * beyond, abs=0.02)
    # With Y held the decision changes where |K| < 1 / 0.75; both means of K are equally near to that.
    # Who flips moves from beyond one threshold to beyond the other, but for K 4.7 deviations away.
    grade, between = measured(0), norm.cdf((1 / 0.75 - 1) / 0.5) - norm.cdf((-1 / 0.75 - 1) / 0.5)
    assert grade["cfu_y_held"] == pytest.approx(between, abs=0.01)
    assert grade["cfu"] == pytest.approx(0.6 * between + 0.4, abs=0.01)


def test_feedback_keeps_the_number_of_y() -> None:
    dynamics = load_dataset("synthetic", BY_GROUP).prepare().dynamics
    assert dynamics is not None
    state = dynamics.draw(SeedStreams([0], "test"), 1000)
    risen = dynamics.changed(state, torch.ones(1, 1000, dtype=torch.bool))
    first, moved = (vars(dynamics.people(states, SeedStreams([0], "test"))) for states in (state, risen))
    assert torch.equal(first["ground_truth"], moved["ground_truth"])
    assert near(first["ground_truth"][first["s"] > 0].numpy(), 0.7)
    # Who rises, rises in the counterfactual world too.
    rise, counterfactual = ((moved[name] - first[name])[..., 1] for name in ("x", "counterfactual_x"))
    assert (rise > 0).all()
    torch.testing.assert_close(counterfactual, rise)


@pytest.mark.parametrize(
    ("policy", "rates"), [("harsh", (0.1280, 0.1581, 0.0979)), ("lenient", (0.5468, 0.7642, 0.3297))]
)
def test_acceptance_of_initial_policies_is_near_the_papers(policy: str, rates: tuple[float, ...]) -> None:
    config = typed_config("dataset=synthetic", f"initial_policy={policy}")
    table = load_dataset("synthetic", f"dataset.rows.pool={N}").table()
    accepted = LogisticPolicy(config.initial_policy).decide(table)
    measured = (accepted.mean(), *(accepted[table.s == s].mean() for s in (1, -1)))
    assert measured == pytest.approx(rates, abs=0.02)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("dataset.observed=[FYA]", "dataset.observed=FYA is not possible: it must be K or LSAT or GPA"),
        ("dataset.observed=[]", "at least one variable"),
        (f"{MODEL}.label=GRADE", "it must be LSAT or GPA or FYA"),
        (f"{MODEL}.k_std=0", "k_std=0.0 is not possible: it must be positive"),
        (f"{MODEL}.variables.FYA.ks=nan", "FYA.ks=nan is not possible: it must be a finite number"),
        (f"{SHARE}=1", f"{SHARE}=1 is not possible: it must be between 0 and 1"),
        (f"{SHARE}=half", f"{SHARE}=half is not possible: it must be between 0 and 1"),
        (f"{SHARE}={{-1: 0.3, 1: 1.7}}", f"{SHARE}.1=1.7 is not possible"),
        (f"{SHARE}=null", f"{SHARE}=None is not possible: it must be between 0 and 1"),
        (f"{SHARE}={{-1: null, 1: 0.5}}", "is not possible: it must be between 0 and 1"),
        (f"{SHARE}={{1: 0.7}}", "or such a share of each group, {-1: 0.3, 1: 0.7}"),
        (f"{SHARE}={{0: 0.3, 1: 0.7}}", "or such a share of each group, {-1: 0.3, 1: 0.7}"),
        ("dataset.rows.test=2", "dataset.rows.test=2 is not possible"),
    ],
)
def test_impossible_models_are_one_line(word: str, said: str) -> None:
    with pytest.raises(FairAllError, match=r"^[^\n]+$") as raised:
        load_dataset("synthetic", word)
    assert said in str(raised.value)
