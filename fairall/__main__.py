"""`python -m fairall`, and the command `fairall`."""

import sys

from fairall.runtime.setup import run_command


def main() -> int:
    """Run the command line and return the exit code."""
    return run_command(_main)


def _main() -> int:
    from fairall.main import cli  # slow, so that Ctrl-C during the import is reported too

    return cli()


if __name__ == "__main__":
    sys.exit(main())
