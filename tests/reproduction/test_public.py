"""reproduction/ uses fairall as any program would: by its public names alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import reproduction

FOLDER = Path(reproduction.__file__).parent
# Modules whose `__all__` is public.
PUBLIC = tuple(
    """
    fairall fairall.display fairall.evaluate fairall.live fairall.measuring fairall.metrics fairall.report
    fairall.results fairall.sklearn
""".split()
)


def private(source: str) -> Iterator[str]:
    """Imports from fairall that are not of a public name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name.split(".")[0] == "fairall")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fairall":
            public = import_module(node.module).__all__ if node.module in PUBLIC else ()
            yield from (f"{node.module}.{one.name}" for one in node.names if one.name not in public)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_imports_are_of_public_names(path: Path) -> None:
    assert list(private(path.read_text())) == []


def test_the_check_finds_what_is_private() -> None:
    source = """
import fairall.data
from fairall.display.table import Cell
from fairall.display import Cell, nothing
"""
    assert list(private(source)) == ["fairall.data", "fairall.display.table.Cell", "fairall.display.nothing"]


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_there(module: str) -> None:
    for name in import_module(module).__all__:
        assert not name.startswith("_")
        assert not isinstance(getattr(import_module(module), name), type(ast))
