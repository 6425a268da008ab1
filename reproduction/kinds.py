"""Kinds of tables of studies: what is in their cells, such as means, differences, and effects of parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import pandas as pd

from fairall.display import Cell, PageTable, Row, mean_interval, mean_std, number
from fairall.metrics import Spread
from fairall.report import LEVEL, WITH_ROW, holm, paired_difference, paired_p, pairwise_p
from fairall.results import REFERENCES
from reproduction.items import table_of
from reproduction.questions_hidden import held
from reproduction.values import Facts, by_words, differences, finished, long, words

Spec = Mapping[str, Any]
"""A table in studies/*.yaml: `measures` by heading, templates of facts for `PLACES`, `keys` that tell runs
apart, facts to `sort` by, and `looks` of numbers by measure."""

PLACES = {"group": "", "name": "", "column": "{heading}"}  # of a cell, with usual templates


def table(spec: Spec, runs: Iterable[Facts], cells: Iterable[Facts]) -> PageTable:
    """A table of cells, rows of a group together.

    Args:
        spec: with key, title and note.
        runs: finished or missing.
        cells: each with its `PLACES`, and what is shown as `text`, by default the mean of `spread` with its
            interval, bold where `corrected_p` is below `LEVEL`. Later ones replace earlier ones.
    """
    shown: dict[str, dict[str, dict[str, Cell]]] = {}
    for one in cells:
        text = one.get("text") or mean_interval(one.get("spread"), **one.get("look", {}))
        own = shown.setdefault(one["group"], {}).setdefault(one["name"], {})
        own[one["column"]] = Cell(text, best=(one.get("corrected_p") or LEVEL) < LEVEL)
    found = dict.fromkeys(of for names in shown.values() for own in names.values() for of in own)
    columns = sorted(found) if "column" in spec else [*dict.fromkeys([*spec.get("measures", ()), *found])]
    rows = [
        Row(group, name, [own.get(of, "") for of in columns])
        for group, names in shown.items()
        for name, own in names.items()
    ]
    of_page = {name: spec[name] for name in ("key", "title", "note")}
    return table_of(columns, rows, None, [run["planned"] for run in runs], **of_page)


def placed(spec: Spec, runs: Iterable[Facts]) -> list[Facts]:
    """A row per finished run and measure, with the `PLACES` of its cell and the `look` of its numbers."""
    rows = [
        run | {"heading": heading, "measure": measure, "look": spec.get("looks", {}).get(measure, {})}
        for run in {run["planned"].key: run for run in finished(runs)}.values()
        for heading, measure in spec["measures"].items()
    ]
    for row in rows:
        row |= {place: words(spec.get(place, usual), row) for place, usual in PLACES.items()}
    return sorted(rows, key=lambda row: [row[name] for name in spec.get("sort", ())])


def cells_of(frame: pd.DataFrame) -> list[Facts]:
    """Cells with `values` by seed and their `spread`, of all seeds with a value."""
    found = []
    for _, own in frame.groupby([*PLACES], sort=False):
        values = own.set_index("seed")["value"].dropna()
        found.append(dict(own.iloc[0]) | {"values": values, "spread": Spread.over_seeds(values.to_numpy())})
    return found


def means(spec: Spec, runs: Sequence[Facts]) -> list[Facts]:
    """A row per run: means over seeds with 95 % intervals, ×100."""
    return [row | {"spread": row["planned"].run.spread(row["measure"])} for row in placed(spec, runs)]


def levels(spec: Spec, runs: Sequence[Facts]) -> list[Facts]:
    """A row per run and, but for `references: false`, reference: mean ± standard deviation over seeds.

    `lost` is a measure of how much less there is of another than in runs with other facts.
    """
    rows = placed(spec, runs)
    found = cells_of(long(rows))
    if lost := spec.get("lost"):
        late = [row | {"measure": lost["of"]} for row in rows if row["measure"] == lost["measure"]]
        change = differences(long(late), spec["keys"], lost["less"], itself=True)
        found += cells_of(change.assign(value=-change["value"]))
    firsts = {(row["group"], row["measure"]): row for row in reversed(rows)}.values()
    for policy, row in product(WITH_ROW if spec.get("references", True) else (), firsts):
        spread = row["planned"].run.reference(policy, row["measure"])
        found.append(row | {"name": REFERENCES[policy], "spread": spread})
    found = [one for one in found if one["spread"]]
    return [one | {"text": mean_std(one["spread"].mean, one["spread"].std, **one["look"])} for one in found]


def first(spec: Spec, runs: Sequence[Facts]) -> list[Facts]:
    """A row per setting: the first tool by each measure, and by how much it is before the next.

    Bold where the two differ at `LEVEL`, corrected for all pairs of tools of the setting.
    """
    cells = []
    for (_, _, heading), own in long(placed(spec, runs)).groupby([*PLACES], sort=False):
        one, by_seed = dict(own.iloc[0]), own.set_index("seed")
        values = dict(iter(by_seed.groupby("tool", sort=False)["value"]))
        ranked = sorted(values, key=lambda tool: values[tool].mean(), reverse=heading.endswith("↑"))
        if len(ranked) > 1:
            best, after, *_ = ranked
            ahead = mean_interval(paired_difference(values[best], values[after]), **one["look"])
            one["text"] = f"{best}, {ahead} from {after}"
            one["corrected_p"] = pairwise_p(values)[frozenset((best, after))]
        cells.append(one)
    return cells


def less(spec: Spec, runs: Sequence[Facts]) -> list[Facts]:
    """A row per run: measures less those of the run that differs in the facts `less` alone.

    With `tested`, bold where a difference is not 0 at `LEVEL`, corrected over the runs of a group.
    """
    frame = long(placed(spec, runs))
    found = cells_of(differences(frame, spec["keys"], spec["less"], itself=spec.get("itself", False)))
    for family in by_words(found, "{group}, {measure}").values() if spec.get("tested") else ():
        corrected = holm([paired_p(one["values"], 0 * one["values"]) for one in family])
        for one, p in zip(family, corrected, strict=True):
            one["corrected_p"] = p
    return found


def effects(spec: Spec, runs: Sequence[Facts]) -> list[Facts]:
    """A row per effect and name of runs: mean differences of the pairs that differ in one factor alone.

    `effects` are a factor, its level, and the reference that this is compared with. With `over`, a further
    row of that name is the mean over all.
    """
    frame = long(placed(spec, runs))
    found = []
    for factor, level, reference in spec["effects"]:
        at = frame[frame[factor].isin([level, reference])]
        pairs = differences(at, ["name", *spec["keys"]], {factor: reference})
        own = [_mean(some, spec["keys"]) for _, some in pairs.groupby("name", sort=False)]
        if "over" in spec and len(own) > 1:
            n = sum(one["pairs"].iloc[0] for one in own)
            own.insert(0, _mean(pd.concat(own), ["name"]).assign(name=spec["over"], pairs=n))
        found += [one for part in own for one in cells_of(part.assign(group=f"{level} − {reference}"))]
    counts = [one | {"column": "pairs", "text": str(one["pairs"]), "spread": None} for one in found]
    return [*found, *counts]


def _mean(frame: pd.DataFrame, parts: Sequence[str]) -> pd.DataFrame:
    """Means over parts, of the seeds that all of them have, with their number as `pairs`."""
    by_seed = [name for name in ("name", "column", "seed") if name not in parts]
    wide = frame.pivot(index=by_seed, columns=[*parts], values="value")
    return wide.mean(axis=1, skipna=False).rename("value").reset_index().assign(pairs=wide.shape[1])


def rates(spec: Spec, runs: Sequence[Facts]) -> list[Facts]:
    """A row per group of people, the smallest last: how many they are, and how many of them are accepted."""
    cells: list[Facts] = []
    for run in finished(runs):
        people = run["planned"].run.named_groups
        sizes = {name: sum(group.people.values()) for name, group in people.items()}
        for name in sorted(sizes, key=sizes.__getitem__, reverse=True):
            place = {"group": words(spec["group"], run), "name": name}
            cells += [
                place | {"column": "people", "text": str(sizes[name])},
                place | {"column": "label 1", "text": number(people[name].base_rate)},
                place | {"column": run["tool"], "spread": people[name].accepted_in_window},
            ]
    return cells


KINDS = {kind.__name__: kind for kind in (means, levels, first, less, effects, rates, held)}
