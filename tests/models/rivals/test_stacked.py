"""How the classifiers of a mixture are weighed."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import expit, softmax

from fairall.runtime.randomness import SeedStreams
from tests.models.conftest import built, swayed


def learnt(steps: int, n: int = 200, interaction: float = 0.0, **changes: Any) -> Any:
    learner = built("stacked", [0, 1], **changes)
    learner.warm_up_epoch(swayed(n, 0, interaction=interaction), 0)
    for step in range(1, steps):
        learner.update(swayed(n, step, interaction=interaction))
    return learner


@pytest.mark.whole
@pytest.mark.parametrize(("interaction", "best"), [(0.0, "linear"), (1.0, "trees")])
def test_the_classifiers_that_foretell_labels_have_the_weight(interaction: float, best: str) -> None:
    share = learnt(8, interaction=interaction).share
    assert ((share[:, -1] > 0.5) == (best == "trees")).all()
    torch.testing.assert_close(share.sum(-1), torch.ones(2, dtype=torch.float64))


def test_evidence_is_the_loss_of_labels_before_they_are_learnt() -> None:
    learner = learnt(1, evidence=50.0, growth=1.0)
    expected = np.zeros((2, learner.evidence.shape[1]))
    for step in range(1, 9):
        one = swayed(30, step, rate=0.5)
        p, label = expit(learner.of_classifiers(one.x, one.s).numpy()), one.label.numpy()[..., None]
        gained = np.where(label > 0, np.log(p), np.log(1 - p)) * one.accepted.numpy()[..., None]
        kept = np.exp(-one.accepted.sum(-1, keepdim=True).numpy() / 50.0)
        expected = kept * expected + gained.sum(1)
        learner.update(one)
        np.testing.assert_allclose(learner.evidence.numpy(), expected, rtol=1e-9)
        if step == 7:  # they are fitted anew
            np.testing.assert_allclose(learner.share, softmax(expected, -1), rtol=1e-9)


def test_optimism_is_the_disagreement_of_classifiers() -> None:
    new, streams = swayed(100, 50), SeedStreams([0, 1], "any")
    learner = learnt(2, optimism=2.0)
    logit, share = learner.of_classifiers(new.x, new.s), learner.share.unsqueeze(1)
    mean = (share * logit).sum(-1)
    deviation = ((share * logit**2).sum(-1) - mean**2).sqrt()
    torch.testing.assert_close(learner.log_odds(new.x, new.s, streams), mean + 2.0 * deviation)
    assert deviation.max() > 0.05
