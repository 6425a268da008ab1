"""What the verbs do: each calls a function of a room, which it imports when it is called."""

from __future__ import annotations

import shlex
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fairall.errors import FairAllError
from fairall.runtime.reading import why_no_file

if TYPE_CHECKING:
    import pandas as pd

    from fairall.config.schema import Config
    from fairall.display.table import PageTable
    from fairall.policy import Policy
    from fairall.results.result import Result
    from fairall.tables.files import File

SQLITE = b"SQLite format 3\0"  # how the file of a ledger begins
# Of an evaluation.
OPTIONS = "propensity_model outcome_model smallest_cell score score_of monitor proba draw reference".split()


class Done(NamedTuple):
    """What a verb returns.

    Attributes:
        document: for --json.
        code: exit code.
    """

    document: Any = None
    code: int = 0


def compare(given: Namespace) -> Done:
    """Compare runs on a page of their own."""
    from fairall.config.compose import places
    from fairall.report.comparison import chosen_runs, compare

    config = places(given.words)
    runs = chosen_runs(given.names, Path(config.outputs_dir) / "runs")
    return _page(given, config, "Comparison", runs, compare)


def frontier(given: Namespace) -> Done:
    """Draw utility against the gap between groups."""
    from fairall.config.compose import places
    from fairall.display.progress import Display
    from fairall.report.frontier import frontier, points

    return _page(given, places(given.words), "Frontier", points(given.words, Display()), frontier)


def _page(
    given: Namespace,
    config: Config,
    what: str,
    runs: Mapping[str, Result],
    write: Callable[[Mapping[str, Result], Path], Sequence[PageTable]],
) -> Done:
    """Write a page about some runs to a folder of its own, and print its tables."""
    from fairall.display.format import own_name
    from fairall.display.table import print_table
    from fairall.report.comparison import place

    name = own_name(what.lower(), next(iter(runs.values())).config.preset)
    folder = place(given.out, Path(config.outputs_dir) / name, runs)
    for table in write(runs, folder):
        print_table(table)
    print(f"{what}: {folder / 'index.html'}")
    _log(given, config, folder, name)
    return Done()


def decide(given: Namespace) -> Done:
    """Decide on the people of a table."""
    from fairall.decide.deciding import decide
    from fairall.decide.rules import Rule

    if given.threshold is not None and given.draw is not None:
        raise FairAllError("--draw and --threshold: decisions are drawn, or taken by a threshold")
    table, policy, run = _table_and_policy(given)
    threshold = policy.threshold if given.threshold is None else given.threshold
    decided = decide(
        policy,
        table,
        Path(given.out),
        Rule(threshold, given.draw, given.capacity),
        which=given.policy,
        strict=given.strict,
        **asked_reasons(given),
    )
    decided.show(run)
    print(f"Decisions: {given.out}")
    return Done({"run": run, **decided.to_plain(), "decisions": given.out})


def explain(given: Namespace) -> Done:
    """Explain the decision on one person."""
    from fairall.decide.explain import explain_row, write_explanation

    folder = Path(given.out)
    if folder.exists() and not folder.is_dir():  # before the work
        raise FairAllError(f"-o {folder}: is a file; give a folder")
    table, policy, _ = _table_and_policy(given)
    explanation, warnings = explain_row(
        policy,
        table,
        given.row,
        against=given.against and Path(given.against),
        by=given.policy,
        threshold=given.threshold,
        strict=given.strict,
    )
    write_explanation(explanation, folder)
    for warning in warnings:
        print(f"Warning: {warning}")
    explanation.show()
    print(f"Explanation: {given.out}")
    return Done()


def _table_and_policy(given: Namespace) -> tuple[File, Policy, str]:
    """The people, the policy that decides on them, and the name of its run."""
    from fairall.config.compose import places
    from fairall.decide.deciding import people_file
    from fairall.decide.load import find_policy
    from fairall.nn.native import use_threads

    table = people_file(Path(given.people), given.words)
    policy, run = find_policy(given.run, places(given.words), given.trust)
    use_threads(None)
    return table, policy, run


