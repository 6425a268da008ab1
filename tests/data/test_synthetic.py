"""People of the structural model: its equations, counterfactuals, streams, and what is refused."""

import numpy as np
import pytest
import torch
from scipy.stats import norm

from fairall.config.compose import typed_config
from fairall.config.schema import ScalerRows
from fairall.data.generated import Individuals
from fairall.data.load import load_dataset
from fairall.data.prepared import PreparedData
from fairall.data.synthetic import Synthetic
from fairall.metrics import STANDARD, cfu_y_held, registered
from fairall.online.evaluation import Evaluator
from fairall.runtime.randomness import SeedStreams
from fairall.storage.identity import configuration_key

N = 200_000
BY_GROUP = "dataset.structural_model.ground_truth_share={-1: 0.3, 1: 0.7}"


def drawn(*words: str) -> tuple[Synthetic, Individuals]:
    """A structural model, and N people of it."""
    model = load_dataset("synthetic", *words)
    assert isinstance(model, Synthetic)
    return model, model.draw(SeedStreams([0], "test"), N)


def parts(people: Individuals) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return people["s"], people["K"], people["ground truth"]


def near(shares: np.ndarray, expected: float) -> bool:
    """Whether a mean of numbers within an interval of length 1 is within four standard errors."""
    return bool(abs(shares.mean() - expected) < 2 / shares.size**0.5)


@pytest.fixture(scope="module")
def prepared() -> PreparedData:
    return load_dataset("synthetic").prepare()


@pytest.mark.parametrize(("words", "shares"), [([], (0.5, 0.5)), ([BY_GROUP], (0.3, 0.7))])
def test_people_have_the_stated_distribution_and_a_counterfactual_the_other_s(
    words: list[str], shares: tuple[float, float]
) -> None:
    model, people = drawn(*words)
    (s, k, y), uniform = parts(people), people["uniform"]
    assert near(s / 2, 0)
    for truth in (0, 1):
        rows = y == truth
        assert (k[rows].mean(), k[rows].std()) == pytest.approx((2 * truth - 1, 0.5), abs=0.01)
        assert abs(np.corrcoef(s[rows], k[rows])[0, 1]) < 0.01
    for group, share in zip((-1, 1), shares, strict=True):
        rows = s == group
        assert near(y[rows], share)
    for variable, of_k, of_s, std in (("LSAT", 4, 3.5, 0.1), ("GPA", 0.75, 1, 0.01), ("FYA", 1.3, 1, 0.05)):
        residual = people[variable] - of_k * k - of_s * s
        assert (residual.mean(), residual.std()) == pytest.approx((0, std), abs=0.01 * std)
        assert np.abs(np.corrcoef([residual[0], s[0], k[0], y[0]])[0, 1:]).max() < 0.01
    assert (people["label"] == (people["FYA"] > 0)).all()

    other, held = (model.counterfactual(people, hold_y=hold) for hold in (False, True))
    other_s, other_k, other_y = parts(other)
    assert (other_s == -s).all()
    # The disadvantaged gain and the advantaged lose a ground truth between the shares of the groups.
    between = (uniform >= shares[0]) & (uniform < shares[1])
    assert (other_y == np.where(between, s < 0, y)).all()
    assert (held["ground truth"] == y).all()
    lsat = people["LSAT"]
    for values, expected in (
        (other["noise of GPA"], people["noise of GPA"]),
        (other_k, k + 2 * (other_y - y)),
        (other["LSAT"], lsat - 7 * s + 4 * (other_k - k)),
        (held["LSAT"], lsat - 7 * s),
        ([*model.counterfactual(other).values()], [*people.values()]),
    ):
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)


def test_people_and_their_counterfactuals_are_on_one_scale() -> None:
    dataset, _ = drawn()
    data = dataset.prepare(scaler=ScalerRows.each_file)
    test, raw = data.test, dataset.features(dataset.individuals("test", 5000))
    assert test.counterfactual_x is not None
    shift = (test.counterfactual_x - test.x) * raw.std(0)
    expected = torch.stack([-7.0 * test.s, -2.0 * test.s], dim=-1).double()
    torch.testing.assert_close(shift, expected, rtol=1e-4, atol=1e-4)


