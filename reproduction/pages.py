"""Pages of a study: its folder of HTML and files, and blocks of a page of docs/ written by hand."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from fairall import Config, FairAllError
from fairall.display import (
    CAUTION,
    Item,
    PageTable,
    cautioned,
    escaped,
    marked,
    own_name,
    to_markdown,
    write,
    write_page,
)
from fairall.report import made
from reproduction.by_seed import by_seed_table
from reproduction.fingerprint import mark
from reproduction.items import as_shown
from reproduction.plan import Planned, interpretable, nearest
from reproduction.runs import in_words, read_durations

BLOCK = re.compile(r"^<!-- begin: (\S+) -->\n(.*?)^<!-- end: \1 -->", re.DOTALL | re.MULTILINE)
BEGIN = re.compile(r"^<!-- begin: (\S+) -->$", re.MULTILINE)
ESCAPED = re.compile(r"\\(.)|\*\*")
DOCS = Path(__file__).parents[1] / "docs"
INDEX = ["group", "name"]  # of rows
BESIDE = "tables/"  # before the key of a block that links a table, in a file beside the page
SETTING = "setting"  # block with the line about when and on what a page was made
ENDINGS = (".png", ".pdf", ".md", ".tex", ".csv")


def publish(
    name: str,
    title: str,
    sections: Mapping[str, Sequence[Item]],
    config: Config,
    *,
    folder: Path | None = None,
    into: Sequence[Path] = (),
    known: Callable[[], Iterable[str]] = tuple,
    runs: Sequence[Planned] = (),
    **texts: Any,
) -> None:
    """Write the page of a study, and the blocks of pages of the documentation.

    Args:
        name: of the command, and of the folder in `outputs_dir`.
        title: of the page.
        sections: tables and figures by heading; those without anything to show are left out.
        config: with `outputs_dir` and `preset`, see `fairall.places`.
        folder: to write to instead.
        into: pages of the documentation; see `fill`.
        known: keys of further tables and figures, which other runs have.
        runs: of the study, whose values by seed are a table of `into` too, `tables/NAME_by_seed`.
        texts: of `fairall.results.write_page`.

    Raises:
        FairAllError: where a folder or page cannot be written, or has an unknown block.
    """
    outputs = Path(config.outputs_dir)
    folder = folder or outputs / own_name(name, config.preset)
    shown = {
        section: kept
        for section, some in sections.items()
        if (kept := cautioned([item for item in some if item.shown], config.preset))
    }
    line = f"Made {datetime.now():%Y-%m-%d %H:%M}; {made()}"
    write_page(folder, marked(title, config.preset), shown, made=line, **texts)
    items = [*chain(*shown.values())]
    for path in (*folder.glob("figures/*"), *folder.glob("tables/*")):
        if path.suffix in ENDINGS and path.stem not in {item.key for item in items}:
            path.unlink()
    print(f"Page: {folder / 'index.html'}")
    if not into:
        return
    below = f"*{'; '.join(line.split('; ')[:3])}.*\n{mark(name)}"  # time, Python, fairall
    blocks = {SETTING: f"{setting(line, outputs)}\n"}
    files = {item.key: (item.title, as_shown(item.frame)) for item in items if isinstance(item, PageTable)}
    if len(by_seed := by_seed_table(runs)):
        files[f"{name}_by_seed"] = "Values by seed", by_seed.reset_index()
    for item in items:
        blocks[item.key] = f"{_markdown(item)}\n{below}"
    for key, (words, _) in files.items():
        blocks[BESIDE + key] = f"[{escaped(words)}]({BESIDE}{key}.csv). {below}"
    names = [f"{name}_by_seed", *(item.key for item in chain(*sections.values())), *known()]
    for page in into:
        for key in fill(page, blocks, names) & {*map(BESIDE.__add__, files)}:
            _, table = files[key.removeprefix(BESIDE)]
            write(page.parent / f"{key}.csv", table.to_csv(index=False, lineterminator="\n"))
        copy_figures(page, folder / "figures")
        print(f"Blocks, tables and figures: {page}")


def refuse(into: Sequence[Path], config: Config) -> None:
    """Raise FairAllError where a page is not there, or its runs' numbers may not be interpreted."""
    for page in into:
        if not interpretable(config.preset):
            raise FairAllError(f"--into {page}: not possible with {CAUTION}; omit --into")
        if not page.is_file():
            raise FairAllError(f"--into {page}: no such page")


