import numpy as np
import pytest
import torch
from scipy.special import expit
from scipy.stats import norm

from fairall.config.compose import typed_config
from fairall.data.load import load_dataset
from fairall.data.prepared import PreparedData
from fairall.data.synthetic import StructuralIndividuals, StructuralModel
from fairall.online.initial_policy import LogisticPolicy
from fairall.randomness import SeedStreams

N = 200_000


@pytest.fixture(scope="module")
def model() -> StructuralModel:
    return StructuralModel(typed_config("dataset=synthetic").dataset.structural_model)


@pytest.fixture(scope="module")
def people(model: StructuralModel) -> StructuralIndividuals:
    return model.draw(SeedStreams([0], "test"), N)


@pytest.fixture(scope="module")
def prepared() -> PreparedData:
    return load_dataset("synthetic").prepare()


@pytest.mark.parametrize(
    ("name", "of_k", "of_s", "std"), [("LSAT", 4, 3.5, 0.1), ("GPA", 0.75, 1, 0.01), ("FYA", 1.3, 1, 0.05)]
)
def test_residuals_have_the_stated_deviations(
    people: StructuralIndividuals, name: str, of_k: float, of_s: float, std: float
) -> None:
    residual = people.values[name] - of_k * people.k - of_s * people.s
    assert residual.std() == pytest.approx(std, rel=0.01)
    assert abs(residual.mean()) < 4 * std / N**0.5
    for cause in (people.k, people.s, people.y):
        assert abs(np.corrcoef(residual.ravel(), cause.ravel())[0, 1]) < 0.01


def test_talent_and_groups_are_as_stated(people: StructuralIndividuals) -> None:
    assert people.s.mean() == pytest.approx(0, abs=0.01)
    assert people.y.mean() == pytest.approx(0.5, abs=0.005)
    for y, mean in ((0, -1), (1, 1)):
        k = people.k[people.y == y]
        assert (k.mean(), k.std()) == pytest.approx((mean, 0.5), abs=0.01)
    assert abs(np.corrcoef(people.s.ravel(), people.k.ravel())[0, 1]) < 0.01
    assert (people.label == (people.values["FYA"] > 0)).all()


def test_ground_truth_is_calibrated_to_the_closed_form_given_k(people: StructuralIndividuals) -> None:
    expected = expit(8 * people.k)
    for low in np.arange(0, 1, 0.1):
        inside = (expected >= low) & (expected < low + 0.1)
        n = inside.sum()
        assert people.y[inside].mean() == pytest.approx(expected[inside].mean(), abs=4 * 0.5 / n**0.5)


def test_abduction_recovers_the_noise_and_twice_the_counterfactual_is_the_original(
    model: StructuralModel, people: StructuralIndividuals
) -> None:
    for name, noise in model.abduct(people).items():
        np.testing.assert_allclose(noise, people.noise[name], atol=1e-12)
    other = model.counterfactual(people)
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
    model = StructuralModel(typed_config("dataset=synthetic", fya).dataset.structural_model)
    people = model.draw(SeedStreams([0], "test"), N)
    fya_of, other = people.values["FYA"], model.counterfactual(people)
    assert np.unique(other.s * people.s).tolist() == [-1]
    assert (other.k == people.k).all()
    shift = -2 * people.s * (0.3 + 0.8 * people.k)  # K and the noise are held
    np.testing.assert_allclose(other.values["FYA"] - fya_of, shift, atol=1e-12)
    np.testing.assert_allclose(model.abduct(people)["FYA"], people.noise["FYA"], atol=1e-12)
    # E[FYA | K, S], then the share of good labels by ground truth: K is N(2y - 1, 0.5).
    for s, slope in ((1, 1.3), (-1, -0.3)):
        for low in np.arange(-2, 2, 0.5):
            inside = (people.s == s) & (people.k >= low) & (people.k < low + 0.5)
            expected = 0.3 * s + slope * people.k[inside].mean()
            assert fya_of[inside].mean() == pytest.approx(expected, abs=4 * 0.5 / inside.sum() ** 0.5)
        for y in (0, 1):
            good = people.label[(people.s == s) & (people.y == y)].mean()
            mean, std = 0.3 * s + slope * (2 * y - 1), np.hypot(slope * 0.5, 0.5)
            assert good == pytest.approx(norm.cdf(mean / std), abs=0.01)


@pytest.mark.parametrize(
    ("policy", "rates"), [("harsh", (0.1280, 0.1581, 0.0979)), ("lenient", (0.5468, 0.7642, 0.3297))]
)
def test_acceptance_of_initial_policies_is_near_the_papers(
    policy: str, rates: tuple[float, ...], model: StructuralModel
) -> None:
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
        (["dataset.rows.test=2"], "dataset.rows.test=2 is not possible"),
    ],
)
def test_impossible_models_are_one_line(words: list[str], said: str) -> None:
    from fairall.errors import FairAllError

    with pytest.raises(FairAllError) as raised:
        load_dataset("synthetic", *words)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
