"""Adam without the overhead of `torch.optim.Adam` around its kernel.

References:
    Kingma, Ba: Adam: a method for stochastic optimization, ICLR 2015.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.optim.adam import adam

VECTOR = 16  # float32 numbers in the widest vector register of a CPU (AVX-512)


class Adam:
    """Adam with PyTorch's fused kernel and default rates of decay (Kingma and Ba 2015).

    The class in `torch.optim` imports PyTorch's compiler when it is constructed, which takes 1.5 s, and its
    hooks and groups take longer than the update of a small net.

    Args:
        parameters: parameters to update; those without a gradient stay unchanged.
        learning_rate: step size.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], learning_rate: float) -> None:
        self.parameters = list(parameters)
        self.learning_rate = learning_rate
        self.means = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.squares = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.steps = [torch.zeros(()) for _ in self.parameters]

    def zero_grad(self) -> None:
        """Delete the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Update the parameters that have a gradient."""
        known = zip(self.parameters, self.means, self.squares, self.steps, strict=True)
        moved = [(own, own.grad, *rest) for own, *rest in known if own.grad is not None]
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
            beta1=0.9,
            beta2=0.999,
            lr=self.learning_rate,
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )

    def state_dict(self) -> dict[str, Any]:
        """Moments and numbers of updates, per parameter."""
        return {"means": self.means, "squares": self.squares, "steps": self.steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        for name, values in self.state_dict().items():
            for own, value in zip(values, state[name], strict=True):
                own.copy_(value)


class PaddedAdam(Adam):
    """Adam whose update of a replicate is the same, to the last bit, whatever is stacked with it.

    The kernel rounds differently after the last whole vector register of a tensor. Which numbers of a
    replicate are there would depend on how many replicates are stacked, so tensors that do not fill whole
    registers are updated in copies padded with zeros.

    Args:
        parameters: parameters to update; all need a gradient whenever `step` is called.
        learning_rate: step size.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], learning_rate: float) -> None:
        self.unpadded = list(parameters)
        whole, self.copies = [], []
        for parameter in self.unpadded:
            n = parameter.numel()
            if n % VECTOR == 0:
                whole.append(parameter)
                continue
            padded = nn.Parameter(F.pad(parameter.detach().flatten(), (0, -n % VECTOR)))
            padded.grad = torch.zeros_like(padded)
            views = [buffer[:n].view_as(parameter) for buffer in (padded.detach(), padded.grad)]
            whole.append(padded)
            self.copies.append((parameter, *views))
        super().__init__(whole, learning_rate)

    def zero_grad(self) -> None:
        """See `Adam.zero_grad`."""
        for parameter in self.unpadded:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """See `Adam.step`."""
        for parameter, values, gradient in self.copies:
            values.copy_(parameter)
            gradient.copy_(cast(Tensor, parameter.grad))
        super().step()
        for parameter, values, _ in self.copies:
            parameter.copy_(values)
