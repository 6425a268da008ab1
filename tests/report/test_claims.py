from pathlib import Path

import pytest
from fairall.results.finished import collect

from fairall.report.claims import IN_DIRECTION, MISSING, NOT, REAL, REPRODUCED, in_words, judge
from fairall.report.plan import with_runs
from fairall.report.tables import methods_table
from tests.report.conftest import MakeRun, planned

SAME_BUT_BETTER = REAL[0]  # FairAll accumulates more utility than FairLog
NO_WORSE = REAL[2]  # FairAll accumulates no less utility than UnfairLog


@pytest.fixture
def words_of(make_run: MakeRun, tmp_path: Path):  # type: ignore[no-untyped-def]
    """The verdict on a claim when FairAll's measures are this much greater than the other's."""

    def found(claim, apart: float, seeds: int = 10) -> str:  # type: ignore[no-untyped-def]
        for number, (model, shift) in enumerate(((claim.model, 0.2 + apart), (claim.other, 0.2))):
            make_run(f"model={model}", "dataset=credit", f"seeds={seeds}", shift=shift, number=number)
        runs = collect(tmp_path / "outputs" / "runs").runs
        needed = with_runs(planned("harsh", "dataset=credit", f"seeds={seeds}"), runs)
        (verdict,) = judge([claim], needed)
        return verdict.words

    return found


@pytest.mark.parametrize(
    ("claim", "apart", "seeds", "expected"),
    [
        (SAME_BUT_BETTER, 0.2, 10, REPRODUCED),
        (SAME_BUT_BETTER, 0.2, 3, IN_DIRECTION),  # three seeds prove nothing
        (SAME_BUT_BETTER, -0.2, 10, NOT),
        (NO_WORSE, 0.2, 10, REPRODUCED),
        (NO_WORSE, -0.2, 3, REPRODUCED),
        (NO_WORSE, -0.2, 10, NOT),
    ],
)
def test_verdicts(claim, apart: float, seeds: int, expected: str, words_of) -> None:  # type: ignore[no-untyped-def]
    assert words_of(claim, apart, seeds) == expected


def test_words_are_of_the_measures(make_run: MakeRun, tmp_path: Path) -> None:
    for number, (model, shift) in enumerate((("fairall_I_II", 0.203), ("fairlog", 0.1))):
        make_run(f"model={model}", "dataset=credit", shift=shift, number=number)
    runs = collect(tmp_path / "outputs" / "runs").runs
    needed = with_runs(planned("harsh", "dataset=credit"), runs)
    verdicts = judge(REAL[:3], needed)
    assert [verdict.words for verdict in verdicts] == [REPRODUCED, NOT, MISSING]
    table = methods_table("effective", needed, "harsh")
    paragraph, *lines = in_words("harsh", verdicts, [table], planned=15, there=2)
    assert paragraph.startswith("2 of the 15 runs")
    (told,) = in_words("harsh", [], [], planned=15, there=2, other_seeds=1)
    assert told.endswith("are here, 1 of them with another number of seeds than planned.")
    assert "Of 2 comparisons in the paper (harsh), 1 reproduced, 0 in direction only" in paragraph
    apart = [
        r["difference_in_paper_std"] for r in table.records if r.get("difference_in_paper_std") is not None
    ]
    within = sum(abs(difference) <= 1 for difference in apart)
    assert len(apart) == 4
    assert (
        f"Of 4 printed measures (harsh initial policy, protocol corrected), {within} are within one"
        in paragraph
    )
    assert "Not reproduced: FairAll (I+II) accumulates less unfairness than FairLog." in lines
    assert "Reproduced: FairAll (I+II) accumulates more utility than FairLog." in lines
    # 0.1 is nine printed deviations below FairLog's 0.194.
    assert any(line.startswith("Farther than two") and "FairLog on German Credit" in line for line in lines)
