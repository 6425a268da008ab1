"""Phase I and the decoder of Phase II compiled by numba; the same mathematics in torch is elsewhere in `nn`.

Nothing else depends on this room: where numba is missing or switched off (NUMBA_DISABLE_JIT=1), everything is
computed in torch, in two to four times the time.
"""
