import numpy as np
import pandas as pd
import pytest

from fairall.config.schema import Config
from fairall.measuring.diagnostics import no_better_than_everybody, warnings_of
from tests.conftest import ComposeConfig

QUIET = {
    "longest_rejection": 9.0,
    "largest_ips_weight": 1000.0,
    "latent_variance_gap": 0.7,
    "latent_label_agreement": 0.0,
    "latent_label_auc": 0.8,
    "effective_utility": 0.1,
    "mean_acceptance": 0.5,
}
WARNED = [name for name in QUIET if name not in ("latent_label_auc", "effective_utility", "mean_acceptance")]


@pytest.fixture
def config(compose_config: ComposeConfig) -> Config:
    return compose_config()


def per_seed(of_seeds: dict[int, dict[str, float]]) -> pd.DataFrame:
    """Measures of seeds that have nothing to warn of but in what is given."""
    return pd.DataFrame({seed: QUIET | given for seed, given in of_seeds.items()}).T


def seeds(name: str, *values: float) -> pd.DataFrame:
    """Measures of seeds 5, 6, ... that have nothing to warn of but, maybe, in `name`."""
    return per_seed({5 + k: {name: value} for k, value in enumerate(values)})


def test_no_warnings_of_runs_at_the_limits(config: Config) -> None:
    assert warnings_of(per_seed({0: {}, 1: {}}), config, learns=True) == []


LINES = [
    (
        "longest_rejection",
        [10.0, 9.0, 200.0],
        "2 seeds (5, 7) accepted nobody for 10 or more steps in a row, with exploration=stuck",
    ),
    (
        "largest_ips_weight",
        [1000.0, 1000.5, 3.0],
        "1 seed (6) met an IPS weight above 1000 (protocol.max_ips_weight=100)",
    ),
    (
        "latent_variance_gap",
        [0.71, 0.7, 2.0],
        "2 seeds (5, 7) use other latent axes for one group than for the other (latent_variance_gap)",
    ),
    (
        "latent_label_agreement",
        [1.0, 0.0, -0.01],
        "1 seed (7) read the label from z with opposite signs in the groups (latent_label_agreement)",
    ),
]


@pytest.mark.parametrize(("name", "values", "line"), LINES, ids=[name for name, *_ in LINES])
def test_each_trouble_has_a_line_that_names_its_seeds(
    name: str, values: list[float], line: str, config: Config
) -> None:
    assert warnings_of(seeds(name, *values), config, learns=True) == [line]


@pytest.mark.parametrize("name", WARNED)
def test_seeds_without_a_value_are_left_out(name: str, config: Config) -> None:
    unknown = seeds(name, np.nan, np.nan)
    assert warnings_of(unknown, config, learns=True) == []
    assert warnings_of(unknown.drop(columns=name), config, learns=True) == []


def test_without_guards_the_lines_say_so(compose_config: ComposeConfig) -> None:
    troubled = per_seed({3: {"longest_rejection": 12.0, "largest_ips_weight": 4000.0}})
    assert warnings_of(troubled, compose_config("protocol=published_code"), learns=True) == [
        "1 seed (3) accepted nobody for 10 or more steps in a row, with exploration=none",
        "1 seed (3) met an IPS weight above 1000 (protocol.max_ips_weight=null)",
    ]


def test_the_bound_is_the_protocols(compose_config: ComposeConfig) -> None:
    config = compose_config("protocol.max_ips_weight=2.5")
    (line,) = warnings_of(seeds("largest_ips_weight", 1e4), config, learns=True)
    assert line.endswith("(protocol.max_ips_weight=2.5)")


def test_problems_are_listed_one_by_one(config: Config) -> None:
    worst = {
        "longest_rejection": 50.0,
        "largest_ips_weight": 1e6,
        "latent_variance_gap": 1.5,
        "latent_label_agreement": -1.0,
    }
    lines = warnings_of(per_seed({0: worst, 1: {}}), config, learns=True)
    assert len(lines) == 4
    assert all(line.startswith("1 seed (0) ") for line in lines)


def test_a_seed_that_diverged_is_named_and_nothing_else_is_said_of_it(config: Config) -> None:
    diverged = {"effective_utility": np.nan, "longest_rejection": 200.0}
    at_first = diverged | {"phase1_best_epoch": 0.0}
    text = "diverged: propensities are no numbers; not in means over seeds; lower model"
    assert warnings_of(per_seed({3: {}, 4: diverged, 6: at_first}), config, learns=True) == [
        f"1 seed (6) {text}.phase1.learning_rate",
        f"1 seed (4) {text}.learning_rate",
    ]


def test_opposite_signs_mean_nothing_where_the_label_cannot_be_read(config: Config) -> None:
    opposed = {"latent_label_agreement": -0.9}
    assert len(warnings_of(per_seed({3: opposed}), config, learns=True)) == 1
    assert warnings_of(per_seed({3: opposed | {"latent_label_auc": 0.55}}), config, learns=True) == []


@pytest.mark.parametrize(("rate", "whom"), [(0.995, "everybody"), (0.004, "nobody")])
def test_a_policy_that_no_longer_tells_people_apart_has_collapsed(
    rate: float, whom: str, config: Config
) -> None:
    (line,) = warnings_of(seeds("mean_acceptance", 0.98, rate, 0.02), config, learns=True)
    assert line.startswith(f"1 seed (6) collapsed to accepting {whom} over the time steps")
    assert warnings_of(seeds("mean_acceptance", rate), config, learns=False) == []


@pytest.mark.parametrize(
    ("mean", "high", "told"),
    [(0.1, 0.12, True), (0.1, 0.2, False), (0.1, np.nan, True), (0.2, np.nan, False)],
)
def test_a_method_that_surely_earns_less_than_accepting_everybody(
    mean: float, high: float, told: bool
) -> None:
    row = {"mean": mean, "std": 0.01, "low": 0.08, "high": high}
    aggregate = pd.DataFrame([row], index=["effective_utility"])
    expected = (
        "the decisions taken while learning earned 10.00 for each 100 people, less than the 15.00 of "
        "accepting everybody (effective_utility)"
    )
    assert no_better_than_everybody(aggregate, 0.15) == [expected] * told
