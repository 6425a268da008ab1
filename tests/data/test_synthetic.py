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

N = 200_000
SHARE = "dataset.structural_model.ground_truth_share"
BY_GROUP = f"{SHARE}={{-1: 0.3, 1: 0.7}}"


def drawn(*words: str) -> tuple[Synthetic, Individuals]:
    """A structural model, and N people of it."""
    model = load_dataset("synthetic", *words)
    assert isinstance(model, Synthetic)
    return model, model.draw(SeedStreams([0], "test"), N)


@pytest.fixture(scope="module")
def usual() -> tuple[Synthetic, Individuals]:
    return drawn()


@pytest.fixture(scope="module")
def people(usual: tuple[Synthetic, Individuals]) -> Individuals:
    return usual[1]


@pytest.fixture(scope="module")
def prepared() -> PreparedData:
    return load_dataset("synthetic").prepare()


@pytest.mark.parametrize(
    ("name", "of_k", "of_s", "std"), [("LSAT", 4, 3.5, 0.1), ("GPA", 0.75, 1, 0.01), ("FYA", 1.3, 1, 0.05)]
)
def test_residuals_have_the_stated_deviations(
    people: Individuals, name: str, of_k: float, of_s: float, std: float
) -> None:
    residual = people.values[name] - of_k * people.values["K"] - of_s * people.s
    assert residual.std() == pytest.approx(std, rel=0.01)
    assert abs(residual.mean()) < 4 * std / N**0.5
    for cause in (people.values["K"], people.s, people.hidden["y"]):
        assert abs(np.corrcoef(residual.ravel(), cause.ravel())[0, 1]) < 0.01


def test_talent_groups_and_ground_truth_are_as_stated(people: Individuals) -> None:
    s, k, y = people.s, people.values["K"], people.hidden["y"]
    assert s.mean() == pytest.approx(0, abs=0.01)
    assert y.mean() == pytest.approx(0.5, abs=0.005)
    for of, mean in ((0, -1), (1, 1)):
        assert (k[y == of].mean(), k[y == of].std()) == pytest.approx((mean, 0.5), abs=0.01)
    assert abs(np.corrcoef(s.ravel(), k.ravel())[0, 1]) < 0.01
    assert (people.label == (people.values["FYA"] > 0)).all()
    expected = expit(8 * k)  # of Y given K
    for low in np.arange(0, 1, 0.1):
        inside = (expected >= low) & (expected < low + 0.1)
        assert y[inside].mean() == pytest.approx(expected[inside].mean(), abs=2 / inside.sum() ** 0.5)


def test_twice_the_counterfactual_is_the_original(usual: tuple[Synthetic, Individuals]) -> None:
    model, people = usual
    other = model.counterfactual(people)
    np.testing.assert_allclose(other.hidden["noise"], people.hidden["noise"], atol=1e-12)
    assert (other.s == -people.s).all()
    np.testing.assert_allclose(other.values["LSAT"] - people.values["LSAT"], -7 * people.s, atol=1e-12)
    twice = model.counterfactual(other)
    for name, values in people.values.items():
        np.testing.assert_allclose(twice.values[name], values, rtol=0, atol=1e-12)


