"""The verbs: each calls a function of a room, which it imports when it is called.

A verb takes the arguments of its parser by name, and leaves out those that it does not need. It returns the
document of --json, None without one, or that and the exit code.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairall.errors import FairAllError
from fairall.storage.stored import Plain

if TYPE_CHECKING:
    import pandas as pd

    from fairall.results.result import Result

Words = Sequence[str]
PLACES = ("outputs_dir=", "tracking.")  # how words begin that change no result
SQLITE = b"SQLite format 3\0"  # how the file of a ledger begins
WIDTH = 1000  # characters of a line, above which a text would be wrapped


def compare(names: Words, words: Words, **page: Any) -> None:
    """Compare runs on a page of their own."""
    from fairall.report.comparison import chosen_runs, compare

    runs, left_out = chosen_runs(names, outputs_dir(words) / "runs")
    _page("comparison", [*runs.values()], partial(compare, runs, left_out), words, **page)


def frontier(words: Words, **page: Any) -> None:
    """Draw utility against the gap between groups."""
    from fairall.display.progress import Display
    from fairall.report.frontier import frontier, points

    drawn = points(words, Display())
    _page("frontier", [*drawn.values()], partial(frontier, drawn), words, **page)


def _page(
    title: str,
    runs: Sequence[Result],
    write: Callable[[Path], Any],
    words: Words,
    out: Path | None,
    to_mlflow: bool,
    typed: str,
    **_: Any,
) -> None:
    """Write a page about some runs to a folder of its own, and print its tables."""
    from fairall.config.compose import places
    from fairall.display.format import own_name
    from fairall.display.table import print_table
    from fairall.report.place import place

    config, name = places(words), own_name(title, runs[0].config.preset)
    folder = place(str(out) if out else None, Path(config.outputs_dir) / name, [run.identity for run in runs])
    for table in write(folder):
        print_table(table)
    print(f"{title.capitalize()}: {folder / 'index.html'}")
    if to_mlflow and config.tracking.enabled:
        from fairall.tracking.logger import log_report

        log_report(config, folder, name, typed)


def decide(
    run: str,
    people: str,
    out: Path,
    words: Words,
    trust: Words,
    policy: str,
    threshold: float | None,
    strict: bool,
    explain: int | None,
    against: Path | None,
    typed: str,
    **rule: Any,
) -> Plain:
    """Decide on the people of a table, or explain the decision on one of them."""
    from fairall.config.compose import places
    from fairall.decide.deciding import decide, people_file
    from fairall.decide.load import find_policy
    from fairall.decide.reasons import read_wording
    from fairall.decide.rules import Rule
    from fairall.nn.native import use_threads

    if threshold is not None and rule["draw"] is not None:
        raise FairAllError("--draw and --threshold: decisions are drawn, or taken by a threshold")
    if explain is not None and any(value is not None for value in rule.values()):
        raise FairAllError("--explain: not possible with --draw, --capacity, --reasons or --wording")
    if explain is not None and out.is_file():  # before the work
        raise FairAllError(f"-o {out}: is a file; give a folder")
    table = people_file(Path(people), words)
    loaded, name = find_policy(run, places(words), trust)
    use_threads(None)
    if explain is None:
        options = {"most_reasons": rule["most_reasons"], "wording": read_wording(rule["wording"])}
        taken = Rule(loaded.threshold if threshold is None else threshold, rule["draw"], rule["capacity"])
        decided = decide(loaded, table, out, taken, which=policy, strict=strict, **options)
        decided.show(name)
        print(f"Decisions: {out}")
        return {"run": name, **decided.to_plain(), "decisions": str(out)}
    from fairall.decide.explain import explain_row, write_explanation

    explanation, warnings = explain_row(
        loaded, table, explain, against=against, by=policy, threshold=threshold, strict=strict
    )
    write_explanation(explanation, out)
    for warning in warnings:
        print(f"Warning: {warning}")
    explanation.show()
    print(f"Explanation: {out}")
    return {"run": name, **explanation.to_plain(), "warnings": warnings, "explanation": str(out)}


def evaluate(
    log: str,
    words: Words,
    policy: Words,
    groups: str,
    monitor: str | None,
    out: Path | None,
    to_mlflow: bool,
    trust: Words,
    typed: str,
    **options: Any,
) -> tuple[Any, int]:
    """Judge the decisions of a log, a policy, or the difference of two."""
    from fairall.config.schema import Config
    from fairall.evaluate.shown.write import evaluate_log

    if len(policy) > 2:
        raise FairAllError("--policy: one is judged, two are compared; more than two cannot be")
    of_places = [word for word in words if word.startswith(PLACES)]
    if of_places or to_mlflow:
        from fairall.config.compose import places  # with Hydra

        config = places(of_places)
    else:
        config = Config.of_places(outputs_dir([]))
    path, frame, of_ledger = _log_of(log, monitor, trust)
    shown = evaluate_log(
        path,
        [*of_ledger, *(word for word in words if word not in of_places)],
        frame=frame,
        policies=[None if name == "decision" else name for name in policy] or [None],
        groups=[name for name in groups.split(",") if name],
        monitor=monitor and monitor.removeprefix("time="),
        outputs_dir=config.outputs_dir,
        tracking_uri=config.tracking.uri,
        folder=out,
        command=typed,
        trust=trust,
        **options,
    )
    assert shown.folder is not None
    if to_mlflow and config.tracking.enabled:
        from fairall.tracking.logger import log_report

        title = f"evaluate {' and '.join(shown.names)}"
        log_report(config, shown.folder, title, typed, metrics=shown.metrics())
    if shown.failure is not None:
        print(shown.failure, file=sys.stderr)
    return shown.content, int(shown.failure is not None)


def _log_of(log: str, monitor: str | None, trust: Words) -> tuple[str, pd.DataFrame | None, list[str]]:
    """The path of a log or the place of a ledger, and of a ledger its log and the words that describe it."""
    path, is_ledger = Path(log), "://" in log
    if path.is_file():
        with path.open("rb") as file:
            is_ledger = file.read(len(SQLITE)) == SQLITE
    if not is_ledger:
        return log, None, []
    from fairall.config.words import override
    from fairall.live.ledger import Ledger

    ledger = Ledger(log, modules=trust)
    rows = ledger.log()
    roles = {"decision": "decision", "label": "label", "propensity": "propensity", "sensitive": "group"}
    roles |= {"policy_version": "version", "person": "id"}
    words = [override(role, rows.names[name]) for role, name in roles.items()]
    if monitor is None:
        words.append(override("drop", [rows.names["time"]]))
    return ledger.store.name, rows.frame, [*words, "accepted=1", "positive=1", f"cost={rows.cost}"]


def outputs_dir(words: Words) -> Path:
    """The folder of outputs of a command line whose KEY=VALUE say no more than places.

    Raises:
        FairAllError: where one says something else.
    """
    from fairall.config.choices import settings

    for word in words:
        if not word.startswith(PLACES):
            raise FairAllError(f"{word}: not possible here; outputs_dir=FOLDER says where runs are")
    if words:
        from fairall.config.compose import places

        return Path(places(words).outputs_dir)
    return Path(settings()["outputs_dir"])


def tell(document: Plain) -> Plain:
    """Print a document as YAML, with numbers of four decimals, and return it."""
    import yaml

    from fairall.storage.stored import strict

    rounded = json.loads(json.dumps(strict(document)), parse_float=lambda digits: round(float(digits), 4))
    print(yaml.safe_dump(rounded, sort_keys=False, allow_unicode=True, width=WIDTH), end="")
    return document


def tune_report(names: Words, export: Path | None, words: Words, **_: Any) -> None:
    """List, show, compare or export studies."""
    from fairall.tuning.report import report

    report(names, export, words)


def data_fetch(name: str, config_dir: Path | None, words: Words, **_: Any) -> None:
    """Fetch the raw file of a data set."""
    from fairall.data.describe import fetch

    fetch(name, with_own(config_dir, words))


def data_describe(name: str, config_dir: Path | None, words: Words, **_: Any) -> tuple[None, int]:
    """Describe a data set, or how a run would read a file."""
    from fairall.config.choices import choices
    from fairall.data.describe import check, describe

    is_file = name not in choices(config_dir)["dataset"] and (Path(name).suffix or Path(name).exists())
    work = check if is_file else describe
    return None, int(work(name, with_own(config_dir, words), config_dir) is False)


def data_compare(old: str, new: str, words: Words, **_: Any) -> None:
    """Compare two tables of people."""
    from fairall.data.describe import compare

    compare(old, new, words)


def with_own(config_dir: Path | None, words: Words) -> list[str]:
    """The words, and the folder of -cd among those that Hydra searches."""
    from fairall.config.compose import searched_folder

    return [*words] if config_dir is None else [searched_folder(config_dir), *words]


def mlflow(words: Words, **_: Any) -> tuple[None, int]:
    """Log what MLflow does not have."""
    from fairall.tracking.logger import sync

    return None, sync(words)
