"""`python -m fairall`, and the command `fairall`."""

import sys


def main() -> int:
    """Run the command line of the process and return the exit code."""
    from fairall.runtime import signals

    signals.listen()
    from fairall.cli.main import main as command

    return command()


if __name__ == "__main__":
    sys.exit(main())
