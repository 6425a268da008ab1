import itertools

import pytest
import torch

from fairall.models.objectives import ips_risk, ips_weight, masked_mean


@pytest.mark.parametrize(
    ("most", "expected"),
    [(None, [2.0, 200.0, 1.0, 1.0, 1.25]), (100, [2.0, 100.0, 1.0, 1.0, 1.25]), (1, [1.0] * 5)],
)
def test_weight_is_one_over_the_propensity_of_the_accepted_within_its_bound(
    most: float | None, expected: list[float]
) -> None:
    propensity = torch.tensor([[0.5, 0.005, 0.002, 1.0, 0.8]])
    accepted = torch.tensor([[True, True, False, True, True]])
    torch.testing.assert_close(ips_weight(propensity, accepted, most), torch.tensor([expected]))


@pytest.mark.parametrize("most", [None, 100])
def test_rejected_rows_that_could_not_be_accepted_leave_everything_finite(most: float | None) -> None:
    """Nobody of the second replicate is accepted."""
    loss = torch.tensor([[1.0, 2.0, 3.0]] * 2, requires_grad=True)
    propensity = torch.tensor([[0.0, 0.25, 0.0]] * 2, requires_grad=True)
    accepted = torch.tensor([[False, True, False], [False] * 3])
    risk = ips_risk(loss, ips_weight(propensity, accepted, most), accepted)
    assert risk.tolist() == [8.0, 0.0]
    of_loss, of_propensity = torch.autograd.grad(risk.sum(), (loss, propensity))
    assert of_loss.tolist() == [[0.0, 4.0, 0.0], [0.0] * 3]
    assert of_propensity.tolist() == [[0.0, -32.0, 0.0], [0.0] * 3]


def test_inverse_propensity_weights_make_the_risk_unbiased() -> None:
    loss, propensity = torch.tensor([[1.0, 5.0, 2.0, 0.5], [0.9, 0.1, 0.4, 0.7]])
    # The exact expectation: every possible set of decisions with its probability.
    accepted = torch.tensor([*itertools.product([False, True], repeat=4)])
    chance = torch.where(accepted, propensity, 1 - propensity).prod(-1)
    weighted = ips_risk(loss, ips_weight(propensity, accepted, None), accepted)
    mean = (chance * accepted.float().mean(-1) * weighted).sum()
    torch.testing.assert_close(mean, loss.mean())
    assert abs((chance * masked_mean(loss, accepted)).sum() - loss.mean()) > 0.2
