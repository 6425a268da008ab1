"""The files of sweeps/ against the paper's tables."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import DictConfig, OmegaConf

from fairall.config.choices import configuration_root
from fairall.config.compose import checked
from fairall.tuning.sweep import read, search_space, validated
from tests.conftest import ComposeConfig
from tests.tuning.composed import composed

GRIDS = yaml.safe_load((Path(__file__).parent / "paper_grids.yaml").read_text())["hyperparameter_grids"]
DATASETS = ("synthetic", "compas", "credit", "meps")
# By name of the study: words of the command line, row groups of the table, and our keys for its rows.
PHASE1 = {
    "batch_size": "model.phase1.batch_size",
    "learning_rate": "model.phase1.learning_rate",
    "vae_arch": "model.vae_arch",
    "latent_size": "model.latent_size",
    "beta": "model.phase1.beta",
}
CLASSIFIER = {
    "learning_rate": "model.learning_rate",
    "clf_arch": "model.clf_arch",
    "clf_dropout": "model.clf_dropout",
}
PHASE2 = {**CLASSIFIER, "alpha": "model.alpha", "beta": "model.beta"}
VAE = {"vae_arch": "model.vae_arch", "latent_size": "model.latent_size"}  # without a Phase I to choose them
GROUPS = {
    "phase1": (["sweeps=phase1"], ["phase1_vae"], PHASE1),
    "fairall_I_II": (["sweeps=phase2"], ["phase2_vae"], PHASE2),
    "fairall_II": (["sweeps=phase2", "model=fairall_II"], ["phase2_vae", "phase1_vae"], PHASE2 | VAE),
    "fairlab_I_II": (["sweeps=phase2", "model=fairlab_I_II"], ["phase2_vae"], PHASE2),
    "fairlog": (["sweeps=fairlog"], ["unfairlog", "fairlog"], {**CLASSIFIER, "lambda": "model.lambda_"}),
    "unfairlog": (["sweeps=unfairlog"], ["unfairlog"], CLASSIFIER),
}
NAMES = sorted(path.stem for path in (configuration_root() / "sweeps").glob("[!_]*.yaml"))


def printed(group: str, dataset: str) -> dict[str, list[Any]]:
    """The table's values of a sweep, by our key."""
    _, rows, keys = GROUPS[group]
    values = {}
    for row in rows:
        for name, given in GRIDS[row].items():
            if row == "phase1_vae" and group != "phase1" and name not in VAE:
                continue
            if isinstance(given, dict) and "low" in given:
                given = list(range(given["low"], given["high"] + 1, given["step"]))
            if isinstance(given, dict):
                given = given[dataset] if given[dataset] != "same" else given["synthetic"]
            values[keys[name]] = [
                [int(size) for size in value.split("x")] if isinstance(value, str) else value
                for value in given
            ]
    return values


def space(config: DictConfig) -> dict[str, Any]:
    return search_space(config.hydra.sweeper, [])[0]


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("group", GROUPS)
def test_grids_are_those_of_the_papers_table(group: str, dataset: str) -> None:
    config = composed(*GROUPS[group][0], f"dataset={dataset}")
    assert config.hydra.sweeper.study_name == f"{group}_{dataset}"
    ours = {key: [*map(read, distribution.choices)] for key, distribution in space(config).items()}
    assert ours == printed(group, dataset)
    assert config.seeds == 5
    assert config.hydra.sweeper.sampler._target_ == "optuna.samplers.GridSampler"
    if config.model.get("phase1") is not None:
        assert config.schedule.phase1_epochs == (500 if dataset == "meps" else 1200)


def test_data_of_a_user_have_the_grid_of_most_data_sets() -> None:
    csv, credit = (composed("sweeps=phase2", f"dataset={name}") for name in ("csv", "credit"))
    assert space(csv) == space(credit)


def test_the_table_itself_where_it_is_at_hand(raw_data: Path) -> None:
    tables = raw_data.parent / "paper" / "tables.yaml"
    if not tables.exists():
        pytest.skip(f"the paper's tables are needed, and {tables} is not there")
    assert yaml.safe_load(tables.read_text())["hyperparameter_grids"] == GRIDS


@pytest.mark.parametrize("name", NAMES)
def test_sweeps_are_possible_and_look_at_validation_people(name: str) -> None:
    whole = composed(f"sweeps={name}")
    config, sweeper = whole.copy(), whole.hydra.sweeper
    OmegaConf.set_struct(config, False)
    del config["hydra"]
    checked(config)
    assert config.evaluation.split == "validation"
    for measure, direction in validated(config, sweeper, space(whole)).items():
        assert (direction == "maximize") == ("utility" in measure)


def test_a_preset_makes_sweeps_quick_and_the_command_line_wins(compose_config: ComposeConfig) -> None:
    quick = compose_config("sweeps=phase1", "preset=quick", "seeds=3")
    assert (quick.schedule.phase1_epochs, quick.seeds) == (20, 3)
