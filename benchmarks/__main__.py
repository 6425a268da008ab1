"""`python -m benchmarks`: CPU seconds and memory of runs, comparisons of revisions, and a soak test."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import pandas as pd

from benchmarks import run
from benchmarks.errors import BenchmarkError
from benchmarks.machine import ROOT, WORKING_TREE, checkout, compile_code, describe, name_of
from fairall.runtime.process import whole_number

EPILOGUE = """\
Words are as for `python -m fairall`; KEY=VALUE,VALUE makes a command of each value. Paths must be absolute,
since every measurement has a process and a folder of its own. Raw files are looked for as in a run
($FAIRALL_DATA). `taskset -c 0` in front keeps all of them on one core.

  python -m benchmarks run                          the paper's methods and data sets: hours
  python -m benchmarks run model=fairlog,fairall_II dataset=credit seeds=1,10
  python -m benchmarks run --axes seeds people      growth of a small run with one size at a time
  python -m benchmarks compare main . model=fairlog dataset=credit
  python -m benchmarks probe model=fairall_I_II dataset=credit protocol=published_code
  python -m benchmarks tables --rows 100000 --columns 300
  python -m benchmarks evaluate --rows 100000 --columns 300
  python -m benchmarks live --rows 100000 --columns 10
  python -m benchmarks mutants fairall/live/due.py tests/live
  python -m benchmarks soak --verbs 100 --inputs 20000

