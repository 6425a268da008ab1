"""`python -m fairall.report`: tables and figures of finished runs beside the paper's."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairall.runtime.process import run_command, whole_number

if TYPE_CHECKING:
    from fairall.results.finished import Collection

LISTED = 20  # runs, on the terminal
EPILOGUE = """\
KEY=VALUE is as for `python -m fairall`: outputs_dir=FOLDER is the folder of runs, tracking.uri=URI the MLflow
store; any other word is added to each of the paper's commands, for instance preset=quick.

  python -m fairall.report                               the report of the runs in outputs/runs
  python -m fairall.report --mlflow                      of the runs in the MLflow store
  python -m fairall.report --results docs/results.md     a page for the documentation too
  python -m fairall.report compare RUN RUN ...           any runs side by side: folders, or ids
  python -m fairall.report reproduce tables              make the runs of tables, figures, all, or a sweep
  python -m fairall.report reproduce all --dry-run       the runs it would make, and their time
  python -m fairall.report worlds                        make and show the runs of docs/worlds.md
  python -m fairall.report leaderboard                   all methods on all data sets, docs/leaderboard.md"""


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    return run_command(_main, words)


def _main(words: list[str]) -> int:
    command = words[0] if words and words[0] in COMMANDS else ""
    arguments = _parser(command).parse_intermixed_args(words[1:] if command else words)

    # Slow imports, not needed for `--help`.
    from fairall.config.messages import exit_code

    overrides = [word for word in arguments.words if "=" in word]
    others = [word for word in arguments.words if "=" not in word]
    return exit_code(lambda: COMMANDS[command](arguments, overrides, others), overrides)


def _report(arguments: argparse.Namespace, overrides: list[str], wrong: list[str]) -> int:
    from fairall.config.compose import places
    from fairall.config.words import nearest
    from fairall.errors import FairAllError, count
    from fairall.report.build import build, refuse_page, write_results
    from fairall.report.tables import COMPARE
    from fairall.results.interpretable import own_name
    from fairall.results.terminal import print_table

    if wrong:
        known = [name for name in COMMANDS if name]
        near = nearest(wrong[0], known)
        raise FairAllError(f"{wrong[0]}: no such command{near}; there are {', '.join(known)}")
    config = places(overrides)
    refuse_page(arguments.results, config)
    outputs, name = Path(config["outputs_dir"]), own_name("report", config)
    folder = arguments.out or outputs / name
    shown = build(_collection(config, arguments.mlflow), folder, overrides)
    print("\n".join(shown.opening))
    others = shown.others
    if others is not None and shown.n_shown:
        n = count(len(others.rows), "other run")
        print(f"{n}, listed at the end of the page; to compare runs: {COMPARE}")
    elif others is not None:
        print()
        print_table(replace(others, rows=others.rows[:LISTED]))
        print(f"{len(others.rows) - LISTED} more, listed on the page.\n" if len(others.rows) > LISTED else "")
    for folder_and_reason in shown.left_out:
        print(f"Left out: {folder_and_reason}")
    print(f"Report: {folder / 'index.html'}")
    if arguments.results:
        write_results(shown, folder, arguments.results, outputs)
        print(f"Results: {arguments.results}")
    return _finish(config, folder, name, arguments)


def _compare(arguments: argparse.Namespace, overrides: list[str], chosen: list[str]) -> int:
    from fairall.config.compose import places
    from fairall.report.compare import chosen_runs, compare
    from fairall.results.interpretable import own_name
    from fairall.results.terminal import print_table

    config = places(overrides)
    outputs = Path(config["outputs_dir"])
    runs, left_out = chosen_runs(chosen, outputs / "runs")
    name = own_name("comparison", next(iter(runs.values())).config)
    folder = arguments.out or outputs / name
    for table in compare(runs, left_out, folder):
        print_table(table)
    for line in left_out:
        print(f"Left out: {line}")
    print(f"Comparison: {folder / 'index.html'}")
    return _finish(config, folder, name, arguments)


def _finish(config: dict[str, Any], folder: Path, title: str, arguments: argparse.Namespace) -> int:
    """Log the folder to MLflow where tracking is enabled."""
    from fairall.tracking.store import log_report

    if config["tracking"]["enabled"]:
        log_report(config, folder, title, shlex.join(["python", "-m", "fairall.report", *arguments.words]))
    return 0


def _reproduce(arguments: argparse.Namespace, overrides: list[str], parts: list[str]) -> int:
    from fairall.report.reproduce import reproduce

    there = reproduce(parts or ["all"], overrides, jobs=arguments.jobs, dry_run=arguments.dry_run)
    return 0 if there else 1


def _worlds(arguments: argparse.Namespace, overrides: list[str], wrong: list[str]) -> int:
    from fairall.report.worlds import worlds

    _none("worlds", wrong)
    return 0 if worlds(overrides, arguments.out, arguments.results, arguments.jobs) else 1


def _leaderboard(arguments: argparse.Namespace, overrides: list[str], wrong: list[str]) -> int:
    from fairall.report.leaderboard import leaderboard

    _none("leaderboard", wrong)
    return 0 if leaderboard(overrides, arguments.out, arguments.results, arguments.jobs) else 1


def _none(command: str, wrong: list[str]) -> None:
    from fairall.errors import FairAllError

    if wrong:
        raise FairAllError(f"{wrong[0]}: not possible; {command} takes KEY=VALUE only")


COMMANDS = {
    "": _report, "compare": _compare, "reproduce": _reproduce, "worlds": _worlds, "leaderboard": _leaderboard,
}  # fmt: skip
MAKE_AND_SHOW = ("worlds", "leaderboard")


def _collection(config: dict[str, Any], from_mlflow: bool) -> Collection:
    from fairall.results.finished import collect
    from fairall.storage.files import temporary_folder
    from fairall.tracking.store import fetch_runs

    if not from_mlflow:
        return collect(Path(config["outputs_dir"]) / "runs")
    with temporary_folder() as folder:
        fetch_runs(config, folder)
        return collect(folder)


def _parser(command: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m fairall.report {command}".strip(),
        description="Tables and figures of finished runs beside the paper's.",
        epilog=EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    first = {"": "COMMAND", "compare": "RUN", "reproduce": "PART"}.get(command, "")
    parser.add_argument(
        "words", metavar=f"{first} | KEY=VALUE".strip(" |"), nargs="+" if command == "compare" else "*"
    )
    if command in ("reproduce", *MAKE_AND_SHOW):
        parser.add_argument(
            "--jobs", type=whole_number, metavar="N", help="runs at once; default: one per core"
        )
    if command == "reproduce":
        parser.add_argument("--dry-run", action="store_true", help="list the runs without making them")
        return parser
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="default: report/, comparison/, worlds/ or leaderboard/ in outputs_dir, report_quick/ and the "
        "like for runs of preset=quick",
    )
    if not command:
        parser.add_argument("--mlflow", action="store_true", help="take the runs from the MLflow store")
    if command in ("", *MAKE_AND_SHOW):
        parser.add_argument("--results", type=Path, metavar="FILE", help="write a Markdown page too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