def _markdown(item: Item) -> str:
    """A table, or a figure with its caption."""
    if isinstance(item, PageTable):
        return to_markdown(item)
    return f"![{item.title}](figures/{item.key}.png)\n\n{item.title}. {item.note}\n"


@cache
def read_table(key: str) -> pd.DataFrame:
    """A table of results of docs/, from its file or its block on a page.

    Args:
        key: of the table.

    Returns:
        Cells as they are shown, by group and name; not to be changed.

    Raises:
        FairAllError: where there is no such table.
    """
    path = DOCS / f"{BESIDE}{key}.csv"
    if path.exists():
        cells = pd.read_csv(path, dtype=str, keep_default_na=False).set_index(INDEX)
        if "shown" not in cells:
            return cells
        columns = cells["measure"].unique()
        rows = cells["shown"].to_numpy().reshape(-1, len(columns))
        return pd.DataFrame(rows, cells.index[:: len(columns)], columns)
    pages = "\n".join(page.read_text() for page in DOCS.rglob("*.md"))
    lines = re.findall(r"^\| (.*) \|$", dict(BLOCK.findall(pages)).get(key, ""), re.MULTILINE)
    if not lines:
        raise FairAllError(f"{DOCS}: no table of results {key}")
    head, *shown = (ESCAPED.sub(r"\1", line).split(" | ") for line in lines)
    return pd.DataFrame(shown, columns=[*INDEX, *head[2:]]).set_index(INDEX)


def setting(line: str, outputs: Path) -> str:
    """When and on what a page was made, and how long its runs took."""
    path = Path("/proc/cpuinfo")  # of Linux; elsewhere the architecture is said
    model = re.search(r"^model name\s*: (.+)", path.read_text() if path.exists() else "", re.MULTILINE)
    told = [line, f"{model[1] if model else platform.machine()}, {os.cpu_count()} cores, {platform.system()}"]
    measured = read_durations(outputs / "reproduction.csv")
    if len(measured):
        cpu, wall = (in_words(measured[f"{of}_seconds"].sum()) for of in ("cpu", "wall"))
        told.append(f"{cpu} of CPU, {wall} on the clock one after the other, in {len(measured)} commands")
    return f"{'; '.join(told)}."


def fill(page: Path, blocks: Mapping[str, str], known: Iterable[str] = ()) -> set[str]:
    """Replace the contents of the blocks of a page: `<!-- begin: KEY -->` to `<!-- end: KEY -->`.

    Args:
        page: of Markdown, written by hand but for its blocks.
        blocks: new contents by key; a block without one stays as it is.
        known: keys of further tables and figures, which a block may have too.

    Returns:
        Keys of the blocks.

    Raises:
        FairAllError: where a key is unknown, or a block has no end.
    """
    text = page.read_text()
    keys, names = {*BEGIN.findall(text)}, [*blocks, *known]
    for key in keys:
        if key.removeprefix(BESIDE) not in names:
            raise FairAllError(f"--into {page}: no table or figure {key}{nearest(key, names)}")
    for key in keys - dict(BLOCK.findall(text)).keys():
        raise FairAllError(f"--into {page}: the block {key} has no <!-- end: {key} -->")
    block = "<!-- begin: {0} -->\n{1}<!-- end: {0} -->"
    write(page, BLOCK.sub(lambda old: block.format(old[1], blocks.get(*old.groups())), text))
    return keys


def copy_figures(page: Path, figures: Path) -> None:
    """Copy figures that a page names, and those that `figures/` beside it has already, from a folder."""
    beside, text = page.parent / "figures", page.read_text()
    for path in figures.glob("*.png"):
        if f"(figures/{path.name})" in text or (beside / path.name).exists():
            beside.mkdir(exist_ok=True)
            shutil.copyfile(path, beside / path.name)
