"""Compose configurations and load data sets from Python."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig, OmegaConf
from yaml import MarkedYAMLError

from fairall.config.model_node import with_typed_model
from fairall.config.overrides import override
from fairall.config.paths import configuration_root, sweeps_folder
from fairall.config.schema import Config, DatasetConfig, register_schemas, register_sweeps
from fairall.errors import FairAllError

if TYPE_CHECKING:
    from fairall.data.dataset import Dataset


def searched_folder(folder: Path) -> str:
    """The override by which files of `folder` are found, after those of conf/, as with `-cd FOLDER`."""
    return override("hydra.searchpath", [f"file://{folder.absolute()}"])


def compose_config(*overrides: str) -> DictConfig:
    """The configuration of the command line `python -m fairall *overrides`, unresolved and unchecked.

    Raises:
        hydra.errors.HydraException: where there is no such key, choice or value.
    """
    (composed,) = compose_all([overrides])
    return composed


def compose_all(commands: Iterable[Sequence[str]]) -> list[DictConfig]:
    """The same for many command lines, for half the time that they would take one by one.

    Raises:
        hydra.errors.HydraException: where there is no such key, choice or value.
        FairAllError: where a file is no YAML.
    """
    register_schemas()
    register_sweeps(sweeps_folder())
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(configuration_root() / "conf"), version_base="1.3"):
        try:
            return [compose("config", overrides=list(overrides)) for overrides in commands]
        except MarkedYAMLError as error:  # a file of the user's; Hydra passes it on
            raise FairAllError(_broken_file(error)) from error


def _broken_file(error: MarkedYAMLError) -> str:
    place = error.problem_mark
    where = f"{place.name}, line {place.line + 1}" if place else "a file"
    return f"{where}: cannot be read as YAML: {error.problem}"


def typed_config(*overrides: str) -> Config:
    """The same as dataclasses; raises for a key without a value too, and as `with_typed_model`."""
    return cast(Config, OmegaConf.to_object(with_typed_model(compose_config(*overrides))))


def dataset_config(name: str, *overrides: str) -> DatasetConfig:
    """The `dataset` node of a data set; see `load_dataset`."""
    return checked_dataset(compose_config(f"dataset={name}", *overrides))


def checked_dataset(composed: DictConfig) -> DatasetConfig:
    """The `dataset` node of a configuration; raises as `load_dataset`."""
    from fairall.config.validation import refuse_not_finite, refuse_unknown, refuse_untyped, validate_dataset

    refuse_untyped(composed.dataset, "dataset")
    refuse_unknown(composed.dataset, "dataset.")
    config = cast(DatasetConfig, OmegaConf.to_object(composed.dataset))
    refuse_not_finite(OmegaConf.to_container(composed.dataset), "dataset")
    validate_dataset(config)
    return config


def load_dataset(name: str, *overrides: str) -> Dataset:
    """A data set by the name of its file in conf/dataset/, for instance `load_dataset("compas").table()`.

    Args:
        name: credit, synthetic, compas, meps, csv or one of your own.
        overrides: further words as on the command line, for instance `dataset.path=loans.csv`.

    Raises:
        FairAllError: where the configuration asks for something impossible.
    """
    from fairall.data.dataset import dataset

    return dataset(dataset_config(name, *overrides))
