"""What the verbs of `live` do: each calls a method of a ledger, which is imported when it is called."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from fairall.cli.verbs import Done
from fairall.errors import FairAllError, count

if TYPE_CHECKING:
    import pandas as pd

    from fairall.tables.files import File


def start(given: Namespace) -> Done:
    """Make a ledger."""
    from fairall.live.ledger import Ledger

    if len(given.names) > 1:
        raise FairAllError(f"{given.names[1]}: a ledger starts from one run, or from the words of one")
    ledger = Ledger.start(given.ledger, *given.names, *given.words, modules=given.trust)
    print(f"Ledger: {given.ledger}, with version 1 on duty")
    for name, value in vars(ledger.settings).items():
        print(f"  live.{name}={'null' if value is None else value}")
    return Done({"ledger": given.ledger, "settings": vars(ledger.settings)})


def decide(given: Namespace) -> Done:
    """Decide on the people of a table, and record it."""
    from fairall.decide.deciding import PREFIX, people_file, require_place
    from fairall.decide.writing import unchanged, writer
    from fairall.live.ledger import Ledger
    from fairall.measuring.decisions import free_names
    from fairall.storage.files import unnamed

    table = people_file(Path(given.people), given.words)
    out = Path(given.out)
    require_place(out, table.path)
    with unnamed(out.resolve()) as file, unchanged(table.path):
        decided = Ledger(given.ledger, modules=given.trust).decide(_frame(table), capacity=given.capacity)
        columns = [name for name in ("decision", "propensity", "version", "reasons") if name in decided]
        names = free_names(columns, frozenset(_frame(table)), PREFIX)
        with writer(table, file, out.name) as write:
            end = 0
            for part in table.parts():
                start, end = end, end + len(part.frame)
                write(part, {own: decided[name].to_numpy()[start:end] for name, own in names.items()})
    new = decided[decided["new"]]
    told = {
        "people": len(decided),
        "new": len(new),
        "accepted": int(decided["decision"].sum()),
        "accepted_of_new": int(new["decision"].sum()),
        "versions": sorted({int(one) for one in decided["version"]}),
        "notes": decided.attrs["notes"],
    }
    if len(new):
        by = f"by version {int(new['version'].iloc[0])}"
        print(f"Decided on {len(new)} people {by}: {told['accepted_of_new']} accepted")
    if len(new) < len(decided):
        print(f"{len(decided) - len(new)} people had been decided on: nothing has changed for them")
    for note in told["notes"]:
        print(f"Warning: {note}")
    print(f"Decisions: {given.out}")
    return Done(told | {"decisions": given.out})


def outcomes(given: Namespace) -> Done:
    """Record outcomes."""
    from fairall.decide.deciding import people_file
    from fairall.live.ledger import Ledger

    told = Ledger(given.ledger).outcomes(_frame(people_file(Path(given.outcomes), given.words)))
    print(f"{told['new']} new outcomes, {told['corrected']} corrected, {told['known']} known before")
    return Done(told)


def learn(given: Namespace) -> Done:
    """Make a version that has learnt from what is new."""
    from fairall.live.ledger import Ledger

    _no_words(given)
    told = Ledger(given.ledger, modules=given.trust).learn(dry_run=given.dry_run)
    waiting = f"{told['waiting']} outcomes are waited for, {told['young']} people have to wait"
    if not told["people"]:
        print(f"Nothing new to learn from: {waiting}")
        return Done(told)
    made = "It would be a version" if told["version"] is None else f"Version {told['version']}"
    updates = count(told["updates"], "update")
    learnt = f"{told['people']} people with {told['labels']} outcomes in {updates}"
    print(f"{made} made from version {told['parent']} by {learnt}; {waiting}")
    print(
        f"Acceptance probabilities of these people change by {100 * told['changed']:.2f} on average (×100):"
    )
    for group, (before, after) in told["acceptance"].items():
        print(f"  {group}: {100 * before:.1f} → {100 * after:.1f}")
    if told["version"] is not None:
        stands = "is on duty" if told["promoted"] else "stays a challenger"
        print(f"It {stands}: {told['guard']['why']}")
    return Done(told)


def status(given: Namespace) -> Done:
    """Show where a ledger stands."""
    from fairall.live.ledger import Ledger
    from fairall.live.status import show, status

    _no_words(given)
    found = status(Ledger(given.ledger, modules=given.trust))
    show(found, given.ledger)
    if given.html:
        from fairall.live.page import write

        write(found, given.ledger, Path(given.html), given.typed)
        print(f"Page: {Path(given.html) / 'index.html'}")
    return Done(found)


def promote(given: Namespace) -> Done:
    """Put a version on duty."""
    from fairall.live.ledger import Ledger

    _no_words(given)
    if not given.version.isdecimal():
        raise FairAllError(f"version {given.version}: give the number of a version, as 3")
    changed = Ledger(given.ledger, modules=given.trust).promote(int(given.version))
    print(
        f"Version {given.version} is on duty" if changed else f"Version {given.version} was on duty already"
    )
    return Done({"version": int(given.version), "changed": changed})


def forget(given: Namespace) -> Done:
    """Erase a person."""
    from fairall.live.ledger import Ledger

    _no_words(given)
    told = Ledger(given.ledger, modules=given.trust).forget(given.id)
    print(f"{given.id}: features are erased; the decision stays")
    if told["versions"]:
        versions = ", ".join(map(str, told["versions"]))
        print(f"Learnt from by version {versions}, which cannot be made again")
    return Done(told)


def _frame(table: File) -> pd.DataFrame:
    """All rows of a file."""
    from fairall.tables.files import read_cells

    return read_cells(table.path, table.declared).frame


def _no_words(given: Namespace) -> None:
    if given.words:
        raise FairAllError(
            f"{given.words[0]}: not possible here; what a ledger is started with never changes"
        )
