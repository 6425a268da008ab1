"""COMPAS, German Credit and MEPS against what the paper and the authors' files say, to every digit."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairall.config.compose import typed_config
from fairall.data.aif360 import quietly, standard_dataset
from fairall.data.dataset import Dataset
from fairall.data.features import Kind
from fairall.data.load import load_dataset
from fairall.errors import FairAllError, needing
from fairall.online.initial_policy import LogisticPolicy
from fairall.tables.groups import Sensitive

# Rows by kind, people by group and label, sizes of parts, the raw column of s, and the acceptance by the
# lenient and the harsh initial policy, of all people and by group.
EXPECTED: dict[str, tuple[Any, ...]] = {
    "compas": (
        [0, 1, 1, 1],
        [1661, 1514, 822, 1281],
        [3166, 1056, 1056, 2216],
        Sensitive("race", ("Caucasian",), ("African-American",)),
        [0.4995, 0.7664, 0.3274, 0.1024, 0.1519, 0.0705],
    ),
    "credit": (
        [5, 2, 2, 10],
        [109, 201, 191, 499],
        [700, 150, 150, 490],
        Sensitive("personal_status", ("A91", "A93", "A94"), ("A92",)),
        [0.4857, 0.5846, 0.2909, 0.1776, 0.2123, 0.1091],
    ),
    "meps": (
        [4, 0, 1, 34],
        [9494, 1327, 5052, 1697],
        [13177, 2196, 2197, 9224],
        Sensitive("RACE", ("White",), ("Non-White",)),
        [0.4680, 0.7826, 0.2724, 0.1119, 0.1925, 0.0617],
    ),
}


@pytest.fixture(scope="module", params=EXPECTED)
def loaded(request: pytest.FixtureRequest, raw_data: Path) -> tuple[str, Dataset]:
    return request.param, load_dataset(request.param)


def test_features_groups_labels_parts_and_initial_policies(loaded: tuple[str, Dataset]) -> None:
    name, dataset = loaded
    kinds, counts, sizes, sensitive, rates = EXPECTED[name]
    table, data = dataset.table(), dataset.prepare()
    assert [len(table.schema.columns(kind)) for kind in Kind] == kinds
    assert [((table.s == s) & (table.label == y)).sum() for s in (-1, 1) for y in (0, 1)] == counts
    assert table.labelled.all()
    assert [len(part) for part in (data.train, data.validation, data.test, data.pool)] == sizes
    pool, measured = data.pool_table, []
    assert table.sensitive == pool.sensitive == sensitive
    for policy in ("lenient", "harsh"):
        config = typed_config(f"dataset={name}", f"initial_policy={policy}").initial_policy
        accepted = LogisticPolicy(config).decide(pool)
        measured += [accepted.mean(), *(accepted[pool.s == s].mean() for s in (1, -1))]
    assert np.round(measured, 4).tolist() == rates


def test_as_aif360s_dataset(loaded: tuple[str, Dataset]) -> None:
    table = loaded[1].table()
    theirs = standard_dataset(table)
    np.testing.assert_array_equal(theirs.labels.ravel(), table.label)
    np.testing.assert_array_equal(theirs.protected_attributes.ravel(), table.s == 1)
    assert (theirs.favorable_label, theirs.unfavorable_label) == (1, 0)


def test_meps_is_aif360s_own(raw_data: Path) -> None:
    from aif360.datasets.meps_dataset_panel20_fy2015 import default_preprocessing

    with quietly():
        theirs = default_preprocessing(pd.read_csv(raw_data / "meps" / "h181_reconstructed.csv"))
    ours = load_dataset("meps").table()
    # Codes −1, 1, 2, 3, ... become 1, 2, 3, 4, ...
    theirs["ARTHTYPE"] = theirs["ARTHTYPE"].map({-1: 1, 1: 2, 2: 3, 3: 4})
    for name in ("PCS42", "ARTHTYPE", "ASTHDX"):
        np.testing.assert_array_equal(ours.x[name], theirs[name])
    np.testing.assert_array_equal(ours.label, theirs["UTILIZATION"])
    np.testing.assert_array_equal(ours.s == 1, theirs["RACE"] == "White")


def test_without_aif360_what_needs_it_ends_in_one_line(
    raw_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ["aif360", *(name for name in sys.modules if name.startswith("aif360."))]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(FairAllError, match=r"^standard_dataset: needs aif360; .*: pip install aif360$"):
        standard_dataset(load_dataset("credit").table())
    with pytest.raises(FairAllError, match=r"^dataset=meps: needs aif360; .*: pip install aif360$"):
        load_dataset("meps").table()
    with pytest.raises(ModuleNotFoundError), needing("aif360", "dataset=meps"):
        raise ModuleNotFoundError("No module named 'other'", name="other")


def test_compas_is_filtered_as_the_recipe_says(raw_data: Path) -> None:
    file = raw_data / "compas" / "compas-scores-two-years.csv"
    rows = pd.read_csv(file, keep_default_na=False).query(
        "days_b_screening_arrest != '' and is_recid != -1 and c_charge_degree != 'O' and score_text != 'N/A' "
        "and race in ['African-American', 'Caucasian']"
    )
    rows = rows[pd.to_numeric(rows["days_b_screening_arrest"]).abs() <= 30]
    ours = load_dataset("compas").table()
    for of_ours, of_file in (
        (ours.x["priors_count"], rows["priors_count"]),
        (ours.x["c_charge_degree"] == 1, rows["c_charge_degree"] == "F"),
        (ours.x["age_cat"] == 2, rows["age_cat"] == "Greater than 45"),
        (ours.label == 0, rows["two_year_recid"] == 1),
        (ours.s == 1, rows["race"] == "Caucasian"),
    ):
        np.testing.assert_array_equal(of_ours, of_file)
