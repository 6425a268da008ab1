from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fairall.data.people import Decided, People
from fairall.models.learner import Setting
from fairall.models.rivals.consequential import DATA, FAIRNESS, Consequential, ConsequentialConfig
from fairall.runtime.randomness import SeedStreams
from tests.conftest import ComposeConfig, MakePeople, MakeSetting, warm_up
from tests.models.conftest import decided_on, with_features

COST = 0.4
# A population of six kinds: people of each, share with label 1, propensity of two policies of the past.
X = torch.tensor([-1.0, 0.0, 2.0, -1.0, 0.0, 2.0])
S = torch.tensor([-1.0, -1.0, -1.0, 1.0, 1.0, 1.0])
NUMBER = torch.tensor([16, 8, 16, 8, 24, 8])
QUALIFIED = torch.tensor([0.25, 0.5, 0.75, 0.25, 0.5, 1.0])
PAST = torch.tensor([[0.5, 0.25, 1.0, 0.25, 0.5, 0.5], [0.25, 1.0, 0.5, 1.0, 0.25, 0.25]])


@pytest.fixture
def config(compose_config: ComposeConfig) -> ConsequentialConfig:
    model: ConsequentialConfig = compose_config("model=consequential").model
    return replace(model, batch_size=64)


def one_feature(given: Setting) -> Setting:
    return replace(with_features(given, "a"), cost=COST)


def as_expected() -> Decided:
    """The population, decided by both policies, each of which accepts exactly the expected numbers."""
    rows = []
    for past in PAST:
        for kind in range(6):
            n = 4 * int(NUMBER[kind])  # so that all numbers below are whole
            for outcome, share in ((1.0, QUALIFIED[kind]), (0.0, 1.0 - QUALIFIED[kind])):
                among = int(share * n)
                accepted = (torch.arange(among) < past[kind] * among).float()
                columns = [value.expand(among) for value in (X[kind], S[kind], past[kind])]
                rows.append(torch.stack([*columns, accepted, outcome * accepted], dim=-1))
    x, s, propensity, accepted, label = torch.cat(rows).unsqueeze(0).unbind(-1)
    return Decided(x.unsqueeze(-1), s, propensity, accepted > 0, label)


def objective(learner: Consequential, policy: str, fairness: str) -> Tensor:
    """E[π(ỹ − c)] − λ/2·Δb² of the population, computed from its probabilities."""
    probability = torch.sigmoid(learner.classifier.logit(X.view(1, 6, 1), S.view(1, 6)))[0]
    pi = torch.where(probability < 0.5, probability, 1.0) if policy == "semi_logistic" else probability
    share = NUMBER / NUMBER.sum()
    benefit = {"none": 0.0 * pi, "demographic_parity": pi, "equal_opportunity": pi * QUALIFIED}[fairness]
    of_s = [(share * benefit)[own].sum() / share[own].sum() for own in (S < 0, S > 0)]
    gap = of_s[1] - of_s[0]
    return (share * pi * (QUALIFIED - COST)).sum() - 0.5 * learner.config.lambda_ * gap**2


@pytest.mark.parametrize("fairness", FAIRNESS)
@pytest.mark.parametrize("policy", ["logistic", "semi_logistic"])
def test_loss_and_gradient_are_those_of_the_population_whoever_decided(
    policy: str, fairness: str, config: ConsequentialConfig, setting: MakeSetting
) -> None:
    config = replace(config, policy=policy, fairness=fairness, lambda_=3.0)
    learner = Consequential(config, one_feature(setting([0])))
    layer = learner.classifier.layers[0]
    with torch.no_grad():  # some σ above ½, some below
        layer.weight.copy_(torch.tensor([[[0.4], [-0.5]]]))
        layer.bias.fill_(-0.3)
    data = as_expected()
    learner.memory.add(data)
    learner.memory.add(data)  # both halves of the minibatch below are the population
    learner.train_classifier()  # counts weights
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[[0.4], [-0.5]]]))
        layer.bias.fill_(-0.3)
    weights = list(learner.parameters())
    estimate, exact = learner.loss(learner.memory.rows()).sum(), -objective(learner, policy, fairness)
    torch.testing.assert_close(estimate, exact, rtol=1e-4, atol=1e-6)
    of_both = zip(*(torch.autograd.grad(loss, weights) for loss in (estimate, exact)), strict=True)
    for estimated, closed_form in of_both:
        assert closed_form.abs().max() > 1e-3
        torch.testing.assert_close(estimated, closed_form, rtol=1e-3, atol=1e-6)


