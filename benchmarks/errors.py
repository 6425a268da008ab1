"""The exceptions that reach the user as one line."""

from collections.abc import Sequence


class BenchmarkError(Exception):
    """A mistake of the user: the message says what is wrong and what would be right."""


class RunFailed(BenchmarkError):  # noqa: N818 - it is what happened to the run
    """A measured command failed; the message is the last line that it printed."""


class FaultError(Exception):
    """What should not have happened; `words` are the command line."""

    def __init__(self, why: str, words: Sequence[str] = ()) -> None:
        super().__init__(why)
        self.words = words
