"""The exception that reaches the user as one line, and wording that messages share."""


class FairAllError(Exception):
    """An error that the user can correct: the message says what is wrong, where, and what to do."""


def count(n: int, thing: str, things: str | None = None) -> str:
    """`n` with the noun in singular or plural; the plural ends in s unless given."""
    return f"{n} {thing}" if n == 1 else f"{n} {things or thing + 's'}"
