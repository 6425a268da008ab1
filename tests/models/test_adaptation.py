import pytest
import torch
from torch import Tensor

from fairall.data.people import Decided
from fairall.models.adaptation import AdaptedNet, Reversed, discriminator_loss
from fairall.models.classifier import accepted_cross_entropy
from fairall.nn.adam import Adam
from fairall.runtime.randomness import SeedStreams
from tests.conftest import MakeSetting


@pytest.fixture
def net(two_features: MakeSetting) -> AdaptedNet:
    """Of two replicates."""
    schema = two_features([0, 1]).schema
    return AdaptedNet(schema, [8, 6], [5], [4], SeedStreams([0, 1], "adapted"), gain=1.0)


def people(n: int, purpose: str, shift: float = 0.0) -> Decided:
    """Accepted people of two replicates whose label is whether the second feature is positive."""
    streams = SeedStreams([0, 1], purpose)
    x = streams.normal(n, 2) + torch.tensor([shift, 0.0])
    s = 2.0 * (streams.uniform(n) < 0.5) - 1.0
    sure = torch.ones_like(s)
    return Decided(x, s, sure, sure > 0, (x[..., 1] > 0).float())


def test_the_gradient_is_reversed() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    Reversed.apply(x).square().sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [-2.0, -4.0]


def test_the_discriminator_descends_and_the_generator_ascends(net: AdaptedNet) -> None:
    source, target = people(12, "source"), people(7, "target", 1.0)

    def separation() -> Tensor:
        """Cross-entropy of the discriminator, without reversal."""
        logits = [
            net.discriminator.forward_transposed(net.representation(some.x, some.s)).squeeze(1)
            for some in (source, target)
        ]
        return discriminator_loss(logits[0], logits[1], source.accepted).sum()

    first, judge = next(net.generator.parameters()), next(net.discriminator.parameters())
    whole = torch.autograd.grad(net.loss(source, target).sum(), [first, judge])
    labels = torch.autograd.grad(accepted_cross_entropy(net.logit(source.x, source.s), source).sum(), first)
    apart = torch.autograd.grad(separation(), [first, judge])
    assert apart[0].abs().max() > 1e-3
    torch.testing.assert_close(whole[0], labels[0] - apart[0], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(whole[1], apart[1], rtol=1e-4, atol=1e-6)


def test_the_loss_is_that_of_numbers(net: AdaptedNet) -> None:
    of_source, of_target = torch.tensor([[0.5, -1.0]]), torch.tensor([[2.0]])
    chance = torch.sigmoid(torch.tensor([0.5, -1.0, 2.0])).double()
    expected = -(1 - chance[:2]).log().mean() - chance[2].log()
    found = discriminator_loss(of_source, of_target, torch.ones(1, 2).bool())
    torch.testing.assert_close(found.double(), expected[None])
    assert discriminator_loss(of_source, of_target, torch.zeros(1, 2).bool()).tolist() == [0.0]


def test_what_the_target_shares_remains_and_the_rest_is_hidden(net: AdaptedNet) -> None:
    slow = Adam([*net.generator.parameters(), *net.classifier.parameters()], 0.003, (0.0, 0.99))
    fast = Adam(net.discriminator.parameters(), 0.015, (0.0, 0.99))
    for step in range(400):
        fast.zero_grad()
        slow.minimise(net.loss(people(32, f"source {step}"), people(32, f"target {step}", 3.0)))
        fast.step()
    target = people(500, "more", 3.0)
    right = (net.logit(target.x, target.s) > 0) == (target.label > 0)
    assert (right.float().mean(-1) > 0.9).all()
