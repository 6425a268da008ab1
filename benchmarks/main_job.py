"""CPU time, wall time and peak memory of a whole command: `python -m benchmarks.main_job [OVERRIDE ...]`.

Everything is included: imports, Phase I (the folder is new, so nothing is cached), MLflow, figures.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time


def main() -> None:
    """Runs the command once in a new folder and prints what it took."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        command = [sys.executable, "-m", "fairall", *sys.argv[1:]]
        subprocess.run(command, cwd=folder, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
        wall = time.perf_counter() - started
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"CPU {used.ru_utime + used.ru_stime:.1f} s (user {used.ru_utime:.1f}, system {used.ru_stime:.1f}), "
        f"wall {wall:.1f} s, peak memory {used.ru_maxrss / 1024:.0f} MiB"
    )


if __name__ == "__main__":
    main()
