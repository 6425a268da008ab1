"""`python -m fairall`."""

import sys

from fairall.main import cli

if __name__ == "__main__":
    sys.exit(cli())
