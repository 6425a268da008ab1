"""The slow terms compiled by numba; whoever computes one defines it in torch and calls this where it can.

`takes` is the switch. Five functions ask it: `fairall.nn.stacked.evaluated`, `mixture_kl` of
`fairall.models.elbo`, `ConditionalVAE.log_likelihood`, `phase1_epochs` and the average over z of a policy.
Where numba is missing or switched off (NUMBA_DISABLE_JIT=1) torch computes them to rounding, more slowly.
"""

from fairall.nn.native.calls import takes
from fairall.nn.native.functions import (
    Phase1Epochs,
    average_probability,
    log_likelihood,
    mixture_kl,
    outputs,
)

__all__ = ["Phase1Epochs", "average_probability", "log_likelihood", "mixture_kl", "outputs", "takes"]