def test_coefficients_can_be_changed_and_variables_added() -> None:
    table = load_dataset(
        "synthetic",
        "dataset.structural_model.variables.ESSAY={k: 2, s: 0, std: 0.3}",
        "dataset.observed=[LSAT,ESSAY]",
        "dataset.structural_model.advantaged_share=0.2",
        "dataset.structural_model.threshold=100",
    ).table()
    assert table.schema.names == ["LSAT", "ESSAY"]
    assert near(table.s == 1, 0.2)
    assert not table.label.any()
    assert (table.x["ESSAY"] - 2 * table.x["K"]).std() == pytest.approx(0.3, abs=0.02)


def test_an_interaction_turns_the_order_of_one_group() -> None:
    model, people = drawn("dataset.structural_model.variables.FYA={k: 0.5, ks: 0.8, s: 0.3, std: 0.5}")
    (s, k, _), other = parts(people), model.counterfactual(people)
    shift = -2 * s * (0.3 + 0.8 * k)  # K and the noise are held
    np.testing.assert_allclose(other["FYA"] - people["FYA"], shift, atol=1e-12)
    for group, slope in ((1, 1.3), (-1, -0.3)):
        assert np.polyfit(k[s == group], people["FYA"][s == group], 1) == pytest.approx(
            [slope, 0.3 * group], abs=0.02
        )


def test_equal_shares_by_group_are_the_same_people_as_one_number(prepared: PreparedData) -> None:
    equal, *others = (
        load_dataset("synthetic", word).prepare()
        for word in (
            "dataset.structural_model.ground_truth_share={-1: 0.5, 1: 0.5}",
            BY_GROUP,
            "dataset.random_state=5",
        )
    )
    assert '"-1": 0.3' in configuration_key(typed_config("dataset=synthetic", BY_GROUP))
    assert equal.fingerprint() == prepared.fingerprint()
    assert prepared.fingerprint() not in [other.fingerprint() for other in others]
    first, same = equal.applicants(64, [0, 1]).next(), prepared.applicants(64, [0, 1]).next()
    assert torch.equal(first.x, same.x)
    assert first.counterfactual_x_y_held is None


def test_cfu_counts_flips_of_y_and_with_y_held_it_does_not() -> None:
    data = load_dataset("synthetic", BY_GROUP, "dataset.rows.test=40000").prepare()
    evaluator = Evaluator(data.test, 0.5, [0], (*STANDARD, registered(cfu_y_held)))
    scale, mean = (torch.as_tensor(values)[1] for values in (data.scaler.scale, data.scaler.mean))

    # Accept who has GPA > 0, where GPA = 0.75 K + s and small noise.
    measures = evaluator.measure_by(lambda x, s: (x[..., 1] * scale + mean > 0).float())
    # With Y held the decision changes where |K| < 1 / 0.75; K is N(±1, 0.5²).
    # Who flips moves from beyond one threshold to beyond the other, but for K 4.7 deviations away.
    between = norm.cdf((1 / 0.75 - 1) / 0.5) - norm.cdf((-1 / 0.75 - 1) / 0.5)
    assert float(measures["cfu_y_held"]) == pytest.approx(between, abs=0.01)
    assert float(measures["cfu"]) == pytest.approx(0.6 * between + 0.4, abs=0.01)


def test_feedback_keeps_the_number_of_y() -> None:
    dynamics = load_dataset("synthetic", BY_GROUP).prepare().dynamics
    assert dynamics is not None
    state = dynamics.draw(SeedStreams([0], "test"), 1000)
    risen = dynamics.changed(state, torch.ones(1, 1000, dtype=torch.bool))
    first, moved = (vars(dynamics.people(states, SeedStreams([0], "test"))) for states in (state, risen))
    assert torch.equal(first["ground_truth"], moved["ground_truth"])
    assert near(first["ground_truth"][first["s"] > 0].numpy(), 0.7)
    assert (moved["label"] >= first["label"]).all()
    # Who rises, rises in the counterfactual world too.
    rise, counterfactual = ((moved[name] - first[name])[..., 1] for name in ("x", "counterfactual_x"))
    assert (rise > 0).all()
    torch.testing.assert_close(counterfactual, rise)
