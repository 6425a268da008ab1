"""Verbs in any order: everybody keeps the first decision, counts are those of the rows, replays are alike."""

import random
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks.kills import content
from fairall import Ledger
from tests.conftest import only_whole
from tests.live.conftest import COPIES, KNOWN, MEMORY, METHOD, STEP, Make, at, people, refusing, rows

HORIZON = 3  # time steps
LEAST = 10  # people for whom an update is made at any rate
VERBS = ["decide", "outcomes", "outcomes", "learn", "learn", "promote", "forget", "withdraw"]
# People who were not withdrawn, with the outcome that counts, and the latest time of both.
KNOWN_NOW = f"""
with latest as (select * from outcomes where id in (select max(id) from outcomes group by application)),
there as (
    select a.*, label, l.time as known_at, l.id as outcome from applications a
    left join latest l on application = a.id
    where a.id not in (select application from removed where how = 'withdrawn')
),
now as (select max(max(time), max(coalesce(known_at, 0))) as now from there),
people as (select *, salt is not null as here, time <= now - {HORIZON * STEP} as old from there, now)
"""
COUNTS = f"""{KNOWN_NOW} select count(*), sum(accepted),
(select count(*) from removed where how = 'withdrawn'), count(label),
(select count(*) from outcomes where application in (select id from people)) - count(label),
sum(accepted and here and label is null), sum(accepted and here and label is null and old),
sum(label is not null and old) from people"""
ENTERED = "select count(*), count(distinct application) from outcomes"
LEARNT = "select application, outcome from learnt where version = ? order by application"
NAMES = ["people", "accepted", "withdrawn", "outcomes", "corrected", "waiting", "overdue", "judged"]
LOG = f"{KNOWN_NOW} select person, accepted, propensity, case when old then label end from people where here"
LINEAGE = """
with recursive lineage(id) as (select ? union select parent from lineage join versions using (id))
select id from lineage"""
# Whom a version of a lineage may learn from: the old ones with an outcome, and with them those rejected.
DUE = f"""{KNOWN_NOW},
free as (
    select * from people where here and not held
    and id not in (select application from learnt where version in ({LINEAGE}))
),
labelled as (select * from free where accepted and old and label is not null)
select id, outcome from free f where id in (select id from labelled) or not accepted and old and (
    batch in (select batch from labelled) or batch not in (select batch from free where accepted)
) order by id"""
TOUCHED = """
with recursive touched(id) as (
    select version from learnt where application = (select id from applications where person = ?)
    union select versions.id from versions join touched on parent = touched.id
)
select id from touched order by id"""


METHODS = {"rows": MEMORY, "known": KNOWN, "none": [*METHOD, "seeds=2"], "copies": COPIES}


@pytest.mark.parametrize("memory", ["rows", "known", *only_whole(["none", "copies"])])
def test_verbs_in_any_order(memory: str, ledger: Make, tmp_path: Path) -> None:
    settings = [*METHODS[memory], f"live.horizon={HORIZON}d", "live.held_out=0.2", "live.explore=0.3"]
    own, place, chance = ledger(*settings, name="a.db"), tmp_path / "a.db", random.Random(0)
    first, gone, done = pd.DataFrame(), set[str](), list[tuple[str, list[Any]]]()
    duty = parent = newest = 1
    head = own.status()["head"]
    for step in range(26):
        verb = chance.choice(VERBS) if step > 1 else "decide"
        everybody = [str(person) for person in first.index]
        some = chance.sample(everybody, len(everybody) // 2)
        due, ((entered, known),) = rows(place, DUE, parent), rows(place, ENTERED)
        given: list[Any] = []
        if verb == "decide":  # on some who are there, too
            table = people(0, len(first) + chance.randint(10, 40))
            table["time"] = table["id"].map(first.get("time", {})).fillna(at(step))
            given = [table[table["id"].isin(some) | ~table["id"].isin(everybody)]]
            with refusing("capacity"):  # without effect
                own.decide(given[0], capacity=0)
        elif verb == "outcomes":
            accepted = [person for person in some if first["decision"][person]]
            words = chance.choices(["yes", "no"], [2, 1], k=len(accepted))
            given = [pd.DataFrame({"id": accepted, "repaid": words, "time": at(step)})]
        elif verb == "promote":
            given = [chance.randint(1, newest)]
        elif verb == "learn":
            told = own.learn(dry_run=True)  # without effect
        else:
            given = [chance.choice([person for person in everybody if person not in gone])]
        done.append((verb, given))
        said = getattr(own, verb)(*given)
        if verb == "decide":
            assert [*said["id"]] == [person for person in given[0]["id"] if person not in gone]
            assert said["propensity"].min() >= 0.3
            said = said.set_index("id").assign(time=at(step))
            new = said.pop("new")
            assert set(said["version"][new]) == {duty}
            first = pd.concat([first, said[new]])
            pd.testing.assert_frame_equal(said, first.loc[said.index, [*said]].assign(time=at(step)))
        elif verb == "outcomes":
            ((entered_then, known_then),) = rows(place, ENTERED)
            assert known_then - known == said["new"]
            assert entered_then - entered == said["new"] + said["corrected"]
            assert len(gone.intersection(accepted)) == said["left_out"]
            assert len(accepted) == sum(said.values())
        elif verb == "learn":
            assert rows(place, LEARNT, newest + 1) == (due if said["version"] else [])
            assert said["version"] == newest + 1 or len(due) < LEAST
            assert said == told | {"version": said["version"], "parent": parent}
            newest, parent = (said["version"],) * 2 if said["version"] else (newest, parent)
        elif verb == "promote":
            assert said == ([duty, parent] != given * 2)
            duty = parent = given[0]
        else:
            gone.add(given[0])
            assert said == [version for (version,) in rows(place, TOUCHED, given[0])]
        found = own.status(head)
        head = found["head"]
        found["judged"] = sum(group["outcomes"] for group in found["groups"])
        assert [found[name] for name in NAMES] == [*rows(place, COUNTS)[0]]
        assert (found["duty"], len(found["versions"])) == (duty, newest)
        frame = own.to_frame()[["id", "decision", "propensity", "label"]].astype(object)
        assert [*frame.where(frame.notna(), None).itertuples(index=False, name=None)] == rows(place, LOG)
    assert newest > 2
    assert own.summary()[["people", "outcomes"]].sum().tolist() == [found["people"], found["judged"]]
    ledger(*settings, name="b.db")
    for verb, given in done:  # each in a process of its own, as it were
        getattr(Ledger(tmp_path / "b.db"), verb)(*given)
    assert content(tmp_path / "a.db") == content(tmp_path / "b.db")
    for version in range(1, newest + 1):  # each can be read whole
        own.promote(version)
        own.learn(dry_run=True)
