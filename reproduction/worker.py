"""Make runs one after the other in one process, each as `python -m fairall WORDS` makes it.

`runs.Making` starts one per core. Each line of standard input is the words of a run as JSON; the answer is a
line with the seconds of processor time that the run took. A run that fails ends the process with its exit
code, so that no other run goes on from what it has left.
"""

import json
import os
import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path.cwd())  # as for `python -m`, in place of the folder of this file
    # Runs are given no input, and what they print is dropped.
    orders, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    for line in orders:
        before = sum(os.times()[:4])
        sys.argv[1:] = json.loads(line)
        try:
            runpy.run_module("fairall", run_name="__main__", alter_sys=True)
        except SystemExit as end:
            if end.code:
                raise
        print(sum(os.times()[:4]) - before, file=answers, flush=True)
