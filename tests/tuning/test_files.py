"""The files of sweeps/ against the paper's tables."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf

from fairall.config.choices import configuration_root
from fairall.tuning.sweep import described, read, search_space
from tests.tuning.composed import composed

HERE = Path(__file__).parent
GRIDS = yaml.safe_load((HERE / "paper_grids.yaml").read_text())["hyperparameter_grids"]
STUDIES = yaml.safe_load((HERE / "studies.yaml").read_text())
NAMES = sorted(path.stem for path in (configuration_root() / "sweeps").glob("[!_]*.yaml"))


def printed(row: str, dataset: str) -> list[Any]:
    """The table's values in a row, as a configuration has them."""
    values: Any = OmegaConf.to_object(OmegaConf.select(OmegaConf.create(GRIDS), row))
    if isinstance(values, dict) and "low" in values:
        return [*range(values["low"], values["high"] + 1)]
    if isinstance(values, dict):
        values = values["synthetic" if values[dataset] == "same" else dataset]
    return [[*map(int, value.split("x"))] if isinstance(value, str) else value for value in values]


@pytest.mark.whole
@pytest.mark.parametrize("dataset", ["synthetic", "compas", "credit", "meps", "csv"])
@pytest.mark.parametrize("group", STUDIES)
def test_grids_are_those_of_the_papers_table(group: str, dataset: str) -> None:
    config = composed(*STUDIES[group]["words"].split(), f"dataset={dataset}")
    sweeper = config.hydra.sweeper
    ours = {key: [*map(read, values.choices)] for key, values in search_space(sweeper, [])[0].items()}
    column = "synthetic" if dataset == "csv" else dataset  # data of a user have the grid of most data sets
    assert ours == {key: printed(row, column) for key, row in STUDIES[group]["rows"].items()}
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
