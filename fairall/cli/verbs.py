"""The verbs: each calls a function of a room, which it imports when it is called.

A verb takes the arguments of its parser by name, and leaves out those that it does not need. It returns the
document of --json, None without one, or that and the exit code.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairall.config.choices import choices, description, settings
from fairall.errors import FairAllError
from fairall.storage.stored import Plain

if TYPE_CHECKING:
    from fairall.config.schema import Config

Words = Sequence[str]
# How words begin that change no result.
PLACES = ("outputs_dir=", "tracking.", "hydra.sweeper.storage=")
SQLITE = b"SQLite format 3\0"  # how the file of a ledger begins
# What `list` has, by the word that picks it: groups, and runs.
LISTS = {
    "models": "model",
    "datasets": "dataset",
    "initial_policies": "initial_policy",
    "fairness": "fairness",
    "explorations": "exploration",
    "worlds": "world",
    "costs": "cost",
    "protocols": "protocol",
    "presets": "preset",
    "sweeps": "sweeps",
}


def show_list(names: Words, words: Words, config_dir: Path | None, **_: Any) -> Plain:
    """Print choices and runs, a line each; of data sets by their name also where each is."""
    groups, config, document = choices(config_dir), places(words), Plain()
    for name in names or [*LISTS, "runs"]:
        if name == "runs":
            document[name] = _runs(Path(config.outputs_dir, "runs"))
            continue
        if name not in LISTS:
            raise FairAllError(f"list {name}: no such list; there are {', '.join(LISTS)}, runs")
        group = LISTS[name]
        document[name] = {choice: description(path) for choice, path in groups[group].items()}
        if names == ["datasets"]:
            from fairall.data.describe import list_known

            list_known(words, config_dir)
        else:
            lines = (f"  {choice:<24}{text}" for choice, text in document[name].items())
            print(f"{group}=", *lines, "", sep="\n")
    return document


def _runs(folder: Path) -> list[Plain]:
    """Print the runs in a folder, the newest last."""
    from fairall.results.runs import MEASURES, outlines

    runs = outlines(folder)
    if not runs:
        print(f"no runs in {folder} yet; python -m fairall preset=quick makes one in seconds")
    else:
        import pandas as pd

        from fairall.display.format import mean_std
        from fairall.display.table import print_frame

        frame = pd.DataFrame(runs)
        for name in MEASURES:
            frame[name] = [mean_std(*run["measures"].get(name, (None, None)), digits=2) for run in runs]
        columns = ["method", "dataset", "state", *MEASURES, "command", "reason"]
        title = f"runs in {folder} (×100, mean ± standard deviation over seeds)"
        print_frame(frame.set_index("id")[columns], title=title, first="id")
    return runs


def show(run: str, words: Words, **_: Any) -> Plain:
    """Print what a run has left, or how far it has come."""
    from fairall.display.progress import Display
    from fairall.experiment import show_result
    from fairall.online.training import progress_of
    from fairall.results.runs import load_result, run_folder
    from fairall.storage.checkpoint import Checkpoint
    from fairall.storage.files import holder
    from fairall.storage.run_folder import CHECKPOINT, Origin, RunFolder

    folder = RunFolder(run_folder(run, Path(places(words).outputs_dir, "runs")))
    path, config = folder.path, folder.read_config()
    document: Plain = {"id": path.name, "path": str(path), "command": Origin.read(path).command}
    if config is None or folder.done:
        result = load_result(path)
        show_result(result, Display())
        document |= {"state": "finished", "notes": result.notes}
        return (
            tell(document) | {"title": result.title, "config": result.config.to_plain()} | result.to_plain()
        )
    checkpoint = Checkpoint(path / CHECKPOINT, path.name, seconds=0.0, log=print)
    saved, running = checkpoint.load(), holder(path.with_suffix(".lock"))
    epochs, steps = progress_of(saved)
    document |= {"state": "interrupted" if running is None else "running", "process": running}
    return tell(document | {"warm_up_epochs": epochs, "time_steps": steps}) | {"config": config.to_plain()}


def page(title: str, words: Words, out: Path | None, names: Words = (), **_: Any) -> None:
    """Write a page about some runs, a `comparison` or a `frontier`, to its folder, and print its tables."""
    from fairall.config.compose import places as places_among
    from fairall.display.format import own_name
    from fairall.display.progress import Display
    from fairall.display.table import print_table
    from fairall.report.comparison import chosen_runs, compare, place
    from fairall.report.frontier import frontier, points

    if title == "frontier":
        outputs, runs, write = places_among(words).outputs_dir, points(words, Display()), frontier
    else:
        outputs, write = places(words).outputs_dir, compare
        runs = chosen_runs(names, Path(outputs, "runs"))
    preset = next(iter(runs.values())).config.preset
    folder = place(out, Path(outputs, own_name(title, preset)), runs)
    for table in write(runs, folder):
        print_table(table)
    print(f"{title.capitalize()}: {folder / 'index.html'}")


def decide(
    run: str,
    people: str,
    out: Path,
    words: Words,
    trust: Words,
    policy: str,
    threshold: float | None,
    draw: int | None,
    capacity: int | float | None,
    equal_rates: bool,
    wording: str | None,
    strict: bool,
    explain: int | None,
    typed: str,
    **options: Any,
) -> Plain:
    """Decide on the people of a table, or explain the decision on one of them."""
    from fairall.config.compose import places
    from fairall.decide.deciding import decide, people_file, show
    from fairall.decide.equal_rates import bound_of_policy
    from fairall.decide.explain import explain as explained
    from fairall.decide.explain import write_explanation
    from fairall.decide.load import find_policy
    from fairall.decide.reasons import read_wording
    from fairall.decide.rules import Rule
    from fairall.runtime.process import use_threads

    table = people_file(Path(people), words)
    loaded, name = find_policy(run, places(words), trust)
    use_threads(None)
    if explain is None:
        bound = bound_of_policy(loaded) if equal_rates else None
        rule = Rule(loaded.threshold if threshold is None else threshold, draw, capacity, bound)
        groups, about = decide(
            loaded,
            table,
            out,
            rule,
            which=policy,
            strict=strict,
            wording=read_wording(wording),
            **options,
        )
        show(groups, about, name)
        print(f"Decisions: {out}")
        return {"run": name, **about, "groups": groups.to_dict("index"), "decisions": str(out)}
    explanation = explained(loaded, table.frame, explain - 1, by=policy, strict=strict)
    write_explanation(explanation, out)
    explanation.show()
    print(f"Explanation: {out}")
    return {"run": name, **explanation.to_plain(), "explanation": str(out)}


def evaluate(
    log: str, words: Words, policy: Words, monitor: str | None, trust: Words, **options: Any
) -> tuple[Any, int]:
    """Judge the decisions of a log, a policy, or the difference of two."""
    from fairall.evaluate.command import evaluate_log

    if len(policy) > 2:
        raise FairAllError("--policy: one is judged, two are compared; more than two cannot be")
    path, frame, possible, of_places = (
        Path(log),
        None,
        [],
        [word for word in words if word.startswith(PLACES)],
    )
    words, config = [word for word in words if word not in of_places], places(of_places)
    with path.open("rb") if path.is_file() else io.BytesIO() as file:
        is_ledger = "://" in log or file.read(16) == SQLITE
    if is_ledger:
        from fairall.live.ledger import Ledger

        ledger = Ledger(log, modules=trust)
        rows = ledger.log()
        log, frame, possible = ledger.store.name, rows.frame, rows.possible
        words = [*rows.words(with_times=bool(monitor)), *words]
    shown = evaluate_log(
        log,
        words,
        frame=frame,
        possible=possible,
        policies=[None if name == "decision" else name for name in policy] or [None],
        time=monitor,
        outputs_dir=config.outputs_dir,
        tracking_uri=config.tracking.uri,
        trust=trust,
        **options,
    )
    if shown.failure is not None:
        print(shown.failure, file=sys.stderr)
    return shown.content, int(shown.failure is not None)


def places(words: Words) -> Config:
    """The places of outputs and of MLflow of a command line whose KEY=VALUE say no more than these.

    Raises:
        FairAllError: where one says something else.
    """
    from fairall.config.schema import Config

    if not words:
        return Config.of_places(settings()["outputs_dir"])
    from fairall.config.compose import places

    return places(only_places(words))


def only_places(words: Words) -> Words:
    """The words, which say where outputs, MLflow and studies are; raises FairAllError for any other."""
    for word in words:
        if not word.startswith(PLACES):
            raise FairAllError(f"{word}: not possible here; outputs_dir=FOLDER says where runs are")
    return words


def tell(document: Plain) -> Plain:
    """Print a document as YAML, with numbers of four decimals, and return it."""
    import yaml

    from fairall.storage.stored import strict

    rounded = json.loads(json.dumps(strict(document)), parse_float=lambda digits: round(float(digits), 4))
    print(yaml.safe_dump(rounded, sort_keys=False, allow_unicode=True, width=1000), end="")
    return document


def tune_report(names: Words, export: Path | None, words: Words, **_: Any) -> None:
    """List, show, compare or export studies."""
    from fairall.tuning.report import report

    report(names, export, only_places(words))


def data(how: str, words: Words, trust: Words, typed: str, **options: Any) -> tuple[None, int]:
    """Fetch the raw file of a data set, describe one or a file, or compare two files, as `how` says."""
    from fairall.data import describe

    return None, int(getattr(describe, how)(overrides=words, **options) is False)


def mlflow(words: Words, **_: Any) -> tuple[None, int]:
    """Log what MLflow does not have."""
    from fairall.tracking.logger import sync

    return None, sync(only_places(words))
