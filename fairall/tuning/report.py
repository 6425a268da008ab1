"""Output of `python -m fairall.tuning`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from fairall.config.compose import compose_config
from fairall.runtime.console import AnyConsole
from fairall.runtime.credentials import hidden
from fairall.tuning.export import export as write_hyperparameters
from fairall.tuning.importance import importances
from fairall.tuning.objectives import Objective, Trial, pareto_set, selected
from fairall.tuning.paper import paper_point, tried
from fairall.tuning.progress import mean_and_std, standing
from fairall.tuning.space import Point
from fairall.tuning.storage import storage_url
from fairall.tuning.study import SharedStudy, study_names

FAILURES = 5  # printed with their reason
STORAGE = "hydra.sweeper.storage="
FILE_WIDTH = 160  # columns of a table when the output is not a terminal


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
    return hidden(url), [(study.name, standing(study.trials(), study.target)) for study in studies]


def show(name: str, overrides: Sequence[str]) -> None:
    """Print progress, the selected trial, the Pareto set, failures and importances; draw a figure of them."""
    url, outputs = _place(overrides)
    study = SharedStudy.load(url, name)
    trials, complete = study.trials(), study.complete()
    _say(f"{name}: {standing(trials, study.target)}")
    _say(f"Objectives: {', '.join(map(str, study.objectives))}; mean ± standard deviation over seeds")
    failed = [trial for trial in trials if trial.state == "fail"]
    for trial in failed[:FAILURES]:
        _say(f"Failed: trial {trial.number}, {_spelt(trial.point)}: {trial.notes.get('reason')}")
    if len(failed) > FAILURES:
        _say(f"Failed: {len(failed) - FAILURES} more")
    if not complete:
        return
    of_paper = tried(study, paper_point(study))
    _print(_pareto_table(study, complete, of_paper))
    shares = {objective.measure: importances(study, objective) for objective in study.objectives}
    if any(shares.values()):
        _print(_importance_table(shares, study.objectives))
    from fairall.tuning.figures import draw_sweep  # imports matplotlib

    path = outputs / "sweeps" / f"{name}.png"
    number = None if of_paper is None else of_paper.number
    draw_sweep(complete, study.objectives, shares, path, title=f"{name}, validation people", paper=number)
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
        chosen = selected(study.complete(), study.objectives)
        point = paper_point(study)
        if chosen is None or not point:
            _say(
                f"{name}: nothing to compare, {'no finished trial' if point else 'no selection of the paper'}"
            )
            continue
        _print(_comparison(study, chosen, point))


def _comparison(study: SharedStudy, chosen: Trial, point: Point) -> Table:
    of_paper = tried(study, point)
    table = Table(title=f"{study.name}: {standing(study.trials(), study.target)}", title_justify="left")
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
    chosen = selected(trials, study.objectives)
    front = pareto_set(trials, study.objectives)
    shown_too = [one for one in trials if one == of_paper and one not in front]
    table = Table(title="Pareto set", title_justify="left")
    keys = [key.removeprefix("model.") for key in study.space.values]
    for column in ("trial", "", *keys, *(objective.measure for objective in study.objectives)):
        table.add_column(column, overflow="fold")
    first = study.objectives[0]
    for one in [*sorted(front, key=lambda trial: first.sign * trial.mean(first)), *shown_too]:
        marks = ["selected"] if chosen is one else []
        marks += ["the paper's"] if one == of_paper else []
        table.add_row(
            str(one.number),
            ", ".join(marks),
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
    AnyConsole(highlight=False, soft_wrap=True).print(text, markup=False)


def _print(table: Table) -> None:
    AnyConsole(highlight=False, width=None if sys.stdout.isatty() else FILE_WIDTH).print(table)
