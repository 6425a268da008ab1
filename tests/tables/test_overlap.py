from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from fairall.tables.overlap import closed_regions, effective_sample_size
from tests.evaluate.test_log import applicants, log_of

N_ROWS = 1000


@pytest.mark.parametrize(
    ("weights", "size"), [([3.0, 3.0, 0.0, 3.0], 3.0), ([1.0, 3.0], 16 / 10), ([0.0] * 3, 0.0)]
)
def test_effective_sample_size_by_hand(weights: list[float], size: float) -> None:
    assert effective_sample_size(np.array(weights)) == pytest.approx(size)


def logs(number: int) -> Iterator[tuple[np.random.Generator, np.ndarray]]:
    """Generators, and features (N, 5) that they have drawn."""
    for seed in range(number):
        random = np.random.default_rng(seed)
        yield random, random.standard_normal((N_ROWS, 5))


def closed_share(x: np.ndarray, known: np.ndarray, wanted: np.ndarray) -> float:
    """Share of the wanted in closed regions of features (N, D) without groups."""
    table, names = pd.DataFrame(), [f"x{k}" for k in range(x.shape[1])]
    regions = closed_regions({}, [], table, x, names, known, wanted)
    return float(sum(wanted[rows].sum() for _, rows in regions) / wanted.sum())


@pytest.mark.parametrize(
    "never",
    [
        lambda x: x[:, 1] > 1.3,  # no decile of one feature
        lambda x: (x[:, :2] > 0.5).all(1),
        lambda x: (x[:, :3] > 0.1).all(1),
        lambda x: x[:, 0] > np.inf,
    ],
    ids=["one feature", "two features", "three features", "nowhere"],
)
def test_corners_where_nobody_was_accepted_are_found(never: Callable[[np.ndarray], np.ndarray]) -> None:
    """A tenth of the people, half of the policy's acceptances; how often is in docs/simulations.md."""
    for random, x in logs(3):
        wanted = np.where(never(x), 1.0, 0.11)
        known = ~never(x) & (random.random(N_ROWS) < expit(0.2 + 0.6 * x[:, 0]))
        closed = wanted[never(x)].sum() / wanted.sum()
        assert closed_share(x, known, wanted) == pytest.approx(closed, abs=0.15)


def test_closed_regions_by_name() -> None:
    """A level in a group, missing numbers, and a range; with the numbers of rows."""

    def told(people: pd.DataFrame, never: Any) -> list[tuple[str, np.ndarray]]:
        people.loc[never, ["granted", "repaid"]] = ["refused", None]
        log = log_of(people)
        x, names, everybody = log.x, log.input_names, np.ones(len(log))
        return closed_regions(log.members, log.features, x, log.design, names, log.revealed, everybody)

    people = applicants(2000)
    never = (people["sex"] == "f") & (people["town"] == "York")
    ((name, rows),) = told(people, never)
    assert name.startswith(f"none of {rows.sum()} rows of group f ")
    assert name.endswith(" with town=York")
    assert never[rows].all()
    assert rows.sum() > 0.7 * never.sum()
    people.loc[:300, "income"] = None
    assert any("with income missing" in name for name, _ in told(people, people.index <= 300))
    people = applicants(2000)
    rich = people["income"] > people["income"].quantile(0.87)
    ((name, rows),) = told(people, rich)
    low, high = people["income"][rich].min(), people["income"][rich].max()
    assert name == f"none of {rich.sum()} rows with income from {low:g} to {high:g}"
