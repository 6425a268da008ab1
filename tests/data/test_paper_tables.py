"""Every shipped table against what the paper, the authors' files and AIF360 say of it."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from fairall.config.compose import typed_config
from fairall.data.aif360 import quietly, standard_dataset
from fairall.data.dataset import Dataset
from fairall.data.features import Kind
from fairall.data.load import load_dataset
from fairall.errors import FairAllError, needing
from fairall.online.initial_policy import LogisticPolicy

EXPECTED = yaml.safe_load(Path(__file__).with_name("expected.yaml").read_text())


@pytest.fixture(scope="module", params=EXPECTED)
def loaded(request: pytest.FixtureRequest, raw_data: Path) -> tuple[str, Dataset]:
    return request.param, load_dataset(*request.param.split())


def test_features_groups_labels_parts_and_initial_policies(loaded: tuple[str, Dataset]) -> None:
    words, source = loaded
    table, data, expected = source.table(), source.prepare(), EXPECTED[words]
    pool, of, accepted = data.pool_table, table.sensitive, []
    for policy in ("lenient", "harsh") if "accepted" in expected else ():
        config = typed_config(f"dataset={words}", f"initial_policy={policy}").initial_policy
        decided = LogisticPolicy(config).decide(pool)
        accepted += [decided.mean(), *(decided[pool.s == s].mean() for s in (1, -1))]
    assert accepted == pytest.approx(expected.pop("accepted", []), abs=expected.pop("within", 5e-5))
    found = {
        "kinds": [len(table.schema.columns(kind)) for kind in Kind],
        "counts": np.bincount((table.s == 1) * 2 + table.label).tolist(),
        "sensitive": of and [of.column, [*of.advantaged], [*of.disadvantaged]],
        "parts": [len(part) for part in (data.train, data.validation, data.test, data.pool)],
    }
    assert {key: found[key] for key in expected} == expected
    assert pool.sensitive == of
    assert table.labelled.all()
    assert not of or of.column not in table.schema.names


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
