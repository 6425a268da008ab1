import itertools

import pytest
import torch

from fairall.models.objectives import ips_risk, ips_weight


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
    """By every possible set of decisions with its probability; times the labelled share."""
    loss, propensity = torch.tensor([[1.0, 5.0, 2.0, 0.5], [0.9, 0.1, 0.4, 0.7]])
    accepted = torch.tensor([*itertools.product([False, True], repeat=4)])
    chance = torch.where(accepted, propensity, 1 - propensity).prod(-1)
    risk = ips_risk(loss, ips_weight(propensity, accepted, None), accepted)
    torch.testing.assert_close((chance * accepted.float().mean(-1) * risk).sum(), loss.mean())
