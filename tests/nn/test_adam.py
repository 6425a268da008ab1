"""The optimiser against that of torch."""

import copy

import pytest
import torch
from torch import nn

from fairall.errors import FairAllError
from fairall.nn.adam import Adam


def made() -> list[nn.Parameter]:
    return [nn.Parameter(torch.full(shape, 0.5)) for shape in ((2, 3), (2, 1), (4,))]


def test_it_does_what_that_of_torch_does_and_goes_on_from_a_saved_state() -> None:
    """Gradients may have another layout, or none, or be those of losses of replicates."""
    own, known = made(), made()
    ours, theirs = Adam(own, 0.01), torch.optim.Adam(known, lr=0.01)
    ours.step()  # without gradients nothing moves
    assert [int(steps) for steps in ours.steps] == [0, 0, 0]
    for step in range(7):
        if step == 4:
            state = copy.deepcopy(ours.state_dict())
            ours = Adam(own, 0.01)
            ours.load_state_dict(state)
        for i, pair in enumerate(zip(own, known, strict=True)):
            gradient = torch.randn(pair[0].shape[::-1]).permute(*reversed(range(pair[0].ndim)))
            for parameter in pair:
                parameter.grad = gradient if step % 2 == 0 or i != 1 else None
        ours.step()
        theirs.step()
        torch.testing.assert_close(own, known)
    ours.minimise(torch.stack([parameter.square().sum() for parameter in own]))
    for parameter in known:
        parameter.grad = 2 * parameter.detach()
    theirs.step()
    torch.testing.assert_close(own, known)


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
