import copy

import torch
from torch import Tensor, nn

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
