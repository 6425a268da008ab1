"""Output of `fairall tune report`: studies on the terminal, and what they select as files for `hparams=`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from omegaconf import OmegaConf

from fairall.config.choices import hyperparameters
from fairall.config.compose import compose_config, places
from fairall.config.words import refuse_places
from fairall.display.progress import say
from fairall.display.table import print_frame
from fairall.errors import FairAllError
from fairall.storage.files import write_text
from fairall.tuning.study import (
    OUTCOME,
    STORAGE,
    Study,
    address_in,
    line_of,
    load_studies,
    spreads,
    words_of,
)
from fairall.tuning.sweep import read

HEADER = "# @package _global_\n# Selected by the sweep "
PAPER = "the paper's selection"  # what `hyperparameters` is in its files of conf/hparams/


def report(names: Sequence[str], export: Path | None, words: Sequence[str]) -> None:
    """List all studies, show some, or export what they select.

    Args:
        names: of studies; without any they are listed.
        export: folder for `python -m fairall -cd FOLDER`, in which the selected hyperparameters are written.
        words: `outputs_dir=FOLDER`, or `hydra.sweeper.storage=ADDRESS` of another database.

    Raises:
        FairAllError: where a study does not exist, the database cannot be used, or nothing can be exported.
    """
    outputs = Path(places(words).outputs_dir)
    addresses = [word.removeprefix(STORAGE) for word in words if word.startswith(STORAGE)]
    studies = load_studies([address_in(outputs), *addresses][-1], names)
    if not studies:
        say(f"There are no studies in {outputs} yet: python -m fairall tune NAME begins one")
    for study in studies:
        say(f"{study.name}: {study.standing}")
        if export is not None:
            _export(study, export)
        elif names:
            _show(study)


def _show(study: Study) -> None:
    """Print failed trials, the Pareto set, and the selected trial; all trials where none is selected."""
    for trial in study.failed:
        say(f"Failed: {line_of(trial)}")
    marks, places = {}, [*range(len(study.finished))]
    if study.selected is not None:
        marks = {"selected": [study.selected], PAPER: _paper(study)}
        places = sorted({study.selected, *study.pareto_set, *marks[PAPER]})
    rows = []
    for place in places:
        trial = study.finished[place]
        outcome = trial.user_attrs[OUTCOME]
        mark = ", ".join(name for name, marked in marks.items() if place in marked)
        run = outcome.get("run", "").rpartition("/")[2]
        rows.append({"": mark, **trial.params, **spreads(outcome), "run": run})
    if rows:
        frame = pd.DataFrame(rows, places).rename(columns=lambda key: key.removeprefix("model."))
        title = f"Mean ± standard deviation over seeds; {study.settings['objective']}"
        print_frame(frame, title=title, first="point")
    say(study.selection)


def _export(study: Study, folder: Path) -> None:
    """Write selected hyperparameters, over those of conf/hparams/, and print the command that uses them."""
    if study.selected is None:
        raise FairAllError(f"{study.name} cannot be exported. {study.selection}")
    point, names = study.finished[study.selected].params, _names(study)
    refuse_places(words_of(point), f"the study {study.name}")
    node = OmegaConf.create(hyperparameters(**names))
    node.hyperparameters = f"selected by the sweep {study.name}"
    for key, value in point.items():
        if "." in key:
            OmegaConf.update(node, key, read(value))
        else:
            names[key] = value
    path = folder / "hparams" / f"{study.name}.yaml"
    if path.exists() and not path.read_text().startswith(HEADER):
        raise FairAllError(f"{path} exists and was not written by an export; choose another folder")
    write_text(path, f"{HEADER}{study.name}.\n# {study.selection}\n{OmegaConf.to_yaml(node)}")
    command = ["python", "-m", "fairall", "-cd", str(folder), *words_of(names), f"hparams={study.name}"]
    say(f"Written: {path}")
    say(f"Use it: {shlex.join(command)}")


def _names(study: Study) -> dict[str, str]:
    """Names of the method and the data set of a study, by group."""
    return {group: study.settings[f"{group}.name"] for group in ("model", "dataset")}


def _paper(study: Study) -> list[int]:
    """Places of finished trials that have the values of conf/hparams/, where those are the paper's."""
    names = _names(study)
    if hyperparameters(**names).get("hyperparameters") != PAPER:
        return []
    paper = compose_config(*words_of(names))
    return [
        place
        for place, trial in enumerate(study.finished)
        if all(read(value) == OmegaConf.select(paper, key) for key, value in trial.params.items())
    ]
