"""Write outputs/report/ from finished runs, and a Markdown page of it for the documentation."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fairall.config.compose import places
from fairall.errors import FairAllError, count
from fairall.report import labels
from fairall.report.contents import SECTIONS, Contents, contents
from fairall.report.durations import read
from fairall.results.finished import Collection
from fairall.results.interpretable import CAUTION, interpretable, marked
from fairall.results.page import PageFigure, rendered, write, write_page
from fairall.results.table import Item, Table
from fairall.results.time_left import in_words

LIBRARIES = ("torch", "numpy", "pandas", "scipy", "matplotlib")
# Figures.
IN_DOCUMENTATION = (
    "compas_harsh", "synthetic_harsh", "synthetic_lenient", "plane_harsh", "costs",
    *(f"policies_{dataset}" for dataset in labels.DATASETS), "alignment",
)  # fmt: skip
ENDINGS = (".png", ".pdf", ".md", ".tex", ".csv")


def build(collection: Collection, folder: Path, overrides: Sequence[str] = ()) -> Contents:
    """Write index.html, tables/ and figures/; return what they contain.

    Args:
        collection: of `finished.collect`.
        folder: to write to; tables and figures of an earlier report that this one lacks are removed.
        overrides: words added to every command of the paper's.

    Raises:
        FairAllError: where the folder cannot be written.
    """
    shown = contents(collection, overrides)
    sections: dict[str, list[Item]] = {
        name: [item for item in shown.shown if item.section == name] for name in SECTIONS
    }
    folded = {}
    if shown.others is not None and shown.n_shown:
        sections["Other runs"] = [shown.others]
        folded["Other runs"] = count(len(shown.others.rows), "run")
    elif shown.others is not None:
        # First where there is nothing else to show.
        sections = dict([("Other runs", [shown.others]), *sections.items()])
    texts = {"opening": shown.opening, "left_out": shown.left_out, "passed_over": shown.passed_over}
    write_page(
        folder,
        marked("FairAll: the paper's tables and figures", places(overrides)),
        {name: some for name, some in sections.items() if some},
        folded=folded,
        not_run=shown.not_run,
        made=made(),
        **texts,
    )
    keys = {item.key for some in sections.values() for item in some}
    for path in (*folder.glob("figures/*"), *folder.glob("tables/*")):
        if path.suffix in ENDINGS and path.stem not in keys:
            path.unlink()
    return shown


def write_results(shown: Contents, folder: Path, path: Path, outputs: Path) -> None:
    """Write the Markdown page, and copy its figures to `figures/` beside it.

    Args:
        shown: contents of the report.
        folder: of the report.
        path: of the page.
        outputs: folder of reproduction.csv.
    """
    figures = [item for item in shown.shown if item.key in IN_DOCUMENTATION]
    copy_figures(figures, folder, path)
    setting = [made(), f"{_processor()}, {os.cpu_count()} cores, {platform.system()}"]
    measured = read(outputs / "reproduction.csv")
    if len(measured):
        cpu, wall = (in_words(measured[f"{of}_seconds"].sum()) for of in ("cpu", "wall"))
        setting.append(f"{cpu} of CPU, {wall} on the clock one after the other, in {len(measured)} commands")
    values = {
        "opening": shown.opening,
        "setting": "; ".join(setting),
        "tables": [item for item in shown.shown if isinstance(item, Table)],
        "figures": figures,
        "not_run": [item.title for item in shown.not_run],
    }
    write(path, rendered("results.md.jinja", values, "fairall.report").rstrip() + "\n")


def refuse_page(page: Path | None, config: Mapping[str, Any]) -> None:
    """Raise FairAllError where a page is wanted of runs whose numbers may not be interpreted.

    Args:
        page: of the documentation, None for none.
        config: with `preset`, of the runs.
    """
    if page is not None and not interpretable(config):
        raise FairAllError(f"--results {page}: not possible with {CAUTION}; omit --results")


def copy_figures(items: Sequence[Item], folder: Path, page: Path) -> None:
    """Copy the figures among some items from the folder of a page to `figures` beside another page."""
    for item in items:
        if isinstance(item, PageFigure):
            (page.parent / "figures").mkdir(parents=True, exist_ok=True)
            name = f"figures/{item.key}.png"
            shutil.copyfile(folder / name, page.parent / name)


def made() -> str:
    """Time and versions."""
    versions = [f"{name} {version(name)}" for name in ("fairall", *LIBRARIES)]
    return "; ".join(
        [f"made {datetime.now():%Y-%m-%d %H:%M}", f"Python {platform.python_version()}", *versions]
    )


def _processor() -> str:
    """Model of the processor on Linux, elsewhere its architecture."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
