"""The verbs of `live`: each calls a method of a ledger, which is imported when it is called."""

from __future__ import annotations

import getpass
import json
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairall.cli.verbs import Words, places, tell
from fairall.errors import FairAllError
from fairall.storage.stored import Plain

if TYPE_CHECKING:
    import pandas as pd

    from fairall.live.ledger import Ledger

NOTES = {
    "forget": "features are erased; id, decision and outcome stay, and weights that have learnt from them",
    "withdraw": "the application no longer counts; versions that have learnt from it stay as they are",
}


def start(ledger: str, names: Words, words: Words, trust: Words, **_: Any) -> Plain:
    """Make a ledger."""
    from fairall.live.ledger import Ledger
    from fairall.live.register import register

    register(Ledger.start(ledger, *names, *words, modules=trust), words, "champion", 1)
    return tell({"ledger": ledger, "version": 1})


def decide(
    ledger: str,
    names: Words,
    out: Path | None,
    words: Words,
    trust: Words,
    person: str | None,
    wording: str | None,
    typed: str,
    **options: Any,
) -> Plain:
    """Decide on the people of a table, or on one person, and record it."""
    import pyarrow as pa

    from fairall.decide.deciding import PREFIX, people_file, require_place
    from fairall.decide.reasons import read_wording
    from fairall.decide.writing import write_rows
    from fairall.live.ledger import GONE
    from fairall.measuring.decisions import free_names
    from fairall.storage.files import unnamed

    options["wording"] = read_wording(wording)
    if person is not None and not names and out is None:
        return _told(_ledger(ledger, trust, words).decide(_row(person), **options))
    if person is not None or len(names) != 1 or out is None:
        raise FairAllError("give a file of PEOPLE and -o FILE, or one person as --person JSON")
    table, left_out = people_file(Path(names[0]), words), out.with_name(f"{out.stem}_left_out.csv")
    for place in (out, left_out):
        require_place(place, table.path, Path(ledger))
    with unnamed(out.resolve()) as file:
        decided = _ledger(ledger, trust).decide(table.frame, **options).astype({"referred": int})
        accepted, referred = decided[["decision", "referred"]].sum().tolist()
        columns = decided.columns[1:].drop("new" if options["refer"] or referred else ["new", "referred"])
        free = free_names(columns, table.frame.columns, PREFIX)
        rows = table.table.take(decided.index.to_numpy())
        write_rows(rows, decided[columns].rename(columns=free), file, out.name, table.declared)
    why, new = decided.attrs["left_out"], decided.query("new")["decision"]
    left_out.unlink(missing_ok=True)  # that of an earlier table
    if why:
        # Of those who are gone nothing is written but this.
        kept = [None if told.endswith(GONE) else row for row, told in why.items()]
        with unnamed(left_out.resolve()) as file:
            rows = table.table.take(pa.array(kept, "int64"))
            write_rows(rows, {"left_out": [*why.values()]}, file, left_out.name, table.declared)
    return tell(
        {
            "people": len(decided),
            "accepted": accepted,
            "referred": referred,
            "new": len(new),
            "new_accepted": int(new.sum()),
            "notes": decided.attrs["notes"],
            "left_out": [*why.values()],
            "decisions": str(out),
            "left_out_file": str(left_out) if why else None,
        }
    )


def outcomes(
    ledger: str,
    names: Words,
    words: Words,
    trust: Words,
    confirm_times: bool,
    waiting: bool,
    out: Path | None,
    **_: Any,
) -> Plain:
    """Record outcomes, or write who is waited for."""
    from fairall.decide.deciding import people_file, require_place
    from fairall.storage.files import unnamed

    if (len(names), waiting, out is None) not in ((1, False, True), (0, True, False)):
        raise FairAllError("live outcomes: give OUTCOMES, the table to record, or --waiting -o FILE")
    if out is None:
        frame = people_file(Path(names[0]), words).frame
        return tell(_ledger(ledger, trust).outcomes(frame, confirm_times=confirm_times))
    require_place(out, Path(ledger))
    queue = _ledger(ledger, trust, words).waiting()
    with unnamed(out.resolve()) as file:
        queue.to_csv(file, index=False)
    counts = {f"{what}s": int((queue["waits_for"] == what).sum()) for what in ("outcome", "decision")}
    return tell({"waiting": len(queue), **counts, "overdue": int(queue["overdue"].count()), "file": str(out)})


