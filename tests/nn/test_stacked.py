"""Nets of several replicates."""

import math

import torch

from fairall.nn.stacked import StackedLinear, StackedMLP
from fairall.runtime.randomness import SeedStreams


def test_every_replicate_is_an_ordinary_net_that_starts_as_it_does_alone() -> None:
    net, alone = (StackedMLP(3, [5, 4], 2, SeedStreams(seeds, "weights")) for seeds in (range(10), [3]))
    x = torch.randn(10, 7, 3)
    h = x[3]
    for layer in alone.layers:
        h = torch.relu(h) if layer is not alone.layers[0] else h
        h = h @ layer.weight[0] + layer.bias[0]
    torch.testing.assert_close(net(x)[3], h)
    for own, among in zip(alone.parameters(), net.parameters(), strict=True):
        assert torch.equal(own[0], among[3])


def test_xavier_uniform() -> None:
    weight = StackedLinear(40, 60, SeedStreams(range(5), "weights")).weight
    bound = math.sqrt(6 / 100)
    assert weight.abs().max() <= bound
    assert abs(weight.std().item() - bound / math.sqrt(3)) < 0.01 * bound


def test_dropout_keeps_the_expectation_and_only_acts_with_streams() -> None:
    net = StackedMLP(2, [400], 1, SeedStreams([0], "weights"), dropout=0.5)
    x, streams = torch.ones(1, 1, 2), SeedStreams([0], "dropout")
    exact = net(x)
    drawn = torch.stack([net(x, streams) for _ in range(2000)])
    assert drawn.std() > 0.01
    assert abs(drawn.mean() - exact.squeeze()) < 4 * drawn.std() / math.sqrt(2000)
