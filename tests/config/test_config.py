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
from fairall.config.compose import compose_all, searched_folder, typed
from fairall.config.compose import compose_config as compose
from fairall.config.schema import Config, ProtocolConfig, plain
from fairall.errors import FairAllError
from tests.conftest import ComposeConfig

NEEDED = ("path", "label", "positive", "sensitive", "advantaged")  # of a table nobody else knows


def choices(group: str) -> list[str]:
    return sorted(path.stem for path in (configuration_root() / "conf" / group).glob("*.yaml"))


GROUPS = {group: choices(group) for group in ("model", "dataset", "initial_policy", "protocol")}
"""The groups that make a run, and what each may be."""

# Every model; data sets, initial policies and protocols take turns.
CHOSEN = [[names[i % len(names)] for names in GROUPS.values()] for i in range(len(GROUPS["model"]))]


def test_one_configuration_leaves_nothing_in_the_next() -> None:
    first, second = map(typed, compose_all([["+sweep.grid.credit={}"], []]))
    assert (first.sweep.grid, second.sweep.grid) == ({"credit": {}}, {})


DESIGNS = """
name: [corrected, published_code]
kl: [density, cdf]
fairlog_penalty: [squared, fairtorch]
fairlog_minibatches: [all, labelled]
fairlab_weight: [inverse_propensity, propensity]
fairlab_classifier: [trained, untrained]
inputs: [by_method, codes]
scaler: [training_rows, each_file]
decision_luck: [fresh, fixed]
effective: [taken, decided_again]
vae_start: [group_blind, random]
latent_frame: [matched, as_learnt]
noise: [stratified, independent]
max_ips_weight: [100.0, null]
"""


@pytest.mark.parametrize(("i", "name"), enumerate(("corrected", "published_code")))
def test_protocols_are_the_designs(i: int, name: str, compose_config: ComposeConfig) -> None:
    designed = {key: values[i] for key, values in yaml.safe_load(DESIGNS).items()}
    assert plain(compose_config(f"protocol={name}").protocol) == designed


def test_every_choice_is_possible_with_the_hyperparameters_of_every_data_set() -> None:
    needed = [f"dataset.{key}=x" for key in NEEDED]
    words = [[f"{group}={name}" for group, name in zip(GROUPS, names, strict=True)] for names in CHOSEN]
    composed = compose_all([*some, *(needed if "dataset=csv" in some else [])] for some in words)
    for names, config in zip(CHOSEN, composed, strict=True):
        assert [config[group].name for group in GROUPS] == names
        selected = flattened(hyperparameters(*names[:2]) or {"hyperparameters": "defaults"})
        assert {key: OmegaConf.select(config, key) for key in selected} == selected
        for dataset in GROUPS["dataset"]:
            check_values(typed(OmegaConf.merge(config, hyperparameters(names[0], dataset))))


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


