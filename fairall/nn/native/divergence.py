"""The divergence of a mixture from the prior as one native call."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from fairall.nn.native.calls import kernels, over_replicates


class NativeMixtureKL(Function):
    """`fairall.models.objectives.mixture_kl` of tensors with people as the second dimension, for autograd."""

    @staticmethod
    def forward(ctx: Any, logit: Tensor, loc: Tensor, scale: Tensor, noise: Tensor) -> Tensor:
        """Value, with the gradients kept."""
        value, of_logit = logit.new_empty(2, *logit.shape)
        of_loc, of_scale = loc.new_empty(2, *loc.shape)
        tensors = logit, loc, scale, noise, value, of_logit, of_loc, of_scale
        arrays = [tensor.detach().contiguous().numpy() for tensor in tensors]

        def some(replicates: slice) -> None:
            kernels().mixture_kl(*(array[replicates] for array in arrays))

        over_replicates(some, len(logit))
        ctx.gradients = of_logit, of_loc, of_scale
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients times `upstream` (E, B)."""
        of_logit, of_loc, of_scale = ctx.gradients
        per_person = upstream[..., None, None]
        return upstream * of_logit, per_person * of_loc, per_person * of_scale, None
