"""Random numbers by counter: the same compiled and not, and distributed as they should be."""

from typing import Any

import pytest
import torch
from scipy import stats
from torch import Tensor

from fairall.nn import native
from fairall.nn.noise import RandomNumbers, philox


def test_philox_is_that_of_its_definition() -> None:
    """Known answers: the first of the authors' library, others of section 3.3 of Salmon et al. 2011."""
    first, other = (RandomNumbers([0], purpose).uniform(9) for purpose in "ab")
    assert not torch.equal(first, other)
    assert philox(0, 0, 1).flatten().tolist() == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox(0x0123456789ABCDEF, 2**32 - 2, 4).reshape(4, 4).T.tolist() == [
        [4105383707, 2841045556, 2983820733, 1514978990],
        [120849060, 2541040414, 1690931885, 844121516],
        [3644927338, 1507671912, 2638651410, 1562893785],
        [1235296977, 1608982731, 809859007, 1555351850],
    ]


@pytest.mark.skipif(native.kernels() is None, reason="numba is not installed, or switched off")
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
    monkeypatch.setattr(native, "kernels", lambda: None)
    expected, known = drawn()
    if kind == "uniform":
        assert torch.equal(numbers, expected)
    torch.testing.assert_close(numbers, expected, rtol=2e-6, atol=2e-6)
    assert torch.equal(state, known)


@pytest.mark.parametrize(("kind", "law"), [("uniform", stats.uniform), ("normal", stats.norm)])
def test_numbers_have_their_law_to_its_tails(kind: str, law: Any) -> None:
    n = 400_000
    numbers = getattr(RandomNumbers([1], "test"), kind)(n)[0].double()
    cumulated = torch.from_numpy(law.cdf(numbers))
    assert 0 < cumulated.min() < cumulated.max() < 1
    assert stats.kstest(cumulated, "uniform").pvalue > 1e-3
    for tail in (1e-2, 1e-3, 6e-5):
        share = ((cumulated < tail / 2) | (cumulated > 1 - tail / 2)).double().mean()
        assert abs(share - tail) < 4 * (tail / n) ** 0.5
    assert abs(stats.pearsonr(cumulated[:-1], cumulated[1:])[0]) < 4 / n**0.5


@pytest.mark.parametrize("n", [2, 7, 20])
def test_stratified_samples_are_normal_with_one_pair_in_each_stratum(n: int) -> None:
    drawn = RandomNumbers([3], "test", stratified=True).samples(20_000, 3, n)[0].double()
    assert torch.equal(drawn[..., 1::2], -drawn[..., 0 : 2 * (n // 2) : 2])
    strata = (torch.special.erf(drawn[..., ::2].abs() / 2**0.5) * ((n + 1) // 2)).long().sort(-1).values
    assert torch.equal(strata, torch.arange(strata.shape[-1]).expand_as(strata))
    for place in (0, n - 1):  # pairs are in a random order too
        assert stats.kstest(drawn[:, 0, place], "norm").pvalue > 1e-3
    for values in (drawn[..., 0], drawn[..., 0].square(), drawn[..., 0].abs()):
        assert (torch.corrcoef(values.T) - torch.eye(3)).abs().max() < 4 / 20_000**0.5
