"""Output of `fairall data` and of `fairall list datasets`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from omegaconf import DictConfig, OmegaConf
from yaml import YAMLError

from fairall.config.choices import choices, description, with_parents
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
from fairall.data.own_table import PREFIX, OwnTable, prefixed
from fairall.data.splits import ROLES
from fairall.data.table import Logged, Table
from fairall.display.progress import say
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
    known, rows = choices(folder)["dataset"], {}
    for name, path in sorted(known.items()):
        try:
            node = structured(_composed(name, overrides, folder), "dataset").dataset
            place = target_class(node, "dataset").location(node)
        except USER_ERRORS as error:
            place = f"to fix: {message(error)}"
        rows[name] = {"what it is": description(path), "where it is": place}
    print_frame(pd.DataFrame(rows).T, first="name")
    for path in sorted(folder.glob("dataset/[!_]*.yaml")) if folder else ():
        if known[path.stem] != path:
            say(f"Note: {path} is not used: dataset={path.stem} is a data set of fairall; rename the file.")


def fetch(name: str, overrides: Sequence[str], config_dir: Path | None) -> None:
    """Download the raw file of a data set and print its path; arguments as for `describe`."""
    say(f"{name}: {_built(_composed(name, overrides, config_dir)).fetch()}")


def describe(name: str, overrides: Sequence[str], config_dir: Path | None) -> bool:
    """Print the contents of a data set or a file, or what prevents a run; return whether it can be run.

    Args:
        name: of a data set, or the path of a file, which has a point or a slash in it.
        overrides: words of the command line, which may choose a data set of the user that is a CSV.
        config_dir: folder of the user's configurations (`-cd`).

    Raises:
        FairAllError: where the data cannot be read, or the chosen initial policy cannot decide on them.
    """
    composed = _composed(name, overrides, config_dir, is_file=bool({".", "/"} & {*name}))
    source = _built(composed)
    own = isinstance(source, OwnTable)
    try:
        table = source.table()
    except FairAllError as error:
        if not own:
            raise
        _print_columns(source, {})
        for fault in str(error).splitlines()[:-1]:
            say(f"To fix: {fault}")
        say(f"In all of this, {PREFIX}.")
        return False
    data = source.prepare()
    say(f"{source.config.name}: {table.title}")
    features = {}
    for feature in table.schema:
        values = table.x[feature.name]
        content = f"{values.min():.6g} to {values.max():.6g}, mean {values.mean():.6g}"
        if feature.kind in DISCRETE:
            content = f"{len(feature.words)}: {', '.join(feature.words)}"
        features[feature.name] = feature.kind.value, content, table.missing.get(feature.name, 0)
    _print_columns(source, features)
    print_frame(table.summary().round(4).dropna(axis="columns", how="all"), first="group")
    sizes = ", ".join(f"{role} {len(getattr(data, role))}" for role in ROLES)
    say(f"Split: {sizes} (pool: Phase I and, its first rows, the warm-up)")
    _acceptance(data.pool_table, composed, choices(config_dir)["initial_policy"])
    lines = [f"Note: {note}." for note in data.notes] + [f"Warning: {text}." for text in data.warnings]
    if own and any("=" in line for line in lines):
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
    from fairall.data.drift import DRIFTED, Stability, stabilities  # imports scipy.stats

    declared = _built(_composed(old, overrides, is_file=True)).config.declared
    with prefixed():
        before, after = read(Path(old), declared), read_cells(Path(new), declared).frame
        found, notes = stabilities(before, after, new)
    rows = [(*key, *column) for key, column in found.items()]
    frame = pd.DataFrame(rows, columns=["column", "of", *Stability._fields]).set_index("column")
    changed = ", ".join(frame.index[frame["p"] < DRIFTED].unique())
    say(f"{old}: {len(before)} rows; {new}: {len(after)} rows")
    caption = "psi: population stability index; p: of the index and of each bin, corrected for all rows "
    caption += "(Benjamini–Hochberg); most: what has changed most, and its share before and after"
    shown = frame.round(3).assign(p=frame["p"].map("{:.2g}".format))
    print_frame(shown, first="column", caption=caption)
    say(f"Columns that differ, more than by chance: {changed or 'none'}.")
    for note in notes:
        say(f"Note: {note}.")


def _composed(
    name: str, overrides: Sequence[str], folder: Path | None = None, *, is_file: bool = False
) -> DictConfig:
    """The configuration of a run on a data set, or on a file, roles of whose columns need not be declared."""
    searched = [] if folder is None else [searched_folder(folder)]
    composed = compose_config(*searched, f"dataset={'csv' if is_file else name}", *overrides)
    node = composed.dataset
    if is_file:
        if "separator" not in node:
            raise FairAllError(
                f"dataset={node.name}: a file is read by dataset=csv and what inherits from it"
            )
        node.path = literal(name)
        for key in ("label", "positive", "sensitive"):
            if OmegaConf.is_missing(node, key):
                node[key] = ""
    return composed


def _built(composed: DictConfig) -> Any:
    """The data set of a configuration, all of which is checked."""
    return checked(composed).dataset.build()


def _print_columns(source: Any, features: Mapping[str, tuple[str, str, int]]) -> None:
    """Print what each column is taken for, its values and the number of missing cells.

    Args:
        source: the data set; also the other columns of an `OwnTable` are shown.
        features: these three by name.
    """
    rows = dict(features)
    if isinstance(source, OwnTable):
        people = source.applicants
        rows = {name: features.get(name) or _as_taken(people, name) for name in map(str, people.cells)}
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=["taken as", "values", "missing"])
    print_frame(frame, first="column")


def _as_taken(people: Applicants, name: str) -> tuple[str, str, int]:
    """What a column that is no feature of a run is taken for, its first values and its missing cells."""
    cells = people.cells[name]
    taken = people.kinds.get(name) or people.roles.get(name) or "to fix"
    if taken == Kind.CATEGORICAL and cells.nunique(dropna=False) == 2:
        taken = Kind.BINARY
    if name in people.left_out:
        taken = f"left out: {people.left_out[name]}"
    first = [str(value)[:16] for value in cells.head(FIRST).dropna().unique()[:5]]
    first[4:] = ["..."] * (len(first) > 4)
    return str(taken), ", ".join(first), int(cells.isna().sum())


def _acceptance(pool: Table, composed: DictConfig, policies: dict[str, Path]) -> None:
    """Print how many of the pool each initial policy accepts; raises as `describe`."""
    rates = {}
    for name, path in sorted(policies.items()):
        config, files = composed.copy(), {file.stem: file for file in path.parent.glob("*.yaml")}
        try:
            if name != composed.initial_policy.name:
                config.initial_policy = {}
                for key, value in with_parents(path, files | policies).items():
                    OmegaConf.update(config.initial_policy, key, value, force_add=True)
            accepted = checked_node(config, "initial_policy").build().decide(pool)
        except (FairAllError, KeyError, YAMLError):  # one of the user's, as where people lack its features
            if name == composed.initial_policy.name:
                raise
            continue
        rates[name] = replace(pool, logged=Logged(accepted, accepted)).summary()["accepted"]
    caption = "accepted of the pool; people without a label count as rejected"
    print_frame(pd.DataFrame(rates).T.round(4), first="initial policy", caption=caption)
