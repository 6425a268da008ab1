"""The old words of `python -m fairall tune`."""

import sys
from collections.abc import Sequence

from fairall.cli.old import forward


def main(words: Sequence[str] | None = None) -> int:
    """Forward to today's words."""
    return forward("tuning", words)


if __name__ == "__main__":
    sys.exit(main())
