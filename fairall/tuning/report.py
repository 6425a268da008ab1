"""Output of `fairall tune report`: studies on the terminal, and what they select as files for `hparams=`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from omegaconf import OmegaConf

from fairall.config.choices import hyperparameters
from fairall.config.compose import compose_config, places
from fairall.config.words import refuse_places
from fairall.display.console import say
from fairall.display.table import print_frame
from fairall.errors import FairAllError
from fairall.storage.files import write_text
from fairall.tuning.study import OUTCOME, Study, address_in, line_of, spreads, study_names, words_of
from fairall.tuning.sweep import read

FAILURES = 5  # printed with their reason
ENOUGH = 4  # finished trials, below which nothing can be said of importances
HEADER = "# @package _global_\n# Selected by the sweep "
PAPER = "the paper's selection"  # what `hyperparameters` is in its files of conf/hparams/
MARKS = ("Pareto set", "selected", PAPER)
STORAGE = "hydra.sweeper.storage="


def report(names: Sequence[str], export: Path | None, words: Sequence[str]) -> None:
    """List the studies, show one, compare what several select with the paper's selection, or export that.

    Args:
        names: of studies; without any they are listed.
        export: folder for `python -m fairall -cd FOLDER`, in which the selected hyperparameters are written.
        words: `outputs_dir=FOLDER`, or `hydra.sweeper.storage=ADDRESS` of another database.

    Raises:
        FairAllError: where a study does not exist, the database cannot be used, or nothing can be exported.
    """
    outputs = Path(places(words).outputs_dir)
    addresses = [word.removeprefix(STORAGE) for word in words if word.startswith(STORAGE)]
    address = [address_in(outputs), *addresses][-1]
    studies = [Study.load(name, address) for name in names or study_names(address)]
    if not studies:
        say(f"There are no studies in {outputs} yet: python -m fairall tune NAME begins one")
    for study in studies:
        say(f"{study.name}: {study.standing}")
        if export is not None:
            _export(study, export)
        elif names:
            for trial in study.failed[:FAILURES]:
                say(f"Failed: {line_of(trial)}")
            if study.finished:
                _show(study, outputs / "sweeps" / f"{study.name}.png" if len(names) == 1 else None)
            say(study.selection)


def _show(study: Study, figure: Path | None) -> None:
    """Print the selected trial and the paper's, or all trials of a study that selects none.

    Args:
        study: with at least one finished trial.
        figure: PNG to draw, beside which the Pareto set and importances are printed too; or None.
    """
    groups = {"finished": [*range(len(study.finished))]}
    shown, paper = groups["finished"], {}
    if study.selected is not None:
        paper = paper_point(study)
        groups["Pareto set"] = study.pareto_set if figure else []
        groups["selected"] = [study.selected]
        groups[PAPER] = [place for place, trial in enumerate(study.finished) if trial.params == paper]
        shown = [*dict.fromkeys(place for name in MARKS for place in groups[name])]
    rows = []
    for place in shown:
        trial = study.finished[place]
        outcome = trial.user_attrs[OUTCOME]
        marks = ", ".join(name for name in MARKS[1:] if place in groups.get(name, []))
        values = {key.removeprefix("model."): str(value) for key, value in trial.params.items()}
        run = outcome.get("run", "").rpartition("/")[2]
        rows.append({"point": place, "": marks, **values, **spreads(outcome), "run": run})
    title = f"Mean ± standard deviation over seeds; {study.settings['objective']}"
    print_frame(pd.DataFrame(rows).set_index("point"), title=title, first="point")
    if paper and not groups.get(PAPER):
        say(f"Not tried: {PAPER}, {' '.join(words_of(paper))}")
    if figure is not None:
        from fairall.tuning.figures import draw_study  # imports matplotlib

        if study.selected is not None and len(study.finished) >= ENOUGH:
            print_frame(importances(study).map("{:.2f}".format), title="Importance of parameters")
        draw_study(study, groups, figure)
        say(f"Figure: {figure}")


def _export(study: Study, folder: Path) -> None:
    """Write selected hyperparameters, over those of conf/hparams/, and print the command that uses them."""
    if study.selected is None:
        raise FairAllError(f"{study.name} cannot be exported. {study.selection}")
    point, names = study.finished[study.selected].params, names_of(study)
    refuse_places(words_of(point), f"the study {study.name}")
    node = OmegaConf.create(hyperparameters(**names))
    node.hyperparameters = f"selected by the sweep {study.name}"
    for key, value in point.items():
        if "." in key:
            OmegaConf.update(node, key, read(value))
    path = folder / "hparams" / f"{study.name}.yaml"
    if path.exists() and not path.read_text().startswith(HEADER):
        raise FairAllError(f"{path} exists and was not written by an export; choose another folder")
    write_text(path, f"{HEADER}{study.name}.\n# {study.selection}\n{OmegaConf.to_yaml(node)}")
    chosen = names | {key: value for key, value in point.items() if "." not in key}
    command = ["python", "-m", "fairall", "-cd", str(folder), *words_of(chosen), f"hparams={study.name}"]
    say(f"Written: {path}")
    say(f"Use it: {shlex.join(command)}")


def names_of(study: Study) -> dict[str, str]:
    """Names of the method and the data set of a study, by group."""
    return {group: study.settings[f"{group}.name"] for group in ("model", "dataset")}


def paper_point(study: Study) -> dict[str, Any]:
    """The values that conf/hparams/ has for the keys of a study, by key.

    Returns:
        Empty where those are not the paper's, or not among the values to try.
    """
    names = names_of(study)
    if hyperparameters(**names).get("hyperparameters") != PAPER:
        return {}
    composed = compose_config(*words_of(names))
    point = {
        key: value
        for key, distribution in study.space.items()
        for value in getattr(distribution, "choices", ())
        if read(value) == OmegaConf.select(composed, key)
    }
    return point if len(point) == len(study.space) else {}


def importances(study: Study) -> pd.DataFrame:
    """Mean decrease of impurity by hyperparameter in a random forest that predicts an objective.

    Returns:
        A row per hyperparameter, a column per objective.
    """
    from optuna.importance import MeanDecreaseImpurityImportanceEvaluator

    evaluator, finished = MeanDecreaseImpurityImportanceEvaluator(seed=0), study.in_memory()
    targets = {measure: lambda trial, i=i: trial.values[i] for i, measure in enumerate(study.objectives)}
    return pd.DataFrame({name: evaluator.evaluate(finished, target=of) for name, of in targets.items()})
