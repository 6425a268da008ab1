"""Slow terms compiled by numba, each beside its definition in torch and compared with it in tests.

`takes` is the switch. Five functions ask it and compute in torch otherwise: `evaluated` of
`fairall.nn.stacked`, and in `fairall.models` `ConditionalVAE.log_likelihood`, `elbo.mixture_kl`,
`phase1.phase1_epochs` and `policy_heads.average_acceptance`. Where numba is missing or switched off
(NUMBA_DISABLE_JIT=1) they give the same to rounding, in about four times the time.
"""

from fairall.nn.native.calls import takes
from fairall.nn.native.functions import (
    Objective,
    Phase1Epochs,
    Phase2Epochs,
    average_probability,
    fill,
    outputs,
)

__all__ = [
    "Objective",
    "Phase1Epochs",
    "Phase2Epochs",
    "average_probability",
    "fill",
    "outputs",
    "takes",
]
