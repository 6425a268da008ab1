"""The verbs of the command line with their options, and the parser of their words."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import fairall
from fairall.cli import live, verbs
from fairall.config.choices import configuration_root
from fairall.runtime.process import whole_number

if TYPE_CHECKING:
    from fairall.decide.refer import Refer

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
With --explain only --policy and --strict are possible. --refer leaves decisions to a person: the 20 (or 5%)
nearest to the threshold, those with a probability of 0.4-0.6, or conflict:20, whose features count most both
for and against them. --equal-rates accepts from thresholds that give the groups of PEOPLE equal acceptance
rates.

"""
OF_KEYS = """\
Keys of every run and their defaults; `list` has the choices of groups such as model=, and `--cfg job` prints
every key of a command, those of its groups too, without running it."""
OF_LOG = """\
LOG is CSV or Parquet, a row for each person who was decided on. KEY=VALUE names its columns, as for
dataset=csv: decision and accepted (its value for an acceptance), label and positive (its good value),
sensitive, propensity, cost, drop, kinds; and person (who a row is about), gain and loss (instead of cost).
Without --policy the decisions taken are judged; with one, that policy; with two, their difference.

"""
OF_FRONTIER = """\
KEY=VALUE is as for a run; model=A,B and dataset=A,B are several, fairness=demographic_parity or
equal_opportunity the rates compared, fairness.slack=0,0.1,1 the largest gaps allowed. Runs that are done are
read, so that a frontier can be extended.

"""
OF_LEDGER = """\
LEDGER is an SQLite file or the URL of a database. RUN is a finished run, whose policy is version 1; without
it KEY=VALUE are those of a run, whose method begins after its warm-up. live.KEY=VALUE: horizon=90d, held_out,
explore, promote=by_hand|if_better, gap, and columns id, time, label with its words positive and negative.
tracking.register=NAME, here and with learn and promote, makes versions of a model in MLflow.

"""
OF_DATA = """\
NAME is that of a data set (`list datasets`), or, with a point or a slash in it, of a CSV or Parquet file with
KEY=VALUE as for dataset=csv.
Of a file it prints how a run would read each column, and what prevents a run: then the exit code is 1.

"""
OF_STUDIES = """\
Without NAME it lists the studies in outputs_dir, with one it shows progress, the selected point and
the Pareto set, with several it compares what they select with the paper's selection.

"""


class Command(NamedTuple):
    """A verb, or a verb and its second word.

    Attributes:
        does: one line.
        work: called with the arguments, see `verbs`.
        takes: its words, beside KEY=VALUE.
        options: of `OPTIONS`, beside those of `COMMON`.
        notes: below the options, with an empty line at the end.
        names: what further words that are not KEY=VALUE name, of which there may be any number.
    """

    does: str
    work: Callable[..., Any]
    takes: str = ""
    options: Sequence[str] = ()
    notes: str = ""
    names: str = ""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        self.exit(2, f"fairall: {message}; see {self.prog} --help\n")


