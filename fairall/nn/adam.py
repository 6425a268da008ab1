"""Adam by PyTorch's kernel, without the overhead of `torch.optim.Adam`.

References:
    Kingma, Ba: Adam: a method for stochastic optimization, ICLR 2015.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from fairall.errors import FairAllError
from fairall.storage.checkpoint import State


class Adam:
    """Adam with PyTorch's fused kernel (Kingma and Ba 2015).

    The class in `torch.optim` imports PyTorch's compiler when it is constructed, which takes 1.5 s, and its
    hooks and groups take longer than the update of a small net.

    Args:
        parameters: parameters to update; those without a gradient stay unchanged.
        learning_rate: step size.
        betas: rates of decay of the means of gradients and of their squares.

    Raises:
        FairAllError: for a parameter that is computed from others, such as a row of one, which has no
            gradient of its own; and, in `step`, for one that is a strided view, whose memory the kernel takes
            for contiguous. Those of a compiled learner (`fairall.nn.native`) are such views.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        learning_rate: float,
        betas: tuple[float, float] = (0.9, 0.999),
    ) -> None:
        self.parameters = list(parameters)
        for number, parameter in enumerate(self.parameters):
            if not parameter.is_leaf:
                raise FairAllError(f"{_named(number, parameter)} is computed from others: give Adam those")
        self.learning_rate = learning_rate
        self.betas = betas
        self.means = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.squares = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.steps = [torch.zeros(()) for _ in self.parameters]

    def zero_grad(self) -> None:
        """Delete the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    def minimise(self, loss: Tensor) -> None:
        """Update the parameters by the gradient of the sum of `loss` over replicates, shape (E,).

        Each replicate has the gradient that it has alone, to rounding (docs/reliability.md).
        """
        self.zero_grad()
        loss.sum().backward()
        self.step()

    @torch.no_grad()
    def step(self) -> None:
        """Update the parameters that have a gradient.

        Raises:
            FairAllError: for a parameter that is a strided view of other memory.
        """
        for number, parameter in enumerate(self.parameters):
            if not parameter.is_contiguous():
                raise FairAllError(
                    f"{_named(number, parameter)} is a view of other memory, which Adam would write past: "
                    "give it a copy (nn.Parameter(values.clone())), or take torch.optim.Adam"
                )
        known = zip(self.parameters, self.means, self.squares, self.steps, strict=True)
        moved = [(own, own.grad.contiguous(), *rest) for own, *rest in known if own.grad is not None]
        if not moved:
            return
        parameters, gradients, means, squares, steps = map(list, zip(*moved, strict=True))
        adam(
            parameters,
            gradients,
            means,
            squares,
            [],
            steps,
            fused=True,
            amsgrad=False,
            beta1=self.betas[0],
            beta2=self.betas[1],
            lr=self.learning_rate,
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )

    def state_dict(self) -> State:
        """Moments and numbers of updates, per parameter."""
        return {"means": self.means, "squares": self.squares, "steps": self.steps}

    def load_state_dict(self, state: State) -> None:
        """Restore what `state_dict` returned."""
        for name, values in self.state_dict().items():
            for own, value in zip(values, state[name], strict=True):
                own.copy_(value)


def _named(number: int, parameter: Tensor) -> str:
    return f"parameter {number} of Adam, of shape {tuple(parameter.shape)},"
