"""Pages of tables and figures, with a file for each of them."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import matplotlib as mpl
from jinja2 import Environment, PackageLoader
from matplotlib.figure import Figure

from fairall.display.format import CAUTION, marked
from fairall.display.style import STYLE, save_figure, set_title
from fairall.display.table import (
    Item,
    PageTable,
    code,
    escaped,
    to_csv,
    to_html,
    to_latex,
    to_markdown,
)
from fairall.storage.files import atomic, tidied, write_text

DPI = 200
FILES = {"md": to_markdown, "tex": to_latex, "csv": to_csv}


@dataclass(frozen=True, kw_only=True)
class PageFigure(Item):
    """A figure of a page."""

    draw: Callable[[], Figure] | None  # None where all of its runs are missing
    wide: bool = False  # whether it takes the whole width of the page


def cautioned(items: Iterable[Item], preset: str | None) -> list[Item]:
    """Tables and figures with the caution in their titles, where their numbers may not be interpreted.

    Args:
        items: of runs of one preset.
        preset: of the runs.
    """
    return [replace(item, title=marked(item.title, preset)) for item in items]


def save(draw: Callable[[], Figure], stem: Path, caution: str = "") -> bytes:
    """Write a figure as PNG and PDF, with a title where there is a caution; return the PNG."""
    with mpl.rc_context(STYLE):
        figure = draw()
        if caution:
            set_title(figure, caution)
        figure.set_dpi(DPI)
        save_figure(figure, stem.with_suffix(".png"))
        figure.set_layout_engine("none")  # the layout that was made stays: to make it anew takes long
        with atomic(stem.with_suffix(".pdf")) as temporary:
            # Its metadata has no time, so that equal figures have equal bytes.
            unknown = dict.fromkeys(("CreationDate", "Producer", "Creator"))
            figure.savefig(temporary, format="pdf", metadata=unknown)
    return stem.with_suffix(".png").read_bytes()


def write_page(folder: Path, title: str, sections: Mapping[str, Sequence[Item]], **texts: Any) -> None:
    """Write index.html, and tables/ and figures/ with a file per format.

    Args:
        folder: to write to.
        title: of the page.
        sections: tables and figures by heading, in order; no heading where it is empty, and figures without
            a heading stand beside the opening.
        texts: `opening`, `basis` (what the opening rests on), `left_out` and `passed_over`, lines of text;
            `not_run`, tables and figures without any run; `folded`, by heading the line that a section is
            folded beneath; `defined`, by heading the definitions of its terms; `made`, the last line.

    Raises:
        OSError: where the folder cannot be written.
    """
    tables, figures, pictures = folder / "tables", folder / "figures", {}
    with tidied(folder), tidied(tables), tidied(figures):
        for item in chain.from_iterable(sections.values()):
            if isinstance(item, PageFigure) and item.draw is not None:
                pictures[item.key] = save(item.draw, figures / item.key, CAUTION * (CAUTION in item.title))
            elif isinstance(item, PageTable):
                for ending, text_of in FILES.items():
                    write(tables / f"{item.key}.{ending}", text_of(item))
        values = texts | {"title": title, "sections": sections, "pictures": pictures}
        write(folder / "index.html", rendered("page.html.jinja", values))


write = write_text


def rendered(template: str, values: Mapping[str, Any], package: str = "fairall.display") -> str:
    """A template of a package, filled in; values are escaped for HTML, in `.md.jinja` for Markdown."""
    is_markdown = template.endswith(".md.jinja")
    environment = Environment(
        loader=PackageLoader(package, "."),
        autoescape=not is_markdown,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=escaped if is_markdown else None,
    )
    environment.filters |= {
        "code": code,
        "table": to_html,
        "base64": lambda png: base64.b64encode(png).decode(),
    }
    return environment.get_template(template).render(values)
