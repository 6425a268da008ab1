"""Export of a selected trial as a file of hyperparameters for `hparams=`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from fairall.config.sources import hyperparameters
from fairall.errors import FairAllError
from fairall.storage.files import atomic
from fairall.tuning.progress import mean_and_std
from fairall.tuning.space import words_of
from fairall.tuning.study import SharedStudy

HEADER = "# @package _global_\n# Selected by the sweep "


def export(study: SharedStudy, folder: Path) -> tuple[Path, str]:
    """Write selected hyperparameters, over those of conf/hparams/, to `folder`/hparams/<study>.yaml.

    Args:
        study: with at least one finished trial.
        folder: for `python -m fairall -cd FOLDER`.

    Returns:
        The file, and the command that uses it.

    Raises:
        FairAllError: if no trial is finished, the study selects none, or the file exists and was not written
            by an export.
    """
    if reason := study.no_selection:
        raise FairAllError(f"{study.name} has no selected trial to export: {reason}")
    chosen = study.selected()
    if chosen is None:
        raise FairAllError(f"{study.name} has no finished trial to export yet")
    point = chosen.point
    names = {group: study.settings.get(f"{group}.name", point.get(group)) for group in ("model", "dataset")}
    node = OmegaConf.create(hyperparameters(str(names["model"]), str(names["dataset"])))
    node.hyperparameters = f"selected by the sweep {study.name}"
    for key, value in point.items():
        if "." in key:
            OmegaConf.update(node, key, _read(value))
    values = ", ".join(f"{one.measure} {mean_and_std(chosen, one)}" for one in study.objectives)
    header = f"{HEADER}{study.name}: trial {chosen.number}, validation people:\n# {values}.\n"
    text = header + OmegaConf.to_yaml(node)
    path = folder / "hparams" / f"{study.name}.yaml"
    if path.exists() and not path.read_text().startswith(HEADER):
        raise FairAllError(f"{path} exists and was not written by an export; choose another folder")
    try:
        with atomic(path) as temporary:
            temporary.write_text(text)
    except OSError as error:
        raise FairAllError(f"cannot write {path}: {error.strerror}; choose another folder") from error
    groups = {key: value for key, value in point.items() if "." not in key and key not in names}
    words = ["python", "-m", "fairall", "-cd", str(folder), *words_of({**names, **groups})]
    return path, shlex.join([*words, f"hparams={study.name}"])


def _read(value: Any) -> Any:
    return OmegaConf.create(f"value: {value}").value if isinstance(value, str) else value
