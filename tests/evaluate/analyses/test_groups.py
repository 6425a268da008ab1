"""Groups: the balance of their labels by hand."""

import numpy as np
import pytest

from fairall.evaluate.analyses.groups import balance
from tests.evaluate.simulated import applicants, evaluated


def test_right_weights_balance() -> None:
    people = applicants(2000)
    right = evaluated(people, propensity="p")
    table = right.table("groups").set_index(["group", "measure"]).sort_index()
    for sex, members in people.groupby("sex"):
        accepted, rows = members[members["granted"] == 1], (people["sex"] == sex).to_numpy()
        # By hand: standardised by the deviation in the group.
        means = accepted["score"].mean(), np.average(accepted["score"], weights=1 / accepted["p"])
        expected = (np.array(means) - members["score"].mean()) / members["score"].std(ddof=0)
        found = balance(right, rows).loc["score", ["before", "after"]]
        np.testing.assert_allclose(found, expected, atol=1e-5)
        assert abs(expected[1]) < 0.1 < 0.2 < expected[0]
        assert table.loc[(sex, "balance"), "after"].item() == pytest.approx(expected[1], abs=1e-5)
        share = len(accepted) / members["p"].sum()
        assert table.loc[(sex, "accepted by expected"), "value"] == f"{share:.2f}"


def test_a_group_without_labels_has_no_balance() -> None:
    people = applicants(300)
    people.loc[people["sex"] == "f", ["granted", "repaid", "p"]] = 0, np.nan, 0.0
    table = evaluated(people, None, propensity="p").table("groups")
    balanced = {"accepted by expected", "balance"}
    assert {group for group, rows in table.groupby("group") if balanced & {*rows["measure"]}} == {"m"}
