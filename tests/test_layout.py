"""The layout of the package: how many rooms there are, and that imports run in one direction."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fairall

PACKAGE = Path(__file__).parents[1] / "fairall"
# From the bottom to the top: a room imports from those before it only. docs/architecture.md describes them.
ROOMS = """
    errors runtime metrics config storage display tables data nn models worlds online policy results
    measuring tracking decide experiment gym tuning evaluate live sklearn report main cli __main__ __init__
""".split()
MOST = 34  # folders and modules of the root together
ROOT_MODULES = 9  # with gym.py and sklearn.py, which users import by these names


def modules(package: Path = PACKAGE) -> dict[str, Path]:
    """Path of every module by its name below the package; the face of a folder has the folder's name."""
    names = {path: path.relative_to(package).with_suffix("").parts for path in sorted(package.rglob("*.py"))}
    return {".".join(name).removesuffix(".__init__"): path for path, name in names.items()}


def imports(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """Modules of the package that a file imports anywhere, under TYPE_CHECKING too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fairall":
            parent = (node.module or "").removeprefix("fairall").removeprefix(".")
            for alias in node.names:
                child = f"{parent}.{alias.name}".removeprefix(".")
                yield child if child in known else parent
        elif isinstance(node, ast.Import):
            yield from (
                alias.name.removeprefix("fairall.")
                for alias in node.names
                if alias.name.startswith("fairall.")
            )


def against_the_direction(package: Path = PACKAGE) -> list[str]:
    known = modules(package)
    return [
        f"{name} imports {imported}"
        for name, path in known.items()
        for imported in imports(path, known)
        if imported and ROOMS.index(imported.split(".")[0]) > ROOMS.index(name.split(".")[0])
    ]


def circle(package: Path = PACKAGE) -> list[str]:
    """Modules that cannot be put in an order; empty where there is no circle."""
    known = modules(package)
    waiting = {name: set(imports(path, known)) & known.keys() for name, path in known.items()}
    while free := [name for name, needs in waiting.items() if not needs & waiting.keys()]:
        for name in free:
            del waiting[name]
    return sorted(waiting)


def test_rooms_are_few_and_all_have_a_place_in_the_order() -> None:
    folders = {path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")} - {Path()}
    root = list(PACKAGE.glob("*.py"))
    assert len(root) <= ROOT_MODULES
    assert len(folders) + len(root) <= MOST
    assert {name.split(".")[0] for name in modules()} <= set(ROOMS)


def test_imports_run_in_one_direction() -> None:
    assert against_the_direction() == []


def test_no_circle_of_imports() -> None:
    assert circle() == []


def test_tests_mirror_the_rooms() -> None:
    tests = PACKAGE.parent / "tests"
    folders = {path.parent.relative_to(tests) for path in tests.rglob("test_*.py")} - {
        Path(),
        Path("benchmarks"),
        Path("reproduction"),
    }
    assert all((PACKAGE / folder).is_dir() for folder in folders), folders


def test_the_check_finds_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.py").write_text("from fairall.data import b\nfrom fairall.models.x import y\n")
    (tmp_path / "data" / "b.py").write_text("def f():\n    from fairall.data.a import z\n")
    (tmp_path / "errors.py").write_text("import torch\n")
    (tmp_path / "data" / "__main__.py").write_text("from fairall.cli.main import main\n")
    (tmp_path / "__main__.py").write_text("from fairall.cli.main import main\n")
    assert against_the_direction(tmp_path) == ["data.__main__ imports cli.main", "data.a imports models.x"]
    assert circle(tmp_path) == ["data.a", "data.b"]


@pytest.mark.parametrize("name", fairall.__all__)
def test_the_face_of_the_package(name: str) -> None:
    assert callable(getattr(fairall, name))
    assert name in dir(fairall)


def test_the_face_is_lazy() -> None:
    code = "import sys, fairall; sys.exit('torch' in sys.modules or 'hydra' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    with pytest.raises(AttributeError, match="nonsense"):
        fairall.nonsense  # noqa: B018
