from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy, logsigmoid

from fairall.data.people import Decided
from fairall.models.classifier import accepted_cross_entropy
from fairall.models.learner import Setting
from fairall.models.rivals import sellf_one_step
from fairall.models.rivals.sellf_one_step import (
    PastPolicies,
    SellfOneStep,
    SellfOneStepConfig,
    confidence_weights,
    fairness_gap,
)
from fairall.nn.adam import Adam
from fairall.nn.stacked import StackedLinear, StackedMLP
from fairall.runtime.randomness import SeedStreams
from tests.conftest import ComposeConfig, MakePeople, MakeSetting
from tests.models.conftest import someone, taught, with_features


@pytest.fixture
def config(compose_config: ComposeConfig) -> SellfOneStepConfig:
    model = compose_config("model=sellf_one_step").model
    return replace(
        model, clf_arch=[8], policy_arch=[8], updates=3, batch_size=32, policy_updates=2, past_policies=3
    )


@pytest.fixture
def one_feature(setting: MakeSetting) -> MakeSetting:
    return lambda seeds, *words: with_features(setting(seeds, *words), "a")


def linear(net: StackedMLP, slope: float, intercept: float = 0.0) -> None:
    """Make a net without hidden layers the logit slope·x + intercept, whatever s."""
    layer = net.layers[-1]
    assert isinstance(layer, StackedLinear)
    with torch.no_grad():
        layer.weight.zero_()
        layer.weight[:, 0] = slope
        layer.bias.fill_(intercept)


def without_hidden_layers(learner: SellfOneStep) -> SellfOneStep:
    """The learner with linear nets."""
    seeds = list(learner.setting.seeds)
    learner.policy = learner.net([], SeedStreams(seeds, "linear policy"))
    learner.classifier = learner.net([], SeedStreams(seeds, "linear predictor"))
    copies = SeedStreams([seed for seed in seeds for _ in range(learner.config.past_policies)], "linear past")
    learner.past = PastPolicies(learner.net([], copies), seeds)
    learner.optimiser = Adam(learner.classifier.parameters(), learner.config.learning_rate)
    learner.policy_optimiser = Adam(learner.policy.parameters(), learner.config.policy_learning_rate)
    return learner


def remember(learner: SellfOneStep, *slopes: float) -> None:
    """Add linear past policies."""
    own = learner.policy.state_dict()
    own = {name: values.clone() for name, values in own.items()}
    for slope in slopes:
        linear(learner.policy, slope)
        learner.past.add(learner.policy)
    learner.policy.load_state_dict(own)


def batch_of(x: Tensor, propensity: float = 0.01) -> Decided:
    """People of one feature x (E, B), of both groups in turn, every third rejected."""
    n = torch.arange(x.shape[1])
    accepted, label = (n % 3 != 2).expand_as(x), (n % 5 < 2).float().expand_as(x)
    s = (1.0 - 2.0 * (n % 2)).expand_as(x)
    return Decided(x.unsqueeze(-1), s, torch.full_like(x, propensity), accepted, label * accepted)


