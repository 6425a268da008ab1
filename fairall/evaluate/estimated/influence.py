"""Names of `estimates`."""

from fairall.evaluate.estimated.estimates import *  # noqa: F403
