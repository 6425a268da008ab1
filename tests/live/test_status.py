"""What a ledger shows: its card on a page and in Markdown, and who is waited for."""

import json
import re
from pathlib import Path

import pandas as pd

from fairall.decide.refer import Refer
from tests.conftest import succeeded
from tests.display.test_table import RENDER, read
from tests.live.conftest import Make, at, people, repaid

HOSTILE = "<b>Ito</b> | *x*"


def cells(html: str) -> list[str]:
    """Texts of the cells of tables."""
    return [" ".join(cell.split()) for cell in read(html)[1]]


def test_a_card_for_a_regulator_and_a_list_of_who_is_waited_for(ledger: Make, tmp_path: Path) -> None:
    own = ledger("live.horizon=10d", "live.explore=0.2")
    decided = own.decide(people(0, 200), refer=Refer(most=6)).set_index("id", drop=False)
    referred, accepted = (decided.index[decided[name].eq(1)] for name in ("referred", "decision"))
    for person, stands in ((referred[0], True), (referred[1], False), (accepted[0], False)):
        own.override(person, stands, by=HOSTILE, why=HOSTILE)
    outcomes = repaid(decided, 12, share=0.5)[1:]
    own.outcomes(outcomes)
    own.promote(own.learn()["version"], by=HOSTILE)
    for person in (accepted[-1], referred[-1]):
        own.forget(person, by="Berg")
    own.withdraw(accepted[-2], by="Cruz")
    new = own.decide(people(200, 50, 20))
    # Who applied first is 10 days overdue.
    succeeded("live", "outcomes", "loans.db", "--waiting", "-o", "w.csv", cwd=tmp_path)
    queue = pd.read_csv(tmp_path / "w.csv", index_col="id", parse_dates=["applied", "due"])
    late = {referred[0], *accepted[1:-2]} - {*outcomes["id"]}
    assert queue["due"][:3].isna().all()
    assert {*queue.index[3 : 3 + len(late)]} == {*queue.index[queue["overdue"] == 10]} == late
    waits = {what: {*rows.index} for what, rows in queue.groupby("waits_for")}
    of_outcomes = late | {*new.loc[new["decision"] == 1, "id"]}
    assert waits == {"outcome": of_outcomes, "decision": {*referred[2:5]}}
    assert {*(queue["due"] - queue["applied"]).dropna().dt.days} == {10}
    said = succeeded("live", "status", "loans.db", "--html", "page", "--json", cwd=tmp_path).stdout
    page, card = (Path(tmp_path, "page", name).read_text() for name in ("index.html", "card.md"))
    found, shown = json.loads(said), cells("".join(re.findall("<table.*?</table>", page, re.DOTALL)))
    counts = [found[name] for name in ("waiting", "overdue", "referred", "undecided", "people")]
    assert counts == [len(of_outcomes), len(late), 6, 3, 249]
    # Nobody has decided on three, and on a forgotten one.
    assert sum(batch["people"] for batch in found["courses"]) == 249 - 4
    assert [*map(len, (found["duties"], found["overrides"], found["removed"]))] == [2, 6, 2]
    for render in RENDER.values():
        assert cells(render(card)) == shown
    # Texts of users are shown as they were typed.
    assert [(one["to"], one["by"]) for one in found["decisions"]] == [
        (to, HOSTILE) for to in ("accept", "reject", "reject")
    ]
    parts = [HOSTILE, "Berg", "by hand", "S = +1 (male)", "referred", "reject", "forgotten", "Not known"]
    assert {*parts} - {*shown} == set()
    for text in (found["head"], *found["alarms"], "income (real)"):
        assert text in page, text
        assert text in card, text
    assert [person for person in decided["id"] if person in page + card] == []


def test_nothing_is_due_without_a_horizon_or_people(ledger: Make, tmp_path: Path) -> None:
    own = ledger("live.horizon=null")
    assert own.waiting().empty
    succeeded("live", "status", "loans.db", "--html", "page", cwd=tmp_path)
    assert "Nothing here checks any law" in (tmp_path / "page" / "card.md").read_text()
    for k in range(2):
        own.decide(people(20 * k, 20, 20 * k))
    queue = own.waiting()
    assert queue[["due", "overdue"]].isna().all(axis=None)
    assert {*queue["applied"]} == {pd.Timestamp(at(k)) for k in (0, 20)}
    assert own.status()["overdue"] is None
