import functools
import itertools
from enum import Enum
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import yaml
from omegaconf import OmegaConf

from fairall.config.checks import check_values
from fairall.config.choices import (
    OTHERS,
    configuration_root,
    flattened,
    hyperparameters,
    hyperparameters_without,
)
from fairall.config.compose import checked, compose_all, searched_folder, typed
from fairall.config.compose import compose_config as compose
from fairall.config.schema import Config, ProtocolConfig, plain
from fairall.errors import FairAllError
from tests.conftest import ComposeConfig

NEEDED = ("path", "label", "positive", "sensitive", "advantaged")  # of a table nobody else knows


def choices(group: str) -> list[str]:
    return sorted(path.stem for path in (configuration_root() / "conf" / group).glob("*.yaml"))


VALUES = yaml.safe_load(Path(__file__).with_name("values.yaml").read_text())
GROUPS = {group: choices(group) for group in ("model", "dataset", "initial_policy", "protocol")}
"""The groups that make a run, and what each may be."""

# Every model; data sets, initial policies and protocols take turns.
CHOSEN = [[names[i % len(names)] for names in GROUPS.values()] for i in range(len(GROUPS["model"]))]


def test_one_configuration_leaves_nothing_in_the_next() -> None:
    first, second = map(typed, compose_all([["+sweep.grid.credit={}"], []]))
    assert (first.sweep.grid, second.sweep.grid) == ({"credit": {}}, {})


@pytest.mark.parametrize(("i", "name"), enumerate(("corrected", "published_code")))
def test_protocols_are_the_designs(i: int, name: str, compose_config: ComposeConfig) -> None:
    designed = {key: values[i] for key, values in VALUES["designs"].items()}
    assert plain(compose_config(f"protocol={name}").protocol) == designed


@pytest.mark.whole
def test_every_choice_is_possible_with_the_hyperparameters_of_every_data_set() -> None:
    needed = [f"dataset.{key}=x" for key in NEEDED]
    words = [[f"{group}={name}" for group, name in zip(GROUPS, names, strict=True)] for names in CHOSEN]
    composed = compose_all([*some, *(needed if "dataset=csv" in some else [])] for some in words)
    for names, config in zip(CHOSEN, composed, strict=True):
        assert [config[group].name for group in GROUPS] == names
        selected = flattened(hyperparameters(*names[:2]) or {"hyperparameters": "defaults"})
        assert {key: OmegaConf.select(config, key) for key in selected} == selected
        for dataset in GROUPS["dataset"]:
            if own := {key: of for key, of in hyperparameters(names[0], dataset).items() if key != "dataset"}:
                other = config.copy()
                other.merge_with(own)
                check_values(typed(other))


def test_command_line_beats_presets_hyperparameters_and_the_data_set(compose_config: ComposeConfig) -> None:
    config = compose_config("preset=quick", "seeds=7", "model.alpha=9", "model.elbo_samples=6")
    assert (config.seeds, config.schedule.time_steps) == (7, 8)
    assert (config.model.alpha, config.model.elbo_samples, config.model.latent_size) == (9, 6, 12)
    assert compose_config().cost.value == compose_config().dataset.cost
    assert compose_config("cost=fixed", "cost.value=0.3").cost.value == 0.3


def changed(config: Config, override: str) -> Config:
    """`config` with the value of one key replaced, in a hundredth of the time of composing it."""
    key, _, value = override.partition("=")
    *path, name = key.split(".")
    setattr(functools.reduce(getattr, path, config), name, yaml.safe_load(value))
    return config


@pytest.mark.parametrize("of", VALUES["impossible"])
def test_impossible_values_are_named(of: str, compose_config: ComposeConfig) -> None:
    model, prefix = ("fairall_I_II", "") if of == "of a run" else (of, "model.")
    check_values(compose_config(f"model={model}"))
    for override in (prefix + word for word in VALUES["impossible"][of].split()):
        key = override.partition("=")[0]
        config = changed(compose_config(f"model={model}"), override)
        with pytest.raises(FairAllError, match=rf"^{key}=.* is not possible: it must be [^\n]+$"):
            check_values(config)


def test_every_choice_of_a_switch_is_described() -> None:
    page = (configuration_root() / "docs" / "protocols.md").read_text()
    switches = {n: hint for n, hint in get_type_hints(ProtocolConfig).items() if isinstance(hint, type(Enum))}
    names = [*switches, *(choice.name for switch in switches.values() for choice in switch)]
    assert [name for name in names if f"`{name}`" not in page] == []


@pytest.mark.parametrize(("words", "rule"), VALUES["exploration"].items())
def test_protocol_and_method_choose_the_exploration_unless_the_user_does(
    words: str, rule: str, compose_config: ComposeConfig
) -> None:
    assert compose_config(*words.split()).exploration.rule.name == rule


@pytest.fixture(scope="module")
def paper(raw_data: Path) -> dict[str, Any]:
    """The tables printed in the paper."""
    file = raw_data.parent / "paper" / "tables.yaml"
    if not file.is_file():
        pytest.skip(f"the paper's tables are needed, and {file} is not there")
    return yaml.safe_load(file.read_text())


PRINTED = ("synthetic", "compas", "credit", "meps")
METHODS = ("fairall_I_II", "fairall_II", "fairlab_I_II", "fairlog", "unfairlog")