def parser() -> Parser:
    """The parser without a verb, whose help lists verbs, and the keys of a run."""
    verbs = "\n".join(f"  {name:<16}{command.does}" for name, command in COMMANDS.items())
    keys = (configuration_root() / "conf" / "config.yaml").read_text(encoding="utf-8")
    top = Parser(
        prog=PROGRAM,
        usage="%(prog)s [run] [GROUP=CHOICE ...] [KEY=VALUE ...]\n       %(prog)s VERB ...",
        description="FairAll: fair decision making under selective labels. Without a verb it begins a run.",
        epilog=f"verbs:\n{verbs}\n\n{EXIT_CODES}\n\n{OF_KEYS}\n\n{keys.partition(chr(10) + 'hydra:')[0]}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"fairall {fairall.__version__}")
    return top


def read(verb: str, words: Sequence[str]) -> dict[str, Any]:
    """The arguments of a verb.

    Of these `names` are the words of NAME... and `words` are KEY=VALUE, both in any place; `typed` is the
    whole command.
    """
    command = COMMANDS[verb]
    leaf = Parser(
        prog=f"{PROGRAM} {verb}",
        description=command.does,
        epilog=command.notes + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for word in command.takes.split():
        leaf.add_argument(word.lower(), metavar=word, **TAKEN.get(word, {}))
    leaf.add_argument("words", metavar=command.names or "KEY=VALUE", nargs="*", default=[])
    for option in (*command.options, *COMMON):
        leaf.add_argument(*FLAGS.findall(option), **OPTIONS[option])
    options = vars(leaf.parse_intermixed_args(words))
    flags = {word.partition("=")[0] for word in words}
    for flag, other, together in PAIRS:
        if flag in flags and (other in flags) != together:
            leaf.error(f"{flag}: {'needs' if together else 'not possible with'} {other}")
    names = [word for word in options["words"] if "=" not in word]
    options["words"] = [word for word in options["words"] if "=" in word]
    if command.names:
        options["names"] = names
    elif names:
        leaf.error(f"unrecognized arguments: {' '.join(names)}")
    return options | {"typed": shlex.join([*leaf.prog.split(), *words])}


def number_or_share(word: str) -> int | float:
    """A number of places, or a share as a float of at most 1; a `type` of argparse."""
    if not word.endswith("%"):
        return whole_number(word)
    share = float(word[:-1]) / 100
    if not 0 < share <= 1:
        raise ValueError
    return share


def referral(word: str) -> Refer:
    """People to refer: 20, 5%, 0.4-0.6 or conflict:20; a `type` of argparse."""
    from fairall.decide.refer import Refer

    low, is_band, high = word.partition("-")
    if is_band:
        return Refer(band=(float(low), float(high)))
    most = word.removeprefix("conflict:")
    return Refer(number_or_share(most), by_conflict=most != word)


def folder(word: str) -> Path:
    """A folder that exists; a `type` of argparse."""
    if not Path(word).is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {word}")
    return Path(word)


REPEATED = {"action": "append", "default": []}
SWITCH = {"action": "store_true"}
MODEL = {"choices": ("auto", "logistic"), "default": "auto"}
OUT = {"type": Path, "help": "the file or folder to write"}
# Settings of argparse of words that a verb takes.
TAKEN: dict[str, dict[str, Any]] = {
    "VERSION": {"type": whole_number},
    "DECISION": {"choices": ("accept", "reject")},
}
# Settings of argparse by flag; a word behind a flag tells apart two options of this name.
OPTIONS: dict[str, dict[str, Any]] = {
    "-o --out": OUT,
    "-o --out required": OUT | {"required": True},
    "-cd --config-dir": {"type": folder, "help": "folder of your own GROUP/NAME.yaml"},
    "--json": SWITCH | {"help": "print a JSON document, and nothing else"},
    "--export": {"type": Path, "help": "folder to write what a study selects to, for hparams=NAME"},
    "--policy": {"default": "mean", "help": "over seeds: mean or median; of one: seed:N"},
    "--threshold": {"type": float, "help": "least probability to accept"},
    "--draw": {"type": int, "help": "seed; draw decisions of a run, repeatably"},
    "--capacity": {"type": number_or_share, "help": "most people to accept, as 20 or 20%%"},
    "--refer": {"type": referral, "help": "leave to a person: 20 or 5%% nearest, 0.4-0.6, conflict:20"},
    "--equal-rates": SWITCH | {"help": "accept groups of this table at equal rates"},
    "--trust": REPEATED | {"help": "module of the method of a policy; repeatable"},
    "--strict": SWITCH | {"help": "refuse values unknown from training"},
    "--explain": {"type": whole_number, "help": "explain the decision on this row, from 1"},
    "--policy judged": REPEATED | {"help": "RUN, ADDRESS, COLUMN, or decision: those taken"},
    "--proba": REPEATED | {"choices": ("decision", "label"), "help": "what probabilities of --policy are of"},
    "--groups": {
        "type": lambda names: [*filter(None, names.split(","))],
        "default": (),
        "help": "A,B: their combinations are the groups",
    },
    "--decision-maker": {"help": "column of who decided, for bounds by their strictness"},
    "--reference": {"help": "group compared with for adverse impact; highest rate"},
    "--score": {"help": "column of the probability by a model that is to be validated"},
    "--score-of": {"choices": ("positive", "negative"), "default": "positive", "help": "negative for a PD"},
    "--propensity-model": MODEL,
    "--outcome-model": MODEL,
    "--monitor": {
        "type": lambda word: word.removeprefix("time="),
        "help": "time=COLUMN; intervals and alarms over time",
    },
    "--gap": {
        "type": float,
        "dest": "largest_gap",
        "default": argparse.SUPPRESS,
        "help": "gap above which --monitor alarms; 0.05",
    },
    "--person": {"metavar": "JSON", "help": 'one, as \'{"id": 7, "age": 41}\', instead of PEOPLE, -o'},
    "--reasons": {
        "dest": "most_reasons",
        "type": whole_number,
        "help": "name K features that counted against people",
    },
    "--wording": {"help": "CSV of feature and words, for --reasons"},
    "--skip": SWITCH | {"help": "leave out rows that cannot be decided on"},
    "--confirm-times": SWITCH | {"help": "accept times over 31 days after all others"},
    "--waiting": SWITCH | {"help": "write who is waited for to -o"},
    "--dry-run": SWITCH | {"help": "tell what would change, and write nothing"},
    "--html": {"type": Path, "help": "folder to write a page to"},
    "--by": {
        "metavar": "NAME",
        "default": live.login(),
        "help": "who does it, for the record; your login name",
    },
    "--why": {"metavar": "TEXT", "required": True, "help": "the reason, for the record"},
    "--head": {"help": "hash noted earlier, from which the rows must go on"},
    "--smallest-cell": {"type": whole_number, "default": 10, "help": "fewest people shown"},
}
# Another option that one needs (True), or with which it is not possible.
PAIRS = [
    ("--wording", "--reasons", True),
    ("--gap", "--monitor", True),
    ("--confirm-times", "--waiting", False),
    *((rule, "--explain", False) for rule in ("--capacity", "--reasons", "--refer")),
    # Only one of these: a decision on one person, or one way from a probability to a decision.
    *(
        (one, other, False)
        for other, one in combinations(("--explain", "--draw", "--threshold", "--equal-rates"), 2)
    ),
]
COMMON = ["--trust", "--json"]  # options of every verb
COMMANDS = {
    "list": Command(
        "choices of each group, and runs", verbs.show_list, options=["-cd --config-dir"], names="WHAT"
    ),
    "show": Command("a run again, or how far it has come", verbs.show, "RUN"),
    "compare": Command(
        "runs side by side: tables, tests, curves",
        partial(verbs.page, "comparison"),
        options=["-o --out"],
        names="RUN",
    ),
    "frontier": Command(
        "utility against the gap between groups, by slack",
        partial(verbs.page, "frontier"),
        options=["-o --out"],
        notes=OF_FRONTIER,
    ),
    "tune NAME": Command("run sweeps/NAME.yaml, as --multirun sweeps=NAME", verbs.tune_report),
    "tune report": Command(
        "studies and what they select", verbs.tune_report, "", ["--export"], OF_STUDIES, "NAME"
    ),
    "data fetch": Command(
        "fetch the raw file of a data set", partial(verbs.data, "fetch"), "NAME", ["-cd --config-dir"]
    ),
    "data describe": Command(
        "columns, groups, labels", partial(verbs.data, "describe"), "NAME", ["-cd --config-dir"], OF_DATA
    ),
    "data compare": Command(
        "how far new people differ from earlier ones", partial(verbs.data, "compare"), "OLD NEW"
    ),
    "decide": Command(
        "decide on people with a run's policy",
        verbs.decide,
        "RUN PEOPLE",
        [
            "--policy",
            "--threshold",
            "--draw",
            "--strict",
            "--explain",
            "-o --out required",
            "--capacity",
            "--refer",
            "--equal-rates",
            "--reasons",
            "--wording",
        ],
        OF_RUN,
    ),
    "evaluate": Command(
        "judge decisions and policies by a log",
        verbs.evaluate,
        "LOG",
        [
            "--policy judged",
            "--groups",
            "--decision-maker",
            "--reference",
            "--draw",
            "--monitor",
            "--gap",
            "--propensity-model",
            "--outcome-model",
            "--smallest-cell",
            "--score",
            "--score-of",
            "--proba",
            "-o --out",
        ],
        OF_LOG,
    ),
    "live start": Command(
        "begin a ledger: a policy that learns", live.start, "LEDGER", notes=OF_LEDGER, names="RUN"
    ),
    "live decide": Command(
        "decide on people, and record it",
        live.decide,
        "LEDGER",
        [
            "-o --out",
            "--person",
            "--capacity",
            "--refer",
            "--reasons",
            "--wording",
            "--skip",
            "--confirm-times",
        ],
        names="PEOPLE",
    ),
    "live outcomes": Command(
        "record outcomes, or list who is waited for",
        live.outcomes,
        "LEDGER",
        ["--confirm-times", "--waiting", "-o --out"],
        names="OUTCOMES",
    ),
    "live learn": Command("learn from what is new", live.learn, "LEDGER", ["--dry-run"]),
    "live status": Command("where a ledger stands", live.status, "LEDGER", ["--html", "--head"]),
    "live promote": Command("put a version on duty", live.promote, "LEDGER VERSION", ["--by"]),
    "live override": Command(
        "decide on somebody as a person", live.override, "LEDGER ID DECISION", ["--by", "--why"]
    ),
    "live forget": Command(
        "erase the features of a person", partial(live.remove, "forget"), "LEDGER ID", ["--by"]
    ),
    "live withdraw": Command(
        "leave out an application that was a mistake", partial(live.remove, "withdraw"), "LEDGER ID", ["--by"]
    ),
    "mlflow sync": Command("log finished runs that MLflow does not have", verbs.mlflow),
}
