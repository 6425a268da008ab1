import math

import torch

from fairall.nn.stacked import StackedLinear, StackedMLP
from fairall.runtime.randomness import SeedStreams


def test_every_replicate_is_an_ordinary_net() -> None:
    net = StackedMLP(3, [5, 4], 2, SeedStreams([0, 1, 2], "weights"))
    x = torch.randn(3, 7, 3)
    stacked = net(x)
    for k in range(3):
        h = x[k]
        for i, layer in enumerate(net.layers):
            h = h @ layer.weight[k] + layer.bias[k]
            h = torch.relu(h) if i < 2 else h
        torch.testing.assert_close(stacked[k], h)


def test_xavier_uniform() -> None:
    weight = StackedLinear(40, 60, SeedStreams(range(5), "weights")).weight
    bound = math.sqrt(6 / 100)
    assert weight.abs().max() <= bound
    assert abs(weight.std().item() - bound / math.sqrt(3)) < 0.01 * bound


def test_a_replicate_starts_the_same_alone() -> None:
    among = StackedMLP(3, [5], 2, SeedStreams(range(10), "weights")).state_dict()
    alone = StackedMLP(3, [5], 2, SeedStreams([3], "weights")).state_dict()
    for name, values in alone.items():
        torch.testing.assert_close(among[name][3:4], values, rtol=0, atol=0)


def test_dropout_keeps_the_expectation_and_only_acts_with_streams() -> None:
    net = StackedMLP(2, [400], 1, SeedStreams([0], "weights"), dropout=0.5)
    x = torch.ones(1, 1, 2)
    exact = net(x)
    torch.testing.assert_close(net(x), exact)
    streams = SeedStreams([0], "dropout")
    drawn = torch.stack([net(x, streams) for _ in range(2000)])
    assert drawn.std() > 0.01
    assert abs(drawn.mean() - exact.squeeze()) < 4 * drawn.std() / math.sqrt(2000)
