"""`python -m fairall.decide`: decide on the people of a table with a saved policy."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairall.runtime.process import TRUST, run_command, whole_number

if TYPE_CHECKING:
    from fairall.decide.deciding import Decided
    from fairall.decide.rules import Rule
    from fairall.decide.tables import Table
    from fairall.policy import Policy

READING = ("separator", "text_encoding")  # keys of dataset=csv
EPILOGUE = """\
RUN is the folder of a finished run or of its policy, the beginning of a run's id in outputs_dir, or an
address in MLflow: runs:/ID/policy, models:/NAME/VERSION or models:/m-ID. PEOPLE is CSV or Parquet, a row for
each person, with the features as in the raw data and the sensitive attribute; other columns are passed on.
OUT has the columns of PEOPLE and

  probability   of acceptance by the policy
  spread        standard deviation of the probability over seeds; empty for a single one
  decision      1: accepted, 0: rejected
  propensity    probability with which this decision was positive: 0 or 1 unless decisions are drawn

so that `python -m fairall.evaluate` reads it as a log once labels are known.

By default all seeds decide together, by the mean of their probabilities, and a person is accepted from the
threshold of the method on: that from which accepting pays by its estimates, its cost or 1/2. Where the
policies of the seeds are themselves decisions, 0 or 1, it is 1/2: at least half of the seeds accept.

  python -m fairall.decide 678ed92 people.csv -o decisions.csv
  ... --policy seed:3                      the policy of one seed; median: that of the seeds' probabilities
  ... --threshold 0.7                      accept from another probability on
  ... --capacity 200, --capacity 20%       accept at most so many: of those who would be accepted the most
                                           probable, equal ones by the order of rows; places may be left
  ... --draw 7                             accept with the probability, by random numbers of seed 7
  ... --explain 17                         why row 17 has its probability: Shapley values, a picture
  ... separator='";"' text_encoding=latin-1
                                           how the CSV file is written
  ... outputs_dir=FOLDER tracking.uri=URI  where runs are, and another MLflow store"""


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    return run_command(_main, words)


def _main(words: Sequence[str]) -> int:
    arguments = _parser().parse_intermixed_args(words)

    # Slow imports, not needed for `--help`.
    from fairall.config.messages import exit_code
    from fairall.runtime.signals import Stopped

    try:
        return exit_code(lambda: _decide(arguments), arguments.words)
    except Stopped as stopped:
        stopped.then = "starts anew"
        raise


def _decide(arguments: argparse.Namespace) -> int:
    from fairall.config.compose import PLACES, places
    from fairall.decide.deciding import decide
    from fairall.decide.load import find_policy
    from fairall.decide.rules import Rule
    from fairall.errors import FairAllError
    from fairall.nn.native.calls import use_threads

    table = _table(arguments.people, [word for word in arguments.words if not word.startswith(PLACES)])
    if arguments.explain is None:
        if arguments.against is not None:
            raise FairAllError("--against is for --explain: it names the people to compare one person with")
        _refuse_out(arguments.out, table.path)
    elif arguments.capacity is not None or arguments.draw is not None:
        raise FairAllError("--explain explains a probability: leave --capacity and --draw out")
    policy, run = find_policy(arguments.run, places(arguments.words), arguments.trust)
    policy.deciding(arguments.policy)
    use_threads(None)
    threshold = policy.threshold if arguments.threshold is None else arguments.threshold
    if arguments.explain is not None:
        return _explain(arguments, policy, table, threshold)
    rule = Rule(threshold, arguments.draw, arguments.capacity)
    # Through a symbolic link, which stays.
    out = arguments.out.resolve()
    decided = decide(policy, table, out, rule, which=arguments.policy, strict=arguments.strict)
    for line in _report(decided, policy, run, rule, arguments.policy):
        print(line)
    print(f"Decisions: {arguments.out}")
    return 0


def _explain(arguments: argparse.Namespace, policy: Policy, table: Table, threshold: float) -> int:
    """Explain one decision: on the terminal, and in the folder `-o`."""
    from dataclasses import replace

    from fairall.decide.deciding import findings_in
    from fairall.decide.explain import explain, read_people, training_people
    from fairall.decide.explanation_files import write_explanation
    from fairall.errors import FairAllError
    from fairall.storage.files import why_no_file

    out, against = arguments.out, arguments.against
    if out.exists() and not out.is_dir():
        raise FairAllError(f"-o {out}: is a file; --explain writes a folder")
    if against is not None and (wrong := why_no_file(against)):
        raise FairAllError(f"--against {against}: {wrong}; give a CSV or Parquet file of people")
    with table.unchanged():
        person = table.row(arguments.explain)
        warnings = policy.reader.doubts(findings_in(table, policy.reader)[0], strict=arguments.strict)
    others = training_people(policy) if against is None else read_people(policy, replace(table, path=against))
    # Its row is judged as one of the table, as for a decision.
    explanation = explain(policy.without_doubts(), person, others, by=arguments.policy, threshold=threshold)
    write_explanation(explanation, out)
    for warning in warnings:
        print(f"Warning: {warning}")
    for line in explanation.lines():
        print(line)
    print(f"Explanation: {out}")
    return 0


def _table(path: Path, words: Sequence[str]) -> Table:
    """The table of people, with the keys of `READING`."""
    from fairall.config.checks import require
    from fairall.config.compose import compose_config
    from fairall.config.words import nearest_key
    from fairall.data.csv.config import ONE_CHARACTER
    from fairall.decide.tables import Table
    from fairall.errors import FairAllError
    from fairall.storage.files import why_no_file

    if wrong := why_no_file(path):
        raise FairAllError(f"{path}: {wrong}; give the CSV or Parquet file of the people")
    overrides = []
    for word in words:
        key, equals, _ = word.removeprefix("dataset.").partition("=")
        if not equals or key not in READING:
            known = [*READING, "outputs_dir", "tracking.uri"]
            raise FairAllError(f"{word}: no such key{nearest_key(key, known)}; there are {', '.join(known)}")
        overrides.append(f"dataset.{word.removeprefix('dataset.')}")
    config = compose_config("dataset=csv", *overrides).dataset
    separator = str(config.separator)
    require(len(separator) == 1, "dataset.separator", separator, ONE_CHARACTER)
    return Table(path, separator, str(config.text_encoding))


def _refuse_out(out: Path, people: Path) -> None:
    """Raise FairAllError if the decisions would replace the people or cannot be a file."""
    from fairall.errors import FairAllError
    from fairall.storage.files import why_no_file

    if not out.parent.is_dir():
        raise FairAllError(f"-o {out}: there is no folder {out.parent}")
    if out.exists() and (wrong := why_no_file(out)):
        raise FairAllError(f"-o {out}: {wrong}; give the file to write")
    if out.exists() and out.samefile(people):
        raise FairAllError(f"-o {out}: is the table of people itself; give another file")


def _report(decided: Decided, policy: Policy, run: str, rule: Rule, which: str) -> Iterator[str]:
    """What was decided, in lines."""
    from fairall.errors import count
    from fairall.policy import ENSEMBLES

    n = decided.people.total()
    seeds = f" of {count(len(policy.deciding(which)), 'seed')}" if which in ENSEMBLES else ""
    yield f"Policy: {policy.learner.config.name} {run}, {which}{seeds}"
    if policy.diverged:
        yield f"Left out, since they have diverged: seeds {', '.join(map(str, policy.diverged))}"
    yield f"Rule: {rule.told(n)}"
    rows = [("all", n, decided.accepted.total())]
    rows += [(policy.reader.group_name(s), decided.people[s], decided.accepted[s]) for s in (1.0, -1.0)]
    width = max(len(name) for name, *_ in rows)
    yield "Accepted:"
    for name, people, accepted in rows:
        share = f"{100 * accepted / people:.1f} %" if people else "nobody there"
        yield f"  {name:<{width}}  {accepted} of {people}, {share}"
    if not math.isnan(decided.total_spread):
        mean = decided.total_spread / n
        yield f"Spread over seeds: {mean:.3f} on average, at most {decided.largest_spread:.3f}"
    for note in decided.notes:
        yield f"Note: {note}"
    for warning in decided.warnings:
        yield f"Warning: {warning}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fairall.decide",
        usage="%(prog)s RUN PEOPLE -o OUT [options] [KEY=VALUE ...]",
        description="Decide on the people of a table with the policy that a run has learnt.",
        epilog=EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", metavar="RUN", help="a finished run of `python -m fairall`, see below")
    parser.add_argument("people", metavar="PEOPLE", type=Path, help="CSV or Parquet file")
    parser.add_argument("words", metavar="KEY=VALUE", nargs="*", help="how to read PEOPLE and where runs are")
    parser.add_argument(
        "-o", "--out", metavar="OUT", type=Path, required=True, help="CSV or Parquet to write"
    )
    parser.add_argument(
        "--policy", default="mean", metavar="mean|median|seed:N", help="over seeds, or of one; default: mean"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--threshold",
        type=_probability,
        metavar="P",
        help="least probability to accept; default: the method's",
    )
    how.add_argument("--draw", type=_whole, metavar="SEED", help="draw decisions, repeatably")
    parser.add_argument(
        "--capacity", type=_capacity, metavar="K|K%", help="most people to accept, a number or a share"
    )
    parser.add_argument(
        "--explain",
        type=whole_number,
        metavar="ROW",
        help="explain the decision on one row, from 1; OUT is a folder",
    )
    parser.add_argument(
        "--against", type=Path, metavar="FILE", help="people to compare with, in place of the training people"
    )
    parser.add_argument("--trust", action="append", default=[], metavar="MODULE", help=TRUST)
    parser.add_argument("--strict", action="store_true", help="refuse values unknown from training")
    return parser


def _probability(word: str) -> float:
    return _number(word, 1.0, "a number from 0 to 1")


def _capacity(word: str) -> int | float:
    if word.endswith("%"):
        return _number(word, 100.0, "a share from 0% to 100%") / 100
    return whole_number(word)


def _number(word: str, most: float, allowed: str) -> float:
    try:
        number = float(word.removesuffix("%") if most > 1 else word)
    except ValueError:
        number = math.nan
    if not 0 <= number <= most:
        raise argparse.ArgumentTypeError(f"it must be {allowed}, not {word}")
    return number


def _whole(word: str) -> int:
    if not word.isdecimal():
        raise argparse.ArgumentTypeError(f"it must be a whole number from 0, not {word}")
    return int(word)


if __name__ == "__main__":
    sys.exit(main())
