"""What is slow, compiled by numba, each beside its definition in torch and compared with it in tests.

`takes` is the switch. `fairall.nn` asks it and computes in torch otherwise: `stacked.evaluated`,
`stacked.average_probability`, `noise.Noise` and `twins.fastest`. Where numba is missing or switched off
(NUMBA_DISABLE_JIT=1) they give the same to rounding, in several times the time.
"""

from fairall.nn.native.calls import processor, takes
from fairall.nn.native.functions import Phase1Epochs, Phase2Epochs, average_probability, fill, outputs

__all__ = [
    "Phase1Epochs",
    "Phase2Epochs",
    "average_probability",
    "fill",
    "outputs",
    "processor",
    "takes",
]
