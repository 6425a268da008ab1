import itertools

import pytest
import yaml

from fairall.errors import FairAllError
from fairall.resources import configuration_root
from fairall.validation import validate
from tests.conftest import ComposeConfig

NEEDED = ("path", "label", "positive", "sensitive", "advantaged")  # of a table nobody else knows


def choices(group: str) -> list[str]:
    return sorted(path.stem for path in (configuration_root() / "conf" / group).glob("*.yaml"))


@pytest.mark.parametrize(
    "overrides",
    [
        tuple(f"{group}={choice}" for group, choice in zip(groups, chosen, strict=True))
        for groups in [("model", "dataset", "initial_policy", "protocol")]
        for chosen in itertools.product(*(choices(group) for group in groups))
    ],
    ids=" ".join,
)
def test_every_combination_composes_and_is_possible(
    overrides: tuple[str, ...], compose_config: ComposeConfig
) -> None:
    needed = [f"dataset.{key}=x" for key in NEEDED] if "dataset=csv" in overrides else []
    validate(compose_config(*overrides, *needed))


@pytest.mark.parametrize("sweep", [path.stem for path in (configuration_root() / "sweeps").glob("*.yaml")])
def test_every_sweep_composes_and_uses_choices_only(sweep: str, compose_config: ComposeConfig) -> None:
    config = compose_config(f"sweeps={sweep}")
    validate(config)
    assert config.evaluation.split == "validation"
    raw = yaml.safe_load((configuration_root() / "sweeps" / f"{sweep}.yaml").read_text())
    assert all(values.startswith("choice(") for values in raw["hydra"]["sweeper"]["params"].values())


def test_command_line_beats_preset_and_hyperparameters(compose_config: ComposeConfig) -> None:
    config = compose_config("preset=quick", "seeds=7", "model.alpha=9")
    assert (config.seeds, config.schedule.time_steps, config.model.alpha) == (7, 8, 9)
    assert config.model.latent_size == 12


def test_cost_comes_from_the_data_set_unless_given(compose_config: ComposeConfig) -> None:
    assert compose_config().cost.value == compose_config().dataset.cost
    assert compose_config("cost=fixed", "cost.value=0.3").cost.value == 0.3


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("seeds=0", "seeds"),
        ("seed=-1", "seed"),
        ("threads=0", "threads"),
        ("cost.value=1.2", "cost.value"),
        ("cost.value=0", "cost.value"),
        ("schedule.time_steps=0", "schedule.time_steps"),
        ("schedule.batches_per_epoch=65", "schedule.batches_per_epoch"),
        ("evaluation.window=[5,300]", "evaluation.window"),
        ("evaluation.window=[5]", "evaluation.window"),
        ("evaluation.split=train", "evaluation.split"),
        ("dataset.split.pool=2", "dataset.split.pool"),
        ("initial_policy.random_state=-1", "initial_policy.random_state"),
        ("protocol.policy_target=soft", "protocol.policy_target"),
        ("protocol.policy_loss=hinge", "protocol.policy_loss"),
        ("model.latent_size=0", "model.latent_size"),
        ("model.vae_arch=[]", "model.vae_arch"),
        ("model.clf_arch=[32,0]", "model.clf_arch"),
        ("model.clf_dropout=1", "model.clf_dropout"),
        ("model.learning_rate=0", "model.learning_rate"),
        ("model.alpha=-1", "model.alpha"),
        ("model.phase1.batch_size=0", "model.phase1.batch_size"),
        ("model.phase1.beta=-0.1", "model.phase1.beta"),
    ],
)
def test_impossible_values_are_named(override: str, key: str, compose_config: ComposeConfig) -> None:
    with pytest.raises(FairAllError, match=rf"^{key}=.* is not possible: it must be "):
        validate(compose_config(override))