def test_weights_of_two_past_policies(config: SellfOneStepConfig, one_feature: MakeSetting) -> None:
    learner = without_hidden_layers(SellfOneStep(config, one_feature([0, 1])))
    linear(learner.policy, 0.7, 0.2)
    linear(learner.classifier, -1.0, 0.5)
    remember(learner, 2.0, -1.0)
    batch = batch_of(torch.linspace(-2, 2, 24).expand(2, -1))
    x = batch.x.squeeze(-1).double()
    any_accepts = 1 - (1 - torch.sigmoid(2 * x)) * (1 - torch.sigmoid(-x))
    torch.testing.assert_close(learner.inverse_any(batch).double(), 1 / any_accepts, atol=1e-5, rtol=1e-5)

    rejects, m = 1 - torch.sigmoid(0.7 * x + 0.2), torch.sigmoid(0.5 - x)
    expected = torch.zeros(2, dtype=torch.float64)
    for k in range(2):
        for group in (1, -1):
            rows = np.flatnonzero((batch.s[k] == group) & batch.accepted[k])
            weight = (rejects / any_accepts)[k, rows]
            loss = binary_cross_entropy(m[k, rows], batch.label[k, rows].double(), reduction="none")
            expected[k] += (weight * loss).sum() / weight.sum()
    torch.testing.assert_close(learner.loss(batch).double(), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("bound", [None, 100.0, 4.0])
def test_weights_are_bounded_and_not_below_what_is_known_of_a_person(
    bound: float | None, config: SellfOneStepConfig, one_feature: MakeSetting
) -> None:
    word = "null" if bound is None else str(bound)
    learner = without_hidden_layers(SellfOneStep(config, one_feature([0], f"protocol.max_ips_weight={word}")))
    batch = batch_of(torch.full((1, 4), -8.0), propensity=0.2)
    torch.testing.assert_close(learner.inverse_any(batch), torch.full((1, 4), min(5.0, bound or 5.0)))
    batch = replace(batch, propensity=torch.zeros(1, 4))
    remember(learner, 1.0)
    chance = torch.sigmoid(torch.tensor(-8.0)).item()
    expected = 1 / chance if bound is None else bound
    torch.testing.assert_close(learner.inverse_any(batch), torch.full((1, 4), expected), rtol=1e-4, atol=0)


@pytest.mark.whole
def test_past_policies_are_a_uniform_sample_of_all() -> None:
    seeds, most, n = list(range(1500)), 4, 12
    copies = [seed for seed in seeds for _ in range(most)]
    past = PastPolicies(StackedMLP(2, [3], 1, SeedStreams(copies, "empty")), seeds)
    policy = StackedMLP(2, [3], 1, SeedStreams(seeds, "policies"))
    nobody = torch.zeros(1500, 2, 1)
    assert (past.any_accepts(nobody) == 0).all()
    last = policy.layers[-1]
    assert isinstance(last, StackedLinear)
    for t in range(n):
        with torch.no_grad():
            last.weight.zero_()
            last.bias.fill_(-t / 4)  # of inputs 0, a logit by which the policy is known
        past.add(policy)
        if t == 1:
            chance = 1 - (1 - 0.5) * (1 - torch.sigmoid(torch.tensor(-0.25)))
            torch.testing.assert_close(past.any_accepts(nobody), chance.expand(1500, 1))
    kept = past.net.weights_and_biases()[-1].view(1500, most) * -4
    for own in kept:
        assert len(set(own.tolist())) == most
    share = torch.stack([(kept == t).any(1).float().mean() for t in range(n)])
    torch.testing.assert_close(share, torch.full((n,), most / n), atol=0.045, rtol=0)

    alone = PastPolicies(StackedMLP(2, [3], 1, SeedStreams([7] * most, "empty")), [7])
    single = StackedMLP(2, [3], 1, SeedStreams([7], "policies"))
    for t in range(n):
        torch.nn.init.constant_(single.weights_and_biases()[-1], -t / 4)
        alone.add(single)
    assert torch.equal(alone.net.weights_and_biases()[-1].view(most) * -4, kept[7])


def reliability(weighted: bool, config: SellfOneStepConfig, given: Setting) -> Tensor:
    """Mean |m − p| over people whom the policy rejects, shape (E,), of a linear m trained on the accepted.

    P(ỹ = 1 | x) is a V in x. The past policy accepts at the right, and only at times at the left; the
    present one rejects the left.
    """
    seeds = list(given.seeds)
    learner = without_hidden_layers(SellfOneStep(config, given))
    linear(learner.policy, 4.0)
    remember(learner, 1.5)
    streams = SeedStreams(seeds, "toy")
    x = 4 * streams.uniform(6000) - 2
    p = 0.1 + 0.4 * x.abs()
    s = 2.0 * (streams.uniform(6000) < 0.5) - 1.0
    propensity = torch.sigmoid(1.5 * x)
    label, accepted = (streams.uniform(6000) < p).float(), streams.uniform(6000) < propensity
    everybody = Decided(x.unsqueeze(-1), s, propensity, accepted, label * accepted)
    for _ in range(150):
        learner.optimiser.zero_grad()
        if weighted:
            loss = learner.loss(everybody)
        else:
            loss = accepted_cross_entropy(learner.classifier.logit(everybody.x, s), everybody)
        loss.sum().backward()
        learner.optimiser.step()
    rejects = 1 - learner.accepts(everybody.x, s)
    error = (torch.sigmoid(learner.classifier.logit(everybody.x, s)) - p).abs()
    return ((rejects * error).sum(-1) / rejects.sum(-1)).detach()


@pytest.mark.whole
def test_the_weights_make_a_misspecified_predictor_right_where_the_policy_rejects(
    config: SellfOneStepConfig, one_feature: MakeSetting
) -> None:
    given = one_feature([0, 1, 2, 3, 4])
    config = replace(config, learning_rate=0.05)
    weighted, unweighted = (reliability(own, config, given) for own in (True, False))
    assert (weighted < 0.07).all()
    assert (unweighted > 0.2).all()


def test_gap_is_that_of_rates_by_hand_and_0_without_one_of_them() -> None:
    generator = torch.Generator().manual_seed(0)
    accepts, label = torch.rand(2, 3, 20, generator=generator)
    s = 2.0 * (torch.rand(3, 20, generator=generator) < 0.5) - 1.0
    s[2] = 1.0
    label[1, s[1] < 0] = 0.0
    tpr, accuracy = (fairness_gap(name, accepts, label, s) for name in ("tpr", "accuracy"))
    for k in range(3):
        rates, right = [], []
        for group in (1, -1):
            pi, y = accepts[k][s[k] == group], label[k][s[k] == group]
            rates.append(((pi * y).sum() / y.sum()).item())
            right.append((pi * y + (1 - pi) * (1 - y)).mean().item())
        assert tpr[k].item() == (pytest.approx(abs(rates[0] - rates[1]), abs=1e-5) if k == 0 else 0.0)
        assert accuracy[k].item() == (pytest.approx(abs(right[0] - right[1]), abs=1e-5) if k < 2 else 0.0)


def test_confidence_weights_are_second_moments_times_the_share_of_rejected() -> None:
    generator = torch.Generator().manual_seed(1)
    accepts, label, any_accepts = torch.rand(3, 1, 400, generator=generator)
    s = 2.0 * (torch.rand(1, 400, generator=generator) < 0.3) - 1.0
    moments, c = {}, {}
    for name in ("accuracy", "tpr"):
        c[name] = confidence_weights(name, accepts, label, 1 / any_accepts, s)[:, 0]
        torch.testing.assert_close(c[name].sum(), torch.tensor(1.0))
    terms = []
    for group in (1, -1):
        pi, a = accepts[s == group].double(), any_accepts[s == group].double()
        rejected, remembered = (1 - pi) / (1 - pi).sum(), a / a.sum()  # distributions over the group
        moments[group] = (rejected.square() / remembered).sum() * (1 - pi).mean()
        terms.append(((1 - pi).square() / a).mean())
    ratio = c["accuracy"][0] * terms[0] / (c["accuracy"][1] * terms[1])
    assert ratio.item() == pytest.approx((moments[1] / moments[-1]).item(), rel=1e-4)
    labels = [label[s == group].mean() for group in (1, -1)]
    ratio = c["tpr"][0] / c["tpr"][1] / (c["accuracy"][0] / c["accuracy"][1])
    assert ratio.item() == pytest.approx((labels[1] / labels[0]).item(), rel=1e-4)


def test_loss_of_the_policy_is_its_closed_form(config: SellfOneStepConfig, one_feature: MakeSetting) -> None:
    given = one_feature([0], "cost.value=0.3", "protocol.max_ips_weight=5")
    config = replace(config, beta_1=3.0, beta_2=0.2, omega=0.02)
    learner = without_hidden_layers(SellfOneStep(config, given))
    linear(learner.policy, 1.0, -0.5)
    linear(learner.classifier, 2.0, 0.1)
    remember(learner, 0.5)
    batch = batch_of(torch.linspace(-1, 2, 15).unsqueeze(0), propensity=0.25)
    x, s = batch.x.squeeze(-1), batch.s
    pi, m = torch.sigmoid(x - 0.5), torch.sigmoid(2 * x + 0.1)
    imputed = torch.where(batch.accepted, batch.label, m)
    inverse = 1 / torch.maximum(torch.sigmoid(0.5 * x), torch.tensor(0.25))
    utility = (batch.accepted * 4.0 * (batch.label - 0.3) * pi).mean()
    gap = fairness_gap("tpr", pi, imputed, s)
    c = confidence_weights("tpr", pi, imputed, inverse, s)
    term = sum(c[g] * ((1 - pi).square() * inverse)[s == group].mean() for g, group in enumerate((1, -1)))
    assert gap > 0.01
    expected = -utility + 3.0 * (gap - 0.01) + 0.2 * term
    torch.testing.assert_close(learner.policy_loss(batch).detach(), expected)
    fair = SellfOneStep(replace(config, omega=2.0), given)
    fair.load_state_dict(SellfOneStep(replace(config, beta_1=0.0), given).state_dict())
    free = SellfOneStep(replace(config, beta_1=0.0), given)
    torch.testing.assert_close(fair.policy_loss(batch), free.policy_loss(batch), rtol=0, atol=0)


@pytest.mark.parametrize("fairness", ["tpr", "accuracy"])
def test_gradient_of_the_policy_is_that_of_finite_differences(
    fairness: str, config: SellfOneStepConfig, one_feature: MakeSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(config, fairness=fairness, beta_1=3.0, beta_2=0.7, omega=0.0)
    learner = SellfOneStep(config, one_feature([0])).double()
    batch = batch_of(torch.linspace(-1, 2, 14, dtype=torch.float64).unsqueeze(0), propensity=0.25)
    batch = replace(batch, label=batch.label.double(), s=batch.s.double())
    # c_g is not differentiated.
    fixed = torch.tensor([[0.3], [0.7]], dtype=torch.float64)
    monkeypatch.setattr(sellf_one_step, "confidence_weights", lambda *_: fixed)
    weights = learner.policy.weights_and_biases()
    found = torch.autograd.grad(learner.policy_loss(batch).sum(), weights)
    for parameter, gradient in zip(weights, found, strict=True):
        for place in np.ndindex(*parameter.shape):
            values = []
            for step in (1e-6, -1e-6):
                with torch.no_grad():
                    parameter[place] += step
                    values.append(learner.policy_loss(batch).item())
                    parameter[place] -= step
            assert (values[0] - values[1]) / 2e-6 == pytest.approx(gradient[place].item(), abs=1e-7)


def test_each_net_is_trained_by_its_own_loss(config: SellfOneStepConfig, one_feature: MakeSetting) -> None:
    learner = SellfOneStep(config, one_feature([0]))
    batch = batch_of(torch.linspace(-1, 2, 14).unsqueeze(0), propensity=0.25)
    learner.loss(batch).sum().backward()
    assert all(parameter.grad is None for parameter in learner.policy.parameters())
    predictor = [parameter.grad.clone() for parameter in learner.classifier.parameters()]  # type: ignore[union-attr]
    learner.policy_loss(batch).sum().backward()
    for parameter, before in zip(learner.classifier.parameters(), predictor, strict=True):
        assert parameter.grad is not None
        assert torch.equal(parameter.grad, before)
    assert all(parameter.grad is not None for parameter in learner.policy.parameters())


def trained_gap(beta_1: float, fairness: str, config: SellfOneStepConfig, given: Setting) -> Tensor:
    """The gap of true labels after training on unequal groups, half of the people accepted, shape (E,)."""
    changes = {"beta_1": beta_1, "beta_2": 0.0, "omega": 0.1, "fairness": fairness, "past_policies": 1}
    training = {"policy_learning_rate": 0.01, "policy_updates": 50, "updates": 30, "batch_size": 500}
    seeds = list(given.seeds)
    learner = SellfOneStep(replace(config, **changes, **training), given)  # type: ignore[arg-type]
    streams = SeedStreams(seeds, "unequal")

    def drawn(n: int) -> Decided:
        uniform, luck, decision = streams.uniform(3, n).unbind(1)
        s = 2.0 * (uniform < 0.5) - 1.0
        worth = streams.normal(n) + 0.7 * s
        label = (worth + 0.5 * streams.normal(n) > 0).float()
        x = torch.where(s > 0, worth, 0.1 * worth + 2 * luck - 1)  # tells less of S = −1
        half, accepted = torch.full_like(s, 0.5), decision < 0.5
        return Decided(x.unsqueeze(-1), s, half, accepted, label)

    for _ in range(8):
        decided = drawn(1000)
        learner.update(replace(decided, label=decided.label * decided.accepted))
    people = drawn(10_000)
    return fairness_gap(fairness, learner.propensity(people.x, people.s, streams), people.label, people.s)


@pytest.mark.whole
@pytest.mark.parametrize("fairness", ["tpr", "accuracy"])
def test_a_large_beta_1_drives_the_gap_under_half_of_omega(
    fairness: str, config: SellfOneStepConfig, one_feature: MakeSetting
) -> None:
    given = one_feature([0, 1])
    free, fair = (trained_gap(beta_1, fairness, config, given) for beta_1 in (0.0, 10.0))
    assert (free > 0.1).all()
    assert (fair < 0.05).all()


def test_the_policies_that_decided_are_remembered_and_those_of_the_warm_up_are_not(
    config: SellfOneStepConfig, setting: MakeSetting, people: MakePeople
) -> None:
    crowd, learner = people(60), SellfOneStep(config, setting([0]))
    taught(learner, crowd, range(1))
    assert learner.past.added == 0
    decided = someone(crowd, 1, [0])
    chance = learner.propensity(decided.x, decided.s, SeedStreams([0], "p"))
    learner.update(decided)
    columns = learner.classifier.columns(decided.x, decided.s)
    torch.testing.assert_close(learner.past.any_accepts(columns), chance)
    assert not torch.allclose(learner.propensity(decided.x, decided.s, SeedStreams([0], "p")), chance)


def test_log_space_keeps_small_chances() -> None:
    past = PastPolicies(StackedMLP(1, [], 1, SeedStreams([0] * 2, "empty")), [0])
    policy = StackedMLP(1, [], 1, SeedStreams([0], "policy"))
    linear(policy, 1.0)
    past.add(policy)
    chance = past.any_accepts(torch.tensor([[[-20.0, 40.0]]]))
    torch.testing.assert_close(chance, logsigmoid(torch.tensor([[-20.0, 40.0]])).exp())
