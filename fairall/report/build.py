"""Write outputs/report/ from finished runs, and a Markdown page of it for the documentation."""

from __future__ import annotations

import base64
import os
import platform
import shutil
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from fairall.errors import FairAllError, count
from fairall.report.contents import SECTIONS, Contents, contents
from fairall.report.durations import read
from fairall.report.figures import ReportFigure, save
from fairall.report.table import Table, comma_separated, latex, markdown
from fairall.results.finished import Collection
from fairall.results.time_left import in_words
from fairall.storage.files import atomic

LIBRARIES = ("torch", "numpy", "pandas", "scipy", "matplotlib")
IN_DOCUMENTATION = ("compas_harsh", "synthetic_harsh", "plane_harsh")  # figures
EMPTY: dict[str, Sequence[str]] = {"opening": (), "left_out": (), "passed_over": ()}


@dataclass(frozen=True)
class Section:
    """A section of a page.

    Attributes:
        name: its heading; empty for none.
        tables: with rows.
        figures: that are drawn.
        not_run: tables and figures without any run.
        folded: line that its tables are folded beneath; empty to show them.
    """

    name: str
    tables: Sequence[Table] = ()
    figures: Sequence[ReportFigure] = ()
    not_run: Sequence[Table | ReportFigure] = ()
    folded: str = ""


def build(collection: Collection, folder: Path, overrides: Sequence[str] = ()) -> Contents:
    """Write index.html, tables/ and figures/.

    Args:
        collection: of `finished.collect`.
        folder: to write to; tables and figures of an earlier report that this one lacks are removed.
        overrides: words added to every command of the paper's.

    Raises:
        FairAllError: where the folder cannot be written.
    """
    shown = contents(collection, overrides)
    tables = [table for table in shown.tables if table.rows]
    figures = [figure for figure in shown.figures if figure.possible]
    sections = [
        Section(
            name,
            [table for table in tables if table.section == name],
            [figure for figure in figures if figure.section == name],
        )
        for name in SECTIONS
    ]
    if shown.others is not None:
        folded = count(len(shown.others.rows), "run") if shown.shown else ""
        # First where there is nothing else to show.
        sections.insert(len(sections) if folded else 0, Section("Other runs", [shown.others], folded=folded))
    not_run: list[Table | ReportFigure] = [table for table in shown.tables if not table.rows]
    not_run += [figure for figure in shown.figures if not figure.possible]
    sections.append(Section("Not run", not_run=[item for item in not_run if item.lacking.commands]))
    shown_tables = [table.key for section in sections for table in section.tables]
    write_page(
        folder,
        "FairAll: the paper's tables and figures",
        [one for one in sections if one.tables or one.figures or one.not_run],
        opening=shown.opening,
        left_out=[f"{path}: {reason}" for path, reason in shown.left_out],
        passed_over=shown.passed_over,
    )
    _remove_others(folder / "figures", [figure.key for figure in figures], (".png", ".pdf"))
    _remove_others(folder / "tables", shown_tables, (".md", ".tex", ".csv"))
    return shown


def write_page(folder: Path, title: str, sections: Sequence[Section], **texts: Any) -> None:
    """Write index.html, and tables/ and figures/ with a file per format.

    Args:
        folder: to write to.
        title: of the page.
        sections: in order.
        texts: `opening`, `left_out` and `passed_over`, lines of text.

    Raises:
        FairAllError: where the folder cannot be written.
    """
    tables = [table for section in sections for table in section.tables]
    figures = [figure for section in sections for figure in section.figures]
    try:
        pictures = {figure.key: save(figure, folder / "figures") for figure in figures}
        for table in tables:
            for ending, written in (("md", markdown), ("tex", latex), ("csv", comma_separated)):
                write(folder / "tables" / f"{table.key}.{ending}", written(table))
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
    figures = [one for one in shown.figures if one.key in IN_DOCUMENTATION and one.possible]
    for figure in figures:
        (path.parent / "figures").mkdir(parents=True, exist_ok=True)
        name = f"figures/{figure.key}.png"
        shutil.copyfile(folder / name, path.parent / name)
    setting = [made(), f"{_processor()}, {os.cpu_count()} cores, {platform.system()}"]
    measured = read(outputs / "reproduction.csv")
    if len(measured):
        setting.append(f"{in_words(measured['cpu_seconds'].sum())} of CPU in {len(measured)} commands")
    values = {
        "opening": shown.opening,
        "setting": "; ".join(setting),
        "tables": [table for table in shown.tables if table.rows],
        "figures": figures,
        "not_run": list(
            dict.fromkeys(
                [table.title for table in shown.tables if not table.rows]
                + [figure.title for figure in shown.figures if not figure.possible]
            )
        ),
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


def _remove_others(folder: Path, keys: Container[str], endings: Sequence[str]) -> None:
    for path in folder.glob("*"):
        if path.suffix in endings and path.stem not in keys:
            path.unlink()


def _processor() -> str:
    """Model of the processor on Linux, elsewhere its architecture."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
