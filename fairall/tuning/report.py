"""Output of `python -m fairall.tuning`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.table import Table

from fairall.config.compose import compose_config
from fairall.results.interpretable import marked
from fairall.runtime.console import AnyConsole
from fairall.runtime.credentials import hidden
from fairall.tuning.export import export as write_hyperparameters
from fairall.tuning.importance import importances
from fairall.tuning.objectives import Objective, Trial, pareto_set
from fairall.tuning.paper import paper_point, tried
from fairall.tuning.progress import NOTHING, mean_and_std, standing
from fairall.tuning.space import Point
from fairall.tuning.storage import storage_url
from fairall.tuning.study import SharedStudy, study_names

FAILURES = 5  # printed with their reason
STORAGE = "hydra.sweeper.storage="


def listed(overrides: Sequence[str]) -> None:
    """Print every study and its progress."""
    place, found = standings(overrides)
    if not found:
        _say(f"There are no studies in {place} yet: python -m fairall --multirun sweeps=NAME")
    for name, progress in found:
        _say(f"{name}: {progress}")


def standings(overrides: Sequence[str]) -> tuple[str, list[tuple[str, str]]]:
    """The database of the studies as shown, and the name and progress of each."""
    url, _ = _place(overrides)
    studies = [SharedStudy.load(url, name) for name in study_names(url)]
    return hidden(url), [(study.name, standing(study, study.target)) for study in studies]


def show(name: str, overrides: Sequence[str]) -> None:
    """Print progress, the selected trial, the Pareto set, failures and importances; draw a figure of them.

    Of a study that selects none, print all finished trials, and draw them.
    """
    url, outputs = _place(overrides)
    study = SharedStudy.load(url, name)
    complete = study.complete()
    _say(f"{name}: {standing(study, study.target)}")
    _say(f"Objectives: {', '.join(map(str, study.objectives))}; mean ± standard deviation over seeds")
    failed = [trial for trial in study.trials() if trial.state == "fail"]
    for trial in failed[:FAILURES]:
        _say(f"Failed: trial {trial.number}, {_spelt(trial.point)}: {trial.notes.get('reason')}")
    if len(failed) > FAILURES:
        _say(f"Failed: {len(failed) - FAILURES} more")
    if not complete:
        return
    from fairall.tuning.figures import draw_sweep, draw_trials  # imports matplotlib

    path = outputs / "sweeps" / f"{name}.png"
    title = marked(f"{name}, validation people", study.settings)
    if reason := study.no_selection:
        _print(_table("Trials", study, complete, {}))
        draw_trials(complete, study.objectives, path, title=title)
        _say(f"Figure: {path}")
        _say(NOTHING.format(reason))
        return
    of_paper = tried(study, paper_point(study))
    _print(_pareto_table(study, complete, of_paper))
    shares = {objective.measure: importances(study, objective) for objective in study.objectives}
    if any(shares.values()):
        _print(_importance_table(shares, study.objectives))
    number = None if of_paper is None else of_paper.number
    draw_sweep(complete, study.objectives, shares, path, title=title, paper=number)
    _say(f"Figure: {path}")
    _say("Use what is selected: " + " ".join(["python -m fairall.tuning export", name, "FOLDER", *overrides]))


def export(name: str, folder: str, overrides: Sequence[str]) -> None:
    """Write the selected hyperparameters as a file."""
    url, _ = _place(overrides)
    path, command = write_hyperparameters(SharedStudy.load(url, name), Path(folder))
    _say(f"Written: {path}")
    _say(f"Use it: {command}")


def compare(names: Sequence[str], overrides: Sequence[str]) -> None:
    """Print the selected trial beside the paper's for each study that has both."""
    url, _ = _place(overrides)
    for name in names or study_names(url):
        study = SharedStudy.load(url, name)
        chosen, point = study.selected(), paper_point(study)
        if chosen is None or not point:
            lacking = "no finished trial" if point else "no selection of the paper"
            _say(f"{name}: nothing to compare, {study.no_selection or lacking}")
            continue
        _print(_comparison(study, chosen, point))


