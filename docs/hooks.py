"""Hooks of MkDocs: files outside docs/ on the site, and the pages of methods in the navigation.

The README, notebooks, and files outside docs/ to which a page links are added.

A file of docs/ has its path in docs/ on the site, another file its path in the checkout. A notebook becomes a
page of its cells and their stored outputs.
"""

from __future__ import annotations

import json
import posixpath
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

CHECKOUT = Path(__file__).parents[1]
RELATIVE_LINK = re.compile(r"(?<=\]\()(?![\w+.-]+:)[^()\s#]+")  # its path, without an anchor
METHOD = re.compile(r"(?<=\]\()methods/\w+\.md")
WIDTH = 86  # characters of a line of output


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of methods behind that of all methods, in the order of its table; see MkDocs."""
    methods = next(pages for pages in _lists(config.nav) if "methods.md" in pages)
    links = METHOD.findall((CHECKOUT / "docs" / "methods.md").read_text())
    methods[1:1] = dict.fromkeys(links)
    return config


def _lists(nav: list[Any]) -> Iterator[list[Any]]:
    """The navigation and the lists in it, at any depth."""
    yield nav
    for part in nav:
        for pages in part.values() if isinstance(part, dict) else []:
            yield from _lists(pages) if isinstance(pages, list) else []


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the README and what pages link to outside docs/; see MkDocs."""

    def add(path: str) -> File:
        if path.endswith(".ipynb"):
            content = notebook_page(json.loads((CHECKOUT / path).read_text()))
            file = File.generated(config, page_path(path), content=content)
        else:
            file = File.generated(config, path, abs_src_path=str(CHECKOUT / path))
        files.append(file)
        return file

    pages = [add("README.md"), *files.documentation_pages()]
    while pages:
        page = pages.pop()
        for link in RELATIVE_LINK.findall(page.content_string):
            path = checkout_path(link, page)
            if page_path(path) not in files.src_uris and (CHECKOUT / path).is_file():
                linked = add(path)
                pages += [linked] if linked.is_documentation_page() else []
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace paths in the checkout by paths on the site in the links of a page; see MkDocs."""
    folder = posixpath.dirname(page.file.src_uri)
    return RELATIVE_LINK.sub(
        lambda link: posixpath.relpath(page_path(checkout_path(link[0], page.file)), folder or "."), markdown
    )


def checkout_path(link: str, page: File) -> str:
    """Path of the file to which a page links, in docs/ or else in the checkout."""
    folder = Path(page.abs_src_path or CHECKOUT / page.src_uri).relative_to(CHECKOUT).parent
    return posixpath.normpath(posixpath.join(folder.as_posix(), link)).removeprefix("docs/")


def page_path(path: str) -> str:
    """Path of the source of a page: a notebook's is Markdown."""
    return re.sub(r"\.ipynb$", ".md", path)


def notebook_page(notebook: dict[str, Any]) -> str:
    """Cells and outputs of a notebook as Markdown."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        else:
            parts += [fenced(source, "python"), *map(output_part, cell["outputs"])]
    return "\n\n".join(parts) + "\n"


def output_part(output: dict[str, Any]) -> str:
    """One output of a cell as Markdown: a picture, a table of pandas, or text."""
    data = output.get("data", {})
    if "image/png" in data:
        return f"![Output of the cell above](data:image/png;base64,{''.join(data['image/png']).strip()})"
    table = re.search(r"(?<=<table).*</table>", "".join(data.get("text/html", [])), re.DOTALL)
    if table:  # without pandas' own style
        return f"<table>{table[0].partition('>')[2]}"
    lines = "".join(output.get("text", data.get("text/plain", []))).splitlines()
    wrapped = [textwrap.fill(line, WIDTH) if len(line) > WIDTH else line for line in lines]
    return fenced("\n".join(wrapped), "{ .text .output }")


def fenced(text: str, language: str) -> str:
    """A block of code or output."""
    return f"```{language}\n{text.rstrip()}\n```"
