"""Hook of MkDocs that adds the README, and every other file outside docs/ to which a page links, to the site.

A file of docs/ has its path in docs/ on the site, another file its path in the checkout.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

CHECKOUT = Path(__file__).parents[1]
RELATIVE_LINK = re.compile(r"(?<=\]\()(?![\w+.-]+:)[^()\s#]+")  # its path, without an anchor


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the README and what pages link to outside docs/; see MkDocs."""

    def add(path: str) -> File:
        file = File.generated(config, path, abs_src_path=str(CHECKOUT / path))
        files.append(file)
        return file

    pages = [add("README.md"), *files.documentation_pages()]
    while pages:
        page = pages.pop()
        for link in RELATIVE_LINK.findall(page.content_string):
            path = site_path(link, page)
            if path not in files.src_uris and (CHECKOUT / path).is_file():
                linked = add(path)
                pages += [linked] if linked.is_documentation_page() else []
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace paths in the checkout by paths on the site in the links of a page; see MkDocs."""
    folder = posixpath.dirname(page.file.src_uri)
    return RELATIVE_LINK.sub(
        lambda link: posixpath.relpath(site_path(link[0], page.file), folder or "."), markdown
    )


def site_path(link: str, page: File) -> str:
    """Path on the site of the file to which a page links."""
    folder = Path(page.abs_src_path or "").relative_to(CHECKOUT).parent
    return posixpath.normpath(posixpath.join(folder.as_posix(), link)).removeprefix("docs/")
