"""COMPAS, German Credit and MEPS against what the paper and the authors' files say, to every digit."""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from fairall.config.compose import typed_config
from fairall.data.aif360 import standard_dataset
from fairall.data.features import Kind
from fairall.data.load import load_dataset
from fairall.data.prepared import PreparedData
from fairall.data.table import Table
from fairall.errors import FairAllError, needing
from fairall.online.initial_policy import LogisticPolicy
from fairall.tables.groups import Sensitive

NAMES = ["compas", "credit", "meps"]


@dataclass
class Loaded:
    name: str
    table: Table
    data: PreparedData


@pytest.fixture(scope="module", params=NAMES)
def loaded(request: pytest.FixtureRequest, raw_data: Path) -> Loaded:
    name = request.param
    folder = raw_data / name
    words = []
    if name != "credit":
        (file,) = folder.glob("*.csv")
        words = [f"dataset.raw_file={file}"]
    dataset = load_dataset(name, *words)
    return Loaded(name, dataset.table(), dataset.prepare())


EXPECTED = {  # rows by kind, people by group and label, parts, the raw column of s
    "compas": (
        [0, 1, 1, 1],
        [1661, 1514, 822, 1281],
        [3166, 1056, 1056, 2216],
        Sensitive("race", ("Caucasian",), ("African-American",)),
    ),
    "credit": (
        [5, 2, 2, 10],
        [109, 201, 191, 499],
        [700, 150, 150, 490],
        Sensitive("personal_status", ("A91", "A93", "A94"), ("A92",)),
    ),
    "meps": (
        [4, 0, 1, 34],
        [9494, 1327, 5052, 1697],
        [13177, 2196, 2197, 9224],
        Sensitive("RACE", ("White",), ("Non-White",)),
    ),
}


def test_features_groups_labels_and_parts(loaded: Loaded) -> None:
    table, data = loaded.table, loaded.data
    kinds, counts, sizes, sensitive = EXPECTED[loaded.name]
    assert [len(table.schema.columns(kind)) for kind in Kind] == kinds
    assert [int(((table.s == s) & (table.label == y)).sum()) for s in (-1, 1) for y in (0, 1)] == counts
    assert table.labelled.all()
    assert [len(part) for part in (data.train, data.validation, data.test, data.pool)] == sizes
    assert table.sensitive == data.pool_table.sensitive == sensitive


@pytest.mark.parametrize("policy", ["lenient", "harsh"])
def test_acceptance_of_initial_policies_is_the_papers(loaded: Loaded, policy: str) -> None:
    expected = {
        ("compas", "lenient"): (0.4995, 0.7664, 0.3274),
        ("compas", "harsh"): (0.1024, 0.1519, 0.0705),
        ("credit", "lenient"): (0.4857, 0.5846, 0.2909),
        ("credit", "harsh"): (0.1776, 0.2123, 0.1091),
        ("meps", "lenient"): (0.4680, 0.7826, 0.2724),
        ("meps", "harsh"): (0.1119, 0.1925, 0.0617),
    }
    config = typed_config(f"dataset={loaded.name}", f"initial_policy={policy}").initial_policy
    pool = loaded.data.pool_table
    accepted = LogisticPolicy(config).decide(pool)
    measured = (accepted.mean(), accepted[pool.s == 1].mean(), accepted[pool.s == -1].mean())
    assert tuple(np.round(measured, 4)) == expected[loaded.name, policy]


def test_as_aif360s_dataset(loaded: Loaded) -> None:
    from aif360.datasets import BinaryLabelDataset, StandardDataset
    from aif360.metrics import BinaryLabelDatasetMetric

    table = loaded.table
    theirs = standard_dataset(table)
    assert isinstance(theirs, StandardDataset)
    assert isinstance(theirs, BinaryLabelDataset)
    np.testing.assert_array_equal(theirs.labels.ravel(), table.label)
    np.testing.assert_array_equal(theirs.protected_attributes.ravel(), table.s == 1)
    metric = BinaryLabelDatasetMetric(theirs, unprivileged_groups=[{"s": 0}], privileged_groups=[{"s": 1}])
    rates = [table.label[table.s == s].mean() for s in (-1, 1)]
    assert metric.statistical_parity_difference() == pytest.approx(rates[0] - rates[1])


def test_meps_is_aif360s_own(raw_data: Path) -> None:
    import pandas as pd
    from aif360.datasets.meps_dataset_panel20_fy2015 import default_preprocessing

    from fairall.data.aif360 import quietly

    (file,) = (raw_data / "meps").glob("*.csv")
    with quietly():
        theirs = default_preprocessing(pd.read_csv(file))
    ours = load_dataset("meps", f"dataset.raw_file={file}").table()
    np.testing.assert_array_equal(ours.label, theirs["UTILIZATION"])
    np.testing.assert_array_equal(ours.s == 1, theirs["RACE"] == "White")
    np.testing.assert_array_equal(ours.x["PCS42"], theirs["PCS42"])
    # −1, 1, 2, 3, ... become 1, 2, 3, 4, ...
    np.testing.assert_array_equal(ours.x["ARTHTYPE"], theirs["ARTHTYPE"].map({-1: 1, 1: 2, 2: 3, 3: 4}))
    np.testing.assert_array_equal(ours.x["ASTHDX"], theirs["ASTHDX"])


def test_without_aif360_what_needs_it_ends_in_one_line(
    raw_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in {"aif360", *(one for one in sys.modules if one.startswith("aif360."))}:
        monkeypatch.setitem(sys.modules, module, None)
    table = load_dataset("credit").table()
    with pytest.raises(FairAllError, match=r"^standard_dataset: needs aif360; .*: pip install aif360$"):
        standard_dataset(table)
    (file,) = (raw_data / "meps").glob("*.csv")
    with pytest.raises(FairAllError, match=r"^dataset=meps: needs aif360; .*: pip install aif360$"):
        load_dataset("meps", f"dataset.raw_file={file}").table()


def test_another_module_that_is_missing_is_told_as_it_is() -> None:
    with pytest.raises(ModuleNotFoundError), needing("aif360", "dataset=meps"):
        raise ModuleNotFoundError("No module named 'other'", name="other")


def test_compas_is_filtered_as_the_recipe_says(raw_data: Path) -> None:
    import pandas as pd

    file = raw_data / "compas" / "compas-scores-two-years.csv"
    raw = pd.read_csv(file, keep_default_na=False)
    days = pd.to_numeric(raw["days_b_screening_arrest"])
    kept = raw[
        (days >= -30)
        & (days <= 30)
        & (raw["is_recid"] != -1)
        & (raw["c_charge_degree"] != "O")
        & (raw["score_text"] != "N/A")
        & raw["race"].isin(["African-American", "Caucasian"])
    ]
    ours = load_dataset("compas", f"dataset.raw_file={file}").table()
    np.testing.assert_array_equal(ours.x["priors_count"], kept["priors_count"])
    np.testing.assert_array_equal(ours.x["c_charge_degree"] == 1, kept["c_charge_degree"] == "F")
    np.testing.assert_array_equal(ours.x["age_cat"] == 2, kept["age_cat"] == "Greater than 45")
    np.testing.assert_array_equal(ours.label == 0, kept["two_year_recid"] == 1)
    np.testing.assert_array_equal(ours.s == 1, kept["race"] == "Caucasian")