def test_people_carry_their_ground_truth_and_their_counterfactuals(prepared: PreparedData) -> None:
    assert [len(part) for part in (prepared.pool, prepared.validation, prepared.test)] == [5000, 2500, 5000]
    test = prepared.test
    assert test.counterfactual_x is not None
    assert test.ground_truth is not None
    raw = test.x * prepared.scaler.scale + prepared.scaler.mean
    shift = (test.counterfactual_x - test.x) * prepared.scaler.scale
    torch.testing.assert_close(shift[:, 0], -7.0 * test.s.double(), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(shift[:, 1], -2.0 * test.s.double(), rtol=1e-4, atol=1e-4)
    # K as GPA tells it predicts the ground truth, whatever the group.
    k = (raw[:, 1] - test.s) / 0.75
    assert ((k > 0) == (test.ground_truth > 0)).double().mean() > 0.95


def test_applicants_never_come_twice_and_are_the_seeds_own(prepared: PreparedData) -> None:
    stream = prepared.applicants(64, [0, 1])
    drawn = torch.cat([stream.next().x for _ in range(50)], dim=1)
    assert len(drawn.flatten(0, 1).unique(dim=0)) == 2 * 50 * 64
    alone = prepared.applicants(64, [1])
    assert torch.equal(alone.next().x[0], drawn[1, :64])


def test_a_stream_goes_on_where_its_state_was_taken(prepared: PreparedData) -> None:
    stream, resumed = prepared.applicants(64, [0, 1]), prepared.applicants(64, [0, 1])
    stream.next()
    resumed.load_state_dict(stream.state_dict())
    assert torch.equal(resumed.next().x, stream.next().x)


def test_random_state_decides_who_is_drawn() -> None:
    def test_people(state: int) -> torch.Tensor:
        return load_dataset("synthetic", f"dataset.random_state={state}").prepare().test.x

    assert torch.equal(test_people(5), test_people(5))
    assert not torch.equal(test_people(5), test_people(6))


def test_every_coefficient_can_be_changed() -> None:
    model = "dataset.structural_model"
    data = load_dataset(
        "synthetic",
        f"{model}.advantaged_share=0.2",
        f"{model}.variables.GPA.s=0",
        f"{model}.variables.ESSAY={{k: 2, s: 0, std: 0.3}}",
        "dataset.observed=[LSAT,GPA,ESSAY]",
        f"{model}.threshold=100",
    )
    table = data.table()
    assert table.schema.names == ["LSAT", "GPA", "ESSAY"]
    assert (table.s == 1).mean() == pytest.approx(0.2, abs=0.03)
    assert not table.label.any()
    assert abs(np.corrcoef(table.s, table.x["GPA"])[0, 1]) < 0.05
    assert (table.x["ESSAY"] - 2 * table.x["K"]).std() == pytest.approx(0.3, abs=0.02)


def test_an_interaction_turns_the_order_of_one_group() -> None:
    fya = "dataset.structural_model.variables.FYA={k: 0.5, ks: 0.8, s: 0.3, std: 0.5}"
    model, people = drawn(fya)
    fya_of, other = people.values["FYA"], model.counterfactual(people)
    assert np.unique(other.s * people.s).tolist() == [-1]
    assert (other.values["K"] == people.values["K"]).all()
    shift = -2 * people.s * (0.3 + 0.8 * people.values["K"])  # K and the noise are held
    np.testing.assert_allclose(other.values["FYA"] - fya_of, shift, atol=1e-12)
    np.testing.assert_allclose(other.hidden["noise"], people.hidden["noise"], atol=1e-12)
    # E[FYA | K, S], then the share of good labels by ground truth: K is N(2y - 1, 0.5).
    for s, slope in ((1, 1.3), (-1, -0.3)):
        for low in np.arange(-2, 2, 0.5):
            inside = (people.s == s) & (people.values["K"] >= low) & (people.values["K"] < low + 0.5)
            expected = 0.3 * s + slope * people.values["K"][inside].mean()
            assert fya_of[inside].mean() == pytest.approx(expected, abs=4 * 0.5 / inside.sum() ** 0.5)
        for y in (0, 1):
            good = people.label[(people.s == s) & (people.hidden["y"] == y)].mean()
            mean, std = 0.3 * s + slope * (2 * y - 1), np.hypot(slope * 0.5, 0.5)
            assert good == pytest.approx(norm.cdf(mean / std), abs=0.01)


def test_ground_truth_labels_and_talent_by_group_are_their_closed_forms() -> None:
    _, people = drawn(BY_GROUP)
    for s, share in ((-1, 0.3), (1, 0.7)):
        own, n = people.s == s, (people.s == s).sum()
        assert people.hidden["y"][own].mean() == pytest.approx(share, abs=4 * 0.5 / n**0.5)
        # K is a mixture of N(-1, 0.5²) and N(1, 0.5²), and FYA is 1.3 K + s plus noise.
        std = np.hypot(0.5, 2 * (share * (1 - share)) ** 0.5)
        assert people.values["K"][own].mean() == pytest.approx(2 * share - 1, abs=4 * std / n**0.5)
        assert people.values["K"][own].std() == pytest.approx(std, abs=0.01)
        good = [norm.cdf((1.3 * (2 * y - 1) + s) / np.hypot(1.3 * 0.5, 0.05)) for y in (0, 1)]
        expected = (1 - share) * good[0] + share * good[1]
        assert people.label[own].mean() == pytest.approx(expected, abs=4 * 0.5 / n**0.5)


def test_equal_shares_by_group_are_the_same_people_as_one_number(prepared: PreparedData) -> None:
    by_group = load_dataset("synthetic", f"{SHARE}={{-1: 0.5, 1: 0.5}}").prepare()
    assert by_group.fingerprint() == prepared.fingerprint()
    drawn, other = by_group.applicants(64, [0, 1]).next(), prepared.applicants(64, [0, 1]).next()
    assert torch.equal(drawn.x, other.x)
    assert drawn.counterfactual_x_y_held is None
    assert load_dataset("synthetic", BY_GROUP).prepare().fingerprint() != prepared.fingerprint()


def test_the_counterfactual_keeps_the_number_of_y_which_may_flip() -> None:
    model, people = drawn(BY_GROUP)
    other, held = model.counterfactual(people), model.counterfactual(people, hold_y=True)
    flips = other.hidden["y"] != people.hidden["y"]
    assert flips.mean() == pytest.approx(0.7 - 0.3, abs=4 * 0.5 / N**0.5)
    assert (
        other.hidden["y"][flips] == (people.s[flips] < 0)
    ).all()  # the disadvantaged gain, the advantaged lose
    assert (flips == ((people.hidden["uniform"] >= 0.3) & (people.hidden["uniform"] < 0.7))).all()
    np.testing.assert_allclose(
        other.values["K"], people.values["K"] + 2 * (other.hidden["y"] - people.hidden["y"]), atol=1e-12
    )
    for found, k in ((other, other.values["K"]), (held, people.values["K"])):
        expected = people.values["LSAT"] - 7 * people.s + 4 * (k - people.values["K"])
        np.testing.assert_allclose(found.values["LSAT"], expected, atol=1e-12)
    assert (held.hidden["y"] == people.hidden["y"]).all()
    # The people of the counterfactual world have the distribution of the other group.
    for s, share in ((-1, 0.3), (1, 0.7)):
        assert other.hidden["y"][other.s == s].mean() == pytest.approx(share, abs=0.01)
    twice = model.counterfactual(other)
    for name, values in people.values.items():
        np.testing.assert_allclose(twice.values[name], values, rtol=0, atol=1e-12)


def test_cfu_counts_flips_of_y_and_with_y_held_it_does_not() -> None:
    data = load_dataset("synthetic", BY_GROUP, "dataset.rows.test=40000").prepare()
    measures = (*STANDARD, registered(cfu_y_held))
    scale, mean = (torch.as_tensor(of) for of in (data.scaler.scale, data.scaler.mean))

    def by_talent(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        """Accept who has K > 0, which GPA = 0.75 K + s and its small noise tell."""
        return ((x * scale + mean)[..., 1] - s > 0).float()

    found = Evaluator(data.test, 0.5, [0], measures).measure_by(by_talent)
    # K moves by 2 with Y, from N(±1, 0.5²): the decision changes unless K is beyond the other mean.
    expected = 0.4 * (norm.cdf(2) - norm.cdf(-2))
    assert float(found["cfu"]) == pytest.approx(expected, abs=4 * 0.5 / 40000**0.5)
    assert float(found["cfu_y_held"]) == pytest.approx(0.0, abs=0.001)
    assert float(found["dpu"]) == pytest.approx(0.4 * (norm.cdf(2) - norm.cdf(-2)), abs=0.02)

    def by_grade(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        """Accept who has GPA > 0, and so who has K > −s / 0.75."""
        return ((x * scale + mean)[..., 1] > 0).float()

    found = Evaluator(data.test, 0.5, [0], measures).measure_by(by_grade)
    # With Y held the decision changes where |K| < 1 / 0.75; both means of K are equally near to that.
    between = norm.cdf((1 / 0.75 - 1) / 0.5) - norm.cdf((-1 / 0.75 - 1) / 0.5)
    assert float(found["cfu_y_held"]) == pytest.approx(between, abs=0.01)
    # Who flips moves from beyond one threshold to beyond the other, but for K 4.7 deviations away.
    assert float(found["cfu"]) == pytest.approx(0.6 * between + 0.4, abs=0.01)


def test_feedback_keeps_the_number_of_y() -> None:
    data = load_dataset("synthetic", BY_GROUP).prepare()
    dynamics = data.dynamics
    assert dynamics is not None
    state = dynamics.draw(SeedStreams([0], "test"), 1000)
    risen = dynamics.changed(state, torch.ones(1, 1000, dtype=torch.bool))
    first, moved = (dynamics.people(of, SeedStreams([0], "test")) for of in (state, risen))
    assert first.ground_truth is not None
    assert moved.ground_truth is not None
    assert first.counterfactual_x is not None
    assert moved.counterfactual_x is not None
    assert torch.equal(first.ground_truth, moved.ground_truth)
    assert first.ground_truth[first.s > 0].mean() == pytest.approx(0.7, abs=0.1)
    # Who rises, rises in the counterfactual world too.
    rise = (moved.x - first.x)[..., 1]
    torch.testing.assert_close((moved.counterfactual_x - first.counterfactual_x)[..., 1], rise)


@pytest.mark.parametrize(
    ("policy", "rates"), [("harsh", (0.1280, 0.1581, 0.0979)), ("lenient", (0.5468, 0.7642, 0.3297))]
)
def test_acceptance_of_initial_policies_is_near_the_papers(policy: str, rates: tuple[float, ...]) -> None:
    config = typed_config("dataset=synthetic", f"initial_policy={policy}", f"dataset.rows.pool={N}")
    table = load_dataset("synthetic", f"dataset.rows.pool={N}").table()
    accepted = LogisticPolicy(config.initial_policy).decide(table)
    measured = (accepted.mean(), accepted[table.s == 1].mean(), accepted[table.s == -1].mean())
    assert measured == pytest.approx(rates, abs=0.02)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["dataset.observed=[FYA]"], "dataset.observed=FYA is not possible: it must be K or LSAT or GPA"),
        (["dataset.observed=[]"], "at least one variable"),
        (["dataset.structural_model.label=GRADE"], "it must be LSAT or GPA or FYA"),
        (["dataset.structural_model.k_std=0"], "k_std=0.0 is not possible: it must be positive"),
        (
            ["dataset.structural_model.variables.FYA.ks=nan"],
            "FYA.ks=nan is not possible: it must be a finite number",
        ),
        ([f"{SHARE}=1"], f"{SHARE}=1 is not possible: it must be between 0 and 1"),
        ([f"{SHARE}=half"], f"{SHARE}=half is not possible: it must be between 0 and 1"),
        ([f"{SHARE}={{-1: 0.3, 1: 1.7}}"], f"{SHARE}.1=1.7 is not possible"),
        ([f"{SHARE}=null"], f"{SHARE}=None is not possible: it must be between 0 and 1"),
        ([f"{SHARE}={{-1: null, 1: 0.5}}"], "is not possible: it must be between 0 and 1"),
        ([f"{SHARE}={{1: 0.7}}"], "or such a share of each group, {-1: 0.3, 1: 0.7}"),
        ([f"{SHARE}={{0: 0.3, 1: 0.7}}"], "or such a share of each group, {-1: 0.3, 1: 0.7}"),
        (["dataset.rows.test=2"], "dataset.rows.test=2 is not possible"),
    ],
)
def test_impossible_models_are_one_line(words: list[str], said: str) -> None:
    with pytest.raises(FairAllError) as raised:
        load_dataset("synthetic", *words)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