def printed_hyperparameters(paper: dict[str, Any], model: str, dataset: str) -> dict[str, Any]:
    """What the paper selected, by the names of the `model` node."""
    selected = paper["best_hyperparameters"]
    values = {key.replace("lambda", "lambda_"): value for key, value in selected[model][dataset].items()}
    if model.endswith("_I_II"):
        phase1 = selected["phase1_vae"][dataset] | {"updates": None}
        values |= {name: phase1.pop(name) for name in ("vae_arch", "latent_size")} | {"phase1": phase1}
    return values


@pytest.mark.parametrize(("model", "dataset"), itertools.product(METHODS, PRINTED))
def test_hyperparameters_are_the_papers(model: str, dataset: str, paper: dict[str, Any]) -> None:
    written = hyperparameters(model, dataset)
    assert written["model"] == printed_hyperparameters(paper, model, dataset)
    assert written["hyperparameters"] == "the paper's selection"
    assert set(written) <= {"model", "hyperparameters", "schedule"}


@pytest.mark.parametrize("dataset", PRINTED)
def test_schedule_samples_and_cost_are_the_papers(
    dataset: str, paper: dict[str, Any], compose_config: ComposeConfig
) -> None:
    config = compose_config("model=fairall_I_II", f"dataset={dataset}", "protocol=published_code")
    printed = paper["protocol"]
    samples = {key: getattr(config.model, key) for key in ("elbo_samples", "kl_samples")}
    assert samples == {key: printed["monte_carlo"][key] for key in samples}
    corrected = compose_config("model=fairall_I_II", f"dataset={dataset}").model
    assert (corrected.elbo_samples, corrected.kl_samples) == (20, 20)
    assert (config.seeds, config.cost.value) == (printed["seeds"], printed["cost"][dataset])
    steps = {key: printed["phase2"][key] for key in ("time_steps", "batches_per_epoch")}
    assert plain(config.schedule) == steps | {
        "applicants": printed["phase2"]["candidates_per_step"],
        "warm_up_applicants": printed["warmup"]["candidates"],
        "warm_up_epochs": printed["warmup"]["epochs"],
        "phase1_epochs": printed["phase1"]["epochs_final"][dataset],
    }


def test_hyperparameters_of_another_pair_or_of_ones_own_can_be_chosen(tmp_path: Path) -> None:
    assert compose("model=fairlog", "dataset=credit", "hparams=fairlog/compas").model.lambda_ == 4
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset" / "mine.yaml").write_text("defaults: [credit, _self_]\nname: mine\n")
    path = tmp_path / "hparams" / "fairlog" / "mine.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("# @package _global_\nhyperparameters: by hand\nmodel: {lambda_: 9}\n")
    config = compose(searched_folder(tmp_path), "model=fairlog", "dataset=mine")
    assert (config.hyperparameters, config.model.lambda_) == ("by hand", 9)


def test_the_other_data_sets_choose_hyperparameters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairall.config.choices.hyperparameters_of", lambda model: VALUES["written"])
    # What the others agree on, where they do; else, or where they are tied, what conf/model/greedy.yaml has.
    rate, arch, propensity = (
        {"model.learning_rate": 0.1},
        {"model.clf_arch": [32]},
        {"exploration.propensity": 0.3},
    )
    for dataset, values in {"one": propensity, "four": rate, "five": rate | arch | propensity}.items():
        assert hyperparameters_without("greedy", dataset) == values | {"hyperparameters": OTHERS}


def test_a_run_can_have_what_the_other_data_sets_choose() -> None:
    word = "hparams=${model}/without_${dataset}"
    selected, others = compose_all([["model=ensemble", "dataset=meps", *words] for words in ([], [word])])
    assert (selected.model.learning_rate, selected.model.quantile) == (0.001, 0.9)
    assert (others.model.learning_rate, others.model.quantile) == (0.01, 0.6)
    assert others.hyperparameters == OTHERS


def parts(*overrides: str) -> dict[str, Any]:
    return checked(compose(*overrides)).parts


def test_several_worlds_are_one_with_all_their_parts() -> None:
    both = parts("world=[capacity,delay]")
    assert [*both] == ["capacity", "delay"]
    assert (both["capacity"].share, both["delay"].steps) == (0.3, 10)
    assert parts("world=[delay,capacity]") == both
    every = " ".join(parts("world=[delay,noise,capacity,drift,feedback]"))
    assert every == "feedback drift capacity noise delay"


def test_keys_of_a_part_can_be_set_in_every_world() -> None:
    changed = parts("world=delay", "world.capacity.number=7", "world.drift.features={age: 0.5}")
    assert [*changed] == ["drift", "capacity", "delay"]
    assert (changed["capacity"].number, changed["drift"].features) == (7, {"age": 0.5})
    assert parts("world.drift.features={age: 0}") == {}


def test_a_run_stores_the_parts_that_change_anything() -> None:
    assert checked(compose("world.capacity.rule=top")).to_plain()["world"] == {}
    stored = checked(compose("world=delay")).to_plain()["world"]
    target = "fairall.worlds.delay.Delay"
    assert stored == {"delay": {"_target_": target, "steps": 10, "mean": None, "censored": 0.0}}


@pytest.mark.parametrize("name", [name for name in choices("world") if not name.startswith("_")])
def test_every_choice_is_the_part_of_its_name(name: str) -> None:
    assert [*parts("dataset=fico", f"world={name}")] == ([] if name == "static" else [name])
