"""What a run has otherwise than by default."""

from dataclasses import replace

import pytest

from fairall.config.choices import choices
from fairall.results.differences import differences
from tests.made_up import configuration

OF_CSV = ("dataset.path=loans.csv", "dataset.label=repaid", "dataset.positive=yes", "dataset.sensitive=sex")
FAIRLOG = ("model=fairlog", "dataset=credit")
PARITY = "fairness=demographic_parity"


@pytest.mark.parametrize("model", sorted(choices()["model"]))
def test_a_run_by_default_differs_in_nothing(model: str) -> None:
    for dataset in ("credit", "synthetic"):
        assert differences(configuration(f"model={model}", f"dataset={dataset}")) == ""


@pytest.mark.parametrize(
    "words",
    [
        *"""
            cost.value=0.3 dataset.cost=0.3 initial_policy=lenient initial_policy.slope=2.0 protocol=text
            protocol.max_ips_weight=7.0 world.delay.steps=2 model.lambda_=8.0 model.clf_arch=[8] seeds=3
            schedule.time_steps=300 evaluation.split=validation exploration=none protocol=published_code
        """.split(),
        PARITY,
        f"{PARITY} fairness.slack=0.05",
        "model=oracle_fair model.fairness.slack=0.05",
    ],
)
def test_what_differs_is_said_in_the_words_that_make_it(words: str) -> None:
    chosen = [word for word in words.split() if not word.startswith("model=")]
    assert differences(configuration(*FAIRLOG, *words.split())) == " ".join(chosen)


@pytest.mark.parametrize(
    "word", ["outputs_dir=there", "threads=2", "tracking.enabled=false", "preset=quick", "objective=mean_dpu"]
)
def test_what_changes_no_result_is_not_said(word: str) -> None:
    assert differences(configuration(*FAIRLOG, word)) == ""


def test_a_table_of_ones_own_has_defaults_and_a_method_has_none() -> None:
    own = configuration("model=fairlog", "dataset=csv", *OF_CSV, "cost.value=0.3")
    assert "cost.value=0.3" in differences(own).split(" ")
    assert differences(replace(own, model={"_target_": "mine.Method", "name": "mine", "depth": 3})) == ""
