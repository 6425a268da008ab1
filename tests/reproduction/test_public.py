"""reproduction/ uses fairall as any program would: by its public names alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

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
            yield from (one.name for one in node.names if one.name.startswith("fairall"))
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("fairall"):
            public = import_module(str(node.module)).__all__ if node.module in PUBLIC else ()
            yield from (f"{node.module}.{one.name}" for one in node.names if one.name not in public)


def test_imports_are_of_public_names_and_these_are_there() -> None:
    source = "import fairall.data\nfrom fairall.display import Cell, nothing"
    assert [*private(source)] == ["fairall.data", "fairall.display.nothing"]
    assert [name for path in FOLDER.glob("*.py") for name in private(path.read_text())] == []
    for module in map(import_module, PUBLIC):
        for name in module.__all__:
            assert not name.startswith("_")
            assert not isinstance(getattr(module, name), type(ast))
