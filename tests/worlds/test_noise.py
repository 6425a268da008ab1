"""False labels: how often, for whom, and who sees them."""

import torch

from fairall.data.prepared import PreparedData
from tests.conftest import ComposeConfig
from tests.worlds.conftest import built, lived, often, sampled

SHARES = {(1.0, 1.0): 0.1, (1.0, 0.0): 0.25, (-1.0, 1.0): 0.4, (-1.0, 0.0): 0.0}  # by s and label
WORDS = "advantaged={positive: 0.1, negative: 0.25}", "disadvantaged={positive: 0.4, negative: 0}"


def test_flips_are_as_frequent_as_stated_by_group_and_label() -> None:
    own = built("noise", *WORDS, seeds=[0, 1])
    people = sampled(40_000, 2)
    seen = own.revealed(people, 1)
    assert torch.equal(own.values["revealed_label"], seen.label)
    assert torch.equal(people.label, sampled(40_000, 2).label)
    for (s, label), share in SHARES.items():
        assert often(seen.label[(people.s == s) & (people.label == label)] != label, share)


def test_learners_see_false_labels_and_measures_true_ones(
    fico: PreparedData, compose_config: ComposeConfig
) -> None:
    config = compose_config("dataset=fico", *(f"world.noise.{word}" for word in WORDS))
    seen, history = lived(config, fico, 20)
    revealed = history.steps["revealed_label"]
    assert torch.equal(torch.stack([decided.label for decided in seen]), revealed * history.steps["accepted"])
    _, static = lived(compose_config("dataset=fico"), fico, 20)
    for name, measured in static.measured.read().items():
        assert torch.equal(history.measured[name], measured)
    assert torch.equal(history.steps["label"], static.steps["label"])
