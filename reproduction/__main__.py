"""`python -m reproduction`: the paper's tables and figures, the leaderboard, and the studies of docs/."""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, NoReturn

from fairall import FairAllError, places

COMMANDS = """
    runs report leaderboard worlds ablation questions findings rivals logs reject_inference simulations
    evidence
""".split()
EPILOGUE = """\
KEY=VALUE is as for `python -m fairall`: outputs_dir=FOLDER is the folder of runs; a word about an axis of a
sweep picks from it, as dataset=credit; any other is added to every command, for instance preset=quick.

  python -m reproduction runs tables                        make the runs of tables, figures, all, or a sweep
  python -m reproduction runs all --dry-run                 the runs it would make, and their time
  python -m reproduction report --into docs/results.md      the report of the runs in outputs/runs
  python -m reproduction leaderboard                        all methods on all data sets
  python -m reproduction worlds                             methods in other worlds
  python -m reproduction ablation                           parts of methods, each with the others fixed
  python -m reproduction questions truth groups             open questions: truth, hidden, groups, amounts
  python -m reproduction findings --into docs/findings.md   what all of them found, from the tables of docs/
  python -m reproduction rivals dataset=fico                beside the figures of other methods' authors
  python -m reproduction logs dataset=credit                a benchmark of estimators from logs of decisions
  python -m reproduction reject_inference                   what it gains where masked labels are known
  python -m reproduction simulations guard drift            how often promises of tests and intervals hold
  python -m reproduction evidence --jobs 2 --hours 4        evaluations of policies where the truth is known

--into PAGE fills the blocks of a page, <!-- begin: KEY --> to <!-- end: KEY -->, where KEY is a table, a
figure or `setting`, and copies the figures that the page names."""
LOGS_SHARE = 0.75  # of the hours of `evidence`, the rest is for simulations


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code; a mistake of the user's is one line."""
    # Read when numpy and torch are imported; and so that Hydra raises what it would print.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ["HYDRA_FULL_ERROR"] = "1"
    command, given = _parsed(sys.argv[1:] if words is None else words)
    try:
        return 0 if _run(command, given) else 1
    except FairAllError as error:
        print(f"reproduction: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as interruption:
        print("reproduction: interrupted; the same command goes on from what was saved", file=sys.stderr)
        return 128 + (*interruption.args, signal.SIGINT)[0]


def _run(command: str, given: dict[str, Any]) -> bool:
    """Run a command; return whether all of its runs are there. Slow imports are here."""
    # A command but for `evidence` is a function of the module of its name, whose parameters are its options.
    own = evidence if command == "evidence" else getattr(import_module(f"reproduction.{command}"), command)
    for name in given.keys() - signature(own).parameters:
        if value := given.pop(name):
            what = value[0] if isinstance(value, list) else f"--{name.replace('_', '-')}"
            raise FairAllError(f"{what}: not possible with {command}")
    return own(**given) is not False


def evidence(
    folder: Path | None = None,
    into: Sequence[Path] = (),
    jobs: int = 1,
    logs: int = 200,
    hours: float = math.inf,
) -> bool:
    """Evaluate logs, then make the studies of evaluations; each fills the pages that have its blocks."""
    from reproduction.evidence import make
    from reproduction.evidence_page import write_pages
    from reproduction.pages import refuse
    from reproduction.simulations import of_evaluations, simulations

    refuse(into, places([]))
    studies = [page for page in into if "<!-- begin: simulations_" in page.read_text()]
    end = time.monotonic() + 3600 * hours
    folder = folder or Path("outputs") / f"evidence_{datetime.now():%Y-%m-%d_%H-%M-%S}"
    print(f"Evaluations: {folder}", flush=True)
    make(folder, logs, jobs, LOGS_SHARE * hours)
    write_pages(folder, [page for page in into if page not in studies])
    left = max(end - time.monotonic(), 0.0) / 3600
    return simulations([], folder / "simulations", studies, jobs, of_evaluations(), left)


def _whole(word: str) -> int:
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"it must be a whole number of at least 1, not {word}")
    return int(word)


def _parsed(words: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """The command and its arguments by name; options may stand anywhere."""
    parser = argparse.ArgumentParser(
        "python -m reproduction",
        "%(prog)s COMMAND [PART | QUESTION | STUDY | KEY=VALUE ...] [OPTION ...]",
        "The paper's tables and figures, the leaderboard, and other studies.",
        EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,  # functions have their own
    )
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("words", nargs="*", default=[], help=argparse.SUPPRESS)
    parser.add_argument("--jobs", type=_whole, help="processes at once")
    parser.add_argument("-o", "--output", type=Path, dest="folder", help="default: one in outputs_dir")
    into = "fill the blocks of a page of docs/ too; may be repeated"
    parser.add_argument("--into", type=Path, metavar="PAGE", action="append", help=into)
    parser.add_argument("--dry-run", action="store_true", help="of runs: list them without making them")
    parser.add_argument(
        "--mlflow", action="store_true", dest="from_mlflow", help="of report: runs of the store"
    )
    parser.add_argument("--answers", type=Path, help="of logs: CSV of another estimator, to be scored too")
    parser.add_argument("--logs", type=_whole, help="of evidence: number of a basic kind (200)")
    hours = (
        "of evidence and simulations: until neither a log nor a simulation is begun any more, of which logs "
        "take three quarters at most; 0 only writes the pages (until all are done)"
    )
    parser.add_argument("--hours", type=float, help=hours)
    given = vars(parser.parse_intermixed_args(words))
    some = given.pop("words")
    given["overrides"] = [word for word in some if "=" in word]
    given["asked"] = [word for word in some if "=" not in word]
    return given.pop("command"), given


def _stop(number: int, _: Any) -> NoReturn:
    # A closed terminal often sends it twice; the second would keep the runs from being stopped.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise KeyboardInterrupt(number)


if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    sys.exit(main())
