"""False labels: how often, for whom, and who sees them."""

import pandas as pd
import pytest
import torch

from fairall.data.prepared import PreparedData
from fairall.measuring.summary import measure_table
from fairall.worlds.noise import FlipsConfig, Noise, NoiseConfig
from tests.conftest import ComposeConfig, run_online
from tests.worlds.conftest import Fixed, close, online, sampled, setting_of, share_error

SHARES = {(1.0, 1.0): 0.1, (1.0, 0.0): 0.25, (-1.0, 1.0): 0.4, (-1.0, 0.0): 0.0}  # by s and label
WORDS = [
    "world.noise.advantaged={positive: 0.1, negative: 0.25}",
    "world.noise.disadvantaged={positive: 0.4, negative: 0}",
]


def noise(seeds: list[int]) -> Noise:
    config = NoiseConfig(
        advantaged=FlipsConfig(positive=0.1, negative=0.25),
        disadvantaged=FlipsConfig(positive=0.4, negative=0.0),
    )
    return Noise(config, setting_of(None, seeds))


def test_flips_are_as_frequent_as_stated_by_group_and_label() -> None:
    own, people = noise([0, 1]), sampled(40_000, 2)
    seen = own.revealed(people, 1)
    assert torch.equal(own.observed()["revealed_label"], seen.label)
    assert torch.equal(people.label, sampled(40_000, 2).label)
    for (s, label), share in SHARES.items():
        false = seen.label[(people.s == s) & (people.label == label)] != label
        assert close(false.double().mean(), share, share_error(share, len(false)), 4.0)


def test_learners_see_false_labels_and_measures_true_ones(
    fico: PreparedData, compose_config: ComposeConfig
) -> None:
    learner = Fixed()
    process = online(learner, compose_config("dataset=fico", *WORDS), fico, [0, 1])
    history = run_online(process, 20)
    truth, revealed = history.label, history.observed["revealed_label"]
    accepted = history.accepted
    assert 0.05 < (truth != revealed).float().mean() < 0.3
    assert torch.equal(torch.stack([decided.label for decided in learner.seen]), revealed * accepted)

    static = run_online(online(Fixed(), compose_config("dataset=fico"), fico, [0, 1]), 20)
    assert torch.equal(static.label, truth)
    assert torch.equal(static.accepted, accepted)
    table = measure_table(
        history.recorded(), [0, 1], 0.4, (*process.evaluation.measures, *process.world.measures)
    )
    of_static = measure_table(static.recorded(), [0, 1], 0.4)
    pd.testing.assert_frame_equal(table[of_static.columns], of_static)
    last = table[table.time_step == 20]["effective_revealed_utility"].to_numpy()
    assert last == pytest.approx((accepted * (revealed - 0.4)).mean((0, 2)).numpy(), abs=1e-6)
