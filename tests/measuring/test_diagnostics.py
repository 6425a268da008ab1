from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

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
# A measure, its values of seeds 5, 6, 7, and the line on those beyond its limit.
TROUBLES = yaml.safe_load(Path(__file__).with_name("troubles.yaml").read_text())
OF_LEARNERS = "mean_acceptance", "longest_rejection"


@pytest.fixture
def config(compose_config: ComposeConfig) -> Config:
    return compose_config()


def per_seed(of_seeds: dict[int, dict[str, float]]) -> pd.DataFrame:
    """Measures of seeds that have nothing to warn of but in what is given."""
    return pd.DataFrame({seed: QUIET | given for seed, given in of_seeds.items()}).T


@pytest.mark.parametrize(("name", "values", "line"), TROUBLES)
def test_each_trouble_has_a_line_that_names_its_seeds(
    name: str, values: list[float], line: str, config: Config
) -> None:
    table = per_seed({5 + k: {name: value} for k, value in enumerate(values)})
    assert warnings_of(table, config, learns=True) == [line]
    for quiet in (table.assign(**{name: np.nan}), table.drop(columns=name)):
        assert warnings_of(quiet, config, learns=True) == []
    # That a policy which does not learn is constant is no trouble, nor are signs where no label can be read.
    assert warnings_of(table, config, learns=False) == [line] * (name not in OF_LEARNERS)
    table["latent_label_auc"] = 0.55
    assert warnings_of(table, config, learns=True) == [line] * (name != "latent_label_agreement")


@pytest.mark.parametrize(
    ("words", "rule", "bound"),
    [
        (["protocol=published_code"], "none", "null"),
        (["protocol.max_ips_weight=2.5"], "stuck", "2.5"),
    ],
)
def test_the_lines_name_the_guards(
    words: list[str], rule: str, bound: str, compose_config: ComposeConfig
) -> None:
    troubled = per_seed({3: {"longest_rejection": 12.0, "largest_ips_weight": 4000.0}})
    assert warnings_of(troubled, compose_config(*words), learns=True) == [
        f"1 seed (3) accepted nobody for 10 or more steps in a row, with exploration={rule}",
        f"1 seed (3) met an IPS weight above 1000 (protocol.max_ips_weight={bound})",
    ]


def test_a_seed_that_diverged_is_named_and_nothing_else_is_said_of_it(config: Config) -> None:
    diverged = {"effective_utility": np.nan, "longest_rejection": 200.0}
    at_first = diverged | {"phase1_best_epoch": 0.0}
    text = "diverged: propensities are no numbers; not in means over seeds; lower model"
    assert warnings_of(per_seed({3: {}, 4: diverged, 6: at_first}), config, learns=True) == [
        f"1 seed (6) {text}.phase1.learning_rate",
        f"1 seed (4) {text}.learning_rate",
    ]


@pytest.mark.parametrize(
    ("mean", "high", "told"),
    [(0.1, 0.12, True), (0.1, 0.2, False), (0.1, np.nan, True), (0.2, np.nan, False)],
)
def test_a_method_that_surely_earns_less_than_accepting_everybody(
    mean: float, high: float, told: bool
) -> None:
    row = {"mean": mean, "high": high}
    expected = (
        "the decisions taken while learning earned 10.00 for each 100 people, less than the 15.00 of "
        "accepting everybody (effective_utility)"
    )
    found = no_better_than_everybody(pd.DataFrame([row], index=["effective_utility"]), 0.15)
    assert found == [expected] * told
