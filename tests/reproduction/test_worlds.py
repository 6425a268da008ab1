"""The study of other worlds, from made-up runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fairall import Result
from reproduction import study, worlds
from reproduction.plan import Planned, plan, with_runs
from reproduction.worlds import LOST, STUDIES, study_table
from tests.reproduction.collection import result

pytestmark = pytest.mark.whole

STUDY = {study.sweep: study for study in STUDIES}


def runs_of(sweep: str) -> list[Result]:
    """All runs of a study."""
    levels = {"oracle": {"effective_utility": 0.5, "regret": 0.0}}
    return [
        result(*one.words, number=k, references=levels) for k, one in enumerate(plan([sweep], once=False))
    ]


def test_every_value_and_policy_has_a_row_and_so_have_references() -> None:
    table = study_table(
        STUDY["worlds_capacity"], with_runs(plan(["worlds_capacity"]), runs_of("worlds_capacity"))
    )
    for value in ("0.1", "0.25", "0.5", "1"):
        rows = table.frame.xs(f"places per applicant: {value}", level=0)
        assert set(rows.index) == {
            "FairAll (I+II)",
            "FairLog",
            "UnfairLog",
            "accept everybody",
            "knows every label",
            "knows every label, with parity",
        }
        assert rows.loc["knows every label"].iloc[0] == "50.0"
    assert not table.lacking


def test_utility_lost_to_waiting_is_paired_by_seed() -> None:
    runs, study = runs_of("worlds_delay"), STUDY["worlds_delay"]
    records = study_table(study, with_runs(plan(["worlds_delay"], once=False), runs)).records
    late_one = (records["value"] == 50) & (records["policy"] == "FairLog") & (records["measure"] == LOST)
    (lost,) = records[late_one].to_dict("records")
    fairlog = {study.value(run): run for run in runs if run.name("model") == "fairlog"}
    prompt, late = (fairlog[steps].values("effective_utility") for steps in (0.0, 50.0))
    assert lost["mean"] == pytest.approx((prompt - late).mean())
    assert lost["std"] == pytest.approx((prompt - late).std())
    assert lost["std"] != pytest.approx(late.std())


def test_a_missing_run_is_named_with_its_command() -> None:
    runs = [run for run in runs_of("worlds_shift") if run.name("model") != "fairlog"]
    table = study_table(STUDY["worlds_shift"], with_runs(plan(["worlds_shift"], once=False), runs))
    ((_, command),) = table.lacking
    assert "model=fairlog" in command
    assert "world=drift" in command


def test_words_that_pick_runs_of_one_study_leave_a_page_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Planned] = []

    def make(planned: Sequence[Planned], *_: Any, **__: Any) -> list[Any]:
        made.extend(planned)
        return []

    monkeypatch.setattr(study, "make", make)
    assert worlds.worlds(["dataset=credit", f"outputs_dir={tmp_path}"])
    assert {one.dataset for one in made} == {"credit"}
    assert len({one.key for one in made}) == len(made)
    assert (tmp_path / "worlds" / "index.html").is_file()
