"""The files of sweeps/ against the paper's tables."""

import functools
import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import DictConfig, OmegaConf

from fairall.config.paths import sweeps_folder
from fairall.config.validation import checked
from fairall.metrics import STANDARD
from fairall.report.plan import PREFIX
from fairall.tuning.space import Space
from fairall.tuning.sweeper import StudySweeper
from fairall.tuning.trial import TRIALS
from tests.conftest import ComposeConfig

GRIDS = yaml.safe_load((Path(__file__).parent / "paper_grids.yaml").read_text())["hyperparameter_grids"]
DATASETS = ("synthetic", "compas", "credit", "meps")
# By sweep: the model, the row group of the table, and our keys for its rows.
PHASE1 = {
    "batch_size": "model.phase1.batch_size", "learning_rate": "model.phase1.learning_rate",
    "vae_arch": "model.vae_arch", "latent_size": "model.latent_size", "beta": "model.phase1.beta",
}  # fmt: skip
CLASSIFIER = {
    "learning_rate": "model.learning_rate", "clf_arch": "model.clf_arch", "clf_dropout": "model.clf_dropout"
}  # fmt: skip
PHASE2 = {**CLASSIFIER, "alpha": "model.alpha", "beta": "model.beta"}
GROUPS = {
    "phase1": ("fairall_I_II", ["phase1_vae"], PHASE1),
    "fairall_I_II": ("fairall_I_II", ["phase2_vae"], PHASE2),
    "fairall_II": ("fairall_II", ["phase2_vae"], PHASE2),
    "fairlab_I_II": ("fairlab_I_II", ["phase2_vae"], PHASE2),
    "fairlog": ("fairlog", ["unfairlog", "fairlog"], {**CLASSIFIER, "lambda": "model.lambda_"}),
    "unfairlog": ("unfairlog", ["unfairlog"], CLASSIFIER),
}
PAPERS = [f"{group}_{dataset}" for group in GROUPS for dataset in DATASETS]
# Those of `fairall.report` are the paper's runs on the test set, not studies.
NAMES = sorted(path.stem for path in sweeps_folder().glob("[!_]*.yaml") if not path.stem.startswith(PREFIX))


@functools.cache
def composed(*words: str) -> DictConfig:
    """The configuration of a sweep with Hydra's part of it."""
    from hydra import compose, initialize_config_dir

    from fairall.config.compose import register
    from fairall.config.paths import configuration_root

    register()
    with initialize_config_dir(str(configuration_root() / "conf"), version_base="1.3"):
        return compose("config", overrides=list(words), return_hydra_config=True)


def printed(group: str, dataset: str) -> dict[str, list[Any]]:
    """The table's values of a sweep, by our key."""
    _, rows, keys = GROUPS[group]
    values = {}
    for row in rows:
        for name, given in GRIDS[row].items():
            if isinstance(given, dict) and "low" in given:
                given = list(range(given["low"], given["high"] + 1, given["step"]))
            if isinstance(given, dict):
                given = given[dataset] if given[dataset] != "same" else given["synthetic"]
            values[keys[name]] = [
                [int(size) for size in value.split("x")] if isinstance(value, str) else value
                for value in given
            ]
    return values


def grid(config: DictConfig) -> Space:
    space, _ = Space.parse(StudySweeper(config.hydra.sweeper.params).params, [])
    return space


@pytest.mark.parametrize("name", PAPERS)
def test_grids_are_those_of_the_papers_table(name: str) -> None:
    group, _, dataset = name.rpartition("_")
    config = composed(f"sweeps={name}")
    assert (config.model.name, config.dataset.name) == (GROUPS[group][0], dataset)
    expected, space = printed(group, dataset), grid(config)
    ours = {
        key: [OmegaConf.create(f"v: {value}").v for value in values] for key, values in space.values.items()
    }
    assert ours == expected
    assert space.size == math.prod(len(values) for values in expected.values())
    assert config.seeds == 5
    assert config.sweep.sampler == "grid"
    assert config.sweep.trials is None
    if config.model.get("phase1") is not None:
        assert config.schedule.phase1_epochs == (500 if dataset == "meps" else 1200)


def test_the_table_itself_where_it_is_at_hand(raw_data: Path) -> None:
    tables = raw_data.parent / "paper" / "tables.yaml"
    if not tables.exists():
        pytest.skip(f"the paper's tables are needed, and {tables} is not there")
    assert yaml.safe_load(tables.read_text())["hyperparameter_grids"] == GRIDS


@pytest.mark.parametrize("name", PAPERS)
def test_tpe_searches_the_same_space_in_a_tenth_of_the_trials(name: str) -> None:
    written = yaml.safe_load((sweeps_folder() / f"tpe_{name}.yaml").read_text())
    tenth = math.ceil(grid(composed(f"sweeps={name}")).size / 10)
    assert written == {"defaults": [name, "_self_"], "sweep": {"sampler": "tpe", "trials": tenth}}


def test_tpe_variants_compose() -> None:
    config = composed("sweeps=tpe_fairlab_I_II_credit")
    assert (config.model.name, config.sweep.sampler, config.sweep.trials) == ("fairlab_I_II", "tpe", 20)
    assert grid(config) == grid(composed("sweeps=fairlab_I_II_credit"))


def test_there_is_a_file_for_each_and_no_other() -> None:
    expected = {*PAPERS, *(f"tpe_{name}" for name in PAPERS), "cost", "credit_alpha_beta"}
    assert set(NAMES) == expected


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("tpe_")])
def test_sweeps_are_possible_and_look_at_validation_people(name: str) -> None:
    config = composed(f"sweeps={name}").copy()
    # `range` drops its end, and a YAML list is no sweep.
    assert all(values.startswith("choice(") for values in config.hydra.sweeper.params.values())
    OmegaConf.set_struct(config, False)
    del config["hydra"]
    checked(config)
    assert config.evaluation.split == "validation"
    for words in config.sweep.objectives:
        direction, measure = words.split()
        assert measure in TRIALS[config.sweep.trial].objectives(STANDARD)
        assert (direction == "maximize") == ("utility" in measure)


def test_a_preset_makes_sweeps_quick_and_the_command_line_wins(compose_config: ComposeConfig) -> None:
    quick = compose_config("sweeps=phase1_credit", "preset=quick", "seeds=3")
    assert (quick.schedule.phase1_epochs, quick.seeds) == (20, 3)
