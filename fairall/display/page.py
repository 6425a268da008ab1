"""Pages of tables and figures, with a file for each of them."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup
from matplotlib.figure import Figure

from fairall.display.format import CAUTION, interpretable, marked
from fairall.display.progress import Display
from fairall.display.style import STYLE, save_figure, set_title
from fairall.display.table import (
    Item,
    PageTable,
    address,
    code,
    escaped,
    to_csv,
    to_html,
    to_latex,
    to_markdown,
)
from fairall.errors import FairAllError
from fairall.storage.files import atomic, tidied, write_text

DPI = 200
EMPTY: dict[str, Any] = {
    "opening": (),
    "basis": (),
    "left_out": (),
    "passed_over": (),
    "not_run": (),
    "folded": {},
    "defined": {},
    "made": "",
}


@dataclass(frozen=True, kw_only=True)
class PageFigure(Item):
    """A figure of a page."""

    draw: Callable[[], Figure] | None  # None where all of its runs are missing
    wide: bool = False  # whether it takes the whole width of the page

    @property
    def shown(self) -> bool:
        """Whether it can be drawn."""
        return self.draw is not None


def cautioned(items: Iterable[Item], preset: str | None) -> list[Item]:
    """The same tables and figures, marked where the numbers of their runs may not be interpreted.

    The caution is in titles, in the pictures, and in the column `preset` of CSV files.

    Args:
        items: of runs of one preset.
        preset: of the runs.
    """
    return list(items) if interpretable(preset) else [_cautioned(item, preset) for item in items]


def _cautioned(item: Item, preset: str | None) -> Item:
    title = marked(item.title, preset)
    if isinstance(item, PageTable):
        return replace(item, title=title, records=item.records.assign(preset=preset))
    if not isinstance(item, PageFigure) or item.draw is None:
        return replace(item, title=title)
    draw = item.draw

    def drawn() -> Figure:
        figure = draw()
        set_title(figure, CAUTION)
        return figure

    return replace(item, title=title, draw=drawn)


def save(draw: Callable[[], Figure], stem: Path) -> bytes:
    """Write a figure as PNG and PDF; return the PNG."""
    from matplotlib.backends.backend_pdf import FigureCanvasPdf  # its fonts take most of a second

    with mpl.rc_context(STYLE):
        drawn = draw()
        drawn.set_dpi(DPI)
        # The layout takes as long as drawing, and `savefig` would make it anew for every file.
        if (layout := drawn.get_layout_engine()) is not None:
            layout.execute(drawn)
            drawn.set_layout_engine("none")
        save_figure(drawn, stem.with_suffix(".png"))
        with atomic(stem.with_suffix(".pdf")) as temporary:
            # Its metadata has no time, so that equal figures have equal bytes.
            unknown = {"CreationDate": None, "Producer": None, "Creator": None}
            FigureCanvasPdf(drawn).print_pdf(temporary, metadata=unknown)
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
        FairAllError: where the folder cannot be written.
    """
    pictures = {}
    items = [item for some in sections.values() for item in some]
    try:
        with (
            tidied(folder),
            tidied(folder / "tables"),
            tidied(folder / "figures"),
            Display().phase("Drawing", len(items)) as advance,
        ):
            for item in items:
                if isinstance(item, PageFigure) and item.draw is not None:
                    pictures[item.key] = save(item.draw, folder / "figures" / item.key)
                elif isinstance(item, PageTable):
                    for ending, written in (("md", to_markdown), ("tex", to_latex), ("csv", to_csv)):
                        write(folder / "tables" / f"{item.key}.{ending}", written(item))
                advance()
            values = EMPTY | texts | {"title": title, "sections": sections, "pictures": pictures}
            write(folder / "index.html", rendered("page.html.jinja", values))
    except OSError as error:
        raise FairAllError(
            f"cannot write to {folder}: {error.strerror or error}; choose another place with -o FOLDER"
        ) from error


write = write_text


def rendered(template: str, values: Mapping[str, Any], package: str = "fairall.display") -> str:
    """A template of a package, filled in; values are escaped for HTML or, in `.md.jinja`, for Markdown."""
    environment = Environment(
        loader=PackageLoader(package, "."),
        autoescape=select_autoescape(["html.jinja"]),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=escaped if template.endswith(".md.jinja") else None,
    )
    environment.filters |= {
        "markdown": to_markdown,
        "code": code,
        "address": address,
        "base64": lambda png: base64.b64encode(png).decode(),
        "table": lambda table: Markup(to_html(table)),
    }
    return environment.get_template(template).render(values)
