"""`python -m fairall.report compare RUN RUN ...`: runs side by side."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from fairall.runtime.process import run_command


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    return run_command(_main, words)


def _main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m fairall.report", description="Runs side by side.")
    parser.add_argument("command", choices=["compare"])
    parser.add_argument(
        "words", metavar="RUN | KEY=VALUE", nargs="*", help="folders, or ids; outputs_dir=FOLDER"
    )
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="default: comparison/ in outputs_dir")
    arguments = parser.parse_intermixed_args(words)

    # Slow imports, not needed for `--help`.
    from fairall.config.messages import exit_code

    overrides = [word for word in arguments.words if "=" in word]
    chosen = [word for word in arguments.words if "=" not in word]
    return exit_code(lambda: _compare(chosen, overrides, arguments.out), overrides)


def _compare(chosen: list[str], overrides: list[str], out: Path | None) -> int:
    from fairall.config.compose import places
    from fairall.report.comparison import chosen_runs, compare
    from fairall.results.interpretable import own_name
    from fairall.results.table import print_table
    from fairall.tracking.artifacts import log_report

    config = places(overrides)
    outputs = Path(config["outputs_dir"])
    runs, left_out = chosen_runs(chosen, outputs / "runs")
    name = own_name("comparison", next(iter(runs.values())).config)
    folder = out or outputs / name
    for table in compare(runs, left_out, folder):
        print_table(table)
    for line in left_out:
        print(f"Left out: {line}")
    print(f"Comparison: {folder / 'index.html'}")
    if config["tracking"]["enabled"]:
        log_report(config, folder, name, shlex.join(["python", "-m", "fairall.report", "compare", *chosen]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
