import copy

import pytest
import torch
from torch import Tensor, nn

from fairall.errors import FairAllError
from fairall.nn.adam import Adam


def moved(
    parameters: list[nn.Parameter], optimiser: Adam | torch.optim.Optimizer, steps: range
) -> list[Tensor]:
    """The parameters after some steps; the second has no gradient in odd ones."""
    for step in steps:
        optimiser.zero_grad()
        for i, parameter in enumerate(parameters):
            if step % 2 == 0 or i != 1:
                parameter.grad = torch.randn(
                    parameter.shape, generator=torch.Generator().manual_seed(step + i)
                )
        optimiser.step()
    return [parameter.detach().clone() for parameter in parameters]


def made() -> list[nn.Parameter]:
    return [nn.Parameter(torch.full(shape, 0.5)) for shape in ((2, 3), (2, 1), (4,))]


def test_it_does_what_that_of_torch_does() -> None:
    own, known = made(), made()
    ours = moved(own, Adam(own, 0.01), range(7))
    theirs = moved(known, torch.optim.Adam(known, lr=0.01), range(7))
    torch.testing.assert_close(ours, theirs)


def test_it_goes_on_where_its_state_was_taken() -> None:
    own = made()
    whole = moved(own, Adam(own, 0.01), range(7))
    first = made()
    optimiser = Adam(first, 0.01)
    moved(first, optimiser, range(4))
    state = copy.deepcopy(optimiser.state_dict())
    second = [nn.Parameter(parameter.detach().clone()) for parameter in first]
    resumed = Adam(second, 0.01)
    resumed.load_state_dict(state)
    torch.testing.assert_close(moved(second, resumed, range(4, 7)), whole, rtol=0, atol=0)


def test_without_gradients_nothing_moves() -> None:
    own = made()
    optimiser = Adam(own, 0.01)
    optimiser.step()
    torch.testing.assert_close(list(own), made(), rtol=0, atol=0)
    assert all(steps == 0 for steps in optimiser.steps)


def test_minimise_updates_by_the_gradient_of_the_sum_over_replicates() -> None:
    own, known = made(), made()
    ours, theirs = Adam(own, 0.01), Adam(known, 0.01)
    for _ in range(3):
        ours.minimise(torch.stack([parameter.square().sum() for parameter in own]))
        theirs.zero_grad()
        sum(parameter.square().sum() for parameter in known).backward()  # type: ignore[union-attr]
        theirs.step()
    torch.testing.assert_close(own, known, rtol=0, atol=0)


@pytest.mark.parametrize("place", [(slice(None), 1), (slice(None), slice(2)), (slice(None, None, 2),)])
def test_a_strided_view_is_refused_before_anything_is_written(place: tuple[int | slice, ...]) -> None:
    memory = torch.zeros(4, 3)
    parameter = nn.Parameter(memory[place])
    optimiser = Adam([nn.Parameter(torch.zeros(2)), parameter], 0.1)
    parameter.grad = torch.ones_like(parameter)
    with pytest.raises(FairAllError, match=r"parameter 1 of Adam, of shape .* is a view of other memory"):
        optimiser.step()
    assert not memory.any()


def test_what_is_computed_from_a_parameter_is_refused() -> None:
    with pytest.raises(FairAllError, match=r"of shape \(3,\), is computed from others"):
        Adam([nn.Parameter(torch.zeros(2, 3))[0]], 0.1)  # type: ignore[list-item]


def test_a_gradient_of_another_layout_is_that_gradient() -> None:
    gradient = torch.tensor([[1.0, -2.0], [3.0, 0.0], [-0.5, 4.0]])
    parameter = nn.Parameter(torch.zeros(3, 2))
    optimiser = Adam([parameter], 0.1)
    parameter.grad = gradient.T.contiguous().T
    optimiser.step()
    # The first step of Adam is the learning rate against the sign of the gradient.
    torch.testing.assert_close(parameter.detach(), -0.1 * gradient.sign(), rtol=0, atol=1e-6)
