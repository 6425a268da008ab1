"""`python -m benchmarks`: processor time and memory of runs, and comparisons of revisions."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from benchmarks import phases, scaling
from benchmarks.campaign import Case, measure_all, refuse_mistyped
from benchmarks.compare import compare
from benchmarks.errors import BenchmarkError
from benchmarks.machine import describe
from benchmarks.records import Records
from fairall.config.checks import whole_number

EPILOGUE = """\
OVERRIDE is as for `python -m fairall`, for instance preset=quick; paths in it must be absolute, since every
measurement has a process and a folder of its own, on one thread unless OMP_NUM_THREADS says otherwise.
Raw files are looked for as in a run ($FAIRALL_DATA).

  python -m benchmarks phases                                  all methods and data sets: many hours
  python -m benchmarks phases --models fairlog --datasets credit --seeds 10 --repeats 1
  python -m benchmarks phases --repeats 1 -- preset=quick      a rehearsal; its numbers mean little
  python -m benchmarks scaling --axes seeds -- model=fairlog
  python -m benchmarks compare main . -- preset=quick model=fairlog

A folder holds measurements.csv (every one, as it came), medians.csv, report.md, figures and setting.json
(machine, versions, revision). What was measured survives an interruption: `render` makes a report of it, and
the same command goes on when given the folder with --out."""


class Parser(argparse.ArgumentParser):
    """Reports mistakes as one line."""

    def error(self, message: str) -> NoReturn:
        """Raise BenchmarkError."""
        raise BenchmarkError(f"{message}; see {self.prog} --help")


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    words = list(sys.argv[1:] if words is None else words)
    end = words.index("--") if "--" in words else len(words)
    overrides = words[end + 1 :]
    # Without it Hydra prints its errors over many lines.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        _run(_parser().parse_args(words[:end]), overrides)
    except BenchmarkError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("benchmarks: interrupted", file=sys.stderr)
        return 130
    return 0


def _run(arguments: argparse.Namespace, overrides: Sequence[str]) -> None:
    if arguments.command == "compare":
        compare((arguments.a, arguments.b), arguments.repeats, overrides)
    elif arguments.command == "render":
        _render(arguments.folder)
    elif arguments.command == "scaling":
        with tempfile.TemporaryDirectory(prefix="fairall-benchmark-") as tables:
            scaling.write_tables(Path(tables))
            cases = scaling.cases(arguments.axes, Path(tables), overrides)
            _measure(scaling.NAME, cases, scaling.LABELS, arguments, overrides)
    else:
        cases = phases.cases(arguments.models, arguments.datasets, arguments.seeds, overrides)
        _measure(phases.NAME, cases, phases.LABELS, arguments, overrides)


def _measure(
    benchmark: str,
    cases: Sequence[Case],
    labels: Sequence[str],
    arguments: argparse.Namespace,
    overrides: Sequence[str],
) -> None:
    refuse_mistyped(cases)
    folder = arguments.out or Path("outputs/benchmarks") / f"{benchmark}_{datetime.now():%Y-%m-%d_%H-%M-%S}"
    print(f"Measurements: {folder}")
    setting = {"benchmark": benchmark, "overrides": list(overrides)} | describe()
    measure_all(cases, arguments.repeats, Records(folder, labels, setting))
    _render(folder)


def _render(folder: Path) -> None:
    from benchmarks.report import read_setting

    benchmarks = {phases.NAME: phases.render, scaling.NAME: scaling.render}
    print(benchmarks[read_setting(folder)["benchmark"]](folder))


def _parser() -> Parser:
    parser = Parser(
        prog="python -m benchmarks",
        usage="python -m benchmarks COMMAND [OPTION ...] [-- OVERRIDE ...]",
        description="Processor time, time and memory of runs of FairAll.",
        epilog=EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(prog=parser.prog, metavar="COMMAND", dest="command", required=True)

    table = commands.add_parser(phases.NAME, help="a table of what each part of a run costs")
    table.add_argument(
        "--models", nargs="+", default=phases.MODELS, metavar="NAME", help="default: the five methods"
    )
    table.add_argument(
        "--datasets", nargs="+", default=phases.DATASETS, metavar="NAME", help="default: the paper's four"
    )
    table.add_argument(
        "--seeds", nargs="+", type=whole_number, default=phases.SEEDS, metavar="N", help="default: 1 10 100"
    )
    growth = commands.add_parser(
        scaling.NAME, help=f"how a small run's cost grows with {', '.join(scaling.AXES)}"
    )
    growth.add_argument(
        "--axes",
        nargs="+",
        choices=scaling.AXES,
        default=tuple(scaling.AXES),
        metavar="AXIS",
        help="default: all",
    )
    for measuring in (table, growth):
        measuring.add_argument(
            "--repeats", type=whole_number, default=3, metavar="N", help="of every case (3)"
        )
        measuring.add_argument(
            "--out", type=Path, metavar="FOLDER", help="default: a new one in outputs/benchmarks/"
        )

    pair = commands.add_parser("compare", help="two revisions, the same command in turn: A B A B ...")
    pair.add_argument("a", metavar="A", help="branch, tag or commit; . is the working tree")
    pair.add_argument("b", metavar="B", help="the same")
    pair.add_argument("--repeats", type=whole_number, default=5, metavar="N", help="pairs (5)")

    again = commands.add_parser("render", help="report and figures anew from a folder's measurements")
    again.add_argument("folder", type=Path, metavar="FOLDER")
    return parser


if __name__ == "__main__":
    sys.exit(main())
