"""Commands that are killed at any of their writes, and several that write at once."""

import json
import random
import sqlite3
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks.in_process import Ended
from benchmarks.kills import ended, forked, killed_day
from fairall import Ledger
from fairall.online.process import Process
from tests.conftest import typed
from tests.live.conftest import Make, noticed, people, refusing, repaid, rows

PROCESSES, ROUNDS = 4, 3


@pytest.mark.whole
def test_a_killed_command_has_done_nothing_and_does_the_same_again(tmp_path: Path) -> None:
    kills = Counter(killed_day(["loans.db"] * 2, tmp_path, random.Random(0), step=3))
    assert len(kills) > 8
    assert sum(kills.values()) > 40
    assert (tmp_path / "hunted" / "loans.db").stat().st_mode & 0o777 == 0o600


@pytest.mark.whole
def test_processes_that_type_at_once_lose_and_double_nothing(ledger: Make, tmp_path: Path) -> None:
    """They decide on their own and on the same people, and change the same applications."""
    own = ledger("live.held_out=0", "live.explore=0.2")
    first = own.decide(people(0, 100))
    rejected, accepted = (first.loc[first["decision"] == made, "id"].tolist() for made in (0, 1))

    def typing(number: int) -> Ended:
        folder, said = tmp_path / str(number), list[tuple[str, int, Any]]()
        folder.mkdir()

        def live(verb: str, *words: str) -> Ended:
            done = typed("live", verb, "../loans.db", *words, "--json", cwd=folder)
            said.append((verb, done.returncode, done.stderr or json.loads(done.stdout)))
            return done

        for k in range(ROUNDS):
            both = pd.concat([people(100 + 10 * k, 10), people(140 + 60 * number + 20 * k, 20)])
            both.sample(frac=1, random_state=number).to_csv(folder / "people.csv", index=False)
            live("decide", "people.csv", "-o", f"{k}.csv")
            repaid(pd.read_csv(folder / f"{k}.csv"), 1).to_csv(folder / "outcomes.csv", index=False)
            live("outcomes", "outcomes.csv")
            live("override", rejected[k], "accept", "--by", str(number), "--why", "a guarantor")
            live("withdraw", accepted[k])
            done = live("learn")
        (folder / "said.json").write_text(json.dumps(said))
        return done

    children = [forked(partial(typing, number)) for number in range(PROCESSES)]
    assert set(map(ended, children)) <= {0, 1}
    assert not noticed(tmp_path / "loans.db")
    said = pd.concat(map(pd.read_json, tmp_path.glob("*/said.json")))
    refused = said[1] > 0
    why = "fairall: .*(changed it meanwhile: try again|was withdrawn already)\n"
    assert said.loc[refused, 2].str.fullmatch(why).all()
    told = said[~refused].groupby(0)[2].agg(list)

    def count(query: str) -> int:
        return int(rows(tmp_path / "loans.db", f"select count(*) from {query}")[0][0])

    changed = {
        "decide": ("new", 270),
        "outcomes": ("new", count("outcomes")),
        "override": ("changed", PROCESSES * ROUNDS),
    }
    for verb, (name, expected) in changed.items():
        assert sum(one[name] for one in told[verb]) == expected, verb
    counts = [count(table) for table in ("applications", "overrides", "removed")]
    assert counts == [100 + 270, PROCESSES * ROUNDS, ROUNDS]
    assert len(told["withdraw"]) == ROUNDS
    versions = sorted(one["version"] for one in told["learn"] if one["version"])
    assert versions == [*range(2, 1 + count("versions"))]
    decided = pd.concat(map(pd.read_csv, tmp_path.glob("*/[0-9].csv"))).drop_duplicates()
    assert len(decided) == decided["id"].nunique() == 270


def test_one_of_two_writers_waits_or_is_told(
    ledger: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairall.live.store.WAIT", 1)
    own = ledger()
    with closing(sqlite3.connect(tmp_path / "loans.db", isolation_level=None)) as other:
        other.execute("begin immediate")
        with refusing("another process has been writing for 1 seconds"):
            own.decide(people())
        assert own.status()["people"] == 0  # who reads does not wait
    assert own.decide(people())["new"].all()


@pytest.mark.parametrize("verb", ["forget", "withdraw", "learn"])
def test_what_another_process_does_while_one_learns_is_not_lost(
    verb: str, ledger: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, learn = ledger("live.held_out=0"), Process.learn
    own.outcomes(repaid(own.decide(people()), 1))

    def slow(self: Process, due: Any) -> None:
        monkeypatch.undo()
        getattr(Ledger(tmp_path / "loans.db"), verb)(*({"learn": []}.get(verb, ["L0001"])))
        learn(self, due)

    monkeypatch.setattr(Process, "learn", slow)
    with refusing("has changed it meanwhile"):
        own.learn()
    assert own.learn()["people"] == (0 if verb == "learn" else 49)
