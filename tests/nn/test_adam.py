import copy

import pytest
import torch
from torch import Tensor, nn

from fairall.nn.adam import Adam, PaddedAdam


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


@pytest.mark.parametrize("shape", [(1, 1), (1, 24), (64, 60), (7, 5), (16, 2)])
def test_a_padded_update_does_not_depend_on_what_is_stacked_with_it(shape: tuple[int, int]) -> None:
    starts, gradients = torch.randn(10, *shape), 1e-3 * torch.randn(200, 10, *shape)

    def moved(replicates: list[int]) -> Tensor:
        parameter = nn.Parameter(starts[replicates])
        optimiser = PaddedAdam([parameter], 1e-3)
        for gradient in gradients:
            parameter.grad = gradient[replicates]
            optimiser.step()
        return parameter.detach()

    alone = torch.cat([moved([k]) for k in range(10)])
    for stack in ([3, 5], [9, 8, 7], [0, 1, 2, 3, 4], list(range(10))):
        torch.testing.assert_close(moved(stack), alone[stack], rtol=0, atol=0)


def test_padded_it_does_what_that_of_torch_does_and_goes_on_where_its_state_was_taken() -> None:
    own, known = ([nn.Parameter(torch.full(shape, 0.5)) for shape in ((2, 3), (4, 4))] for _ in range(2))
    optimisers = PaddedAdam(own, 0.01), torch.optim.Adam(known, lr=0.01)
    gradients = torch.randn(8, 16)

    def step(parameters: list[nn.Parameter], optimiser: Adam | torch.optim.Optimizer, i: int) -> None:
        optimiser.zero_grad()
        for parameter in parameters:
            parameter.grad = gradients[i][: parameter.numel()].view_as(parameter)
        optimiser.step()

    for i in range(5):
        step(own, optimisers[0], i)
        step(known, optimisers[1], i)
    torch.testing.assert_close(own, known)
    resumed = [nn.Parameter(parameter.detach().clone()) for parameter in own]
    third = PaddedAdam(resumed, 0.01)
    third.load_state_dict(copy.deepcopy(optimisers[0].state_dict()))
    for i in range(5, 8):
        step(own, optimisers[0], i)
        step(resumed, third, i)
    torch.testing.assert_close(resumed, own, rtol=0, atol=0)
