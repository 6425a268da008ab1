"""What is slow, compiled by numba, each beside its definition in torch and compared with it in tests.

`takes` is the switch. `fairall.nn` asks it and computes in torch otherwise: `stacked.evaluated`,
`stacked.average_probability`, `noise.Noise`; learners ask `fastest`. Where numba is missing or switched off
(NUMBA_DISABLE_JIT=1) they give the same to rounding, in several times the time.
"""

from fairall.nn.native.calls import blas, processor, takes, use_threads
from fairall.nn.native.functions import average_probability, fastest, fill, outputs
from fairall.nn.native.objective import Objective

__all__ = [
    "Objective",
    "average_probability",
    "blas",
    "fastest",
    "fill",
    "outputs",
    "processor",
    "takes",
    "use_threads",
]
