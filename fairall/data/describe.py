"""Output of `fairall data` and of `fairall list datasets`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

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
from fairall.data.load import load_dataset
from fairall.data.own_table import PREFIX, OwnTable, prefixed
from fairall.data.splits import ROLES
from fairall.data.table import Logged, Table
from fairall.display.console import say
from fairall.display.table import print_frame
from fairall.errors import FairAllError
from fairall.tables.applicants import Applicants
from fairall.tables.features import DISCRETE, Kind
from fairall.tables.files import read_cells
from fairall.tables.infer import FIRST
from fairall.tables.roles import read


def list_known(overrides: Sequence[str], folder: Path | None) -> None:
    """Print a table of all data sets and their locations.

    Args:
        overrides: words of the command line.
        folder: of the user's configurations (`-cd`).
    """
    known, rows = dict(sorted(choices(folder)["dataset"].items())), {}
    for name, path in known.items():
        try:
            composed = compose_config(f"dataset={name}", *_with(folder, overrides))
            node = structured(composed, "dataset").dataset
            place = target_class(node, "dataset").location(node)
        except USER_ERRORS as error:
            place = f"to fix: {message(error)}"
        rows[name] = {"what it is": description(path), "where it is": place}
    print_frame(pd.DataFrame(rows).T, first="name")
    for path in sorted(folder.glob("dataset/[!_]*.yaml")) if folder else ():
        if known[path.stem] != path:
            say(f"Note: {path} is not used: dataset={path.stem} is a data set of fairall; rename the file.")


def _with(folder: Path | None, overrides: Sequence[str]) -> list[str]:
    return [*overrides] if folder is None else [searched_folder(folder), *overrides]


def fetch(name: str, overrides: Sequence[str], config_dir: Path | None) -> None:
    """Download the raw file of a data set and print its path; arguments as for `describe`."""
    say(f"{name}: {load_dataset(name, *_with(config_dir, overrides)).fetch()}")


def describe(name: str, overrides: Sequence[str], config_dir: Path | None) -> bool:
    """Print the contents of a data set or a file, or what prevents a run; return whether it can be run.

    Args:
        name: of a data set, or the path of a file, which has a point or a slash in it.
        overrides: words of the command line, which may choose a data set of the user that is a CSV.
        config_dir: folder of the user's configurations (`-cd`).

    Raises:
        FairAllError: where the data cannot be read, or the chosen initial policy cannot decide on them.
    """
    words = _with(config_dir, overrides)
    source: Dataset
    if {".", "/"} & {*name}:
        source, words = _file(name, words)
    else:
        source, words = load_dataset(name, *words), [f"dataset={name}", *words]
    columns = _columns(source.applicants) if isinstance(source, OwnTable) else {}
    try:
        table = source.table()
    except FairAllError as error:
        if not columns:
            raise
        _print(columns)
        for fault in str(error).splitlines()[:-1]:
            say(f"To fix: {fault}")
        say(f"In all of this, {PREFIX}.")
        return False
    data = source.prepare()
    for feature in table.schema:
        values = table.x[feature.name]
        content = f"{values.min():.6g} to {values.max():.6g}, mean {values.mean():.6g}"
        if feature.kind in DISCRETE:
            content = f"{len(feature.words)}: {', '.join(feature.words)}"
        columns[feature.name] = feature.kind.value, content, table.missing.get(feature.name, 0)
    say(f"{source.config.name}: {table.title}")
    _print(columns)
    print_frame(table.summary().round(4).dropna(axis="columns", how="all"), first="group")
    sizes = ", ".join(f"{role} {len(getattr(data, role))}" for role in ROLES)
    say(f"Split: {sizes} (pool: Phase I and, its first rows, the warm-up)")
    _acceptance(data.pool_table, words, config_dir)
    lines = [f"Note: {note}." for note in data.notes] + [f"Warning: {text}." for text in data.warnings]
    if isinstance(source, OwnTable) and any("=" in line for line in lines):
        lines.append(f"In all of this, {PREFIX}.")
    for line in [*lines, "Ready to run" + "; first see the warnings above" * bool(data.warnings) + "."]:
        say(line)
    return True


def compare(old: str, new: str, overrides: Sequence[str]) -> None:
    """Print how far each column of a table differs from another one's, and within each group.

    Args:
        old: file of earlier people.
        new: file of new people, with the same columns.
        overrides: as for `describe`; with `sensitive` the columns are compared within groups too.

    Raises:
        FairAllError: where a file cannot be read, or the second lacks a column of the first.
    """
    from fairall.data.drift import DRIFTED, stabilities  # imports scipy.stats

    declared = _file(old, overrides)[0].config.declared
    with prefixed():
        before, after = read(Path(old), declared), read_cells(Path(new), declared).frame
        found, notes = stabilities(before, after, new)
    frame = pd.DataFrame([*found.values()], pd.MultiIndex.from_tuples(found, names=["column", "of"]))
    frame = frame.reset_index("of")
    changed = ", ".join(frame.index[frame["p"] < DRIFTED].unique())
    say(f"{old}: {len(before)} rows; {new}: {len(after)} rows")
    caption = "psi: population stability index; p: of the index and of each bin, corrected for all rows "
    caption += "(Benjamini–Hochberg); most: what has changed most, and its share before and after"
    shown = frame.round(3).assign(p=frame["p"].map("{:.2g}".format))
    print_frame(shown, first="column", caption=caption)
    say(f"Columns that differ, more than by chance: {changed or 'none'}.")
    if more := sorted({*after} - {*before.cells}):
        notes = [*notes, f"{new} has further columns: {', '.join(more)}"]
    for note in notes:
        say(f"Note: {note}.")


def _file(path: str, overrides: Sequence[str]) -> tuple[OwnTable, list[str]]:
    """A file as `dataset=csv` would read it, roles of columns declared or not, and the words for that."""
    words = ["dataset=csv", *overrides]
    composed = compose_config(*words)
    node = composed.dataset
    if "separator" not in node:
        raise FairAllError(f"dataset={node.name}: a file is read by dataset=csv and what inherits from it")
    node.path = literal(path)
    for key in ("label", "positive", "sensitive"):
        node[key] = "" if OmegaConf.is_missing(node, key) else node[key]
    return checked(composed).dataset.build(), words


def _columns(people: Applicants) -> dict[str, tuple[str, str, int]]:
    """What each column of a file is taken for, its first values, and the number of missing cells."""
    rows = {}
    for name, cells in people.cells.items():
        taken = people.kinds.get(name) or people.roles.get(name) or "to fix"
        if taken == Kind.CATEGORICAL and cells.nunique(dropna=False) == 2:
            taken = Kind.BINARY
        if name in people.left_out:
            taken = f"left out: {people.left_out[name]}"
        values = [str(value)[:16] for value in cells.head(FIRST).dropna().unique()[:5]]
        values[4:] = ["..."] * (len(values) > 4)
        rows[str(name)] = str(taken), ", ".join(values), int(cells.isna().sum())
    return rows


def _acceptance(pool: Table, overrides: Sequence[str], folder: Path | None) -> None:
    """Print how many of the pool each initial policy accepts; raises as `describe`."""
    chosen = compose_config(*overrides).initial_policy.name
    others = [word for word in overrides if "initial_policy" not in word]
    rates = {}
    for name in sorted(choices(folder)["initial_policy"]):
        words = overrides if name == chosen else [*others, f"initial_policy={name}"]
        try:
            accepted = checked_node(compose_config(*words), "initial_policy").build().decide(pool)
        except (FairAllError, KeyError):  # one of the user's may need features that these people lack
            if name == chosen:
                raise
            continue
        rates[name] = replace(pool, logged=Logged(accepted, accepted)).summary()["accepted"]
    caption = "accepted of the pool; people without a label count as rejected"
    print_frame(pd.DataFrame(rates).T.round(4), first="initial policy", caption=caption)


def _print(columns: dict[str, tuple[str, str, int]]) -> None:
    frame = pd.DataFrame.from_dict(columns, orient="index", columns=["taken as", "values", "missing"])
    print_frame(frame, first="column")