@pytest.mark.whole
def test_the_penalty_of_minibatches_has_the_square_of_the_gap_as_its_mean(
    config: ConsequentialConfig, setting: MakeSetting
) -> None:
    config = replace(config, fairness="demographic_parity", lambda_=2.0, batch_size=32)
    learner = Consequential(config, one_feature(setting([0])))
    learner.memory.add(as_expected())
    learner.train_classifier()
    streams, penalties = SeedStreams([0], "minibatches"), []
    with torch.no_grad():
        for _ in range(4000):
            batch = learner.memory.sample(32, streams)
            pi = torch.sigmoid(learner.classifier.logit(batch.x, batch.s))
            penalties.append(learner.penalty(pi, batch))
        unpenalised = Consequential(replace(config, lambda_=0.0), learner.setting)
        unpenalised.load_state_dict(learner.state_dict())
        exact = objective(unpenalised, "logistic", "none") - objective(
            learner, "logistic", "demographic_parity"
        )
    measured = torch.cat(penalties)
    error = measured.std() / 4000**0.5
    assert (measured.mean() - exact).abs() < 4 * error
    # The mean square of one Δb would be greater by its variance, many times this error.
    assert error < 0.005


def late_profit(policy: str, config: ConsequentialConfig, given: Setting) -> tuple[Tensor, Tensor]:
    """Utility per applicant (E,) and final π of both kinds of people (E, 2), after a start of bad luck.

    Of x = −1 70 % have label 1, of x = +1 80 %, so that accepting everybody is best; but the four people with
    x = −1 whom the initial policy happens to accept have label 0.
    """
    learner = Consequential(replace(config, policy=policy, fairness="none"), given)
    n_seeds = len(given.seeds)
    x = torch.tensor([-1.0] * 4 + [1.0] * 20).expand(n_seeds, -1)
    s = torch.tensor([-1.0, 1.0] * 12).expand(n_seeds, -1)
    label = torch.tensor([0.0] * 4 + [1.0] * 16 + [0.0] * 4).expand(n_seeds, -1)
    half = torch.full_like(s, 0.5)
    warm_up(learner, Decided(x.unsqueeze(-1), s, half, half > 0, label))
    world, earned = SeedStreams(given.seeds, "toy"), torch.zeros(n_seeds)
    for _ in range(30):
        kind, group, luck, decision = world.uniform(4, 64).unbind(1)
        x, s = torch.where(kind < 0.5, -1.0, 1.0), torch.where(group < 0.5, -1.0, 1.0)
        people = People(x.unsqueeze(-1), s, (luck < torch.where(x < 0, 0.7, 0.8)).float())
        propensity = learner.propensity(people.x, s, world)
        accepted = decision < propensity
        earned += (accepted * (people.label - COST)).mean(-1) / 30
        learner.update(Decided.reveal(people, propensity, accepted))
    kinds = torch.tensor([-1.0, 1.0]).expand(n_seeds, -1)
    return earned, learner.propensity(kinds.unsqueeze(-1), kinds, world)


@pytest.mark.whole
def test_a_threshold_rule_stays_in_the_error_that_semi_logistic_policies_leave(
    config: ConsequentialConfig, setting: MakeSetting
) -> None:
    given = one_feature(setting([0, 1, 2], "schedule.warm_up_epochs=8"))
    config = replace(config, learning_rate=0.03, updates=10)
    stuck, stuck_at = late_profit("threshold", config, given)
    earned, ends_at = late_profit("semi_logistic", config, given)
    assert torch.equal(stuck_at, torch.tensor([0.0, 1.0]).expand(3, 2))
    assert (ends_at > 0.9).all()
    assert (earned > stuck + 0.05).all()


