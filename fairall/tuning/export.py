"""Hyperparameters in files: those that a study selects, for `hparams=`, and those that the paper did."""

from __future__ import annotations

import shlex
from pathlib import Path

from omegaconf import OmegaConf

from fairall.config.choices import hyperparameters
from fairall.config.compose import compose_config
from fairall.config.words import refuse_places
from fairall.errors import FairAllError
from fairall.storage.files import write_text
from fairall.tuning.space import Point, words_of
from fairall.tuning.study import Study
from fairall.tuning.sweep import read

HEADER = "# @package _global_\n# Selected by the sweep "
PAPER = "the paper's selection"  # what `hyperparameters` is in its files of conf/hparams/


def write_hyperparameters(study: Study, folder: Path) -> tuple[Path, str]:
    """Write selected hyperparameters, over those of conf/hparams/, to `folder`/hparams/<study>.yaml.

    Args:
        study: with at least one finished point.
        folder: for `python -m fairall -cd FOLDER`.

    Returns:
        The file, and the command that uses it.

    Raises:
        FairAllError: if no point is finished, the study selects none, or the file exists and was not written
            by an export.
    """
    if reason := study.no_selection:
        raise FairAllError(f"{study.name} has no selected point to export: {reason}")
    chosen = study.selected
    if chosen is None:
        raise FairAllError(f"{study.name} has no finished point to export yet")
    point = study.point(chosen)
    refuse_places(words_of(point), f"the study {study.name}")
    names = {group: study.settings.get(f"{group}.name", point.get(group)) for group in ("model", "dataset")}
    node = OmegaConf.create(hyperparameters(str(names["model"]), str(names["dataset"])))
    node.hyperparameters = f"selected by the sweep {study.name}"
    for key, value in point.items():
        if "." in key:
            OmegaConf.update(node, key, read(value))
    values = ", ".join(f"{measure} {study.shown(chosen, measure)}" for measure in study.objectives)
    path = folder / "hparams" / f"{study.name}.yaml"
    if path.exists() and not path.read_text().startswith(HEADER):
        raise FairAllError(f"{path} exists and was not written by an export; choose another folder")
    try:
        header = f"{HEADER}{study.name}: point {chosen}, validation people:\n# {values}.\n"
        write_text(path, header + OmegaConf.to_yaml(node))
    except OSError as error:
        raise FairAllError(f"cannot write {path}: {error.strerror}; choose another folder") from error
    groups = {key: value for key, value in point.items() if "." not in key and key not in names}
    words = [f"{group}={name}" for group, name in names.items()] + words_of(groups)
    command = ["python", "-m", "fairall", "-cd", str(folder), *words, f"hparams={study.name}"]
    return path, shlex.join(command)


def paper_point(study: Study) -> int | None:
    """Number of the point that conf/hparams/ has for the method and data set of a study.

    Returns:
        None where those values are not the paper's, or not of a grid.
    """
    model, dataset = (str(study.settings.get(f"{group}.name")) for group in ("model", "dataset"))
    if hyperparameters(model, dataset).get("hyperparameters") != PAPER:
        return None
    composed = compose_config(f"model={model}", f"dataset={dataset}")
    point: Point = {}
    for key, values in (study.space.grid or {}).items():
        selected = OmegaConf.select(composed, key)
        same = [value for value in values if read(value) == selected]
        if not same:
            return None
        point[key] = same[0]
    return study.number(point) if point else None