def learn(words: Words, dry_run: bool, **place: Any) -> Plain:
    """Make a version that has learnt from what is new."""
    from fairall.live.register import register

    opened = _ledger(words=words, **place)
    learnt = opened.learn(dry_run=dry_run)
    if learnt["version"] is not None:
        register(opened, words, "champion" if learnt["promoted"] else "challenger", learnt["version"])
    return tell(learnt)


def status(ledger: str, head: str | None, html: Path | None, typed: str, **place: Any) -> Plain:
    """Show where a ledger stands."""
    import fairall
    from fairall.display.table import print_frame
    from fairall.live.card import sentences, tables

    document = _ledger(ledger, **place).status(head)
    lines, shown = sentences(document, ledger), tables(document)
    print("\n".join(lines))
    for table in shown:
        if table.key != "purpose":
            print_frame(table.frame, title=table.title)
    if html:
        from fairall.live.page import write

        made = f"Read by fairall {fairall.__version__} on {date.today()}: {typed}"
        write(document, lines, shown, folder=html, title=f"FairAll: {ledger}", made=made)
        print(f"Page: {html / 'index.html'}, as Markdown {html / 'card.md'}")
    return document


def override(id: str, decision: str, by: str, why: str, **place: Any) -> Plain:
    """Record a person's decision."""
    changed = _ledger(**place).override(id, decision == "accept", by=by, why=why)
    return tell({"id": id, "decision": decision, "changed": changed})


def promote(version: int, by: str, words: Words, **place: Any) -> Plain:
    """Put a version on duty."""
    from fairall.live.register import register

    opened = _ledger(words=words, **place)
    changed = opened.promote(version, by=by)
    register(opened, words, "champion", version)
    return tell({"version": version, "changed": changed})


def remove(how: str, id: str, by: str, **place: Any) -> Plain:
    """Erase a person (`forget`), or leave an application out of all counts (`withdraw`)."""
    versions = getattr(_ledger(**place), how)(id, by=by)
    return tell({how: id, "versions that have learnt": versions, "note": NOTES[how]})


def _row(person: str) -> pd.DataFrame:
    """A table of one person, of the text of a JSON object.

    Raises:
        FairAllError: where it is none, or has lists or other objects in it.
    """
    import pandas as pd

    try:
        pairs = json.loads(person, object_pairs_hook=tuple)
        json.dumps(pairs, allow_nan=False, ensure_ascii=False).encode()  # no half of a character
        if not isinstance(pairs, tuple) or any(isinstance(cell, list | tuple) for _, cell in pairs):
            raise ValueError
        columns, cells = zip(*pairs, strict=True)
    except (ValueError, RecursionError) as error:
        wanted = """one JSON object of single values, as '{"id": "A1", "age": 41}'"""
        raise FairAllError(f"--person: give {wanted}") from error
    return pd.DataFrame([cells], columns=columns, dtype=object)


def _told(decided: pd.DataFrame) -> Plain:
    """Print the decision on one person in words, and return the document, with NaN as None."""
    decided = decided.rename(columns={decided.columns[0]: "id"}).drop(columns="referred")
    one = decided.astype(object).mask(decided.isna(), None).iloc[0].to_dict() | {
        "notes": decided.attrs["notes"]
    }
    tell(one | {"decision": {1: "accept", 0: "reject"}.get(one["decision"], "refer")})
    return one


def login() -> str:
    """The name of who types; "" where there is none, as in some containers."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        return ""


def _ledger(ledger: str, trust: Words, words: Words = (), **_: Any) -> Ledger:
    """The ledger of a command, of which `words` may be about places alone."""
    from fairall.live.ledger import Ledger

    places(words)  # a mistake ends the command before its work
    return Ledger(ledger, modules=trust)
