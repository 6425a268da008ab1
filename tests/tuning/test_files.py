"""The files of sweeps/ against the paper's tables."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf

from fairall.config.choices import configuration_root
from fairall.tuning.sweep import described, read, search_space
from tests.tuning.composed import composed

GRIDS = yaml.safe_load((Path(__file__).parent / "paper_grids.yaml").read_text())["hyperparameter_grids"]
# By name of the study: words of the command line, and the row of the table for each of our keys.
CLASSIFIER = {
    "model.learning_rate": "unfairlog.learning_rate",
    "model.clf_arch": "unfairlog.clf_arch",
    "model.clf_dropout": "unfairlog.clf_dropout",
}
PHASE2 = {
    "model.learning_rate": "phase2_vae.learning_rate",
    "model.clf_arch": "phase2_vae.clf_arch",
    "model.clf_dropout": "phase2_vae.clf_dropout",
    "model.alpha": "phase2_vae.alpha",
    "model.beta": "phase2_vae.beta",
}
VAE = {"model.vae_arch": "phase1_vae.vae_arch", "model.latent_size": "phase1_vae.latent_size"}
PHASE1 = VAE | {
    "model.phase1.batch_size": "phase1_vae.batch_size",
    "model.phase1.learning_rate": "phase1_vae.learning_rate",
    "model.phase1.beta": "phase1_vae.beta",
}
GROUPS = {
    "phase1": ("sweeps=phase1", PHASE1),
    "fairall_I_II": ("sweeps=phase2", PHASE2),
    "fairall_II": ("sweeps=phase2 model=fairall_II", PHASE2 | VAE),  # without a Phase I to choose the VAE
    "fairlab_I_II": ("sweeps=phase2 model=fairlab_I_II", PHASE2),
    "fairlog": ("sweeps=fairlog", CLASSIFIER | {"model.lambda_": "fairlog.lambda"}),
    "unfairlog": ("sweeps=unfairlog", CLASSIFIER),
}
# Data of a user have the grid of most data sets.
COLUMNS = {
    "synthetic": "synthetic",
    "compas": "compas",
    "credit": "credit",
    "meps": "meps",
    "csv": "synthetic",
}
NAMES = sorted(path.stem for path in (configuration_root() / "sweeps").glob("[!_]*.yaml"))


def printed(row: str, dataset: str) -> list[Any]:
    """The table's values in a row, as a configuration has them."""
    values: Any = OmegaConf.to_object(OmegaConf.select(OmegaConf.create(GRIDS), row))
    if isinstance(values, dict) and "low" in values:
        return [*range(values["low"], values["high"] + 1)]
    if isinstance(values, dict):
        values = values["synthetic" if values[dataset] == "same" else dataset]
    return [[*map(int, value.split("x"))] if isinstance(value, str) else value for value in values]


@pytest.mark.parametrize("dataset", COLUMNS)
@pytest.mark.parametrize("group", GROUPS)
def test_grids_are_those_of_the_papers_table(group: str, dataset: str) -> None:
    words, rows = GROUPS[group]
    config = composed(*words.split(), f"dataset={dataset}")
    sweeper = config.hydra.sweeper
    ours = {key: [*map(read, values.choices)] for key, values in search_space(sweeper, [])[0].items()}
    assert ours == {key: printed(row, COLUMNS[dataset]) for key, row in rows.items()}
    assert (sweeper.study_name, config.seeds) == (f"{group}_{dataset}", 5)
    assert sweeper.sampler._target_ == "optuna.samplers.GridSampler"
    if config.model.get("phase1") is not None:
        assert config.schedule.phase1_epochs == (500 if dataset == "meps" else 1200)


def test_the_table_itself_where_it_is_at_hand(raw_data: Path) -> None:
    tables = raw_data.parent / "paper" / "tables.yaml"
    if not tables.exists():
        pytest.skip("the paper's tables are not there")
    assert yaml.safe_load(tables.read_text())["hyperparameter_grids"] == GRIDS


@pytest.mark.parametrize("name", NAMES)
def test_sweeps_are_possible_and_quick_and_look_at_validation_people(name: str) -> None:
    config = composed(f"sweeps={name}", "preset=quick", "seeds=3")
    assert (config.schedule.phase1_epochs, config.seeds) == (20, 3)
    study = described(config, search_space(config.hydra.sweeper, [])[0])
    assert study["settings"]["evaluation.split"] == "validation"
    for measure, direction in study["objectives"].items():
        assert (direction == "maximize") == ("utility" in measure)
