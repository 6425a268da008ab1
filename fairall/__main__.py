"""`python -m fairall`, and the command `fairall`."""

import sys

from fairall.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
