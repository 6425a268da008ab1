"""What the loop relies on, checked of every method that learns."""

from collections.abc import Callable
from dataclasses import fields, replace

import pytest
import torch

from fairall.data.people import People
from fairall.models.latent_learner import LatentLearner
from fairall.models.learner import Learner
from fairall.models.rivals.explore_exploit import ExploreExploit
from fairall.models.rivals.plot import Plot
from fairall.runtime.randomness import SeedStreams
from tests.conftest import ComposeConfig, MakePeople, MakeSetting, as_saved
from tests.models.conftest import propensities, someone, taught

MakeLearner = Callable[[list[int]], Learner]
METHODS = [
    *(f"model=fairall_I_II model.policy={policy}" for policy in ("z_dec", "z_label", "z_clf", "clf", "dec")),
    "model=fairall_II protocol=published_code",
    "model=fairlab_I_II",
    "model=fairlab_I_II protocol=published_code",
    "model=fairlog",
    "model=fairlog protocol=published_code",
    "model=fairlog model.decision=deterministic",
    *"""
        model=unfairlog model=greedy model=ensemble model=plot model=adopt model=neural_ucb
        model=explore_exploit model=fair_reductions model=sellf_one_step model=dcem
    """.split(),
    "model=dcem model.protected_as_feature=true",
    "model=multiple_imputation",
    "model=multiple_imputation model.odds_ratio=2",
    *"""
        model=accepted_only model=reweighting model=parcelling model=fuzzy_augmentation model=heckman
        model=basl
    """.split(),
    *(f"model=consequential model.policy={policy}" for policy in ("logistic", "semi_logistic", "threshold")),
    "model=consequential model.data=recent",
]
SMALL = {
    "clf_arch": [8],
    "vae_arch": [8],
    "policy_arch": [8],
    "generator_arch": [8, 6],
    "head_arch": [4],
    "discriminator_arch": [4],
    "adaptation_updates": 4,
    "latent_size": 2,
    "phase1": None,
    "elbo_samples": 3,
    "kl_samples": 4,
    "members": 4,
    "updates": 4,
    "clone_updates": 4,
    "policy_updates": 2,
    "batch_size": 32,
    "learning_rate": 0.01,
    "past_policies": 2,
    "alpha": 1 / 3,
    "iterations": 8,
    "rounds": 3,
    "solve_every": 2,
}


@pytest.fixture(params=METHODS)
def make(request: pytest.FixtureRequest, compose_config: ComposeConfig, setting: MakeSetting) -> MakeLearner:
    """The learner of some seeds, with small nets."""
    words = [*request.param.split(), "schedule.time_steps=4", "schedule.applicants=32", "preset=quick"]
    model = compose_config(*words, "evaluation.window=[2,4]").model
    model = replace(model, **{key: value for key, value in SMALL.items() if hasattr(model, key)})
    switches = [word for word in words if word.startswith(("protocol", "schedule"))]
    return lambda seeds: model.build(setting(seeds, *switches, "evaluation.window=[2,4]"))


@pytest.fixture
def crowd(people: MakePeople) -> People:
    return people(60)


def test_training_continues_from_a_checkpoint_to_the_last_bit(make: MakeLearner, crowd: People) -> None:
    first, second = taught(make([0, 3]), crowd, range(3)), make([0, 3])
    untaught = propensities(second, crowd)
    second.load_state_dict(first.state_dict())
    before = propensities(first, crowd)
    assert torch.equal(propensities(second, crowd), before), "a saved policy has all that π depends on"
    assert not torch.equal(untaught, before)
    saved = as_saved(first.training_state())
    second = make([0, 3])
    second.load_training_state(saved)
    for learner in (first, second):
        taught(learner, crowd, range(3, 6))
    for own, other in zip(first.state_dict().values(), second.state_dict().values(), strict=True):
        assert torch.equal(own, other)
    assert torch.equal(propensities(first, crowd), propensities(second, crowd))


def test_a_seed_learns_alone_what_it_learns_among_others(make: MakeLearner, crowd: People) -> None:
    stacked, alone = taught(make([0, 3, 4]), crowd, range(4)), taught(make([3]), crowd, range(4))
    for own, among in zip(alone.parameters(), stacked.parameters(), strict=True):
        copies = len(own)  # replicates of a seed
        torch.testing.assert_close(own, among[copies : 2 * copies], atol=1e-4, rtol=1e-3)
    decides, decide = (propensities(learner, crowd) for learner in (alone, stacked))
    torch.testing.assert_close(decides[0], decide[1], atol=1e-4, rtol=1e-3)


def test_propensities_are_of_the_person_and_drawn_as_the_rule_says(make: MakeLearner, crowd: People) -> None:
    learner = taught(make([0, 1]), crowd, range(3))
    everybody = propensities(learner, crowd)
    assert ((everybody >= 0) & (everybody <= 1)).all()
    assert learner.rule.drawn or set(everybody.flatten().tolist()) <= {0.0, 1.0}
    x, s = crowd.x.expand(2, -1, -1), crowd.s.expand(2, -1)
    if not isinstance(learner, LatentLearner):
        alone = learner.propensity(x[:, [5, 2]], s[:, [5, 2]], SeedStreams([0, 1], "others"))
        torch.testing.assert_close(alone, everybody[:, [5, 2]])
    decided = learner.explore(x, s, everybody, SeedStreams([0, 1], "u").uniform(len(crowd)))
    draws = learner.rule.drawn or isinstance(learner, Plot | ExploreExploit)
    assert draws == ((decided > 0) & (decided < 1)).any()


def test_accepting_nobody_or_one_group_spoils_no_number(make: MakeLearner, crowd: People) -> None:
    learner, other = make([0, 1, 3]), make([3])
    for step in range(3):
        decided, alone = someone(crowd, step, [0, 1, 3]), someone(crowd, step, [3])
        for field in fields(decided):
            if field.name not in ("x", "s", "weight"):
                getattr(decided, field.name)[0] = 0
                getattr(decided, field.name)[1][decided.s[1] < 0] = 0
        for own, batch in ((learner, decided), (other, alone)):
            if step == 0:
                own.warm_up_epoch(batch, 0)
            else:
                own.update(batch)
    assert all(parameter.isfinite().all() for parameter in learner.parameters())
    found = propensities(learner, crowd)
    assert found.isfinite().all()
    torch.testing.assert_close(found[2], propensities(other, crowd)[0], atol=1e-4, rtol=1e-3)
