"""Groups: the balance of their labels by hand."""

import numpy as np

from fairall.evaluate.analyses.groups import balance
from tests.evaluate.simulated import applicants, judged, models_of


def test_right_weights_balance_and_wrong_ones_do_not() -> None:
    people = applicants(2000)
    right, flat = (
        judged(models_of(people.assign(p=p), propensity="p"), people["new"])
        for p in (people["p"], people["granted"].mean())
    )
    table = right.table("groups").set_index(["group", "measure"]).sort_index()
    for sex, members in people.groupby("sex"):
        accepted, rows = members[members["granted"] == 1], (people["sex"] == sex).to_numpy()
        # By hand: standardised by the deviation in the group.
        means = accepted["score"].mean(), np.average(accepted["score"], weights=1 / accepted["p"])
        expected = (np.array(means) - members["score"].mean()) / members["score"].std(ddof=0)
        differences = balance(right, rows).loc["score", ["before", "after"]]
        np.testing.assert_allclose(differences, expected, atol=1e-5)
        assert abs(expected[1]) < 0.1 < 0.2 < expected[0]
        wrong = balance(flat, rows).loc["score"]
        np.testing.assert_allclose(wrong["after"], wrong["before"], rtol=1e-5)
        assert table.loc[(sex, "balance"), "after"].item() == differences["after"]
        assert (
            table.loc[(sex, "accepted by expected"), "value"] == f"{len(accepted) / members['p'].sum():.2f}"
        )


def test_a_group_without_labels_has_no_balance() -> None:
    people = applicants(300)
    people.loc[people["sex"] == "f", ["granted", "repaid", "p"]] = 0, np.nan, 0.0
    table = judged(models_of(people, propensity="p"), None).table("groups")
    balanced = {"accepted by expected", "balance"}
    assert {group for group, rows in table.groupby("group") if balanced & {*rows["measure"]}} == {"m"}
