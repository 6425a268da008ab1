"""`python -m fairall`, and the command `fairall`."""

import gc
import os
import sys
from pathlib import Path

from fairall.runtime import signals, terminal


def main() -> None:
    """Runs the command line; a mistake of the user's ends in one line and exit code 1."""
    terminal.prepare()
    # Before numpy and torch are imported, which read it once: one thread unless the user says otherwise.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # What start-up makes, stays: the collector would walk all of it again and again, a quarter of the time
    # that imports take. `experiment.run` lets it start.
    gc.disable()
    # Methods and data sets of one's own may lie in the current folder, whichever way this was started.
    sys.path.append(str(Path.cwd()))
    signals.listen()
    try:
        from fairall.main import main as command_line

        sys.exit(command_line())
    except KeyboardInterrupt as interruption:
        then = "goes on from what was saved" if "force=true" not in sys.argv else "starts anew"
        print(f"fairall: interrupted; the same command {then}", file=sys.stderr)
        sys.exit(signals.exit_code(interruption))
    finally:
        # Everything goes with the process: no last walk either.
        gc.freeze()


if __name__ == "__main__":
    main()
