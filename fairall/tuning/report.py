"""Output of `fairall tune report`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from fairall.config.compose import places
from fairall.display.console import say
from fairall.display.format import marked
from fairall.display.table import print_frame
from fairall.errors import FairAllError
from fairall.tuning.export import paper_point, write_hyperparameters
from fairall.tuning.objectives import pareto_set
from fairall.tuning.space import Range
from fairall.tuning.study import Study, progress_of_studies
from fairall.tuning.sweep import NOTHING

FAILURES = 5  # printed with their reason
ENOUGH = 4  # finished points, below which nothing can be said of importances
TREES = 64


def report(names: Sequence[str], export: Path | None, overrides: Sequence[str]) -> None:
    """Print every study without a name, one study, or what several select beside the paper's selections.

    Args:
        names: of studies.
        export: folder to write what one study selects to, instead of printing it; None: it is printed.
        overrides: words of the command line about `outputs_dir` and `tracking`.

    Raises:
        FairAllError: where there is no such study, or `export` is given and `names` is not one.
    """
    if export is not None:
        if len(names) != 1:
            raise FairAllError("--export FOLDER: it is of one study; give its NAME, see `tune report`")
        write_selected(names[0], export, overrides)
    elif len(names) == 1:
        show(names[0], overrides)
    elif names:
        compare(names, overrides)
    else:
        listed(overrides)


def listed(overrides: Sequence[str]) -> None:
    """Print every study and its progress."""
    outputs = _outputs(overrides)
    if not (found := progress_of_studies(outputs)):
        say(f"There are no studies in {outputs / 'sweeps'} yet: python -m fairall --multirun sweeps=NAME")
    for name, progress in found.items():
        say(f"{name}: {progress}")


def show(name: str, overrides: Sequence[str]) -> None:
    """Print progress, the selected point, the Pareto set, failures and importances; draw a figure of them.

    Of a study that selects none, print all finished points, and draw them.
    """
    outputs = _outputs(overrides)
    study = Study.load(name, outputs)
    say(f"{name}: {study.standing}")
    say(f"Objectives: {', '.join(study.headings.values())}; mean ± standard deviation over seeds")
    failed = list(study.failed)
    for number in failed[:FAILURES]:
        say(f"Failed: {study.line(number, study.failed[number])}")
    if len(failed) > FAILURES:
        say(f"Failed: {len(failed) - FAILURES} more")
    if not study.finished:
        return
    from fairall.tuning.figures import draw_study  # imports matplotlib

    title = marked(f"{name}, validation people", study.settings.get("preset"))
    path = outputs / "sweeps" / f"{name}.png"
    of_paper = None if study.no_selection else paper_point(study)
    shares = {}
    if study.no_selection:
        _print_points("Points", study, study.finished, {})
    else:
        # The Pareto set and the paper's point, the best in the first objective first.
        front = pareto_set(study.costs).sort_values(study.costs.columns[0], kind="stable").index.tolist()
        marks: dict[int, str] = {}
        for mark, chosen in (("selected", study.selected), ("the paper's", of_paper)):
            if chosen is not None and chosen in study.means.index:
                marks[chosen] = f"{marks[chosen]}, {mark}" if chosen in marks else mark
        numbers = [*front, *(number for number in marks if number not in front)]
        _print_points("Pareto set", study, numbers, marks)
        shares = {measure: known for measure in study.objectives if (known := importances(study, measure))}
        if shares:
            frame = pd.DataFrame(shares).reindex([*next(iter(shares.values()))])
            print_frame(frame.map("{:.2f}".format), title="Importance of parameters")
    draw_study(study, shares, path, title=title, paper=of_paper)
    say(f"Figure: {path}")
    if reason := study.no_selection:
        say(NOTHING.format(reason))
    else:
        words = ["python -m fairall tune report", name, "--export FOLDER", *overrides]
        say("Use what is selected: " + " ".join(words))


def write_selected(name: str, folder: Path, overrides: Sequence[str]) -> None:
    """Write the selected hyperparameters as a file."""
    path, command = write_hyperparameters(Study.load(name, _outputs(overrides)), folder)
    say(f"Written: {path}")
    say(f"Use it: {command}")


def compare(names: Sequence[str], overrides: Sequence[str]) -> None:
    """Print the selected point beside the paper's for each study that has both."""
    outputs = _outputs(overrides)
    for name in names:
        study = Study.load(name, outputs)
        chosen, of_paper = study.selected, paper_point(study)
        if chosen is None or of_paper is None:
            lacking = "no selection of the paper" if of_paper is None else "no finished point"
            say(f"{name}: nothing to compare, {study.no_selection or lacking}")
        else:
            points = [study.point(number) for number in (chosen, of_paper)]
            rows = {key: [str(point[key]) for point in points] for key in study.space.values}
            for measure, heading in study.headings.items():
                tried = of_paper in study.means.index
                printed = study.shown(of_paper, measure) if tried else "not tried"
                rows[heading] = [study.shown(chosen, measure), printed]
            frame = pd.DataFrame.from_dict(rows, orient="index", columns=["ours", "the paper's"])
            print_frame(frame, title=f"{study.name}: {study.standing}")


def _print_points(title: str, study: Study, numbers: Iterable[int], marks: Mapping[int, str]) -> None:
    """A row per point, with its run."""
    rows = {
        number: {
            "": marks.get(number, ""),
            **{key.removeprefix("model."): str(value) for key, value in study.point(number).items()},
            **{measure: study.shown(number, measure) for measure in study.objectives},
            "run": study.outcomes[number].get("run", "").rpartition("/")[2],
        }
        for number in numbers
    }
    print_frame(pd.DataFrame.from_dict(rows, orient="index"), title=title, first="point")


def _outputs(overrides: Sequence[str]) -> Path:
    return Path(places(overrides).outputs_dir)


def importances(study: Study, measure: str) -> dict[str, float]:
    """Mean decrease of impurity by hyperparameter in a random forest that predicts the objective.

    It is what Optuna's `MeanDecreaseImpurityImportanceEvaluator` computes: a number is a feature of the
    forest, a choice has an indicator for each value.

    Returns:
        The most important first, with sum 1; empty for too few finished points, or where all have one value.
    """
    from sklearn.ensemble import RandomForestRegressor  # slow

    means = study.means[measure]
    if len(means) < ENOUGH or means.nunique() == 1:
        return {}
    points = [study.point(number) for number in means.index]
    features = {}  # of the forest, by hyperparameter, shape (points, features)
    for key, of in sorted(study.space.values.items()):
        taken = [point[key] for point in points]
        if isinstance(of, Range):
            features[key] = np.array(taken, dtype=float)[:, np.newaxis]
        else:
            features[key] = np.eye(len(of))[[of.index(value) for value in taken]]
    forest = RandomForestRegressor(n_estimators=TREES, random_state=0)
    forest.fit(np.column_stack(list(features.values())), means)
    ends = np.cumsum([own.shape[1] for own in features.values()])[:-1]
    shares = [float(own.sum()) for own in np.split(forest.feature_importances_, ends)]
    return {key: share for share, key in sorted(zip(shares, features, strict=True), reverse=True)}
