"""The verbs of the command line with their options, and the parser of their words."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import fairall
from fairall.cli import listing, live, verbs
from fairall.runtime.process import whole_number

FLAGS = re.compile(r"-\S+")
PROGRAM = "python -m fairall"
EXIT_CODES = """\
Exit codes: 0 done; 1 a mistake in KEY=VALUE, or something refused, damaged or missing, told in one line on
standard error; 2 usage: words or options that the verb or a run does not take; 130 Ctrl-C, 143 SIGTERM, 129
terminal closed; 141 nobody reads the output."""
OF_RUN = """\
RUN is the folder of a finished run or of its policy, the beginning of a run's id, or an address in MLflow:
runs:/ID/policy, models:/NAME/VERSION or models:/m-ID. PEOPLE (CSV, Parquet) has a row for each person, with
features as in the raw data and the sensitive attribute. KEY=VALUE is separator=... or text_encoding=...
With --explain --draw, --capacity, --reasons and --wording are not possible."""
OF_LOG = """\
LOG is CSV or Parquet, a row for each person who was decided on. KEY=VALUE names its columns, as for
dataset=csv: decision and accepted (its value for an acceptance), label and positive (its good value),
sensitive, propensity, cost, drop, kinds; and person (who a row is about), gain and loss (instead of cost).
Without --policy the decisions taken are judged; with one, that policy; with two, their difference."""
OF_FRONTIER = """\
KEY=VALUE is as for a run; model=A,B and dataset=A,B are several, fairness=demographic_parity or
equal_opportunity the rates compared, fairness.slack=0,0.1,1 the largest gaps allowed. Runs that are done are
read, so that a frontier can be extended."""
OF_LEDGER = """\
LEDGER is an SQLite file or the URL of a database. RUN is a finished run, whose policy is version 1; without
it KEY=VALUE are those of a run, whose method begins after its warm-up. live.KEY=VALUE: horizon=90d, held_out,
explore, promote=by_hand|if_better, gap, and columns id, time, label with its words positive and negative.
tracking.register=NAME, here and with learn and promote, makes versions of a model in MLflow."""
OF_DATA = """\
NAME is that of a data set (`list datasets`), or of a CSV or Parquet file with KEY=VALUE as for dataset=csv.
Of a file it prints how a run would read each column, and what prevents a run: then the exit code is 1."""
OF_STUDIES = """\
Without NAME it lists the studies in outputs_dir, with one it shows progress, the selected point and
the Pareto set, with several it compares what they select with the paper's selection."""


class Command(NamedTuple):
    """A verb, or a verb and its second word.

    Attributes:
        does: one line.
        work: called with the arguments, see `verbs`; None for a run, which `main` begins.
        takes: names of its words; NAME... stands for any number, of which none is KEY=VALUE.
        options: of `OPTIONS`, beside those of `COMMON`.
        notes: below the options.
    """

    does: str
    work: Callable[..., Any] | None
    takes: str = ""
    options: Sequence[str] = ()
    notes: str = ""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        self.exit(2, f"fairall: {message}; see {self.prog} --help\n")


def parser(epilog: str = "") -> Parser:
    """The parser of all verbs; `epilog` stands at the end of its help."""
    top = Parser(
        prog=PROGRAM,
        usage=f"{PROGRAM} [run] [GROUP=CHOICE ...] [KEY=VALUE ...]\n       {PROGRAM} VERB ...",
        description="FairAll: fair decision making under selective labels. Without a verb it begins a run.",
        epilog=epilog,
    )
    top.add_argument("--version", action="version", version=f"fairall {fairall.__version__}")
    verbs = top.add_subparsers(metavar="VERB [WORD ...]", title="verbs", prog=PROGRAM)
    for name, command in COMMANDS.items():
        leaf = verbs.add_parser(
            name,
            help=command.does,
            description=command.does,
            usage=f"{PROGRAM} {name} {command.takes} [OPTION ...] [KEY=VALUE ...]",
            epilog=f"{command.notes}\n\n{EXIT_CODES}".strip(),
        )
        for word in command.takes.split():
            if word.endswith("..."):
                leaf.add_argument("names", metavar=word[:-3], nargs="*")
            else:
                leaf.add_argument(word.lower(), metavar=word, type=whole_number if word == "VERSION" else str)
        for option in (*command.options, *COMMON):
            leaf.add_argument(*FLAGS.findall(option), **OPTIONS[option])
        leaf.set_defaults(parser=leaf, work=command.work)
    return top


