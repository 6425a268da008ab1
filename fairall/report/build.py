"""Write outputs/report/ from finished runs: the page, and a file per table and figure."""

from __future__ import annotations

import platform
from collections.abc import Container, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from fairall.errors import FairAllError
from fairall.report.contents import Contents, contents
from fairall.report.figure import save
from fairall.report.page import page
from fairall.report.table import Table
from fairall.report.written import comma_separated, latex, markdown
from fairall.results.finished import Collection
from fairall.storage.files import atomic

LIBRARIES = ("torch", "numpy", "pandas", "scipy", "matplotlib")


@dataclass(frozen=True)
class Built:
    """A written report.

    Attributes:
        folder: of the report.
        contents: of the report.
    """

    folder: Path
    contents: Contents


def build(collection: Collection, folder: Path, overrides: Sequence[str] = ()) -> Built:
    """Write index.html, tables/ and figures/.

    Args:
        collection: of `finished.collect`.
        folder: to write to; tables and figures of an earlier report that this one lacks are removed.
        overrides: words added to every command of the paper's.

    Raises:
        FairAllError: where the folder cannot be written.
    """
    shown = contents(collection, overrides)
    try:
        pictures = {
            figure.key: save(figure, folder / "figures")
            for figure in shown.figures
            if figure.draw is not None
        }
        tables = [*shown.tables, *([] if shown.others is None else [shown.others])]
        write_tables(tables, folder / "tables")
        _remove_others(folder / "figures", pictures, (".png", ".pdf"))
        _remove_others(folder / "tables", [table.key for table in tables], (".md", ".tex", ".csv"))
        write(folder / "index.html", page(shown, pictures, made()))
    except OSError as error:
        raise FairAllError(
            f"cannot write to {folder}: {error.strerror or error}; choose another place with --out FOLDER"
        ) from error
    return Built(folder, shown)


def write_tables(tables: Sequence[Table], folder: Path) -> None:
    """Write every table as Markdown, LaTeX and CSV."""
    for table in tables:
        for ending, text in (("md", markdown(table)), ("tex", latex(table)), ("csv", comma_separated(table))):
            write(folder / f"{table.key}.{ending}", text)


def write(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def made() -> list[tuple[str, str]]:
    """Time and versions, as name and value."""
    versions = [(name, version(name)) for name in ("fairall", *LIBRARIES)]
    return [("made", f"{datetime.now():%Y-%m-%d %H:%M}"), ("Python", platform.python_version()), *versions]


def _remove_others(folder: Path, keys: Container[str], endings: Sequence[str]) -> None:
    if folder.is_dir():
        for path in folder.iterdir():
            if path.suffix in endings and path.stem not in keys:
                path.unlink()
