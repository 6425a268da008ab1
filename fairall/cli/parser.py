"""The verbs of the command line, and the parser of their words."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

from fairall.cli import listing, live, show, verbs
from fairall.cli.verbs import Done
from fairall.config.words import PATH, Words, nearest, quoted
from fairall.runtime.process import whole_number

PLACES = {"--outputs": "outputs_dir", "--tracking-uri": "tracking.uri"}  # options of every verb, and of runs
EXIT_CODES = """\
Exit codes: 0 done; 1 a mistake in KEY=VALUE, or something refused, damaged or missing, told in one line on
standard error; 2 usage: words or options that the verb or a run does not take; 130 Ctrl-C, 143 SIGTERM, 129
terminal closed; 141 nobody reads the output."""
OF_RUN = """\
RUN is the folder of a finished run or of its policy, the beginning of a run's id, or an address in MLflow:
runs:/ID/policy, models:/NAME/VERSION or models:/m-ID. PEOPLE (CSV, Parquet) has a row for each person, with
features as in the raw data and the sensitive attribute. KEY=VALUE is separator=... or text_encoding=..."""
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


class Command(NamedTuple):
    """A verb, or a verb and its second word.

    Attributes:
        does: one line.
        work: called with the arguments.
        takes: names of its words; WORD... stands for any number, of which none is KEY=VALUE.
        options: of `OPTIONS`; one that ends in ! is required, one that ends in ... may be repeated.
        notes: below the options.
        resumes: whether the same command goes on after an interruption.
    """

    does: str
    work: Callable[[argparse.Namespace], Done]
    takes: str = ""
    options: str = ""
    notes: str = ""
    resumes: bool = False


class Parser(argparse.ArgumentParser):
    """The parser of a command, whose errors are one line.

    Args:
        name: of `COMMANDS`.
    """

    def __init__(self, name: str) -> None:
        command = COMMANDS[name]
        super().__init__(
            prog=f"python -m fairall {name}",
            usage=f"%(prog)s {command.takes} [OPTION ...] [KEY=VALUE ...]".replace("  ", " "),
            description=command.does,
            epilog=f"{command.notes}\n\n{EXIT_CODES}".strip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self.set_defaults(verb=name, json=False)
        fixed = command.takes.split()
        self._several = fixed.pop() if fixed and fixed[-1].endswith("...") else ""
        for word in fixed:
            self.add_argument(word.lower(), metavar=word)
        self.add_argument("words", metavar=f"{self._several} KEY=VALUE".strip(), nargs="*", default=[])
        for option in command.options.split():
            flag = option.rstrip(".!")
            flags = ("-o", "--out") if flag == "-o" else ("-cd", "--config-dir") if flag == "-cd" else (flag,)
            self.add_argument(*flags, required=option[-1] == "!", **OPTIONS[option.rstrip("!")])
        for flag, key in PLACES.items():  # for --help; `in_words` has read them
            self.add_argument(flag, metavar="PLACE", help=f"the same as {key}=PLACE")

    def read(self, words: Words) -> argparse.Namespace:
        """The arguments: `names` are the words of WORD..., `words` are KEY=VALUE."""
        given = self.parse_intermixed_args(in_words(words))
        given.names = [word for word in given.words if "=" not in word]
        given.words = [word for word in given.words if "=" in word]
        if given.names and not self._several:
            self.error(f"{given.names[0]}: not KEY=VALUE")
        return given

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        self.exit(2, f"fairall: {message}; see {self.prog} --help\n")


def in_words(words: Words) -> list[str]:
    """The words, with the options of `PLACES` as the KEY=VALUE that they stand for."""
    found, given = [], iter(words)
    for word in given:
        name, equals, value = word.partition("=")
        if name in PLACES:
            value = value if equals else next(given, "")
            word = f"{PLACES[name]}={value if PATH.fullmatch(value) else quoted(value)}"
        found.append(word)
    return found


def second_words(verb: str) -> list[str]:
    """The words that a verb takes next, where it takes any."""
    return [name.partition(" ")[2] for name in COMMANDS if name.startswith(f"{verb} ")]


def unknown(verb: str, words: Words) -> str:
    """What is wrong with a verb that lacks its second word, or has another."""
    known = second_words(verb)
    wrong = next((word for word in words if not word.startswith("-")), None)
    near = "" if wrong is None else f"no command {wrong!r}{nearest(wrong, known)}; "
    return f"{verb}: {near}there are {', '.join(known)}"


def _probability(word: str) -> float:
    with suppress(ValueError):
        if 0 <= (number := float(word)) <= 1:
            return number
    raise argparse.ArgumentTypeError(f"it must be a number from 0 to 1, not {word}")


def _places(word: str) -> int | float:
    share = word.removesuffix("%")
    if share == word:
        return whole_number(word)
    if not (share.replace(".", "", 1).isdecimal() and float(share) <= 100):
        raise argparse.ArgumentTypeError(f"it must be a share from 0% to 100%, not {word}")
    return float(share) / 100


def _seed(word: str) -> int:
    return 0 if word == "0" else whole_number(word)


def _time(word: str) -> str:
    key, _, column = word.partition("=")
    if key != "time" or not column:
        raise argparse.ArgumentTypeError(f"it must be time=COLUMN, not {word}")
    return column


TRUST = "import the method of a policy from this module or package, which runs its code; repeatable"
Settings = dict[str, Any]
REPEATED: Settings = {"action": "append", "default": []}
MODEL: Settings = {"choices": ("auto", "logistic"), "default": "auto"}
# Settings of argparse. A policy of seeds may be given once, one to judge twice.
OPTIONS: dict[str, Settings] = {
    "-o": {"metavar": "PLACE", "help": "the file or folder to write"},
    "-cd": {"metavar": "FOLDER", "help": "where files of your own are: FOLDER/GROUP/NAME.yaml"},
    "--json": {"action": "store_true", "help": "print a JSON document, and nothing else"},
    "--log": {"action": "store_true", "dest": "to_mlflow", "help": "log the folder to MLflow"},
    "--policy": {"metavar": "mean|median|seed:N", "default": "mean", "help": "over seeds, or of one"},
    "--threshold": {"metavar": "P", "type": _probability, "help": "least probability to accept"},
    "--draw": {"metavar": "SEED", "type": _seed, "help": "draw decisions of a run, repeatably"},
    "--capacity": {"metavar": "K|K%", "type": _places, "help": "most people to accept"},
    "--trust...": {"metavar": "MODULE", "help": TRUST} | REPEATED,
    "--strict": {"action": "store_true", "help": "refuse values unknown from training"},
    "--row": {"metavar": "ROW", "type": whole_number, "help": "of PEOPLE, from 1"},
    "--against": {"metavar": "FILE", "help": "people to compare with; default: training people"},
    "--policy...": {"metavar": "RUN|ADDRESS|COLUMN|decision", "help": "decision: the decisions taken"}
    | REPEATED,
    "--proba...": {
        "choices": ("decision", "label"),
        "help": "what probabilities of --policy are of: acceptance, or a positive label",
    }
    | REPEATED,
    "--groups": {"metavar": "COLUMNS", "default": "", "help": "A,B: their combinations are the groups"},
    "--decision-maker": {"metavar": "COLUMN", "help": "who decided, for bounds by their strictness"},
    "--reference": {"metavar": "GROUP", "help": "compared with for adverse impact; highest rate"},
    "--score": {"metavar": "COLUMN", "help": "probability by a model that is to be validated"},
    "--score-of": {
        "choices": ("positive", "negative"),
        "default": "positive",
        "help": "the label that it is the probability of; negative for a PD",
    },
    "--propensity-model": MODEL,
    "--outcome-model": MODEL,
    "--monitor": {"metavar": "time=COLUMN", "type": _time, "help": "intervals and alarms over time"},
    "--gap": {"metavar": "E", "type": _probability, "help": "gap above which --monitor alarms; 0.05"},
    "--reasons": {
        "metavar": "K",
        "type": whole_number,
        "help": "name K features that counted against people",
    },
    "--wording": {"metavar": "FILE", "help": "CSV of feature and words, for --reasons"},
    "--skip": {
        "action": "store_true",
        "help": "decide without the rows that cannot be decided on, and write these to OUT_left_out.csv",
    },
    "--confirm-times": {"action": "store_true", "help": "accept times over 31 days after all others"},
    "--dry-run": {"action": "store_true", "help": "tell what would change, and write nothing"},
    "--html": {"metavar": "FOLDER", "help": "write a page too"},
    "--head": {"metavar": "HASH", "help": "head of the ledger noted earlier, from which its rows must go on"},
    "--smallest-cell": {"metavar": "N", "type": whole_number, "default": 10, "help": "fewest people shown"},
}
DECIDE = "-o! --policy --threshold --draw --capacity --reasons --wording --trust... --strict --json"
LIVE_DECIDE = "-o! --capacity --reasons --wording --skip --confirm-times --trust... --json"
LIVE_OUTCOMES = "--confirm-times --trust... --json"
EXPLAIN = "--row! -o! --policy --threshold --against --trust... --strict"
EVALUATE = (
    "--policy... --proba... --draw -o --groups --reference --decision-maker --score --score-of "
    "--propensity-model --outcome-model --smallest-cell --monitor --gap --trust... --log --json"
)
COMMANDS = {
    "list": Command(
        "what there is to choose from, runs and studies", listing.show_list, "WHAT...", "-cd --json"
    ),
    "show": Command("a run again, or how far it has come", show.show, "RUN", "--json"),
    "compare": Command("runs side by side: tables, tests, curves", verbs.compare, "RUN...", "-o --log"),
    "frontier": Command(
        "utility against the gap between groups, by slack",
        verbs.frontier,
        options="-o --log",
        notes=OF_FRONTIER,
        resumes=True,
    ),
    "tune list": Command("studies and where each stands", verbs.tune),
    "tune show": Command("a study: progress, selected point, Pareto set", verbs.tune, "NAME"),
    "tune export": Command("write what a study selects, for hparams=NAME", verbs.tune, "NAME FOLDER"),
    "tune compare": Command("what studies select beside the paper's", verbs.tune, "NAME..."),
    "data list": Command("data sets and where each is", verbs.data, "", "-cd"),
    "data fetch": Command("fetch the raw file of a data set", verbs.data, "NAME", "-cd", resumes=True),
    "data describe": Command("rows, kinds, groups, labels, acceptance", verbs.data, "NAME", "-cd"),
    "data check": Command("how a run would read a CSV, and what prevents it", verbs.data, "PATH", "-cd"),
    "data compare": Command("how far new people differ from earlier ones", verbs.data, "OLD NEW", "-cd"),
    "decide": Command("decide on people with a run's policy", verbs.decide, "RUN PEOPLE", DECIDE, OF_RUN),
    "explain": Command("why a person has a probability", verbs.explain, "RUN PEOPLE", EXPLAIN, OF_RUN),
    "evaluate": Command("judge decisions and policies by a log", verbs.evaluate, "LOG", EVALUATE, OF_LOG),
    "live start": Command(
        "begin a ledger: a policy that learns", live.start, "LEDGER RUN...", "--trust... --json", OF_LEDGER
    ),
    "live decide": Command("decide on people, and record it", live.decide, "LEDGER PEOPLE", LIVE_DECIDE),
    "live outcomes": Command("record outcomes", live.outcomes, "LEDGER OUTCOMES", LIVE_OUTCOMES),
    "live learn": Command("learn from what is new", live.learn, "LEDGER", "--dry-run --trust... --json"),
    "live status": Command("where a ledger stands", live.status, "LEDGER", "--html --head --trust... --json"),
    "live promote": Command("put a version on duty", live.promote, "LEDGER VERSION", "--trust... --json"),
    "live forget": Command("erase the features of a person", live.forget, "LEDGER ID", "--trust... --json"),
    "live withdraw": Command(
        "leave out an application that was a mistake", live.withdraw, "LEDGER ID", "--trust... --json"
    ),
    "mlflow sync": Command("log finished runs that MLflow does not have", verbs.mlflow, resumes=True),
}
