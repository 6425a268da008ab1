"""`python -m benchmarks`: processor time and memory of runs, comparisons of revisions, and a soak test."""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from benchmarks import compare, phases, scaling, soak
from benchmarks.campaign import Case, measure_all, refuse_mistyped
from benchmarks.errors import BenchmarkError
from benchmarks.machine import describe
from benchmarks.records import Records
from benchmarks.revisions import checkout, name_of
from fairall.runtime.process import whole_number

EPILOGUE = """\
OVERRIDE is as for `python -m fairall`, for instance preset=quick; paths in it must be absolute, since every
measurement has a process and a folder of its own; `taskset -c 0` in front keeps all of them on one core.
Raw files are looked for as in a run ($FAIRALL_DATA).

  python -m benchmarks phases                                  all methods and data sets: many hours
  python -m benchmarks phases --models fairlog --datasets credit --seeds 10 --repeats 1
  python -m benchmarks phases --repeats 1 -- preset=quick      a rehearsal; its numbers mean little
  python -m benchmarks scaling --axes seeds people threads
  python -m benchmarks soak --kills 200 --inputs 20000         faults instead of times: one to two hours
  python -m benchmarks evidence --results docs/evidence.md --jobs 2 --hours 1
  python -m benchmarks compare main . --models fairlog --datasets credit --seeds 10
  taskset -c 0 python -m benchmarks ...                        on one core: measured processes inherit it

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
        return _run(_parser().parse_args(words[:end]), overrides)
    except BenchmarkError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("benchmarks: interrupted", file=sys.stderr)
        return 130


def _run(arguments: argparse.Namespace, overrides: Sequence[str]) -> int:
    if arguments.command == "render":
        _render(arguments.folder)
    elif arguments.command == soak.NAME:
        return _soak(arguments)
    elif arguments.command == "evidence":
        _evidence(arguments)
    else:
        _benchmark(arguments, overrides)
    return 0


def _soak(arguments: argparse.Namespace) -> int:
    from tqdm import tqdm

    folder = arguments.out or Path("outputs/benchmarks") / f"soak_{datetime.now():%Y-%m-%d_%H-%M-%S}"
    print(f"Random numbers: --seed {arguments.seed}. Files of failures: {folder}", flush=True)
    if arguments.only is not None:
        report = soak.again(arguments.only, arguments.seed, folder)
    else:
        # disable=None: on a terminal only
        with tqdm(total=arguments.kills + arguments.inputs, smoothing=0, disable=None) as progress:
            report = soak.soak(arguments.kills, arguments.inputs, arguments.seed, folder, progress.update)
    print(report.table(arguments.seed))
    return int(bool(report.failures))


def _evidence(arguments: argparse.Namespace) -> None:
    # Heavy, as are the estimators.
    from benchmarks.evidence import Study
    from benchmarks.evidence_page import write_page

    folder = arguments.out or Path("outputs/benchmarks") / f"evidence_{datetime.now():%Y-%m-%d_%H-%M-%S}"
    print(f"Evaluations: {folder}", flush=True)
    study = Study(folder, arguments.logs)
    study.run(arguments.jobs, arguments.hours)
    write_page(study, arguments.results or folder / "evidence.md")


def _benchmark(arguments: argparse.Namespace, overrides: Sequence[str]) -> None:
    setting = {"benchmark": arguments.command, "overrides": list(overrides)} | describe()
    if arguments.command == scaling.NAME:
        with tempfile.TemporaryDirectory(prefix="fairall-benchmark-") as tables:
            scaling.write_tables(Path(tables), arguments.axes)
            cases = scaling.cases(arguments.axes, Path(tables), overrides)
            _measure(cases, scaling.LABELS, arguments, setting)
        return
    cases = phases.cases(arguments.models, arguments.datasets, arguments.seeds, overrides)
    if arguments.command == phases.NAME:
        _measure(cases, phases.LABELS, arguments, setting)
        return
    with checkout(arguments.a) as a, checkout(arguments.b) as b:
        setting |= {"A": name_of(arguments.a), "B": name_of(arguments.b)}
        _measure(compare.cases(cases, {"A": a, "B": b}), compare.LABELS, arguments, setting)


def _measure(
    cases: Sequence[Case], labels: Sequence[str], arguments: argparse.Namespace, setting: Mapping[str, Any]
) -> None:
    refuse_mistyped(cases)
    name = f"{arguments.command}_{datetime.now():%Y-%m-%d_%H-%M-%S}"
    folder = arguments.out or Path("outputs/benchmarks") / name
    print(f"Measurements: {folder}")
    measure_all(cases, arguments.repeats, Records(folder, labels, setting))
    _render(folder)


def _render(folder: Path) -> None:
    from benchmarks.report import read_setting

    benchmarks = {benchmark.NAME: benchmark for benchmark in (phases, scaling, compare)}
    print(benchmarks[read_setting(folder)["benchmark"]].render(folder))


def count(word: str) -> int:
    """A number of the command line, 0 for none."""
    return 0 if word == "0" else whole_number(word)


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
    pair = commands.add_parser(compare.NAME, help="the same of two revisions in turn: A B A B ...")
    pair.add_argument("a", metavar="A", help="branch, tag or commit; . is the working tree")
    pair.add_argument("b", metavar="B", help="the same")
    for runs in (table, pair):
        runs.add_argument(
            "--models", nargs="+", default=phases.MODELS, metavar="NAME", help="default: the five methods"
        )
        runs.add_argument(
            "--datasets", nargs="+", default=phases.DATASETS, metavar="NAME", help="default: the paper's four"
        )
        runs.add_argument(
            "--seeds",
            nargs="+",
            type=whole_number,
            default=phases.SEEDS,
            metavar="N",
            help="default: 1 10 100",
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
    for measuring in (table, pair, growth):
        measuring.add_argument(
            "--repeats", type=whole_number, default=3, metavar="N", help="of every case or pair (3)"
        )
        measuring.add_argument(
            "--out", type=Path, metavar="FOLDER", help="default: a new one in outputs/benchmarks/"
        )

    wrong = commands.add_parser(soak.NAME, help="kills runs and tries wrong inputs, one to two hours")
    wrong.add_argument("--kills", type=count, default=200, metavar="N", help="of runs (200)")
    wrong.add_argument(
        "--inputs", type=count, default=20000, metavar="N", help="of all kinds in turn (20000)"
    )
    wrong.add_argument("--seed", type=int, default=0, metavar="N", help="of the random numbers (0)")
    wrong.add_argument("--only", type=soak.case, metavar="KIND:NUMBER", help="one case again")
    wrong.add_argument("--out", type=Path, metavar="FOLDER", help="of the files of failures")

    right = commands.add_parser("evidence", help="evaluations of policies where the truth is known: hours")
    right.add_argument("--results", type=Path, metavar="PAGE", help="default: evidence.md in the folder")
    right.add_argument(
        "--logs",
        type=whole_number,
        default=2000,
        metavar="N",
        help="of a basic kind, others have fewer (2000)",
    )
    right.add_argument("--jobs", type=whole_number, default=1, metavar="J", help="processes (1)")
    right.add_argument(
        "--hours",
        type=float,
        default=math.inf,
        metavar="H",
        help="until no log is begun any more; 0 only writes the page (until all are done)",
    )
    right.add_argument("--out", type=Path, metavar="FOLDER", help="default: a new one in outputs/benchmarks/")

    again = commands.add_parser("render", help="report and figures anew from a folder's measurements")
    again.add_argument("folder", type=Path, metavar="FOLDER")
    return parser


if __name__ == "__main__":
    sys.exit(main())
