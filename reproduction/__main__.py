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
from pathlib import Path
from typing import Any, NoReturn

from fairall import FairAllError, places

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


COMMANDS = {
    "runs": "Make the runs of parts of the paper, or of a sweep.",
    "report": "Tables and figures of the paper, of the runs that are there.",
    "leaderboard": "Make and show all methods on all data sets.",
    "worlds": "Make and show methods in other worlds.",
    "ablation": "Make and show what each part of a method is worth with the others fixed.",
    "questions": "Make and show answers to what the paper leaves open, by the word of each question.",
    "findings": "Write docs/findings.md and its figures from the tables of results in docs/.",
    "rivals": "Make and show figures that the authors of other methods print.",
    "logs": "A benchmark of estimators: logs with exact propensities, the truth apart, and scores.",
    "reject_inference": "Methods of reject inference, with rejectkit's beside ours, on masked labels.",
    "simulations": "Whether errors of tests, intervals and guards are as rare as promised: hours.",
    "evidence": "Evaluations of policies where the truth is known, and all simulations of evaluations.",
}


WORDS = {
    "runs": "PART | KEY=VALUE",
    "questions": "QUESTION | KEY=VALUE",
    "simulations": "STUDY | KEY=VALUE",
}

LOGS_SHARE = 0.75  # of the hours of `evidence`, the rest is for simulations


class Interrupted(KeyboardInterrupt):
    """A signal asked the process to stop."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def _stop(number: int, _: Any) -> NoReturn:
    # A closed terminal often sends it twice; the second would keep the runs from being stopped.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise Interrupted(number)


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code; a mistake of the user's is one line."""
    # Read when numpy and torch are imported; and so that Hydra raises what it would print.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ["HYDRA_FULL_ERROR"] = "1"
    arguments = _parsed(list(sys.argv[1:] if words is None else words))
    before = {number: signal.signal(number, _stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        return 0 if _run(arguments) else 1
    except FairAllError as error:
        print(f"reproduction: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as interruption:
        print("reproduction: interrupted; the same command goes on from what was saved", file=sys.stderr)
        return 128 + getattr(interruption, "number", signal.SIGINT)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _run(arguments: argparse.Namespace) -> bool:
    """Run a command; return whether all of its runs are there. Slow imports are here."""
    if arguments.command == "evidence":
        return _evidence(arguments)
    words = arguments.words
    overrides = [word for word in words if "=" in word]
    others = [word for word in words if "=" not in word]
    if arguments.command == "runs":
        from reproduction.plan import plan, sweeps_of
        from reproduction.runs import make

        planned = plan(sweeps_of(others or ["all"]), overrides)
        return not make(planned, overrides, jobs=arguments.jobs, dry_run=arguments.dry_run)
    if others and arguments.command not in WORDS:
        raise FairAllError(f"{others[0]}: not possible; {arguments.command} takes KEY=VALUE only")
    if arguments.command == "report":
        from reproduction.report import report

        report(overrides, arguments.output, arguments.into, from_mlflow=arguments.mlflow)
        return True
    # Each other command is a function of the module of its name.
    study = getattr(import_module(f"reproduction.{arguments.command}"), arguments.command)
    further: dict[str, Any] = {"asked": others} if arguments.command in WORDS else {}
    if arguments.command == "logs":
        further = {"answers": arguments.answers}
    return bool(study(overrides, arguments.output, arguments.into, arguments.jobs, **further))


def _evidence(arguments: argparse.Namespace) -> bool:
    """Evaluate logs, then make the studies of evaluations; each fills the pages that have its blocks."""
    from reproduction.evidence import make
    from reproduction.evidence_page import write_pages
    from reproduction.pages import refuse
    from reproduction.simulations import of_evaluations, simulations

    refuse(arguments.into, places([]))
    studies = [page for page in arguments.into if "<!-- begin: simulations_" in page.read_text()]
    end = time.monotonic() + 3600 * arguments.hours
    folder = arguments.output or Path("outputs") / f"evidence_{datetime.now():%Y-%m-%d_%H-%M-%S}"
    print(f"Evaluations: {folder}", flush=True)
    make(folder, arguments.logs, arguments.jobs or 1, LOGS_SHARE * arguments.hours)
    write_pages(folder, [page for page in arguments.into if page not in studies])
    left = max(end - time.monotonic(), 0.0) / 3600
    return simulations([], folder / "simulations", studies, arguments.jobs, of_evaluations(), left)


def _whole(word: str) -> int:
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"it must be a whole number of at least 1, not {word}")
    return int(word)


def _parsed(words: list[str]) -> argparse.Namespace:
    """The arguments of a command line; options may stand anywhere after the command."""
    name = words[0] if words else ""
    parser = argparse.ArgumentParser(
        prog=f"python -m reproduction {name if name in COMMANDS else ''}".strip(),
        description=COMMANDS.get(name, "The paper's tables and figures, the leaderboard, and other studies."),
        epilog=EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if name not in COMMANDS:
        parser.add_argument("command", choices=COMMANDS)
        return parser.parse_args(words)
    parser.set_defaults(command=name)
    if name != "evidence":
        parser.add_argument("words", metavar=WORDS.get(name, "KEY=VALUE"), nargs="*")
    if name != "report":
        parser.add_argument("--jobs", type=_whole, metavar="N", help="processes at once")
    if name == "runs":
        parser.add_argument("--dry-run", action="store_true", help="list the runs without making them")
        return parser.parse_intermixed_args(words[1:])
    parser.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="default: one in outputs_dir")
    parser.add_argument(
        "--into",
        type=Path,
        metavar="PAGE",
        action="append",
        default=[],
        help="fill the blocks of a page of docs/ too; may be repeated",
    )
    if name == "logs":
        parser.add_argument(
            "--answers", type=Path, metavar="CSV", help="of another estimator, to be scored too"
        )
    if name == "report":
        parser.add_argument("--mlflow", action="store_true", help="take the runs from the MLflow store")
    if name == "evidence":
        parser.add_argument("--logs", type=_whole, default=200, metavar="N", help="of a basic kind (200)")
        hours = (
            "until neither a log nor a simulation is begun any more, of which logs take three quarters at "
            "most; 0 only writes the pages (until all are done)"
        )
        parser.add_argument("--hours", type=float, default=math.inf, metavar="H", help=hours)
    return parser.parse_intermixed_args(words[1:])


if __name__ == "__main__":
    sys.exit(main())
