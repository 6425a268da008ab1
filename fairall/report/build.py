"""Write outputs/report/ from finished runs, and a Markdown page of it for the documentation."""

from __future__ import annotations

import base64
import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from fairall.errors import FairAllError, count
from fairall.report import labels
from fairall.report.contents import SECTIONS, Contents, contents
from fairall.report.durations import read
from fairall.report.figures import ReportFigure, save
from fairall.report.table import Item, Table, comma_separated, latex, markdown
from fairall.results.finished import Collection
from fairall.results.time_left import in_words
from fairall.storage.files import atomic

LIBRARIES = ("torch", "numpy", "pandas", "scipy", "matplotlib")
# Figures.
IN_DOCUMENTATION = (
    "compas_harsh", "synthetic_harsh", "synthetic_lenient", "plane_harsh", "costs",
    *(f"policies_{dataset}" for dataset in labels.DATASETS), "alignment",
)  # fmt: skip
ENDINGS = (".png", ".pdf", ".md", ".tex", ".csv")
EMPTY: dict[str, Any] = {"opening": (), "left_out": (), "passed_over": (), "not_run": (), "folded": {}}


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
        "FairAll: the paper's tables and figures",
        {name: some for name, some in sections.items() if some},
        folded=folded,
        not_run=shown.not_run,
        **texts,
    )
    keys = {item.key for some in sections.values() for item in some}
    for path in (*folder.glob("figures/*"), *folder.glob("tables/*")):
        if path.suffix in ENDINGS and path.stem not in keys:
            path.unlink()
    return shown


def write_page(folder: Path, title: str, sections: Mapping[str, Sequence[Item]], **texts: Any) -> None:
    """Write index.html, and tables/ and figures/ with a file per format.

    Args:
        folder: to write to.
        title: of the page.
        sections: tables and figures by heading, in order; no heading where it is empty.
        texts: `opening`, `left_out` and `passed_over`, lines of text; `not_run`, tables and figures
            without any run; `folded`, by heading the line that a section is folded beneath.

    Raises:
        FairAllError: where the folder cannot be written.
    """
    pictures = {}
    try:
        for item in (item for some in sections.values() for item in some):
            if isinstance(item, ReportFigure) and item.draw is not None:
                pictures[item.key] = save(item.draw, folder / "figures" / item.key)
            elif isinstance(item, Table):
                for ending, written in (("md", markdown), ("tex", latex), ("csv", comma_separated)):
                    write(folder / "tables" / f"{item.key}.{ending}", written(item))
        of_page = {"title": title, "sections": sections, "pictures": pictures, "made": made()}
        write(folder / "index.html", _render("page.html.jinja", EMPTY | texts | of_page))
    except OSError as error:
        reason = error.strerror or error
        raise FairAllError(
            f"cannot write to {folder}: {reason}; choose another place with --out FOLDER"
        ) from error


def write_results(shown: Contents, folder: Path, path: Path, outputs: Path) -> None:
    """Write the Markdown page, and copy its figures to `figures/` beside it.

    Args:
        shown: contents of the report.
        folder: of the report.
        path: of the page.
        outputs: folder of reproduction.csv.
    """
    figures = [item for item in shown.shown if item.key in IN_DOCUMENTATION]
    for figure in figures:
        (path.parent / "figures").mkdir(parents=True, exist_ok=True)
        name = f"figures/{figure.key}.png"
        shutil.copyfile(folder / name, path.parent / name)
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
    write(path, _render("results.md.jinja", values).rstrip() + "\n")


def write(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def made() -> str:
    """Time and versions."""
    versions = [f"{name} {version(name)}" for name in ("fairall", *LIBRARIES)]
    return "; ".join(
        [f"made {datetime.now():%Y-%m-%d %H:%M}", f"Python {platform.python_version()}", *versions]
    )


def _render(template: str, values: Mapping[str, Any]) -> str:
    environment = Environment(
        loader=PackageLoader("fairall.report", "."),
        autoescape=select_autoescape(["html.jinja"]),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {"markdown": markdown, "base64": lambda png: base64.b64encode(png).decode()}
    return environment.get_template(template).render(values)


def _processor() -> str:
    """Model of the processor on Linux, elsewhere its architecture."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
