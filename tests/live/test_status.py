"""What a ledger shows: its card on a terminal, in HTML and in Markdown, and who is waited for."""

import json
import re
from pathlib import Path

import pandas as pd

from fairall import Ledger
from fairall.decide.refer import Refer
from tests.conftest import succeeded
from tests.display.test_table import RENDER, read
from tests.live.conftest import Make, at, people, repaid

HOSTILE = "<b>Ito</b> | *x*"


def used(own: Ledger) -> pd.DataFrame:
    """Decisions of a ledger with referrals, overrides, a promotion by hand, an erasure and a withdrawal."""
    decided = own.decide(people(0, 200), refer=Refer(most=6)).set_index("id")
    referred, accepted = (decided.index[decided[name].eq(1)] for name in ("referred", "decision"))
    own.override(referred[0], True, by=HOSTILE, why=HOSTILE)
    own.override(referred[1], False, by=HOSTILE, why=HOSTILE)
    own.override(accepted[0], False, by=HOSTILE, why=HOSTILE)
    own.outcomes(repaid(decided.reset_index(), 12, share=0.5)[1:])
    own.promote(own.learn()["version"], by=HOSTILE)
    for person in (*accepted[-1:], *referred[-1:]):
        own.forget(person, by="Berg")
    own.withdraw(accepted[-2], by="Cruz")
    own.decide(people(200, 50, 20))
    return decided


def test_the_card_has_what_a_file_for_a_regulator_asks(ledger: Make, tmp_path: Path) -> None:
    own = ledger("live.horizon=10d", "live.explore=0.2")
    decided = used(own)
    said = succeeded("live", "status", "loans.db", "--html", "page", "--json", cwd=tmp_path).stdout
    found, page = json.loads(said), (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    card = (tmp_path / "page" / "card.md").read_text(encoding="utf-8")
    assert (found["referred"], found["undecided"]) == (6, 3)
    today = {"date": found["removed"][0]["date"]}
    assert found["removed"] == [
        {**today, "how": "forgotten", "by": "Berg", "people": 2},
        {**today, "how": "withdrawn", "by": "Cruz", "people": 1},
    ]
    people_now = decided.shape[0] + 50 - 1
    acceptance = [one["people"] for one in found["courses"]]
    assert (found["people"], sum(acceptance)) == (people_now, people_now - 4)
    # Tables are the same in all three, with texts of users as they were typed.
    cells = [read(render(card))[1] for render in RENDER.values()]
    assert cells[0] == cells[1]
    for text in (HOSTILE, "Berg", "income (real)", "by hand", found["groups"][0]["group"], "forgotten"):
        assert any(text in cell for cell in cells[0]), text
    shown = read("".join(re.findall("<table.*?</table>", page, re.DOTALL)))[1]
    assert [" ".join(cell.split()) for cell in shown] == [cell.strip() for cell in cells[0]]
    for line in (found["head"], *found["alarms"], "of them still undecided", "Not known"):
        assert line in page, line
        assert line in card, line
    for person in decided.index:
        assert person not in page + card