def evaluate(given: Namespace) -> Done:
    """Judge the decisions of a log, a policy, or the difference of two."""
    from fairall.config.schema import Config
    from fairall.evaluate.shown.write import evaluate_log

    if len(given.policy) > 2:
        raise FairAllError("--policy: one is judged, two are compared; more than two cannot be")
    options = {name: getattr(given, name) for name in OPTIONS}
    of_places = [word for word in given.words if word.startswith(("outputs_dir=", "tracking."))]
    config = Config.of_places(outputs_dir(of_places))
    if given.to_mlflow or any(word.startswith("tracking.") for word in of_places):
        from fairall.config.compose import places  # with Hydra

        config = places(of_places)
    if given.gap is not None:
        if given.monitor is None:
            raise FairAllError("--gap: it is of alarms over time; give --monitor time=COLUMN too")
        options["largest_gap"] = given.gap
    path, frame, of_ledger = _log_of(given)
    shown = evaluate_log(
        path,
        [*of_ledger, *(word for word in given.words if word not in of_places)],
        frame=frame,
        policies=[None if name == "decision" else name for name in given.policy] or [None],
        groups=[name for name in given.groups.split(",") if name],
        decision_maker=given.decision_maker,
        trust=given.trust,
        outputs_dir=config.outputs_dir,
        tracking_uri=config.tracking.uri,
        folder=given.out and Path(given.out),
        command=given.typed,
        **options,
    )
    assert shown.folder is not None
    _log(given, config, shown.folder, f"evaluate {' and '.join(shown.names)}", metrics=shown.metrics())
    if shown.failure is not None:
        print(shown.failure, file=sys.stderr)
    return Done(shown.content, int(shown.failure is not None))


def asked_reasons(given: Namespace) -> dict[str, Any]:
    """Arguments of `decide` for --reasons and --wording."""
    from fairall.decide.reasons import read_wording

    if given.wording is not None and given.reasons is None:
        raise FairAllError("--wording: it is of reasons; give --reasons K too")
    return {"most_reasons": given.reasons, "wording": read_wording(given.wording)}


def _log_of(given: Namespace) -> tuple[str, pd.DataFrame | None, list[str]]:
    """The path of a log or the place of a ledger, and of a ledger its log and the words that describe it."""
    path = Path(given.log)
    is_ledger = "://" in given.log
    if not is_ledger and why_no_file(path) is None:
        with path.open("rb") as file:
            is_ledger = file.read(len(SQLITE)) == SQLITE
    if not is_ledger:
        return given.log, None, []
    from fairall.config.words import override
    from fairall.live.ledger import Ledger

    ledger = Ledger(given.log, modules=given.trust)
    log = ledger.log()
    roles = {"decision": "decision", "label": "label", "propensity": "propensity", "sensitive": "group"}
    roles |= {"policy_version": "version", "person": "id"}
    words = [override(role, log.names[name]) for role, name in roles.items()]
    dropped = [] if given.monitor == log.names["time"] else [log.names["time"]]
    words += [override("drop", dropped), "accepted=1", "positive=1", f"cost={log.cost}"]
    return ledger.store.name, log.frame, words


def outputs_dir(words: Sequence[str]) -> Path:
    """The folder of outputs of a command line whose KEY=VALUE say no more than places.

    Raises:
        FairAllError: where one says something else.
    """
    from fairall.config.choices import settings
    from fairall.config.words import PATH

    given = ""
    for word in words:
        if not word.startswith(("outputs_dir=", "tracking.")):
            raise FairAllError(f"{word}: not possible here; outputs_dir=FOLDER says where runs are")
        given = word if word.startswith("outputs_dir=") else given
    folder = given.partition("=")[2] if given else settings()["outputs_dir"]
    if not PATH.fullmatch(folder):
        from fairall.config.compose import places  # Hydra reads what is in quotation marks

        folder = places([given]).outputs_dir
    return Path(folder)


def tune(given: Namespace) -> Done:
    """List, show, export or compare studies."""
    from fairall.tuning.report import report

    export = Path(given.folder) if given.verb == "tune export" else None
    names = [given.name] if "name" in given else [] if "names" not in given else given.names
    report(names, export, given.words)
    return Done()


def data(given: Namespace) -> Done:
    """List, fetch, describe, check or compare data sets."""
    from fairall.config.choices import choices
    from fairall.config.compose import searched_folder
    from fairall.config.words import table_file
    from fairall.data import describe

    words, own = given.words, given.config_dir and Path(given.config_dir)
    if own is not None:
        if not own.is_dir():
            raise FairAllError(f"-cd {own}: there is no such folder")
        words = [searched_folder(own), *words]
    if "name" in given and given.name not in choices(own)["dataset"] and table_file(given.name):
        raise FairAllError(f"{given.name} is a file: python -m fairall data check {shlex.quote(given.name)}")
    match given.verb:
        case "data fetch":
            describe.fetch(given.name, words)
        case "data describe":
            describe.describe(given.name, words, own)
        case "data check":
            return Done(code=0 if describe.check(given.path, words, own) else 1)
        case "data compare":
            describe.compare(given.old, given.new, words)
        case _:
            describe.list_known(words, own)
    return Done()


def mlflow(given: Namespace) -> Done:
    """Log what MLflow does not have."""
    from fairall.tracking.logger import sync

    return Done(code=sync(given.words))


def _log(given: Namespace, config: Config, folder: Path, title: str, **further: Any) -> None:
    """Log a folder to MLflow with --log."""
    if given.to_mlflow and config.tracking.enabled:
        from fairall.tracking.logger import log_report

        log_report(config, folder, title, given.typed, **further)
