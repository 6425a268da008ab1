"""Random numbers by counter: the same compiled and not, and distributed as they should be."""

from collections.abc import Iterator
from statistics import NormalDist

import pytest
import torch
from scipy import stats
from torch import Tensor

from fairall.nn.native import calls
from fairall.nn.noise import RandomNumbers, philox


@pytest.fixture(params=["compiled", "numpy"])
def computed(request: pytest.FixtureRequest) -> Iterator[str]:
    """Both ways to compute the numbers."""
    if request.param == "compiled" and calls.kernels() is None:
        pytest.skip("numba is not installed, or switched off")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "numpy":
            patch.setattr(calls, "kernels", lambda: None)
        yield request.param


def test_philox_is_that_of_its_definition() -> None:
    def block(key: int, counter: int) -> list[int]:
        """Salmon et al. 2011, section 3.3, in whole numbers."""
        words, keys = [counter & 0xFFFFFFFF, counter >> 32, 0, 0], [key & 0xFFFFFFFF, key >> 32]
        for _ in range(10):
            first, second = 0xD2511F53 * words[0], 0xCD9E8D57 * words[2]
            words = [
                (second >> 32) ^ words[1] ^ keys[0],
                second & 0xFFFFFFFF,
                (first >> 32) ^ words[3] ^ keys[1],
                first & 0xFFFFFFFF,
            ]
            keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
        return words

    # The first is a known answer of the authors' library.
    assert block(0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    key, counter = 0x0123456789ABCDEF, 2**32 - 2
    expected = [block(key, counter + i) for i in range(4)]
    assert philox(key, counter, 4).reshape(4, 4).T.tolist() == expected


@pytest.mark.skipif(calls.kernels() is None, reason="numba is not installed, or switched off")
@pytest.mark.parametrize("shape", [(1,), (3,), (4, 5), (7, 3, 11), (0, 2), (5, 1)], ids=str)
@pytest.mark.parametrize("kind", ["uniform", "normal", "samples"])
def test_numbers_and_state_are_the_same_compiled_and_not(
    kind: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def drawn() -> tuple[Tensor, Tensor]:
        noise = RandomNumbers([5, 6], "test", stratified=True)
        draw = getattr(noise, kind)
        draw(3)
        return draw(*shape, counts=[shape[0], max(0, shape[0] - 1)]), noise.state

    numbers, state = drawn()
    monkeypatch.setattr(calls, "kernels", lambda: None)
    expected, known = drawn()
    if kind == "uniform":
        assert torch.equal(numbers, expected)
    torch.testing.assert_close(numbers, expected, rtol=2e-6, atol=2e-6)
    assert torch.equal(state, known)


def test_numbers_of_a_seed_depend_on_seed_and_purpose_alone(computed: str) -> None:
    together, alone, other = RandomNumbers([3, 4], "a"), RandomNumbers([4], "a"), RandomNumbers([4], "b")
    together.uniform(6, counts=[6, 2])
    alone.uniform(2)
    other.uniform(2)
    assert torch.equal(together.normal(5, 4)[1], alone.normal(5, 4)[0])
    assert not torch.equal(alone.uniform(8), other.uniform(8))


def test_a_saved_state_goes_on_with_the_same_numbers(computed: str) -> None:
    noise = RandomNumbers([0, 1], "test", stratified=True)
    noise.samples(3, 7)
    again = RandomNumbers([0, 1], "test", stratified=True)
    again.load_state_dict({name: value.clone() for name, value in noise.state_dict().items()})
    for kind in ("uniform", "normal", "samples"):
        assert torch.equal(getattr(noise, kind)(4, 5), getattr(again, kind)(4, 5))


def test_uniform_numbers_are_uniform_and_never_0_or_1(computed: str) -> None:
    numbers = RandomNumbers([0], "test").uniform(200_000)[0]
    assert numbers.min() > 0.0
    assert numbers.max() < 1.0
    assert stats.kstest(numbers.double(), "uniform").pvalue > 1e-3
    lagged = torch.corrcoef(torch.stack([numbers[:-1], numbers[1:]]))[0, 1]
    assert abs(lagged) < 4 / 200_000**0.5


def test_normal_numbers_are_normal_to_their_tails(computed: str) -> None:
    numbers = RandomNumbers([1], "test").normal(400_000)[0].double()
    assert stats.kstest(numbers, "norm").pvalue > 1e-3
    for bound in (2.0, 3.0, 4.0):
        share, expected = (numbers.abs() > bound).double().mean(), 2 * NormalDist().cdf(-bound)
        assert abs(share - expected) < 4 * (expected / 400_000) ** 0.5


@pytest.mark.parametrize("n", [2, 7, 20])
def test_stratified_samples_have_one_pair_in_each_stratum(n: int, computed: str) -> None:
    drawn = RandomNumbers([2], "test", stratified=True).samples(50, 3, n)[0]
    half = (n + 1) // 2
    assert torch.equal(drawn[..., 1::2], -drawn[..., 0 : 2 * (n // 2) : 2])
    strata = (torch.special.erf(drawn[..., ::2].abs() / 2**0.5) * half).long()
    assert torch.equal(strata.sort(-1).values, torch.arange(half).expand(50, 3, -1))


def test_every_stratified_sample_is_standard_normal_with_independent_coordinates(computed: str) -> None:
    drawn = RandomNumbers([3], "test", stratified=True).samples(40_000, 3, 6)[0].double()
    for place in (0, 1, 5):  # pairs are in a random order too
        assert stats.kstest(drawn[:, 0, place], "norm").pvalue > 1e-3
    for values in (drawn[..., 2], drawn[..., 2].square(), drawn[..., 2].abs()):
        assert (torch.corrcoef(values.T) - torch.eye(3)).abs().max() < 4 / 40_000**0.5


def test_stratified_averages_are_unbiased_and_vary_less() -> None:
    def averages(stratified: bool) -> Tensor:
        z = RandomNumbers([4], "test", stratified=stratified).samples(20_000, 2, 20)[0].double()
        return torch.stack([torch.exp(0.5 * z[:, 0]), torch.sigmoid(z[:, 0] + z[:, 1] + 0.3)]).mean(-1)

    points, weights = torch.linspace(-8, 8, 4001).double(), torch.tensor(0.0)
    weights = torch.exp(-0.25 * points.square()) / 2.0 / torch.pi**0.5 * (points[1] - points[0])
    logistic = (torch.sigmoid(points + 0.3) * weights).sum()  # z1 + z2 has variance 2
    truth = torch.stack([torch.tensor(0.125).double().exp(), logistic])
    stratified, independent = averages(True), averages(False)
    for found in (stratified, independent):
        error = found.std(-1) / 20_000**0.5
        assert ((found.mean(-1) - truth).abs() < 4 * error).all()
    assert (stratified.var(-1) < 0.3 * independent.var(-1)).all()
