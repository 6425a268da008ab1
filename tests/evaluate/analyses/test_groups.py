"""Groups: the balance of their labels by hand."""

import numpy as np
import pandas as pd
import pytest

from fairall.evaluate.analyses.groups import balance
from fairall.evaluate.models import Models
from tests.evaluate.simulated import applicants, judged, models_of


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return applicants(2000)


@pytest.fixture(scope="module")
def models(people: pd.DataFrame) -> Models:
    return models_of(people, propensity="p")


def test_right_weights_balance_and_wrong_ones_do_not(people: pd.DataFrame, models: Models) -> None:
    flat = models_of(people.assign(p=people["granted"].mean()), propensity="p")
    expected = {}
    for sex, members in people.groupby("sex"):
        accepted, rows = members[members["granted"] == 1], (people["sex"] == sex).to_numpy()
        right, wrong = (
            balance(judged(fitted, people["new"]), rows).loc["score"] for fitted in (models, flat)
        )
        # By hand: standardised by the deviation in the group.
        means = accepted["score"].mean(), np.average(accepted["score"], weights=1 / accepted["p"])
        before, after = (np.array(means) - members["score"].mean()) / members["score"].std()
        assert right["before"] == pytest.approx(before, rel=0.01)
        assert right["after"] == pytest.approx(after, abs=0.005)
        assert abs(after) < 0.1 < 0.2 < before
        assert wrong["after"] == pytest.approx(wrong["before"])
        expected[sex] = f"{len(accepted) / members['p'].sum():.2f}"
    table = judged(models, people["new"]).table("groups").set_index(["measure", "group"])
    assert table.loc["accepted by expected", "value"].to_dict() == expected
    assert (
        table.loc[("balance", "f"), "after"].item()
        == balance(judged(models, people["new"]), (people["sex"] == "f").to_numpy()).loc["score", "after"]
    )
