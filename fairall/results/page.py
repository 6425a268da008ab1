"""Pages of tables and figures, with a file for each of them."""

from __future__ import annotations

import base64
import io
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.figure import Figure

from fairall.errors import FairAllError
from fairall.results.figures import STYLE
from fairall.results.interpretable import CAUTION, interpretable, marked
from fairall.results.table import Item, Table, address, code, comma_separated, escaped, latex, markdown
from fairall.results.terminal import Display
from fairall.storage.files import atomic, tidied

DPI = 300
BASE = STYLE | {
    "font.size": 7, "axes.titlesize": 7, "legend.fontsize": 6, "axes.linewidth": 0.6, "lines.linewidth": 1.1,
    "pdf.fonttype": 42,
}  # fmt: skip
LIGHT = {"figure.facecolor": "white", "axes.facecolor": "white"}
INK, NIGHT = "#d7dae0", "#15181d"
BLACK = ("black", "k", (0.0, 0.0, 0.0, 1.0))
EMPTY: dict[str, Any] = {
    "opening": (), "left_out": (), "passed_over": (), "not_run": (), "folded": {}, "made": "",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PageFigure(Item):
    """A figure of a page."""

    draw: Callable[[], Figure] | None  # None where all of its runs are missing
    wide: bool = False  # whether it takes the whole width of the page

    @property
    def shown(self) -> bool:
        """Whether it can be drawn."""
        return self.draw is not None


def cautioned(items: Iterable[Item], config: Mapping[str, Any]) -> list[Item]:
    """The same tables and figures, marked where the numbers of their runs may not be interpreted.

    The caution is in titles, in the pictures, and in the column `preset` of CSV files.

    Args:
        items: of runs of one preset.
        config: with `preset`, of the runs.
    """
    return list(items) if interpretable(config) else [_cautioned(item, config) for item in items]


def _cautioned(item: Item, config: Mapping[str, Any]) -> Item:
    title = marked(item.title, config)
    if isinstance(item, Table):
        records = [{**record, "preset": config["preset"]} for record in item.records]
        return replace(item, title=title, records=records)
    if not isinstance(item, PageFigure) or item.draw is None:
        return replace(item, title=title)
    draw = item.draw

    def drawn() -> Figure:
        figure = draw()
        figure.suptitle(CAUTION, fontsize=BASE["font.size"])
        return figure

    return replace(item, title=title, draw=drawn)


def save(draw: Callable[[], Figure], stem: Path) -> tuple[bytes, bytes]:
    """Write PNG and PDF; return a light and a dark PNG for the page."""
    with mpl.rc_context(BASE | LIGHT):
        drawn = draw()
        drawn.set_dpi(DPI)
        # The layout takes as long as drawing, and `savefig` would make it anew for every file.
        drawn.draw_without_rendering()
        drawn.set_layout_engine("none")
        light = _png(drawn)
        with atomic(stem.with_suffix(".png")) as temporary:
            temporary.write_bytes(light)
        with atomic(stem.with_suffix(".pdf")) as temporary:
            # Its metadata has no time, so that equal figures have equal bytes.
            unknown = {"CreationDate": None, "Producer": None, "Creator": None}
            FigureCanvasPdf(drawn).print_pdf(temporary, metadata=unknown)
        drawn.set_dpi(DPI)
        _darken(drawn)
        return light, _png(drawn)


def _png(figure: Figure) -> bytes:
    content = io.BytesIO()
    FigureCanvasAgg(figure).print_png(content, metadata={"Software": None})
    return content.getvalue()


def _darken(figure: Figure) -> None:
    """Give a figure a dark background, and what is black the colour of the page's text."""
    for artist in figure.findobj():
        if isinstance(artist, Figure | Axes):
            artist.set_facecolor(NIGHT)
        for part in ("color", "edgecolor", "markeredgecolor", "markerfacecolor"):
            colour = getattr(artist, f"get_{part}", lambda: None)()
            if isinstance(colour, str | tuple) and colour in BLACK:
                getattr(artist, f"set_{part}")(INK)


def write_page(folder: Path, title: str, sections: Mapping[str, Sequence[Item]], **texts: Any) -> None:
    """Write index.html, and tables/ and figures/ with a file per format.

    Args:
        folder: to write to.
        title: of the page.
        sections: tables and figures by heading, in order; no heading where it is empty.
        texts: `opening`, `left_out` and `passed_over`, lines of text; `not_run`, tables and figures
            without any run; `folded`, by heading the line that a section is folded beneath; `made`, the last
            line.

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
                elif isinstance(item, Table):
                    for ending, written in (("md", markdown), ("tex", latex), ("csv", comma_separated)):
                        write(folder / "tables" / f"{item.key}.{ending}", written(item))
                advance()
            of_page = {"title": title, "sections": sections, "pictures": pictures}
            write(folder / "index.html", rendered("page.html.jinja", EMPTY | texts | of_page))
    except OSError as error:
        reason = error.strerror or error
        raise FairAllError(
            f"cannot write to {folder}: {reason}; choose another place with --out FOLDER"
        ) from error


def write(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def rendered(template: str, values: Mapping[str, Any], package: str = "fairall.results") -> str:
    """A template of a package, filled in; values are escaped for HTML or, in `.md.jinja`, for Markdown."""
    environment = Environment(
        loader=PackageLoader(package, "."),
        autoescape=select_autoescape(["html.jinja"]),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=escaped if template.endswith(".md.jinja") else None,
    )
    encoded = {"base64": lambda png: base64.b64encode(png).decode()}
    environment.filters |= {"markdown": markdown, "code": code, "address": address} | encoded
    return environment.get_template(template).render(values)


def legend_below(figure: Figure, handles: Mapping[str, Any], columns: int) -> None:
    """Add one legend for all panels below them; the figure grows by its height.

    Args:
        figure: with a constrained layout.
        handles: matplotlib's artists, by label.
        columns: at most; fewer where the legend would be wider than the figure. Labels too long for a single
            column are wrapped.
    """
    labels = list(handles)
    widest = max(map(len, labels))
    while True:
        legend = figure.legend(list(handles.values()), labels, loc="outside lower center", ncols=columns)
        extent = legend.get_window_extent()
        if extent.width <= figure.bbox.width or widest == 1:
            break
        legend.remove()
        if columns > 1:
            columns -= 1
        else:
            widest = min(widest - 1, int(widest * figure.bbox.width / extent.width))
            labels = [textwrap.fill(label, max(1, widest)) for label in handles]
    figure.set_figheight(figure.get_figheight() + extent.height / figure.dpi)
