"""`python -m fairall.evaluate`: value and fairness of policies from a log of past decisions."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairall.runtime.process import TRUST, run_command, whole_number
from fairall.runtime.signals import Stopped

COMMANDS = {
    "decisions": "the decisions that were taken",
    "policy": "a policy that was not in use",
    "compare": "whether policy B is better and fairer than A, or than the decisions that were taken",
}
MODELS = ("auto", "logistic")
OPTIONS = ("propensity_model", "outcome_model", "smallest_cell", "score")
AUTO = "default: auto, logistic regressions and boosting averaged"
EPILOGUE = """\
FILE is CSV or Parquet, a row for each person who was decided on. KEY=VALUE names its columns, with the keys
of dataset=csv, `dataset.` in front or not: decision and accepted (its value for an acceptance), label and
positive (its good value; known for accepted people only), sensitive, propensity (probability of acceptance;
estimated where there is no such column), cost, drop, kinds; and person (who a row is about, if several rows
may be about one), gain and loss (amounts of each row, instead of cost). outputs_dir=FOLDER, tracking.uri=URI
and tracking.enabled=false are as for `python -m fairall`.

  python -m fairall.evaluate decisions --log loans.csv decision=decision accepted=granted label=repaid \\
      positive=yes sensitive=sex propensity=propensity drop='[id]'

writes evaluation.json, a page (index.html), tables and figures to outputs/evaluations/loans-decisions, and
prints the utility per person, by the doubly robust estimator first, and each gap between groups as it is
among the accepted (naive) and corrected for the selection of those with labels (IPS, DR). With the same log
and keys:

  ... policy --policy outputs/runs/fairall_I_II/csv/ID ...    a run of `python -m fairall`, a folder of a
  ... policy --policy models:/NAME/1 ...                      policy, its address in MLflow, or a column of
  ... policy --policy score ...                               probabilities
  ... compare --policy score ...                              it and the decisions that were taken
  ... compare --policy score --policy score2 ...              two policies, on the same people
  ... decisions --groups sex,race ...                         groups by several columns
  ... decisions --score pd_model ...                          validates a model: calibration, thresholds

The exit code is 1 where the log cannot be read, or something is refused."""


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    return run_command(_main, words)


def _main(words: list[str]) -> int:
    command = words[0] if words and words[0] in COMMANDS else ""
    parser = _parser(command)
    if command:
        arguments = parser.parse_intermixed_args(words[1:])
    else:  # only --help is known
        arguments = parser.parse_known_intermixed_args(words)[0]

    # Slow imports, not needed for `--help`.
    from fairall.config.messages import exit_code

    try:
        return exit_code(lambda: _evaluate(command, arguments, words), arguments.words)
    except Stopped as stopped:
        stopped.then = "starts anew"
        raise


def _evaluate(command: str, arguments: argparse.Namespace, words: list[str]) -> int:
    from fairall.config.compose import PLACES, places
    from fairall.evaluate.write import evaluate_log
    from fairall.tracking.artifacts import log_report

    policies = _policies(command, arguments)
    config, typed = places(arguments.words), shlex.join(["python", "-m", "fairall.evaluate", *words])
    shown = evaluate_log(
        arguments.log,
        [word for word in arguments.words if not word.startswith(PLACES)],
        policies=policies,
        groups=[name for name in arguments.groups.split(",") if name],
        decision_maker=arguments.decision_maker,
        trust=getattr(arguments, "trust", []),
        config=config,
        folder=arguments.out,
        command=typed,
        **{name: getattr(arguments, name) for name in OPTIONS},
    )
    assert shown.folder is not None
    if config["tracking"]["enabled"]:
        title, parameters = f"evaluate {' and '.join(shown.names)}", _parameters(arguments, shown.names)
        log_report(config, shown.folder, title, typed, metrics=shown.metrics(), parameters=parameters)
    if shown.failure is None:
        return 0
    print(shown.failure, file=sys.stderr)
    return 1


def _policies(command: str, arguments: argparse.Namespace) -> list[str | None]:
    """The policies to evaluate; None for the one that took the logged decisions."""
    from fairall.errors import FairAllError

    if not command:
        raise FairAllError(f"give a command first: {', '.join(COMMANDS)}")
    given = getattr(arguments, "policy", None) or []
    if command == "decisions":
        return [None]
    if command == "policy":
        if len(given) != 1:
            raise FairAllError("give one policy with --policy RUN, ADDRESS or COLUMN; two can be compared")
        return given
    if not 1 <= len(given) <= 2:
        raise FairAllError("give two policies with --policy A --policy B, or one beside the logged decisions")
    return [None, *given][-2:]


def _parameters(arguments: argparse.Namespace, names: Sequence[str]) -> dict[str, Any]:
    given = dict(word.partition("=")[::2] for word in arguments.words)
    options = {name: getattr(arguments, name) for name in OPTIONS}
    return {"policy": ", ".join(names), "log": arguments.log, "groups": arguments.groups} | options | given


def _parser(command: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m fairall.evaluate {command}".strip(),
        description="Evaluate policies from a log of past decisions, in which only the accepted have labels.",
        epilog=EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if not command:
        told = "; ".join(f"{name}: {what}" for name, what in COMMANDS.items())
        parser.add_argument("words", metavar="COMMAND", nargs="*", help=told)
        return parser
    parser.add_argument("--log", type=Path, metavar="FILE", required=True, help="the past decisions")
    if command != "decisions":
        parser.add_argument(
            "--policy", action="append", metavar="RUN|ADDRESS|COLUMN", help="the policy; A and B for compare"
        )
        parser.add_argument("--trust", action="append", default=[], metavar="MODULE", help=TRUST)
    parser.add_argument("words", metavar="KEY=VALUE", nargs="*", help="columns of the log, see below")
    parser.add_argument(
        "--groups", default="", metavar="COLUMNS", help="columns, with commas, whose combinations are groups"
    )
    parser.add_argument("--decision-maker", metavar="COLUMN", help="who decided, for contraction")
    parser.add_argument(
        "--score", metavar="COLUMN", help="probability of a positive label by a model that is to be validated"
    )
    for of in ("propensity", "outcome"):
        parser.add_argument(f"--{of}-model", choices=MODELS, default="auto", help=AUTO)
    parser.add_argument(
        "--smallest-cell",
        type=whole_number,
        default=10,
        metavar="N",
        help="people below which nothing is shown",
    )
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="default: in outputs_dir/evaluations")
    return parser


if __name__ == "__main__":
    sys.exit(main())
