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