def read(verb: str, words: Sequence[str]) -> tuple[Callable[..., Any], bool, dict[str, Any]]:
    """The function of a verb, whether its document is to be printed, and its arguments.

    Of these `names` are the words of NAME... and `words` are KEY=VALUE, both in any place; `typed` is the
    whole command.
    """
    parsed, more = parser().parse_known_args([verb, *words])
    options = vars(parsed)
    leaf, work, as_json = (options.pop(name) for name in ("parser", "work", "json"))
    for word in more:
        if word.startswith("-") or not ("=" in word or "..." in COMMANDS[verb].takes):
            leaf.error(f"unrecognized arguments: {word}")
    for option, other, hint in NEEDED:
        if options.get(option) is not None and options.get(other) is None:
            leaf.error(hint)
    more = [*options.pop("names", []), *more]
    options["words"] = [word for word in more if "=" in word]
    if "..." in COMMANDS[verb].takes:
        options["names"] = [word for word in more if "=" not in word]
    options["typed"] = shlex.join([*PROGRAM.split(), *verb.split(), *words])
    return work, as_json, options


def commands() -> dict[str, Sequence[str]]:
    """The options of each verb, in words of `OPTIONS`; those that all verbs have are at an empty name."""
    return {"": COMMON} | {name: command.options for name, command in COMMANDS.items()}


def probability(word: str) -> float:
    """A number from 0 to 1; a `type` of argparse, as those below."""
    if not 0 <= (number := float(word)) <= 1:
        raise ValueError
    return number


def places(word: str) -> int | float:
    """A number of places, or a share as a float of at most 1."""
    return float(word[:-1]) / 100 if word.endswith("%") else whole_number(word)


def folder(word: str) -> Path:
    """A folder that is there."""
    if not Path(word).is_dir():
        raise ValueError
    return Path(word)