OF_A_RUN = """
seeds=0 seed=-1 threads=0 cost.value=1.2 cost.value=0 schedule.time_steps=0 schedule.batches_per_epoch=65
evaluation.window=[5,300] evaluation.window=[5] evaluation.split=train dataset.split.pool=2
initial_policy.random_state=-1 protocol.max_ips_weight=0.99 protocol.max_ips_weight=.nan
exploration.after=0 exploration.propensity=0 exploration.propensity=1.01
initial_policy.random_state=4294967296
"""
IMPOSSIBLE = {
    "fairall_I_II": "latent_size=0 vae_arch=[] clf_arch=[32,0] clf_dropout=1 learning_rate=0 alpha=-1 "
    "beta=-1 policy=z_foo decision=maybe kl_samples=0 elbo_samples=0 propensity_samples=0 "
    "propensity_samples=7 phase1.learning_rate=-1 phase1.batch_size=0 phase1.beta=-0.1 phase1.patience=0 "
    "phase1.updates=0 phase1.margin=-0.1 phase1.share=0 phase1.share=1.1",
    "fairlog": "lambda_=-1 decision=maybe clf_dropout=1 clf_arch=[0] learning_rate=0",
    "unfairlog": "decision=stochastic clf_dropout=-0.1 clf_arch=[64,0] learning_rate=-1",
    "fairlab_I_II": "policy=z_foo decision=maybe clf_dropout=1 alpha=-1 phase1.validate_every=0",
    "fairall_II": "kl_samples=0 policy=z",
    "opt_unfair": "decision=maybe fit_rows=99",
    "greedy": "learning_rate=0 clf_arch=[0] updates=0 batch_size=0",
    "ensemble": "members=1 members=30000000 quantile=0 quantile=1 updates=0",
    "plot": "epsilon=0 epsilon=1.2 clone_updates=0",
    "adopt": "clone_updates=0 generator_arch=[] head_arch=[0] discriminator_arch=[0] adaptation_updates=0 "
    "adaptation_batch=0 adaptation_rate=0 discriminator_rate=0",
    "neural_ucb": "clf_arch=[] alpha=-1 ridge=0 discount=0 discount=1.1",
    "dcem": "rounds=0 updates=0 regularisation=-0.1 clf_arch=[0]",
    "accepted_only": "growth=0 linear_c=0",
    "reweighting": "least=0 least=1.1",
    "parcelling": "bands=0 uplift=0",
    "basl": "sample=0 labelled=0 labelled=1 imbalance=0.5 iterations=0 similar=[0.5] similar=[0.9,0.1] "
    "similar=[0,1.1]",
    "stacked": "linear_c=[] linear_c=[0.1,-1] linear_c=[0] evidence=0 optimism=-1",
    "multiple_imputation": "members=1 members=30000000 updates=0",
    "explore_exploit": "fdr=0 exploit_fdr=0 exploit_power=-0.1 acceptance_gap=1.1 held_out=1 "
    "past_classifiers=1 past_classifiers=30000000 batch_size=0",
    "sellf_one_step": "policy_learning_rate=0 policy_arch=[] policy_updates=0 past_policies=0 "
    "past_policies=30000000 fairness=qualification beta_1=-1 beta_2=-0.1 omega=2.5 updates=0",
    "fair_reductions": "alpha=0.2 alpha=0.6 mu=0 mu=0.5 iterations=0 rounds=0 fairness=none slack=-0.1",
    "consequential": "policy=sigmoid data=old fairness=parity lambda_=-1 batch_size=63 updates=0 "
    "learning_rate=0 clf_arch=[0]",
}


@pytest.mark.parametrize(
    ("model", "words"),
    [("fairall_I_II", OF_A_RUN.split())]
    + [(model, [f"model.{word}" for word in words.split()]) for model, words in IMPOSSIBLE.items()],
)
def test_impossible_values_are_named(model: str, words: list[str], compose_config: ComposeConfig) -> None:
    check_values(compose_config(f"model={model}"))
    for override in words:
        key = override.partition("=")[0]
        config = changed(compose_config(f"model={model}"), override)
        with pytest.raises(FairAllError, match=rf"^{key}=.* is not possible: it must be [^\n]+$"):
            check_values(config)


def test_every_choice_of_a_switch_is_described() -> None:
    page = (configuration_root() / "docs" / "protocols.md").read_text()
    switches = {n: hint for n, hint in get_type_hints(ProtocolConfig).items() if isinstance(hint, type(Enum))}
    names = [*switches, *(choice.name for switch in switches.values() for choice in switch)]
    assert [name for name in names if f"`{name}`" not in page] == []


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (["protocol=corrected"], "stuck"),
        (["protocol=published_code"], "none"),
        (["protocol=published_code", "exploration=stuck"], "stuck"),
        (["model=epsilon_greedy"], "epsilon"),
        (["model=epsilon_greedy", "exploration=bounded"], "bounded"),
        (["model=fairlog", "exploration=epsilon"], "epsilon"),
    ],
)
def test_protocol_and_method_choose_the_exploration_unless_the_user_does(
    words: list[str], rule: str, compose_config: ComposeConfig
) -> None:
    assert compose_config(*words).exploration.rule.name == rule


@pytest.fixture(scope="module")
def paper() -> dict[str, Any]:
    """The tables printed in the paper."""
    file = Path(__file__).parents[3] / "shared" / "paper" / "tables.yaml"
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
    written = {
        "one": {"model": {"learning_rate": 0.5, "clf_arch": [7]}},
        "two": {"model": {"learning_rate": 0.1, "clf_arch": [32]}, "exploration": {"propensity": 0.3}},
        "three": {"model": {"learning_rate": 0.1, "updates": None}, "exploration": {"propensity": 0.3}},
        "four": {"model": {"learning_rate": 0.01, "clf_arch": [32]}, "exploration": {"propensity": 0.3}},
        "five": {"model": {"learning_rate": 0.01, "batch_size": 9}},
    }
    monkeypatch.setattr("fairall.config.choices.hyperparameters_of", lambda model: written)
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
