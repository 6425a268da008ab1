"""How messages put things."""

from __future__ import annotations


def count(n: int, thing: str) -> str:
    """N things, or one."""
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"
