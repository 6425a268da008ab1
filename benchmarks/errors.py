"""The exceptions that reach the user as one line."""


class BenchmarkError(Exception):
    """A mistake of the user: the message says what is wrong and what would be right."""


class RunFailed(BenchmarkError):  # noqa: N818 - it is what happened to the run
    """A measured command failed; the message is the last line that it printed."""
