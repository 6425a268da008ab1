"""People decide instead of the policy: what stands, what is learnt and estimated, what is refused."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from fairall.data.people import Decided
from fairall.decide.refer import Refer
from fairall.live.guard import compared
from fairall.online.process import Process
from tests.conftest import succeeded, typed
from tests.live.conftest import MEMORY, Make, at, people, refusing, repaid, rows
from tests.live.test_guard import by_rank, log

WORDS = "live.held_out=0", "live.explore=0.2", "live.horizon=2d"
BY = {"by": "Abel", "why": "a guarantor"}


def of(decided: pd.DataFrame, decision: int) -> list[str]:
    """Ids of those on whom a policy decided so."""
    return decided.loc[decided["decision"].eq(decision).fillna(False), "id"].tolist()


def test_people_decide_instead_of_the_policy_or_where_it_refers_to_them(
    ledger: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = ledger(*WORDS)
    first, without = own.decide(people(), refer=Refer(most=10)), ledger(*WORDS, name="o.db").decide(people())
    cells, referred = first[["decision", "propensity"]], first["referred"]
    pd.testing.assert_frame_equal(cells[~referred], without.loc[~referred, cells.columns])
    assert cells[referred].isna().sum().tolist() == [10, 10]
    pending, granted, *declined = first.loc[referred, "id"]
    (accepted, *_), (rejected, mistaken, *_) = of(first, 1), of(first, 0)
    changes = {granted: [True], accepted: [False], rejected: [True], mistaken: [True, False]}
    changes |= {person: [False] for person in declined}
    for person, decisions in changes.items():
        assert [own.override(person, decision, **BY) for decision in decisions] == [True] * len(decisions)
    assert [own.override(rejected, True, by="Berg", why="seen") for _ in range(2)] == [True, False]
    stands = own.decide(people()).set_index("id")
    by_person = [person for person in changes if person != mistaken]
    assert {*stands.index[stands["propensity"].isna()]} == {pending, *by_person}
    assert stands.index[stands["decision"].isna()].tolist() == [pending]
    assert stands["decision"][[*changes]].tolist() == [decisions[-1] for decisions in changes.values()]
    waits, late = {pending: "waits for the decision", accepted: "was rejected"}, {rejected: "is known"}
    for person, why in waits.items():
        with refusing(why):
            own.outcomes(pd.DataFrame({"id": [person], "repaid": "yes"}))
    own.outcomes(repaid(stands.reset_index(), 4))
    for person, why in (late | {"nobody": "has not been decided on"}).items():
        with refusing(why):
            own.override(person, False, **BY)
    wrong: dict[str, Any] = {
        "--by NAME --why TEXT": (True, "Abel", " "),
        "accepted=2": (2, "Abel", "x"),
        "why: give": (True, "a", "\0"),
    }
    for why, (decision, by, text) in wrong.items():
        with refusing(why):
            own.override(declined[0], decision, by=by, why=text)
    learn, given = Process.learn, list[Decided]()

    def watched(self: Process, due: Any) -> None:
        given.extend(due)
        learn(self, given)

    monkeypatch.setattr(Process, "learn", watched)
    own.learn()
    learnt = stands.index.drop(pending)
    taught = (torch.cat([getattr(one, name)[0] for one in given]) for name in ("accepted", "propensity"))
    accepts, propensity = (pd.Series(one.tolist(), learnt) for one in taught)
    assert (
        propensity[by_person].tolist()
        == accepts[by_person].tolist()
        == stands["decision"][by_person].tolist()
    )
    assert 0 < propensity[mistaken] < 1


def test_a_version_knows_what_people_had_decided_when_it_was_made(ledger: Make, tmp_path: Path) -> None:
    own = ledger(*MEMORY, *WORDS)
    before, after, *_ = of(own.decide(people(0, 100)), 0)
    own.override(before, True, **BY)
    own.outcomes(repaid(own.decide(people(0, 100)), 4))
    own.learn()

    def remembered() -> torch.Tensor:
        with own.store.reading() as connection:
            (memory,) = own.version(connection, 2, whole=True).memories.values()
        return memory.rows().accepted

    then = remembered()
    own.override(after, True, **BY)
    assert torch.equal(then, remembered())
    found = []
    for person in (before, after):
        own.forget(person)
        found.append(BY["why"].encode() in (tmp_path / "loans.db").read_bytes())
    assert found == [True, False]
    with refusing("was forgotten"):
        own.override(after, False, **BY)


def test_estimates_leave_out_or_bound_what_people_decided(ledger: Make) -> None:
    own = ledger("live.explore=0.2")
    decided = own.decide(people(0, 200), refer=Refer(most=15))
    accepted, rejected = of(decided, 1), of(decided, 0)
    for person in [*accepted[:20], *rejected[:10]]:
        own.override(person, person in rejected, **BY)
    own.outcomes(repaid(own.decide(people(0, 200)), 1))
    seen = own.log().frame.set_index("id")
    assert seen.index[seen["decision"] == 1].tolist() == accepted
    assert seen.index[seen["decision"] == 0].tolist() == rejected
    assert seen.index[seen["label"].notna()].tolist() == accepted[20:]
    whole = log()
    label, first, second = whole.frame["label"], by_rank(whole, 1.0), by_rank(whole, 0.5)
    overruled = label.notna().to_numpy() & (np.arange(len(label)) % 20 == 0)
    bounded = whole._replace(frame=whole.frame.assign(label=label.mask(overruled)), overruled=overruled)
    full, wide = (compared(one, first, second, 0.2)["value"] for one in (whole, bounded))
    assert wide["low"] < full["low"] < full["high"] < wide["high"] < full["high"] + 0.1


def test_overrides_and_who_did_what_are_typed_and_shown(ledger: Make, tmp_path: Path) -> None:
    own = ledger("live.explore=0.2")
    decided = own.decide(people(0, 60))
    accepted, rejected = of(decided, 1), of(decided, 0)
    words = ["live", "override", "loans.db", rejected[0]]
    for wrong, why in {("accept",): "--why", ("perhaps", "--why", "x"): "invalid choice: 'perhaps'"}.items():
        ended = typed(*words, *wrong, cwd=tmp_path)
        assert (ended.returncode, ended.stderr.count("\n"), why in ended.stderr) == (2, 1, True)
    said = succeeded(*words, "accept", "--by", "Abel", "--why", "a new job", "--json", cwd=tmp_path).stdout
    assert json.loads(said) == {"id": rejected[0], "decision": "accept", "changed": True}
    succeeded("live", "promote", "loans.db", "1", "--by", "Cruz", cwd=tmp_path)
    succeeded("live", "forget", "loans.db", accepted[1], "--by", "Diaz", cwd=tmp_path)
    own.override(accepted[0], False, **BY)
    assert rows(tmp_path / "loans.db", "select by from removed union select by from overrides") == [
        (name,) for name in ("Abel", "Diaz")
    ]
    own.outcomes(repaid(own.decide(people(0, 60), skip=True), 1))
    found = {(row["of"], row["to"]): row for row in own.status()["overrides"] if row["group"] == "all"}
    assert [row["share"][0] for row in found.values()] == [1 / len(rejected), 1 / len(accepted)]
    assert [row["outcomes"] for row in found.values()] == [1, 0]
    assert found["accepted", "reject"]["bounds"] == [-0.5, 0.5]


def test_who_is_accepted_after_being_learnt_as_rejected_is_learnt_from(ledger: Make) -> None:
    own = ledger(*MEMORY, *WORDS)
    decided = own.decide(people(0, 100))
    own.outcomes(repaid(decided, 4))
    assert own.learn()["people"] == 100
    late = of(decided, 0)[:12]
    for person in late:
        own.override(person, True, **BY)
    assert own.learn()["waiting"] == 12
    own.outcomes(pd.DataFrame({"id": late, "repaid": "yes", "time": at(5)}))
    told = own.learn()
    assert (told["people"], told["labels"], own.learn()["people"]) == (12, 12, 0)


def test_evaluation_bounds_what_nobody_can_know(ledger: Make, tmp_path: Path) -> None:
    own = ledger("live.explore=0.2")
    decided = own.decide(people(0, 400))
    for person in of(decided, 1)[:60]:
        own.override(person, False, **BY)
    own.outcomes(repaid(own.decide(people(0, 400)), 1))
    said = succeeded("evaluate", "loans.db", cwd=tmp_path).stdout
    bounds = re.search(r"whatever they are, the 95 % interval of .*: \[(.*), (.*)\]", said)
    assert bounds is not None
    low, high = (float(end.replace("−", "-")) for end in bounds.groups())
    assert high - low > 100 * 60 / 400
    bad, good = own.log().possible
    assert good["label"].sum() - bad["label"].sum() == 60