@pytest.mark.whole
@pytest.mark.parametrize("fairness", FAIRNESS)
def test_a_large_multiplier_closes_the_gap_that_it_penalises(
    fairness: str, config: ConsequentialConfig, setting: MakeSetting
) -> None:
    generator = torch.Generator().manual_seed(3)
    s = 2.0 * (torch.rand(2, 2000, generator=generator) < 0.6) - 1.0
    worth = torch.randn(2, 2000, generator=generator)
    label = (worth + s + 0.3 * torch.randn(2, 2000, generator=generator) > 0).float()
    people = People((worth + 0.5 * s).unsqueeze(-1), s, label)
    half = torch.full_like(s, 0.5)
    learner = Consequential(
        replace(config, fairness=fairness, lambda_=50.0, batch_size=512), one_feature(setting([0, 1]))
    )
    learner.update(Decided.reveal(people, half, torch.rand(half.shape, generator=generator) < half))
    for _ in range(40):
        learner.train_classifier()
    pi = learner.propensity(people.x, s, SeedStreams([0, 1], "p"))
    benefit = pi * label if fairness == "equal_opportunity" else pi
    gap = torch.stack([benefit[k][s[k] > 0].mean() - benefit[k][s[k] < 0].mean() for k in range(2)])
    assert (gap > 0.4).all() if fairness == "none" else (gap.abs() < 0.06).all()


def test_a_threshold_rule_is_the_most_likely_logistic_model_cut_at_the_cost(
    config: ConsequentialConfig, setting: MakeSetting
) -> None:
    config = replace(config, policy="threshold", fairness="none", learning_rate=0.05, updates=400)
    learner = Consequential(config, one_feature(setting([0])))
    data = as_expected()
    learner.memory.add(data)
    learner.minibatches = lambda: [learner.memory.rows()] * config.updates  # type: ignore[method-assign]
    learner.train_classifier()
    logit = learner.classifier.logit(data.x, data.s)[0].detach()
    known, residual = data.accepted[0], data.label[0] - torch.sigmoid(logit)
    # The score equations of the unweighted likelihood hold, and not those of the weighted one.
    columns = torch.stack([data.x[0, :, 0], data.s[0], torch.ones_like(logit)])
    assert ((columns * residual)[:, known].mean(-1).abs() < 1e-4).all()
    assert (columns * residual / data.propensity[0])[:, known].mean(-1).abs().max() > 0.01
    kinds = X.view(1, 6, 1), S.view(1, 6)
    p = torch.sigmoid(learner.classifier.logit(*kinds))
    assert torch.equal(learner.propensity(*kinds, learner.streams), (p >= COST).float())
    assert ((p > COST) != (p > 0.5)).any(), "c and ½ decide otherwise"
    torch.testing.assert_close(learner.log_odds(*kinds, learner.streams), p.logit().double())


@pytest.mark.parametrize("sees_s", [True, False])
def test_the_policy_sees_s_only_as_a_feature(
    sees_s: bool, config: ConsequentialConfig, setting: MakeSetting
) -> None:
    config = replace(config, protected_as_feature=sees_s, fairness="none", learning_rate=0.05)
    learner = Consequential(config, one_feature(setting([0])))
    learner.memory.add(as_expected())
    learner.train_classifier()
    of_group = (learner.propensity(X.view(1, 6, 1), s * torch.ones(1, 6), learner.streams) for s in (-1, 1))
    assert torch.equal(*of_group) != sees_s
    assert (learner.total > 0).all()


def test_recent_data_forget_and_all_data_do_not(
    config: ConsequentialConfig, setting: MakeSetting, people: MakePeople
) -> None:
    for data in DATA:
        learner = Consequential(replace(config, data=data), setting([0, 1], "schedule.warm_up_epochs=1"))
        warm_up(learner, decided_on(people(30), 2))
        learner.update(decided_on(people(20), 2))
        expected = decided_on(people(20), 2).accepted.sum(-1)
        if data == "all":
            expected += decided_on(people(30), 2).accepted.sum(-1)
        assert torch.equal(learner.memory.counts, expected)
