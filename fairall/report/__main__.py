"""`python -m fairall.report` of version 0.1, in today's words."""

import sys
from collections.abc import Sequence

from fairall.cli.old import forward


def main(words: Sequence[str] | None = None) -> int:
    """Forward to today's words."""
    return forward("report", words)


if __name__ == "__main__":
    sys.exit(main())
