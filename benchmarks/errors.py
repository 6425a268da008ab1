"""The exceptions that reach the user as one line."""


class BenchmarkError(Exception):
    """Something the user can mend: the message says what is wrong and what would be right."""


class RunFailed(BenchmarkError):  # noqa: N818 - it is what happened to the run
    """A measured command did not end well; the message is the last thing it said."""
