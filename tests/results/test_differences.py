"""What a run has otherwise than by default."""

from dataclasses import replace

import pytest

from fairall.config.choices import choices
from fairall.results.differences import differences
from tests.made_up import configuration

OF_CSV = ("dataset.path=loans.csv", "dataset.label=repaid", "dataset.positive=yes", "dataset.sensitive=sex")
FAIRLOG = ("model=fairlog", "dataset=credit")
SAID = {
    "cost.value=0.3": "cost=0.3",
    "dataset.cost=0.3": "dataset.cost=0.3",
    "initial_policy=lenient": "initial_policy=lenient",
    "initial_policy.slope=2": "slope=2.0",
    "protocol=text": "protocol=text",
    "protocol.max_ips_weight=7": "max_ips_weight=7.0",
    "fairness=demographic_parity": "fairness=demographic_parity",
    "world.delay.steps=2": "delay.steps=2",
    "model.lambda_=8": "lambda_=8.0",
    "model.clf_arch=[8]": "clf_arch=[8]",
    "seeds=3": "seeds=3",
    "schedule.time_steps=300": "time_steps=300",
    "evaluation.split=validation": "split=validation",
    "exploration=none": "exploration=none",
}
NOT_SAID = ("outputs_dir=there", "threads=2", "tracking.enabled=false", "preset=quick", "objective=mean_dpu")


@pytest.mark.parametrize("model", sorted(choices()["model"]))
def test_a_run_by_default_differs_in_nothing(model: str) -> None:
    for dataset in ("credit", "synthetic"):
        assert differences(configuration(f"model={model}", f"dataset={dataset}")) == ""


@pytest.mark.parametrize("words", [("protocol=published_code",), ("preset=quick",)])
def test_what_follows_from_a_choice_is_not_said(words: tuple[str, ...]) -> None:
    said = differences(configuration("model=fairall_I_II", "dataset=compas", *words))
    assert said == ("protocol=published_code" if words[0].startswith("protocol") else "")


@pytest.mark.parametrize(("word", "said"), SAID.items())
def test_what_differs_is_said(word: str, said: str) -> None:
    assert differences(configuration(*FAIRLOG, word)) == said


@pytest.mark.parametrize("word", NOT_SAID)
def test_what_changes_no_result_is_not_said(word: str) -> None:
    assert differences(configuration(*FAIRLOG, word)) == ""


def test_points_of_a_frontier_are_told_apart() -> None:
    slacks = ("0", "0.02", "0.05")
    runs = [
        FAIRLOG,
        *((*FAIRLOG, "fairness=demographic_parity", f"fairness.slack={slack}") for slack in slacks),
    ]
    runs += [("model=oracle_fair", "dataset=credit", f"model.fairness.slack={slack}") for slack in slacks[1:]]
    said = [differences(configuration(*words)) for words in runs]
    assert said == [
        "",
        "fairness=demographic_parity",
        "fairness=demographic_parity slack=0.02",
        "fairness=demographic_parity slack=0.05",
        "slack=0.02",
        "slack=0.05",
    ]


def test_a_table_and_a_method_of_ones_own_have_no_defaults() -> None:
    own = configuration("model=fairlog", "dataset=csv", *OF_CSV, "cost.value=0.3")
    assert "cost=0.3" in differences(own).split(" ")
    strange = replace(own, model={"_target_": "mine.Method", "name": "mine", "depth": 3})
    assert "depth" not in differences(strange)
