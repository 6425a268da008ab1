"""A saved policy that decides without the group (`fairness.blind=true`): nothing of it reads s."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from fairall.config.compose import checked, compose_config
from fairall.data.dataset import dataset
from fairall.decide.deciding import decide
from fairall.decide.explain import explain
from fairall.decide.refer import Refer
from fairall.decide.rules import Rule
from fairall.errors import FairAllError
from fairall.models.learner import Setting
from fairall.policy import Policy, learner_of
from fairall.tables.declared import Declared
from fairall.tables.files import File
from tests.conftest import MEANING
from tests.models.conftest import taught
from tests.test_policy import crowd

OTHER = {"male": "female", "female": "male"}
CHANGES = {
    "flipped": lambda people: people.assign(sex=people["sex"].map(OTHER)),
    "permuted": lambda people: people.assign(sex=np.random.default_rng(0).permutation(people["sex"])),
    "left out": lambda people: people.drop(columns="sex"),
}


def built(folder: Path, *words: str) -> Policy:
    """A policy that was taught, saved and loaded, for people like those of `crowd`."""
    table = folder / "training.csv"
    crowd(600).to_csv(table, index=False)
    words = "dataset=csv", *MEANING, "dataset.kinds={rooms: categorical}", f"dataset.path={table}", *words
    config = checked(compose_config(*words, "seeds=2", "schedule.warm_up_epochs=2"))
    data = dataset(config.dataset).prepare()
    learner = taught(learner_of(config, Setting.of(data.schema, config)), data.train, range(12))
    Policy.of(learner, data).save(folder / "policy", config)
    return Policy.load(folder / "policy")


@pytest.fixture(scope="module", params=["parity_stacked", "fairall_II fairness=demographic_parity"])
def policy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Policy:
    return built(tmp_path_factory.mktemp("blind"), *f"model={request.param} fairness.blind=true".split())


@pytest.fixture
def people() -> pd.DataFrame:
    return crowd(40).drop(columns="repaid")


def written(policy: Policy, people: pd.DataFrame, folder: Path, places: float | None = None) -> pd.DataFrame:
    """Decisions on people with reasons, as they are written, without the column of the group."""
    people.to_csv(folder / "people.csv", index=False)
    table, rule = File(folder / "people.csv", Declared.of()), Rule(policy.threshold, places=places)
    tally = decide(policy, table, folder / "out.csv", rule, most_reasons=3, refer=Refer(2))
    assert not tally.about["warnings"], "the group decides nothing"
    return pd.read_csv(folder / "out.csv").drop(columns="sex", errors="ignore")


@pytest.mark.parametrize("change", CHANGES)
def test_nothing_that_is_decided_or_said_depends_on_the_group(
    change: str, policy: Policy, people: pd.DataFrame, tmp_path: Path
) -> None:
    changed = CHANGES[change](people)
    assert not people.equals(changed)
    for of in (policy.encoded_propensity, policy.encoded_margin, policy.encoded_label_probability):
        one, other = (of(*policy.encoded(them)) for them in (people, changed))
        assert len(np.unique(one)) > 10
        assert np.array_equal(one, other)
    for places in (None, 0.2):
        decided, again = (written(policy, them, tmp_path, places) for them in (people, changed))
        assert 0 < decided["decision"].sum() < (40 if places else 41)
        pd.testing.assert_frame_equal(decided, again)
    said = decided["reasons"].dropna()
    assert len(said) > 0
    assert not said.str.contains("sex").any()
    parts, same = (explain(policy, them, 2, people).contributions for them in (people, changed))
    assert parts["contribution"]["sex"] == pytest.approx(0, abs=1e-6)  # nets round by other rows
    pd.testing.assert_frame_equal(parts.drop(columns="value"), same.drop(columns="value"), atol=1e-6)


def test_a_policy_that_reads_the_group_needs_it_and_says_so(people: pd.DataFrame, tmp_path: Path) -> None:
    reading = built(tmp_path, "model=parity_stacked")
    assert not torch.equal(*(reading.learner.threshold[0, 0].unbind()))
    with pytest.raises(FairAllError, match="lacks columns that the policy reads: s or sex"):
        reading.propensity(people.drop(columns="sex"))