REPEATED = {"action": "append", "default": []}
SWITCH = {"action": "store_true"}
MODEL = {"choices": ("auto", "logistic"), "default": "auto"}
OUT = {"metavar": "PLACE", "type": Path, "help": "the file or folder to write"}
# Settings of argparse by flag; a word behind a flag tells apart two options of this name.
OPTIONS: dict[str, dict[str, Any]] = {
    "-o --out": OUT,
    "-o --out required": OUT | {"required": True},
    "-cd --config-dir": {"metavar": "FOLDER", "type": folder, "help": "your own FOLDER/GROUP/NAME.yaml"},
    "--json": SWITCH | {"help": "print a JSON document, and nothing else"},
    "--log": SWITCH | {"dest": "to_mlflow", "help": "log the folder to MLflow"},
    "--export": {"metavar": "FOLDER", "type": Path, "help": "write what a study selects, for hparams=NAME"},
    "--policy": {"metavar": "mean|median|seed:N", "default": "mean", "help": "over seeds, or of one"},
    "--threshold": {"metavar": "P", "type": probability, "help": "least probability to accept"},
    "--draw": {"metavar": "SEED", "type": int, "help": "draw decisions of a run, repeatably"},
    "--capacity": {"metavar": "K|K%", "type": places, "help": "most people to accept"},
    "--trust": REPEATED | {"metavar": "MODULE", "help": "import the method of a policy from it; repeatable"},
    "--strict": SWITCH | {"help": "refuse values unknown from training"},
    "--explain": {"metavar": "ROW", "type": whole_number, "help": "explain the decision on this row, from 1"},
    "--against": {"metavar": "FILE", "type": Path, "help": "people to compare with, for --explain"},
    "--policy judged": REPEATED | {"metavar": "RUN|ADDRESS|COLUMN|decision", "help": "decision: those taken"},
    "--proba": REPEATED | {"choices": ("decision", "label"), "help": "what probabilities of --policy are of"},
    "--groups": {"metavar": "COLUMNS", "default": "", "help": "A,B: their combinations are the groups"},
    "--decision-maker": {"metavar": "COLUMN", "help": "who decided, for bounds by their strictness"},
    "--reference": {"metavar": "GROUP", "help": "compared with for adverse impact; highest rate"},
    "--score": {"metavar": "COLUMN", "help": "probability by a model that is to be validated"},
    "--score-of": {"choices": ("positive", "negative"), "default": "positive", "help": "negative for a PD"},
    "--propensity-model": MODEL,
    "--outcome-model": MODEL,
    "--monitor": {"metavar": "time=COLUMN", "help": "intervals and alarms over time"},
    "--gap": {
        "metavar": "E",
        "type": probability,
        "dest": "largest_gap",
        "default": argparse.SUPPRESS,
        "help": "gap above which --monitor alarms; 0.05",
    },
    "--reasons": {
        "metavar": "K",
        "dest": "most_reasons",
        "type": whole_number,
        "help": "name K features that counted against people",
    },
    "--wording": {"metavar": "FILE", "help": "CSV of feature and words, for --reasons"},
    "--skip": SWITCH | {"help": "write rows that cannot be decided on to OUT_left_out.csv"},
    "--confirm-times": SWITCH | {"help": "accept times over 31 days after all others"},
    "--dry-run": SWITCH | {"help": "tell what would change, and write nothing"},
    "--html": {"metavar": "FOLDER", "type": Path, "help": "write a page too"},
    "--head": {"metavar": "HASH", "help": "noted earlier, from which the rows must go on"},
    "--smallest-cell": {"metavar": "N", "type": whole_number, "default": 10, "help": "fewest people shown"},
}
# Names of an option and of another one that it needs, and what is said without that.
NEEDED = [
    ("wording", "most_reasons", "--wording: words of reasons; give --reasons K too"),
    ("largest_gap", "monitor", "--gap: of alarms over time; give --monitor time=COLUMN too"),
    ("against", "explain", "--against: people to compare with; give --explain ROW too"),
]
COMMON = ["--trust", "--json"]  # options of every verb
OWN = ["-cd --config-dir"]
PAGE = ["-o --out", "--log"]
DECIDE = ["--policy", "--threshold", "--draw", "--strict", "--explain", "--against"]
PLACES = ["-o --out required", "--capacity", "--reasons", "--wording"]  # of a table of decisions
ESTIMATE = ["--propensity-model", "--outcome-model", "--smallest-cell", "--score", "--score-of", "--proba"]
JUDGE = ["--policy judged", "--groups", "--decision-maker", "--reference", "--draw", "--monitor", "--gap"]
COMMANDS = {
    "list": Command("choices of each group, and runs", listing.show_list, "WHAT...", OWN),
    "show": Command("a run again, or how far it has come", listing.show, "RUN"),
    "compare": Command("runs side by side: tables, tests, curves", verbs.compare, "RUN...", PAGE),
    "frontier": Command(
        "utility against the gap between groups, by slack",
        verbs.frontier,
        options=PAGE,
        notes=OF_FRONTIER,
    ),
    "tune NAME": Command("run sweeps/NAME.yaml, as --multirun sweeps=NAME", None),
    "tune report": Command(
        "studies and what they select", verbs.tune_report, "NAME...", ["--export"], OF_STUDIES
    ),
    "data fetch": Command("fetch the raw file of a data set", verbs.data_fetch, "NAME", OWN),
    "data describe": Command("columns, groups, labels", verbs.data_describe, "NAME", OWN, OF_DATA),
    "data compare": Command("how far new people differ from earlier ones", verbs.data_compare, "OLD NEW"),
    "decide": Command(
        "decide on people with a run's policy", verbs.decide, "RUN PEOPLE", DECIDE + PLACES, OF_RUN
    ),
    "evaluate": Command(
        "judge decisions and policies by a log", verbs.evaluate, "LOG", JUDGE + ESTIMATE + PAGE, OF_LOG
    ),
    "live start": Command(
        "begin a ledger: a policy that learns", live.start, "LEDGER RUN...", notes=OF_LEDGER
    ),
    "live decide": Command(
        "decide on people, and record it",
        live.decide,
        "LEDGER PEOPLE",
        [*PLACES, "--skip", "--confirm-times"],
    ),
    "live outcomes": Command("record outcomes", live.outcomes, "LEDGER OUTCOMES", ["--confirm-times"]),
    "live learn": Command("learn from what is new", live.learn, "LEDGER", ["--dry-run"]),
    "live status": Command("where a ledger stands", live.status, "LEDGER", ["--html", "--head"]),
    "live promote": Command("put a version on duty", live.promote, "LEDGER VERSION"),
    "live forget": Command("erase the features of a person", live.forget, "LEDGER ID"),
    "live withdraw": Command("leave out an application that was a mistake", live.withdraw, "LEDGER ID"),
    "mlflow sync": Command("log finished runs that MLflow does not have", verbs.mlflow),
}