def _comparison(study: SharedStudy, chosen: Trial, point: Point) -> Table:
    of_paper = tried(study, point)
    table = Table(title=f"{study.name}: {standing(study, study.target)}", title_justify="left")
    for column in ("", "ours", "the paper's"):
        table.add_column(column)
    for key in study.space.values:
        table.add_row(key, str(chosen.point[key]), str(point[key]))
    for objective in study.objectives:
        theirs = "not tried" if of_paper is None else mean_and_std(of_paper, objective)
        table.add_row(str(objective), mean_and_std(chosen, objective), theirs)
    if of_paper is not None:
        table.caption = _verdict(chosen, of_paper, study.objectives)
        table.caption_justify = "left"
    return table


def _verdict(ours: Trial, theirs: Trial, objectives: Sequence[Objective]) -> str:
    """Which of two trials has the better mean, objective by objective."""
    if ours.number == theirs.number:
        return "The same point."
    better = [o.measure for o in objectives if o.sign * ours.mean(o) < o.sign * theirs.mean(o)]
    worse = [o.measure for o in objectives if o.sign * ours.mean(o) > o.sign * theirs.mean(o)]
    if not worse:
        return f"Ours is better in {' and '.join(better)}." if better else "Both are equally good."
    within = all(
        o.sign * (ours.mean(o) - theirs.mean(o)) <= theirs.standard_error(o)
        for o in objectives
        if o.measure in worse
    )
    verdict = f"better in {' and '.join(better)}, worse in {' and '.join(worse)}"
    return f"Ours is {verdict}" + (", by less than a standard error of the paper's." if within else ".")


def _pareto_table(study: SharedStudy, trials: Sequence[Trial], of_paper: Trial | None) -> Table:
    chosen = study.selected()
    front = pareto_set(trials, study.objectives)
    first = study.objectives[0]
    rows = sorted(front, key=lambda trial: first.sign * trial.mean(first))
    rows += [one for one in trials if one == of_paper and one not in front]
    marks = {one.number: "the paper's" for one in rows if one == of_paper}
    if chosen is not None:
        marks[chosen.number] = ", ".join(filter(None, ["selected", marks.get(chosen.number)]))
    return _table("Pareto set", study, rows, marks)


def _table(title: str, study: SharedStudy, trials: Sequence[Trial], marks: Mapping[int, str]) -> Table:
    """A row per trial; `marks` by number."""
    table = Table(title=title, title_justify="left")
    keys = [key.removeprefix("model.") for key in study.space.values]
    measures = [objective.measure for objective in study.objectives]
    for column in ("trial", *([""] if marks else []), *keys, *measures):
        table.add_column(column, overflow="fold")
    for one in trials:
        table.add_row(
            str(one.number),
            *([marks.get(one.number, "")] if marks else []),
            *(str(value) for value in one.point.values()),
            *(mean_and_std(one, objective) for objective in study.objectives),
        )
    return table


def _importance_table(shares: dict[str, dict[str, float]], objectives: Sequence[Objective]) -> Table:
    table = Table(title="Importance of parameters", title_justify="left")
    for column in ("", *(objective.measure for objective in objectives)):
        table.add_column(column)
    for key in next(known for known in shares.values() if known):
        row = (shares[objective.measure].get(key) for objective in objectives)
        table.add_row(key, *("" if share is None else f"{share:.2f}" for share in row))
    return table


def _place(words: Sequence[str]) -> tuple[str, Path]:
    """The database of the studies, and the folder of outputs."""
    given = [word.removeprefix(STORAGE) for word in words if word.startswith(STORAGE)]
    composed = compose_config(*(word for word in words if not word.startswith(STORAGE)))
    return storage_url(given[-1] if given else None, composed.outputs_dir), Path(composed.outputs_dir)


def _spelt(point: Point) -> str:
    return " ".join(f"{key}={value}" for key, value in point.items())


def _say(text: str) -> None:
    AnyConsole().print(text, soft_wrap=True)


def _print(table: Table) -> None:
    AnyConsole().print_table(table)
