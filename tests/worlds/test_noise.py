"""False labels: how often, for whom, and who sees them."""

import pandas as pd
import pytest
import torch

from fairall.data.prepared import PreparedData
from fairall.measuring.summary import series_of, table_of
from fairall.metrics import STANDARD, registered
from fairall.worlds.measures import effective_revealed_utility
from tests.conftest import ComposeConfig
from tests.worlds.conftest import built, lived, often, sampled

SHARES = {(1.0, 1.0): 0.1, (1.0, 0.0): 0.25, (-1.0, 1.0): 0.4, (-1.0, 0.0): 0.0}  # by s and label
WORDS = "advantaged={positive: 0.1, negative: 0.25}", "disadvantaged={positive: 0.4, negative: 0}"


def test_flips_are_as_frequent_as_stated_by_group_and_label() -> None:
    own = built("noise", *WORDS, seeds=[0, 1])
    people = sampled(40_000, 2)
    seen = own.revealed(people, 1)
    assert torch.equal(own.observed()["revealed_label"], seen.label)
    assert torch.equal(people.label, sampled(40_000, 2).label)
    for (s, label), share in SHARES.items():
        assert often(seen.label[(people.s == s) & (people.label == label)] != label, share)


def test_learners_see_false_labels_and_measures_true_ones(
    fico: PreparedData, compose_config: ComposeConfig
) -> None:
    config = compose_config("dataset=fico", *(f"world.noise.{word}" for word in WORDS))
    seen, history = lived(config, fico, 20)
    truth = history.label
    revealed = history.steps.read()["revealed_label"]
    accepted = history.accepted
    assert 0.05 < (truth != revealed).float().mean() < 0.3
    assert torch.equal(torch.stack([decided.label for decided in seen]), revealed * accepted)

    static = lived(compose_config("dataset=fico"), fico, 20)[1]
    measures = *STANDARD, registered(effective_revealed_utility)
    table = table_of(series_of(history.recorded(), 0.4, measures), [0, 1])
    of_static = table_of(series_of(static.recorded(), 0.4), [0, 1])
    pd.testing.assert_frame_equal(table[of_static.columns], of_static)
    last = table[table.time_step == 20]["effective_revealed_utility"].to_numpy()
    assert last == pytest.approx((accepted * (revealed - 0.4)).mean((0, 2)).numpy(), abs=1e-6)
