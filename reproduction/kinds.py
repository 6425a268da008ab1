"""Kinds of tables of studies: means, the first of several tools, differences, and effects of parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from fairall.display import Cell, PageTable, Row, mean_interval, mean_std
from fairall.metrics import Quantity, Spread
from fairall.report import LEVEL, WITH_ROW, holm, paired_difference, paired_p, standings
from fairall.results import REFERENCES
from reproduction.items import difference_of, table_of
from reproduction.values import Facts, by_words, differences, finished, long, words

Spec = Mapping[str, Any]
"""A table in studies/*.yaml: `measures` by heading, templates of facts for `PLACES`, `keys` that tell runs
apart, facts to `sort` by, and `looks` of numbers by measure."""

PLACES = {"group": "", "name": "", "column": "{heading}"}  # of a cell, with usual templates


def table(
    spec: Spec, runs: Iterable[Facts], cells: Iterable[Facts], columns: Sequence[str] = ()
) -> PageTable:
    """A table of cells, rows of a group together.

    Args:
        spec: with key, title and note.
        runs: finished or missing.
        cells: each with its `PLACES`, `cell`, and perhaps `records` for the CSV file.
        columns: headings; those of `measures` by default.
    """
    groups: dict[str, dict[str, dict[str, Facts]]] = {}
    for one in cells:
        groups.setdefault(one["group"], {}).setdefault(one["name"], {})[one["column"]] = one
    columns = columns or [*spec["measures"]]
    rows, records = [], []
    for group, names in groups.items():
        for name, own in names.items():
            rows.append(
                Row(group, name, [own[column]["cell"] if column in own else "" for column in columns])
            )
            there = [own[column] for column in columns if column in own]
            records += [record for one in there for record in one.get("records", ())]
    shown = {name: spec[name] for name in ("key", "title", "note")}
    return table_of(columns, rows, records, [run["planned"] for run in runs], **shown)


def placed(spec: Spec, runs: Iterable[Facts]) -> list[Facts]:
    """A row per finished run and measure, with the `PLACES` of its cell and the `look` of its numbers."""
    rows = [
        run | {"heading": heading, "measure": measure}
        for run in {run["planned"].key: run for run in finished(runs)}.values()
        for heading, measure in spec["measures"].items()
    ]
    for row in rows:
        row["look"] = spec.get("looks", {}).get(row["measure"], {})
        row |= {place: words(spec.get(place, usual), row) for place, usual in PLACES.items()}
    return sorted(rows, key=lambda row: [row[name] for name in spec.get("sort", ())])


def summaries(frame: pd.DataFrame) -> list[Facts]:
    """Rows with `values` by seed and their `spread`, of all seeds with a value; one per place of a cell."""
    found = []
    for _, own in frame.groupby([*PLACES], sort=False):
        values = own.set_index("seed")["value"].dropna()
        found.append(dict(own.iloc[0]) | {"values": values, "spread": Spread.over_seeds(values.to_numpy())})
    return found


def means(spec: Spec, runs: Sequence[Facts]) -> PageTable:
    """A row per run: means over seeds with 95 % intervals, ×100. A record per seed and measure."""
    rows = placed(spec, runs)
    for row in rows:
        run, measure = row["planned"].run, row["measure"]
        row["cell"] = mean_interval(run.spread(measure), **row["look"])
        row["records"] = [
            _known(spec, row, seed=seed, value=value) for seed, value in run.values(measure).items()
        ]
    return table(spec, runs, rows)


def levels(spec: Spec, runs: Sequence[Facts]) -> PageTable:
    """A row per run and, but for `references: false`, reference: mean ± standard deviation over seeds.

    `lost` is a measure of how much less there is of another than in runs with other facts.
    """
    rows = placed(spec, runs)
    frame = long(rows)
    if lost := spec.get("lost"):
        own = frame["measure"] == lost["measure"]
        late = [row | {"measure": lost["of"]} for row in rows if row["measure"] == lost["measure"]]
        change = differences(long(late), spec["keys"], lost["less"], itself=True)
        waited = change.assign(value=-change["value"], measure=lost["measure"])
        frame = pd.concat([frame[~own], waited])
    found = summaries(frame)
    of_group = {row["group"]: row["planned"] for row in reversed(rows)}
    for policy in WITH_ROW if spec.get("references", True) else ():
        label = REFERENCES[policy]
        for row in rows:
            spread = row["planned"].run.reference(policy, row["measure"])
            if row["planned"] is of_group[row["group"]]:
                found.append(row | {"policy": label, "name": label, "spread": spread})
    found = [one for one in found if one["spread"]]
    for one in found:
        mean, std = one["spread"].mean, one["spread"].std
        one["cell"] = mean_std(mean, std, **one["look"])
        one["records"] = [_known(spec, one, mean=mean, std=std)]
    return table(spec, runs, found)


def first(spec: Spec, runs: Sequence[Facts]) -> PageTable:
    """A row per setting: the first tool by each measure, and by how much it is before the next.

    Bold where the two differ at `LEVEL`, corrected for all pairs of tools of the setting.
    """
    cells = []
    for (_, _, heading), own in long(placed(spec, runs)).groupby([*PLACES], sort=False):
        of_tools = own.dropna(subset="value").set_index("seed").groupby("tool", sort=False)["value"]
        values = dict(iter(of_tools))
        one = dict(own.iloc[0]) | {"cell": ""}
        cells.append(one)
        quantity = Quantity(one["measure"], heading, "", heading.endswith("↑"))
        judged = standings(values, quantity, baseline="") if len(values) > 1 else {}
        for best in [tool for tool, of in judged.items() if of["best"]][:1]:
            of = {key: judged[best][f"{key}_rival"] for key in ("p", "difference", "low", "high")}
            after = judged[best]["rival"]
            ahead = mean_interval(paired_difference(values[best], values[after]), **one["look"])
            one["cell"] = Cell(f"{best}, {ahead} from {after}", best=_sure(of["p"]))
            one["records"] = [_known(spec, one, first=best, next=after, **of)]
    return table(spec, runs, cells)


def less(spec: Spec, runs: Sequence[Facts]) -> PageTable:
    """A row per run: measures less those of the run that differs in the facts `less` alone.

    With `tested`, bold where a difference is not 0 at `LEVEL`, corrected over the runs of a group.
    """
    frame = long(placed(spec, runs))
    found = summaries(differences(frame, spec["keys"], spec["less"], itself=spec.get("itself", False)))
    tested = spec.get("tested", False)
    for family in by_words(found, "{group}, {measure}").values():
        corrected = holm([paired_p(one["values"], 0 * one["values"]) for one in family])
        for one, p in zip(family, corrected, strict=True):
            best, of = tested and _sure(p), {"p": p} if tested else {}
            one["cell"] = Cell(mean_interval(one["spread"], **one["look"]), best=best)
            one["records"] = [_known(spec, one, **of, **difference_of(one["spread"]))]
    columns = sorted(set(frame["column"])) if "column" in spec else ()
    return table(spec, runs, found, columns)


def effects(spec: Spec, runs: Sequence[Facts]) -> PageTable:
    """A row per effect and group of runs: mean differences of the pairs that differ in one factor alone.

    `effects` are a factor, its level, and the reference that this is compared with. With `over`, a further
    group of that name is the mean over all.
    """
    frame = long(placed(spec, runs))
    found = []
    for factor, level, reference in spec["effects"]:
        at = frame[frame[factor].isin([level, reference])]
        pairs = differences(at, ["group", *spec["keys"]], {factor: reference})
        own = [_mean(some, spec["keys"]) for _, some in pairs.groupby("group", sort=False)]
        if "over" in spec and len(own) > 1:
            n = sum(one["pairs"].iloc[0] for one in own)
            own.insert(0, _mean(pd.concat(own), ["group"]).assign(group=spec["over"], pairs=n))
        effect = f"{level} − {reference}"
        found += [
            one | {"group": effect, "name": one["group"]}
            for part in own
            for one in summaries(part.assign(name=""))
        ]
    for one in found:
        known = {
            "effect": one["group"],
            "group": one["name"],
            "pairs": one["pairs"],
            "measure": one["measure"],
        }
        one |= {"cell": mean_interval(one["spread"]), "records": [known | difference_of(one["spread"])]}
    counts = [one | {"column": "pairs", "cell": str(one["pairs"]), "records": []} for one in found]
    return table(spec, runs, [*found, *counts], [*spec["measures"], "pairs"])


def _mean(frame: pd.DataFrame, parts: Sequence[str]) -> pd.DataFrame:
    """Means over parts, of the seeds that all of them have, with their number as `pairs`."""
    by_seed = [name for name in ("group", "column", "measure", "seed") if name not in parts]
    wide = frame.pivot(index=by_seed, columns=[*parts], values="value")
    return wide.mean(axis=1, skipna=False).rename("value").reset_index().assign(pairs=wide.shape[1])


def _known(spec: Spec, one: Facts, **values: Any) -> dict[str, Any]:
    """A record: what tells it apart, and values."""
    return {name: one[name] for name in dict.fromkeys((*spec["keys"], "measure"))} | values


def _sure(p: float | None) -> bool:
    return p is not None and p < LEVEL


KINDS = {kind.__name__: kind for kind in (means, levels, first, less, effects)}
