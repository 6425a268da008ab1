import math

import numpy as np
import pandas as pd
import pytest

from fairall.display import PageTable
from fairall.report import paired_p
from reproduction.claims import (
    IN_DIRECTION,
    MARGIN,
    MISSING,
    NOT,
    ON_SPLIT,
    REAL,
    REPRODUCED,
    Claim,
    _ahead,
    _words,
    claims_table,
    counts_table,
    judge,
)
from reproduction.plan import with_runs
from reproduction.report import items_of
from tests.reproduction.collection import planned, result

SAME_BUT_BETTER = REAL[0]  # FairAll accumulates more utility than FairLog
NO_WORSE = REAL[2]  # FairAll accumulates no less utility than UnfairLog


@pytest.mark.parametrize(
    ("claim", "apart", "seeds", "expected"),
    [
        (SAME_BUT_BETTER, 0.2, 10, ON_SPLIT),
        (SAME_BUT_BETTER, 0.2, 3, IN_DIRECTION),  # three seeds prove nothing
        (SAME_BUT_BETTER, -0.2, 10, NOT),
        (NO_WORSE, 0.2, 10, ON_SPLIT),
        (NO_WORSE, -0.2, 3, NOT),  # three seeds do not show that it is no worse
        (NO_WORSE, -0.2, 10, NOT),
    ],
)
def test_verdicts(claim: Claim, apart: float, seeds: int, expected: str) -> None:
    runs = [
        result(f"model={model}", "dataset=credit", f"seeds={seeds}", shift=shift, number=number)
        for number, (model, shift) in enumerate(((claim.model, 0.2 + apart), (claim.other, 0.2)))
    ]
    (verdict,) = judge([claim], with_runs(planned("paper_harsh", "dataset=credit", f"seeds={seeds}"), runs))
    assert verdict.words == expected


def test_that_a_method_is_no_worse_is_seldom_said_of_one_that_is_worse_by_the_margin() -> None:
    """True differences of 20 seeds, at the margin, half of it, and none; noise of twice the margin."""
    said = dict.fromkeys((-MARGIN, -MARGIN / 2, 0.0), 0)
    for number, apart in enumerate(said):
        random = np.random.default_rng(number)
        for _ in range(400):
            values = random.normal([[apart], [0.0]], MARGIN * math.sqrt(2), (2, 20))
            ahead = _ahead(NO_WORSE, *map(pd.Series, values))
            p = paired_p(ahead, 0 * ahead)
            assert p is not None
            said[apart] += _words(float(ahead.mean()), p, REPRODUCED) == REPRODUCED
    assert said[-MARGIN] <= 20
    assert said[-MARGIN] < said[-MARGIN / 2] < said[0.0]
    assert said[0.0] >= 200


def test_with_several_splits_a_claim_is_not_of_one() -> None:
    words = ("dataset=credit", "seeds=10", "splits=10")
    runs = [
        result(f"model={model}", *words, shift=shift, number=number)
        for number, (model, shift) in enumerate(((SAME_BUT_BETTER.model, 0.4), (SAME_BUT_BETTER.other, 0.2)))
    ]
    needed = with_runs(planned("paper_harsh", *words), runs)
    verdicts = judge([SAME_BUT_BETTER], needed)
    assert [verdict.words for verdict in verdicts] == [REPRODUCED]
    assert claims_table(verdicts, needed, "claims", "Claims").frame.iloc[0, 0].best


def test_claims_on_other_splits_are_judged_by_initial_policy() -> None:
    words = ("seeds=10", "splits=10", "initial_policy=lenient")
    runs = [
        result(f"model={model}", "dataset=credit", *words, shift=shift, number=number)
        for number, (model, shift) in enumerate(((SAME_BUT_BETTER.model, 0.4), (SAME_BUT_BETTER.other, 0.2)))
    ]
    items = items_of("splits", with_runs(planned("paper_splits", *words[:2]), runs))
    tables = [item for item in items if isinstance(item, PageTable)]
    assert [table.key for table in tables] == [
        f"{kind}_{policy}"
        for policy in ("harsh", "lenient")
        for kind in ("claims_splits_real", "temporal_splits", "claims_splits_synthetic")
    ]
    table, measured = tables[3:5]
    assert measured.shown
    assert [*table.frame.columns] == ["German Credit"]
    verdicts = table.records.set_index("claim")["verdict"]
    assert verdicts[SAME_BUT_BETTER.text] == REPRODUCED
    assert not any(one.shown for one in (*tables[:3], tables[5]))


def test_counts_are_those_of_the_tables() -> None:
    runs = [
        result(f"model={model}", "dataset=credit", "seeds=10", shift=shift, number=number)
        for number, (model, shift) in enumerate((("fairall_I_II", 0.203), ("fairlog", 0.1)))
    ]
    needed = with_runs(planned("paper_harsh", "dataset=credit"), runs)
    verdicts = judge(REAL[:3], needed)
    assert [verdict.words for verdict in verdicts] == [ON_SPLIT, NOT, MISSING]
    items = items_of("tables", needed)
    table, *_, means, deviations = (item for item in items if isinstance(item, PageTable))
    claims = claims_table(verdicts, needed, "claims", "Claims", table.setting)
    printed = means, deviations
    records = counts_table([claims, table, *printed]).records.set_index("count")
    assert set(records["setting"]) == {table.setting}
    found = {name: (row["n"], row["of"]) for name, row in records.iterrows()}
    assert found["claims reproduced"] == (1, 2)
    apart = table.records["difference_in_paper_std"].dropna().abs()
    assert found["within 1 sd of print"] == ((apart <= 1).sum(), 4)
    for one, name in zip(printed, ("printed means inside", "printed deviations inside"), strict=True):
        assert found[name] == (one.records["inside"].sum(), 12)
