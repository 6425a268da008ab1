"""The verbs of `live`: each calls a method of a ledger, which is imported when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairall.cli.verbs import Words, outputs_dir, tell
from fairall.storage.stored import Plain

if TYPE_CHECKING:
    from fairall.live.ledger import Ledger

FORGOTTEN = "features are erased; id, decision and outcome stay; weights of these versions may hold values"
WITHDRAWN = "the application no longer counts; these versions have learnt from it"


def start(ledger: str, names: Words, words: Words, trust: Words, **_: Any) -> Plain:
    """Make a ledger."""
    from fairall.live.ledger import Ledger

    made = Ledger.start(ledger, *names, *words, modules=trust)
    _register(made, words, champion=1)
    settings = {f"live.{name}": value for name, value in vars(made.settings).items()}
    return tell({"ledger": ledger, "version on duty": 1, **settings})


def decide(
    ledger: str,
    people: str,
    out: Path,
    words: Words,
    trust: Words,
    wording: str | None,
    typed: str,
    **options: Any,
) -> Plain:
    """Decide on the people of a table, and record it."""
    from fairall.decide.deciding import PREFIX, REASONS, people_file, require_place
    from fairall.decide.reasons import read_wording
    from fairall.decide.writing import unchanged, writer
    from fairall.live.ledger import GONE
    from fairall.measuring.decisions import free_names
    from fairall.storage.files import unnamed
    from fairall.tables.files import read_cells

    table, left_out = people_file(Path(people), words), out.with_name(f"{out.stem}_left_out.csv")
    for place in (out, left_out):
        require_place(place, table.path, Path(ledger))
    with unnamed(out.resolve()) as file, unchanged(table.path):
        frame = read_cells(table.path, table.declared).frame
        decided = _ledger(ledger, trust).decide(frame, wording=read_wording(wording), **options)
        columns = [name for name in ("decision", "propensity", "version", REASONS) if name in decided]
        names = free_names(columns, frozenset(frame), PREFIX)
        with writer(table, file, out.name) as write:
            for part in table.parts():
                is_decided = part.frame.index.isin(decided.index)
                rows = decided.loc[part.frame.index[is_decided]]
                write(part.rows(is_decided), {names[name]: rows[name].to_numpy() for name in columns})
    why, new = decided.attrs["left_out"], decided["new"]
    left_out.unlink(missing_ok=True)  # that of an earlier table
    if why:
        rows = frame.loc[[*why]].astype(object).assign(left_out=[*why.values()])
        rows.loc[rows["left_out"].str.endswith(GONE), [*frame]] = None
        declared = table.declared
        with unnamed(left_out.resolve()) as file:
            rows.to_csv(file, sep=declared.separator, index=False, encoding=declared.text_encoding)
    return tell(
        {
            "people": len(decided),
            "accepted": int(decided["decision"].sum()),
            "new": int(new.sum()),
            "new_accepted": int(decided["decision"][new].sum()),
            "versions": decided["version"].unique().tolist(),
            "notes": decided.attrs["notes"],
            "decisions": str(out),
            "left_out": [*why.values()],
            "left_out_file": str(left_out) if why else None,
        }
    )


def outcomes(ledger: str, outcomes: str, words: Words, trust: Words, confirm_times: bool, **_: Any) -> Plain:
    """Record outcomes."""
    from fairall.decide.deciding import people_file
    from fairall.tables.files import read_cells

    table = people_file(Path(outcomes), words)
    frame = read_cells(table.path, table.declared).frame
    return tell(_ledger(ledger, trust).outcomes(frame, confirm_times=confirm_times))


def learn(ledger: str, words: Words, trust: Words, dry_run: bool, **_: Any) -> Plain:
    """Make a version that has learnt from what is new."""
    opened = _ledger(ledger, trust, words)
    learnt = opened.learn(dry_run=dry_run)
    if learnt["version"] is not None:
        _register(opened, words, **{"champion" if learnt["promoted"] else "challenger": learnt["version"]})
    return tell(learnt)


def status(
    ledger: str, words: Words, trust: Words, head: str | None, html: Path | None, typed: str, **_: Any
) -> Plain:
    """Show where a ledger stands."""
    from fairall.display.table import print_frame
    from fairall.live.status import frames, sentences

    document = _ledger(ledger, trust, words).status(head)
    lines, tables = sentences(document, ledger), frames(document)
    print("\n".join(lines))
    for title, frame in tables.items():
        print_frame(frame, title=title)
    if html:
        from fairall.live.page import write

        write(document, lines, tables, folder=html, title=f"FairAll: {ledger}", made=typed)
        print(f"Page: {html / 'index.html'}")
    return document


def promote(ledger: str, version: int, words: Words, trust: Words, **_: Any) -> Plain:
    """Put a version on duty."""
    opened = _ledger(ledger, trust, words)
    changed = opened.promote(version)
    _register(opened, words, champion=version)
    return tell({"version": version, "changed": changed})


def forget(ledger: str, id: str, words: Words, trust: Words, **_: Any) -> Plain:
    """Erase a person."""
    versions = _ledger(ledger, trust, words).forget(id)
    return tell({"forgotten": id, "versions": versions, "note": FORGOTTEN})


def withdraw(ledger: str, id: str, words: Words, trust: Words, **_: Any) -> Plain:
    """Leave an application out of all counts."""
    versions = _ledger(ledger, trust, words).withdraw(id)
    return tell({"withdrawn": id, "versions": versions, "note": WITHDRAWN})


def _register(ledger: Ledger, words: Words, **aliases: int) -> None:
    """Register versions with MLflow where the words of the command ask for it."""
    from fairall.live.register import register

    for line in register(ledger, words, aliases):
        print(line)


def _ledger(ledger: str, trust: Words, words: Words = ()) -> Ledger:
    """The ledger of a command, of which `words` may be about places alone."""
    from fairall.live.ledger import Ledger

    outputs_dir(words)  # a mistake ends the command before its work
    return Ledger(ledger, modules=trust)
