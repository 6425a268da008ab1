import numpy as np
import pandas as pd
import pytest

from fairall.display import PageTable
from reproduction.claims import (
    IN_DIRECTION,
    MARGIN,
    NOT,
    ON_SPLIT,
    REAL,
    REPRODUCED,
    Claim,
    beyond,
    claims_table,
    judge,
)
from reproduction.plan import Planned, with_runs
from reproduction.report import items_of
from tests.reproduction.collection import planned, result

SAME_BUT_BETTER = REAL[0]  # FairAll accumulates more utility than FairLog
NO_WORSE = REAL[2]  # FairAll accumulates no less utility than UnfairLog


def made(sweep: str, levels: dict[str, float], *words: str) -> list[Planned]:
    """The runs of a sweep on German Credit; those of some methods are finished, with values near a level."""
    runs = [
        result(f"model={model}", "dataset=credit", *words, shift=level, number=number)
        for number, (model, level) in enumerate(levels.items())
    ]
    return with_runs(planned(sweep, "dataset=credit", *(w for w in words if "policy" not in w)), runs)


@pytest.mark.parametrize(
    ("claim", "apart", "words", "expected"),
    [
        (SAME_BUT_BETTER, 0.2, "seeds=10", ON_SPLIT),
        (SAME_BUT_BETTER, 0.2, "seeds=10 splits=10", REPRODUCED),
        (SAME_BUT_BETTER, 0.2, "seeds=3", IN_DIRECTION),  # three seeds prove nothing
        (SAME_BUT_BETTER, -0.2, "seeds=10", NOT),
        (NO_WORSE, 0.2, "seeds=10", ON_SPLIT),
        (NO_WORSE, -0.2, "seeds=3", NOT),  # three seeds do not show that it is no worse
        (NO_WORSE, -0.2, "seeds=10", NOT),
    ],
)
def test_verdicts(claim: Claim, apart: float, words: str, expected: str) -> None:
    needed = made("paper_harsh", {claim.model: 0.2 + apart, claim.other: 0.2}, *words.split())
    cell = claims_table(judge([claim], needed), needed, key="claims", title="Claims").frame.iloc[0, 0]
    assert (cell.text, cell.best) == (expected, expected in (REPRODUCED, ON_SPLIT))


def test_that_a_method_is_no_worse_allows_the_margin_in_the_better_direction() -> None:
    ours, others = pd.Series([0.2, 0.3, np.nan]), pd.Series([0.1, 0.4, 0.0])
    for claim, sign in ((NO_WORSE, 1), (Claim("", "", "", "mean_dpu", True), -1)):
        assert beyond(claim, ours, others).tolist() == pytest.approx(
            [MARGIN + sign * 0.1, MARGIN - sign * 0.1]
        )
    assert beyond(SAME_BUT_BETTER, ours, others).tolist() == pytest.approx([0.1, -0.1])


def test_claims_on_other_splits_are_judged_by_initial_policy() -> None:
    levels = {SAME_BUT_BETTER.model: 0.4, SAME_BUT_BETTER.other: 0.2}
    found = items_of(
        "splits", made("paper_splits", levels, "seeds=10", "splits=10", "initial_policy=lenient")
    )
    tables = {table.key: table for table in found if isinstance(table, PageTable)}
    assert {key for key, table in tables.items() if table.shown} == {
        "claims_splits_real_lenient",
        "temporal_splits_lenient",
    }
    verdicts = tables["claims_splits_real_lenient"].records.set_index("claim")["verdict"]
    assert verdicts[SAME_BUT_BETTER.text] == REPRODUCED
