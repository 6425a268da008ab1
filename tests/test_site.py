"""The documentation site: it builds without a warning or a network, and leaves no page of docs/ out."""

import contextlib
import io
import json
import re
import runpy
import sys
from html.parser import HTMLParser
from pathlib import Path
from unittest import mock

import pytest

from tests.conftest import CHECKOUT

pytestmark = pytest.mark.whole

DOCS = CHECKOUT / "docs"
NOTEBOOKS = sorted((CHECKOUT / "examples").glob("*.ipynb"))
NUMBER = re.compile(r"−?\d+(?:\.\d+)?")


class Elements(HTMLParser):
    """Ids, addresses of links, and addresses of what a browser fetches by itself."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif address := values.get("href" if tag == "link" else "src"):
            self.fetched.append(address)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of this checkout."""
    pytest.importorskip("mkdocs", reason="the site needs the extra docs: pip install -e .[docs]")
    pytest.importorskip("material")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    with mock.patch("socket.socket.connect", side_effect=OSError("no network")):
        build(load_config(str(CHECKOUT / "mkdocs.yml"), site_dir=str(folder), strict=True))
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Elements]:
    """Every page by its path."""
    return {path: Elements(path) for path in site.rglob("*.html")}


def test_every_page_of_docs_is_on_the_site_and_in_the_navigation(
    pages: dict[Path, Elements], site: Path
) -> None:
    start = {link.partition("#")[0] for link in pages[site / "index.html"].links}
    written = {path.relative_to(DOCS).with_suffix(".html").as_posix() for path in DOCS.rglob("*.md")}
    assert written <= start
    assert {"CHANGELOG.html", "CONTRIBUTING.html", "outputs/index.html"} <= start
    assert {f"examples/{path.stem}.html" for path in NOTEBOOKS} <= start


def test_pages_of_notebooks_have_code_and_outputs(site: Path) -> None:
    assert NOTEBOOKS
    for path in NOTEBOOKS:
        content = (site / "examples" / f"{path.stem}.html").read_text()
        code = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
        kinds = [
            {"image/png", "text/html"} & {*one.get("data", {})} for cell in code for one in cell["outputs"]
        ]
        counts = {
            '<div class="highlight">': len(code),
            '<div class="output highlight">': kinds.count(set()),
            "<img": kinds.count({"image/png"}),
            "<table>": kinds.count({"text/html"}),
        }
        assert {text: content.count(text) for text in counts} == counts


def test_nothing_is_fetched_from_elsewhere(pages: dict[Path, Elements], site: Path) -> None:
    fetched = [address for page in pages.values() for address in page.fetched]
    assert not [address for address in fetched if re.match(r"(\w+:)?//", address)]
    assert any(address.endswith(".png") for address in fetched)
    styles = "".join(path.read_text() for path in site.rglob("*.css"))
    assert not re.findall(r"url\([\"']?(?:https?:)?//|@import", styles)
    # The theme would fetch it from elsewhere to draw such a diagram.
    assert not [path for path in pages if 'class="mermaid"' in path.read_text()]


def test_pages_opened_as_files_have_a_search(pages: dict[Path, Elements], site: Path) -> None:
    assert "propensity" in (site / "search" / "search_index.js").read_text()
    for path, page in pages.items():
        # Browsers start no worker from a file; the script runs it in a frame.
        (script,) = (address for address in page.fetched if "iframe-worker" in address)
        assert path.name == "404.html" or (path.parent / script).is_file()


def test_the_reference_has_what_the_pages_import(pages: dict[Path, Elements], site: Path) -> None:
    known = set().union(*(page.ids for path, page in pages.items() if path.parent == site / "api"))
    text = "\n".join(path.read_text() for path in (CHECKOUT / "README.md", *DOCS.glob("*.md")))
    for path in NOTEBOOKS:
        text += "\n".join("".join(cell["source"]) for cell in json.loads(path.read_text())["cells"])
    imports = re.findall(r"^from (fairall[\w.]*) import (.+)$", text, re.MULTILINE)
    names = {f"{module}.{name}" for module, given in imports for name in given.split(", ")}
    assert len(names) > 20
    assert names <= known


def numbers(text: str) -> list[list[float]]:
    """Numbers of each row of Markdown tables of three numbers and more, without its first column."""
    rows = [line.split("|", 2)[2] for line in text.splitlines() if line.startswith("| ")]
    found = [[float(number.replace("−", "-")) for number in NUMBER.findall(row)] for row in rows]
    return [row for row in found if len(row) >= 3]


def test_numbers_of_the_page_on_concepts(tmp_path: Path) -> None:
    script = CHECKOUT / "examples" / "selective_labels.py"
    out = io.StringIO()
    with mock.patch.object(sys, "argv", [script.name, str(tmp_path)]), contextlib.redirect_stdout(out):
        runpy.run_path(str(script), run_name="__main__")
    page = (DOCS / "concepts.md").read_text()
    printed = numbers(out.getvalue())
    assert len(printed) == 11
    # To the last digit, which may differ between processors.
    assert numbers(page) == [pytest.approx(row, abs=0.11) for row in printed]
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn == set(re.findall(r"figures/(\w+\.png)", page))
