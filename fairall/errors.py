"""The one exception that reaches the user as one line."""


class FairAllError(Exception):
    """Something the user can mend: the message says what is wrong, where, and what to do."""
