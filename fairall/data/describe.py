"""Output of `fairall data`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from omegaconf import OmegaConf

from fairall.config.choices import choices, description
from fairall.config.compose import (
    checked,
    checked_node,
    compose_config,
    searched_folder,
    structured,
    target_class,
)
from fairall.config.messages import USER_ERRORS, message
from fairall.config.words import literal
from fairall.data.dataset import Dataset
from fairall.data.drift import DRIFTED, stabilities
from fairall.data.load import load_dataset
from fairall.data.own_table import OwnTable
from fairall.data.prepared import PreparedData
from fairall.data.splits import ROLES
from fairall.data.table import Table
from fairall.display.console import say
from fairall.display.table import print_frame
from fairall.errors import Collected, FairAllError
from fairall.tables.applicants import Applicants, read
from fairall.tables.cells import FIRST, many_values
from fairall.tables.features import DISCRETE, Kind
from fairall.tables.files import read_cells
from fairall.tables.groups import sides
from fairall.tables.infer import LeftOut

NEEDED = ("label", "positive", "sensitive")  # keys without which a CSV cannot be run


def list_known(overrides: Sequence[str], folder: Path | None) -> None:
    """Print a table of all data sets and their locations.

    Args:
        overrides: words of the command line.
        folder: of the user's configurations (`-cd`).
    """
    overrides = _with(folder, overrides)
    rows = []
    known = dict(sorted(choices(folder)["dataset"].items()))
    for name, path in known.items():
        try:
            composed = compose_config(f"dataset={name}", *overrides)
            node = structured(composed, "dataset").dataset
            where = target_class(node, "dataset").location(node)
        except USER_ERRORS as error:
            where = f"to fix: {message(error)}"
        rows.append((name, description(path), where))
    _print(rows, "name", "what it is", "where it is")
    own = [] if folder is None else sorted((folder / "dataset").glob("[!_]*.yaml"))
    if folder is not None and not own:
        say(f"Note: there is no data set in {folder}: each is a file {folder / 'dataset' / 'NAME.yaml'}.")
    for path in own:
        if known[path.stem] != path:
            say(f"Note: {path} is not used: dataset={path.stem} is a data set of fairall; rename the file.")


def _with(folder: Path | None, overrides: Sequence[str]) -> list[str]:
    return [*overrides] if folder is None else [searched_folder(folder), *overrides]


def fetch(name: str, overrides: Sequence[str], config_dir: Path | None) -> None:
    """Download the raw file of a data set and print its path; arguments as for `describe`."""
    say(f"{name}: {load_dataset(name, *_with(config_dir, overrides)).fetch()}")


def describe(name: str, overrides: Sequence[str], config_dir: Path | None) -> bool:
    """Print the contents of a data set, or how a run would read a file; return whether it can be run.

    Args:
        name: of a data set, or the path of a file, which has a point or a slash in it.
        overrides: words of the command line, which may choose a data set of the user that is a CSV.
        config_dir: folder of the user's configurations (`-cd`).
    """
    overrides = _with(config_dir, overrides)
    if {".", "/"} & {*name}:
        return _check(name, overrides, config_dir)
    _describe(load_dataset(name, *overrides), [f"dataset={name}", *overrides], config_dir)
    return True


def _check(path: str, overrides: Sequence[str], folder: Path | None) -> bool:
    """Print how a run would read a file, and return whether it can be run."""
    source, words, missing = _own_table("describe", path, overrides)
    problems = _columns(source.applicants)
    doubts: tuple[str, ...] = ()
    if "label" not in missing:  # its values are told
        missing = [key for key in missing if key != "positive"]
    if missing:
        problems.append(f"say what the columns mean: {' '.join(f'dataset.{key}=...' for key in missing)}")
    if not problems:
        try:
            doubts = _describe(source, words, folder)
        except FairAllError as error:
            problems.append(str(error))
    for problem in Collected(problems).lines:
        say(f"To fix: {problem}")
    if not problems:
        say("Ready to run; first see the warnings above." if doubts else "Ready to run.")
    return not problems


def compare(old: str, new: str, overrides: Sequence[str]) -> None:
    """Print how far each column of a table differs from another one's, and within each group.

    Args:
        old: file of earlier people.
        new: file of new people, with the same columns.
        overrides: as for `describe`; with `sensitive` the columns are compared within groups too.

    Raises:
        FairAllError: where a file cannot be read, or the second lacks a column of the first.
    """
    source, _, _ = _own_table("compare", old, overrides)
    declared = source.config.declared
    tables = read(Path(old), declared), read_cells(Path(new), declared)
    found, left_out = stabilities(tables[0], tables[1].frame, new)
    rows = []
    for (name, group), one in found.items():
        most = f"{one.most}: {one.before:.1%} → {one.after:.1%}"
        rows.append((name, group, f"{one.psi:.3f}", f"{one.p:.2g}", most))
    say(f"{old}: {len(tables[0])} rows; {new}: {len(tables[1].frame)} rows")
    _print(
        rows,
        "column",
        "of",
        "index",
        "p",
        "changed most",
        caption="index: population stability index; p: of the index and of each bin, corrected for all rows "
        "(Benjamini–Hochberg)",
    )
    drifted = dict.fromkeys(name for (name, _), one in found.items() if one.p < DRIFTED)
    told = f"more than by chance: {', '.join(drifted)}" if drifted else "none more than by chance"
    say(f"Columns that differ, {told}.")
    for line in left_out:
        say(f"Note: {line}.")
    more = sorted(set(tables[1].frame) - set(tables[0].cells))
    if more:
        say(f"Note: {new} has further columns: {', '.join(more)}.")


def _own_table(verb: str, path: str, overrides: Sequence[str]) -> tuple[OwnTable, list[str], list[str]]:
    """A file as `dataset=csv` would read it, the words for that, and the keys that are still needed."""
    own = [word for word in overrides if word.startswith("dataset=")]
    words = [*overrides] if own else ["dataset=csv", *overrides]
    composed = compose_config(*words)
    reader = target_class(composed.dataset, "dataset")
    if not issubclass(reader, OwnTable):
        raise FairAllError(
            f"{own[-1]} is not a CSV; `data {verb}` of a file is for dataset=csv and what inherits from it"
        )
    composed.dataset.path = literal(path)
    missing = [key for key in NEEDED if OmegaConf.is_missing(composed.dataset, key)]
    if "sensitive" in missing and composed.dataset.advantaged is None:
        missing.append("advantaged")
    # Columns can be inspected before their roles are declared.
    for key in missing:
        composed.dataset[key] = ""
    return checked(composed).dataset.build(), words, missing


def _columns(people: Applicants) -> list[str]:
    """Print what each column holds; return the faults of the table."""
    rows = []
    for name in map(str, people.cells):
        cells, kind = people.cells[name], people.kinds.get(name)
        taken = people.roles.get(name, "to fix")
        if name in people.left_out:
            taken = f"left out: {people.left_out[name]}"
        elif kind is not None:
            try:
                taken = people.column(name).feature(kind, np.arange(len(people))).kind.value
            except LeftOut as reason:
                taken = f"left out: {reason}"
            except FairAllError:
                pass  # told when the table is described
        first = cells.dropna()[:FIRST]
        values = ", ".join(str(value)[:16] for value in first.unique()[:4])
        more = ", ..." if many_values(cells, 4) else ""
        rows.append((name, taken, values + more, _missing(int(cells.isna().sum()), len(cells))))
    _print(rows, "column", "taken as", "values", "missing")
    return list(people.faults)


def _describe(source: Dataset, overrides: list[str], folder: Path | None) -> tuple[str, ...]:
    """Print the contents of a data set; return its warnings."""
    table, data = source.table(), source.prepare()
    n_unlabelled = int((~table.labelled).sum())
    unlabelled = f", {n_unlabelled} of them without a label" if n_unlabelled else ""
    say(f"{source.config.name}: {len(table)} rows{unlabelled}, {len(table.schema)} features")
    _features(table)
    _groups(table)
    sizes = ", ".join(f"{role} {len(getattr(data, role))}" for role in ROLES)
    say(f"Split: {sizes} (pool: Phase I and, its first rows, the warm-up)")
    _acceptance(data, overrides, folder)
    for note in data.notes:
        say(f"Note: {note}.")
    for warning in data.warnings:
        say(f"Warning: {warning}.")
    return data.warnings


def _features(table: Table) -> None:
    rows = []
    for feature in table.schema:
        column = table.x[feature.name]
        if feature.kind in DISCRETE:
            values = f"{len(feature.words)}: {', '.join(feature.words)}"
        else:
            values = f"{column.min():.6g} to {column.max():.6g}, mean {column.mean():.6g}"
        missing = _missing(table.missing.get(feature.name, 0), len(table))
        rows.append((feature.name, feature.kind.value, values, missing))
    kinds = (f"{len(table.schema.columns(kind))} {kind.value}" for kind in Kind)
    _print(rows, "feature", "kind", "values", "missing", caption=", ".join(kinds))


def _groups(table: Table) -> None:
    lines = []
    of_groups = [(table.group_name(s), table.s == s) for s in sorted(sides(table.schema.n_groups))]
    for name, rows in (*of_groups, ("all", np.ones(len(table), dtype=bool))):
        known = rows & table.labelled
        positive = int(table.label[known].sum())
        n = int(known.sum())
        rate = f"{positive / n:.4f}" if n else ""
        lines.append((name, n - positive, positive, rate, int(rows.sum()) - n))
    _print(lines, "group", "label 0", "label 1", "base rate", "no label")


def _acceptance(data: PreparedData, overrides: list[str], folder: Path | None) -> None:
    groups, rows = sides(data.schema.n_groups), []
    chosen = checked_node(compose_config(*overrides), "initial_policy")
    others = [word for word in overrides if not word.lstrip("+~").startswith("initial_policy")]
    for name in sorted(choices(folder)["initial_policy"]):
        own = chosen.name == name
        words = overrides if own else [*others, f"initial_policy={name}"]
        config = checked_node(compose_config(*words), "initial_policy")
        try:
            accepted = config.build().decide(data.pool_table)
        except Exception as error:
            # A policy of the user's may assume features that this data set does not have.
            if own or not isinstance(error, FairAllError | KeyError):
                raise
            continue
        s = data.pool_table.s
        rates = (accepted.mean(), *(accepted[s == side].mean() for side in groups))
        rows.append((name, *(f"{rate:.4f}" for rate in rates)))
    _print(
        rows,
        "initial policy",
        "accepts",
        *(f"of {data.pool_table.group_name(s)}" for s in groups),
        caption="of the pool; people without a label count as rejected",
    )


def _missing(n: int, rows: int) -> str:
    return f"{n} ({n / rows:.1%})" if n else ""


def _print(rows: Sequence[object], *columns: str, caption: str = "") -> None:
    frame = pd.DataFrame(rows, columns=columns).set_index(columns[0])
    print_frame(frame, first=columns[0], caption=caption)