`run` and `compare` write measurements.csv, every one as soon as it is made, and report.md."""


class Parser(argparse.ArgumentParser):
    """Reports mistakes as one line."""

    def error(self, message: str) -> NoReturn:
        """Raise BenchmarkError."""
        raise BenchmarkError(f"{message}; see {self.prog} --help")


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    # Without it Hydra prints its errors over many lines.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        arguments = _parser().parse_args(sys.argv[1:] if words is None else words)
        return arguments.run(arguments)
    except BenchmarkError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("benchmarks: interrupted", file=sys.stderr)
        return 130


def _run(arguments: argparse.Namespace) -> int:
    return _measure(arguments, {"revision": WORKING_TREE}, run.medians)


def _compare(arguments: argparse.Namespace) -> int:
    return _measure(arguments, {"A": arguments.a, "B": arguments.b}, run.ratios)


def _measure(
    arguments: argparse.Namespace, revisions: dict[str, str], table: Callable[[pd.DataFrame], pd.DataFrame]
) -> int:
    setting = describe() | {name: name_of(revision) for name, revision in revisions.items()}
    with ExitStack() as stack:
        if arguments.axes:
            tables = stack.enter_context(tempfile.TemporaryDirectory(prefix="fairall-benchmark-"))
            lines = run.along(arguments.axes, arguments.words, Path(tables))
        else:
            lines = run.combinations(arguments.words or run.METHODS)
        run.refuse_mistyped(lines.values())
        trees = {name: stack.enter_context(checkout(revision)) for name, revision in revisions.items()}
        folder = _folder(arguments)
        print(f"Measurements: {folder}", flush=True)
        measured = run.measure(lines, trees, arguments.repeats, folder / "measurements.csv")
    head = "\n".join(f"- {name}: {value}" for name, value in setting.items())
    report = f"{head}\n- repeats: {arguments.repeats}\n\n```\n{_text(table(measured))}\n```\n"
    (folder / "report.md").write_text(report)
    print(report, end="")
    return 0


def _probe(arguments: argparse.Namespace) -> int:
    from benchmarks.probe import parts

    run.refuse_mistyped([arguments.words])
    compile_code()
    with tempfile.TemporaryDirectory(prefix="fairall-benchmark-") as folder:
        print(_text(parts(arguments.words, Path(folder) / "parts.csv")))
    return 0


def _wide(arguments: argparse.Namespace) -> int:
    module = import_module(f"benchmarks.{arguments.command}")
    print(_text(module.measured(arguments.rows, arguments.columns)))
    return 0


def _mutants(arguments: argparse.Namespace) -> int:
    from benchmarks.mutants import share

    with checkout(arguments.revision) as tree:
        if tree == ROOT:
            raise BenchmarkError(
                "--revision: must be a branch, a tag or a commit, since its files are overwritten"
            )
        made = share(arguments.module, arguments.tests, arguments.number, arguments.seed, tree)
    print(f"{arguments.module}: {made['noticed'].mean():.1%} of {len(made)} mutants noticed")
    return 0


def _soak(arguments: argparse.Namespace) -> int:
    # Before torch is loaded: a process that is forked would wait for threads that it does not have.
    os.environ["OMP_NUM_THREADS"] = "1"
    from benchmarks.soak import Soak

    soak = Soak(arguments.seed, arguments.out or _new_folder("soak"))
    print(f"Random numbers: --seed {soak.seed}. Files of failures: {soak.folder}", flush=True)
    if arguments.only is None:
        soak.kill_verbs(arguments.verbs)
        soak.inputs(arguments.inputs)
    else:
        soak.again(*arguments.only)
    print(soak.table().to_string())
    return int(any(how == "failed" for _, how in soak.ended))


def _new_folder(command: str) -> Path:
    return Path("outputs/benchmarks") / f"{command}_{datetime.now():%Y-%m-%d_%H-%M-%S}"


def _folder(arguments: argparse.Namespace) -> Path:
    """The folder of the measurements, made.

    Raises:
        BenchmarkError: if it cannot be made, or has measurements already.
    """
    folder = arguments.out or _new_folder(arguments.command)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BenchmarkError(f"--out {folder}: {error.strerror}") from error
    if (folder / "measurements.csv").exists():
        raise BenchmarkError(f"--out {folder}: has measurements already")
    return folder


def _text(table: pd.DataFrame) -> str:
    return table.to_string(float_format="%.3f", na_rep="", sparsify=False)


def count(word: str) -> int:
    """A number of the command line, 0 for none."""
    return 0 if word == "0" else whole_number(word)


def case(word: str) -> tuple[str, int]:
    """A case of the soak test."""
    from benchmarks.soak import INPUTS, VERBS

    kind, _, number = word.partition(":")
    kinds = [VERBS, *INPUTS]
    if kind not in kinds or not number.isdecimal():
        raise argparse.ArgumentTypeError(f"it must be KIND:NUMBER, KIND one of {', '.join(kinds)}")
    return kind, int(number)


def axes(words: str) -> list[str]:
    """Names out of `run.SIZES`, separated by commas."""
    for name in words.split(","):
        if name not in run.SIZES:
            raise argparse.ArgumentTypeError(f"no axis {name!r}; there are {', '.join(run.SIZES)}")
    return words.split(",")


def _parser() -> Parser:
    parser = Parser(
        prog="python -m benchmarks",
        usage="python -m benchmarks COMMAND [OPTION ...] [KEY=VALUE,VALUE ...]",
        description="CPU seconds, time and memory of runs of FairAll.",
        epilog=EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(prog=parser.prog, metavar="COMMAND", required=True, dest="command")

    def command(name: str, function: Callable[[argparse.Namespace], int], help_: str) -> Parser:
        added = commands.add_parser(name, help=help_)
        added.set_defaults(run=function)
        return added

    one = command("run", _run, "CPU seconds, time and peak memory of whole commands")
    pair = command("compare", _compare, "the same of two revisions in turn, A B A B ..., and B/A")
    pair.add_argument("a", metavar="A", help="branch, tag or commit; . is the working tree")
    pair.add_argument("b", metavar="B", help="the same")
    parts = command("probe", _probe, "the parts of one run")
    for measuring in (one, pair, parts):
        measuring.add_argument("words", nargs="*", metavar="KEY=VALUE", help="of `python -m fairall`")
    for measuring in (one, pair):
        measuring.add_argument("--axes", type=axes, metavar="AXIS,...", help=f"out of {', '.join(run.SIZES)}")
        measuring.add_argument(
            "--repeats", type=whole_number, default=3, metavar="N", help="of every command or pair (3)"
        )

    for name, help_ in {
        "tables": "checking a wide table, as CSV and as Parquet",
        "evaluate": "an audit of a large log of decisions",
        "live": "a ledger beside `decide`",
    }.items():
        wide = command(name, _wide, help_)
        for option, usual in (("rows", 100_000), ("columns", 300)):
            help_of = f"of the table ({usual})"
            wide.add_argument(f"--{option}", type=whole_number, default=usual, metavar="N", help=help_of)

    changed = command("mutants", _mutants, "the share of mutants of a module that tests notice")
    changed.add_argument("module", metavar="MODULE", help="its path, such as fairall/metrics.py")
    changed.add_argument("tests", nargs="+", metavar="TESTS", help="paths of tests, such as tests/measuring")
    changed.add_argument(
        "--revision", default="HEAD", metavar="REVISION", help="whose files are tested (HEAD)"
    )
    changed.add_argument("--number", type=whole_number, default=150, metavar="N", help="of mutants (150)")
    changed.add_argument("--seed", type=int, default=0, metavar="N", help="of their choice (0)")

    wrong = command("soak", _soak, "kills commands of ledgers and tries random inputs")
    wrong.add_argument("--verbs", type=count, default=100, metavar="N", help="killed, of ledgers (100)")
    wrong.add_argument(
        "--inputs", type=count, default=20000, metavar="N", help="of all kinds in turn (20000)"
    )
    wrong.add_argument("--seed", type=int, default=0, metavar="N", help="of the random numbers (0)")
    wrong.add_argument("--only", type=case, metavar="KIND:NUMBER", help="one case again")
    for writing in (one, pair, wrong):
        writing.add_argument(
            "--out", type=Path, metavar="FOLDER", help="default: a new one in outputs/benchmarks/"
        )
    return parser


if __name__ == "__main__":
    sys.exit(main())
