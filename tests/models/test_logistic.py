import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from fairall.models.logistic import PENALTIES, cross_validated, penalised


def population(n: int, slopes: list[float], seed: int = 0) -> tuple[Tensor, Tensor]:
    """Columns of different units, and labels of a logistic model with intercept ½."""
    generator = np.random.default_rng(seed)
    x = generator.normal(2.0, 1.0, (n, len(slopes))) * 10.0 ** np.arange(len(slopes))
    p = expit(0.5 + (x / 10.0 ** np.arange(len(slopes)) - 2.0) @ slopes)
    return torch.tensor(x), torch.tensor(generator.uniform(size=n) < p, dtype=torch.float64)


@pytest.mark.parametrize("slopes", [[1.0, -2.0, 0.0], [30.0, 20.0, 10.0]])
def test_the_penalised_fit_is_that_of_sklearn(slopes: list[float]) -> None:
    x, label = population(300, slopes)
    x = (x - x.mean(0)) / x.std(0)
    columns = torch.cat([x, torch.ones(300, 1, dtype=torch.float64)], dim=1)
    for penalty, weight in zip(PENALTIES, penalised(columns, label, PENALTIES), strict=True):
        theirs = LogisticRegression(C=1 / penalty, tol=1e-10, max_iter=10_000).fit(x.numpy(), label.numpy())
        expected = np.append(theirs.coef_[0], theirs.intercept_[0])
        np.testing.assert_allclose(weight, expected, atol=1e-4)


def test_it_finds_the_slopes_of_many_people_in_any_unit() -> None:
    x, label = population(40_000, [1.0, -0.5, 0.0])
    weight = cross_validated(x, label)
    np.testing.assert_allclose(weight[:-1] * torch.tensor([1.0, 10.0, 100.0]), [1.0, -0.5, 0.0], atol=0.05)
    assert weight[-1] == pytest.approx(0.5 - 2.0 + 1.0, abs=0.15)
    assert torch.equal(weight, cross_validated(x, label))


def test_noise_is_penalised() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(200, 60, generator=generator, dtype=torch.float64)
    label = (torch.rand(200, generator=generator) < 0.5).double()
    assert cross_validated(x, label)[:-1].abs().max() < 0.05
    columns = torch.cat([x, torch.ones(200, 1, dtype=torch.float64)], dim=1)
    assert penalised(columns, label, (1.0,))[0][:-1].abs().max() > 0.5


def test_a_constant_column_and_a_single_label_of_one_kind() -> None:
    x = torch.cat([torch.ones(40, 1), torch.arange(40.0).unsqueeze(-1)], dim=1).double()
    weight = cross_validated(x, (torch.arange(40) == 39).double())
    assert weight.isfinite().all()
    assert weight[1] > 0
