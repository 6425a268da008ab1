"""What the verbs of `live` do: each calls a method of a ledger, which is imported when it is called."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from fairall.cli.verbs import Done, asked_reasons
from fairall.errors import FairAllError, count

if TYPE_CHECKING:
    import pandas as pd

    from fairall.live.ledger import Ledger
    from fairall.tables.files import File


def start(given: Namespace) -> Done:
    """Make a ledger."""
    from fairall.live.ledger import Ledger

    ledger = Ledger.start(given.ledger, *given.names, *given.words, modules=given.trust)
    settings = {f"live.{name}": value for name, value in vars(ledger.settings).items()}
    print(f"Ledger: {given.ledger}, with version 1 on duty")
    _register(ledger, given, champion=1)
    print(" ".join(f"{name}={'null' if value is None else value}" for name, value in settings.items()))
    return Done({"ledger": given.ledger, **settings})


def decide(given: Namespace) -> Done:
    """Decide on the people of a table, and record it."""
    from fairall.decide.deciding import PREFIX, REASONS, people_file, require_place
    from fairall.decide.writing import unchanged, writer
    from fairall.live.ledger import GONE
    from fairall.measuring.decisions import free_names
    from fairall.storage.files import unnamed

    table, out = people_file(Path(given.people), given.words), Path(given.out)
    require_place(out, table.path, Path(given.ledger))
    left_out = out.with_name(f"{out.stem}_left_out.csv")
    require_place(left_out, table.path, Path(given.ledger))
    with unnamed(out.resolve()) as file, unchanged(table.path):
        people = _frame(table)
        options = {"skip": given.skip, "confirm_times": given.confirm_times, **asked_reasons(given)}
        decided = _ledger(given).decide(people, capacity=given.capacity, **options)
        columns = [name for name in ("decision", "propensity", "version", REASONS) if name in decided]
        names = free_names(columns, frozenset(people), PREFIX)
        with writer(table, file, out.name) as write:
            for part in table.parts():
                kept = part.frame.index.isin(decided.index)
                rows = decided.loc[part.frame.index[kept]]
                write(part.rows(kept), {own: rows[name].to_numpy() for name, own in names.items()})
    notes, why = decided.attrs["notes"], decided.attrs["left_out"]
    told = {"people": len(decided), "accepted": int(decided["decision"].sum())}
    told |= {"new": int(decided["new"].sum()), "new_accepted": int(decided["decision"][decided["new"]].sum())}
    for is_new, rows in decided.groupby("new"):
        what = "Decided on" if is_new else "Decided on before, and unchanged:"
        versions = ", ".join(map(str, rows["version"].unique()))
        print(f"{what} {len(rows)} people by version {versions}: {rows['decision'].sum()} accepted")
    for note in notes:
        print(f"Warning: {note}")
    print(f"Decisions: {out}")
    left_out.unlink(missing_ok=True)  # that of an earlier table
    if why:
        rows = people.loc[[*why]].astype(object).assign(left_out=[*why.values()])
        rows.loc[rows["left_out"].str.endswith(GONE), [*people]] = None
        with unnamed(left_out.resolve()) as file:
            declared = table.declared
            rows.to_csv(file, sep=declared.separator, index=False, encoding=declared.text_encoding)
        print(f"Left out: {count(len(why), 'row')}, with the reason in {left_out}")
    files = {"decisions": given.out, "left_out_file": str(left_out) if why else None}
    return Done({**told, "left_out": [*why.values()], "notes": notes, **files})


def outcomes(given: Namespace) -> Done:
    """Record outcomes."""
    from fairall.decide.deciding import people_file

    table = _frame(people_file(Path(given.outcomes), given.words))
    told = _ledger(given).outcomes(table, confirm_times=given.confirm_times)
    print(f"{told['new']} new outcomes, {told['corrected']} corrected, {told['known']} known before")
    if told["left_out"]:
        print(f"Left out: {told['left_out']}, of people who were forgotten or withdrawn")
    return Done(told)


def learn(given: Namespace) -> Done:
    """Make a version that has learnt from what is new."""
    ledger = _ledger(given, words=False)
    told = ledger.learn(dry_run=given.dry_run)
    waiting = f"{told['waiting']} outcomes are waited for, {told['young']} people have to wait"
    if not told["people"]:
        print(f"Nothing new to learn from: {waiting}")
        return Done(told)
    made = "A version would be" if told["version"] is None else f"Version {told['version']} is"
    learnt = f"{told['people']} people, {told['labels']} outcomes, {count(told['updates'], 'update')}"
    print(f"{made} made from version {told['parent']} by {learnt}; {waiting}")
    print(f"Acceptance probabilities of these people change by {100 * told['changed']:.2f} on average (×100)")
    for group, (before, after) in told["acceptance"].items():
        print(f"  {group}: {100 * before:.1f} → {100 * after:.1f}")
    stands = "It is on duty" if told["promoted"] else "It is a challenger"
    print(f"{stands}: {told['guard']['why']}")
    if told["version"] is not None:
        _register(ledger, given, **{"champion" if told["promoted"] else "challenger": told["version"]})
    return Done(told)


def status(given: Namespace) -> Done:
    """Show where a ledger stands."""
    from fairall.display.table import print_frame
    from fairall.live.status import frames, sentences

    found = _ledger(given, words=False).status(given.head)
    told, tables = sentences(found, given.ledger), frames(found)
    print("\n".join(told))
    for title, frame in tables.items():
        print_frame(frame, title=title)
    if given.html:
        from fairall.live.page import write

        folder = Path(given.html)
        write(found, told, tables, folder=folder, title=f"FairAll: {given.ledger}", made=given.typed)
        print(f"Page: {folder / 'index.html'}")
    return Done(found)


def promote(given: Namespace) -> Done:
    """Put a version on duty."""
    if not given.version.isdecimal():
        raise FairAllError(f"version {given.version}: give the number of a version, as 3")
    ledger = _ledger(given, words=False)
    changed = ledger.promote(int(given.version))
    _register(ledger, given, champion=int(given.version))
    print(f"Version {given.version} {'is on duty' if changed else 'was on duty already'}")
    return Done({"version": int(given.version), "changed": changed})


def forget(given: Namespace) -> Done:
    """Erase a person."""
    learnt = _ledger(given, words=False).forget(given.id)
    print(f"{given.id}: features are erased; the id, the decision and the outcome stay")
    if learnt:
        numbers = ", ".join(map(str, learnt))
        print(f"Learnt from the person, so that weights may hold values: version {numbers}")
    return Done({"versions": learnt})


def withdraw(given: Namespace) -> Done:
    """Leave an application out of all counts."""
    learnt = _ledger(given, words=False).withdraw(given.id)
    told = ", ".join(map(str, learnt)) or "none"
    print(f"{given.id}: is withdrawn and no longer counts; versions that have learnt from it: {told}")
    return Done({"versions": learnt})


def _register(ledger: Ledger, given: Namespace, **aliases: int) -> None:
    """Register versions with MLflow where the words of the command ask for it."""
    from fairall.live.register import register

    for line in register(ledger, given.words, aliases):
        print(line)


def _ledger(given: Namespace, *, words: bool = True) -> Ledger:
    """The ledger of a command, which takes `words` or those about places alone."""
    from fairall.config.compose import PLACES, places
    from fairall.live.ledger import Ledger

    if given.words and not words:
        for word in given.words:
            if not word.startswith(PLACES):
                raise FairAllError(f"{word}: not possible here; what a ledger was started with never changes")
        places(given.words)  # a mistake ends the command before its work
    return Ledger(given.ledger, modules=given.trust)


def _frame(table: File) -> pd.DataFrame:
    """All rows of a file."""
    from fairall.tables.files import read_cells

    return read_cells(table.path, table.declared).frame
