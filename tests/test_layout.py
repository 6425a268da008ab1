"""The layout of the package: its rooms, the direction of imports, and sizes that only fall (budget.yaml)."""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

import fairall
from fairall.cli.parser import COMMANDS, COMMON
from fairall.config.choices import choices, flattened, settings, with_parents

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "fairall"
NODES_OF_A_LINE = 7  # of this project's code
BUDGET = Path(__file__).with_name("budget.yaml")
SLACK = 100  # by which a number may stand above the tree: whoever removes more lowers the number
PYTHON = ("fairall", "tests", "reproduction", "benchmarks", "examples", "docs", "conf")
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
    """Modules of the package that a file imports anywhere, under TYPE_CHECKING and by strings too."""
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Constant) and str(node.value).removeprefix("fairall.") in known:
            names = [str(node.value)]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in (name.removeprefix("fairall.") for name in names if name.startswith("fairall.")):
            yield name if name in known else name.rpartition(".")[0]


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
    waiting = {name: set(imports(path, known)) & known.keys() - {name} for name, path in known.items()}
    while free := [name for name, needs in waiting.items() if not needs & waiting.keys()]:
        for name in free:
            del waiting[name]
    return sorted(waiting)


def nodes(path: Path) -> int:
    """Nodes of the syntax tree of a file without docstrings."""
    tree = [*ast.walk(ast.parse(path.read_text()))]
    documented = (ast.Module, ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)
    texts = [
        node for node in tree if isinstance(node, documented) and ast.get_docstring(node, False) is not None
    ]
    return len(tree) - 2 * len(texts)


def tracked(*patterns: str) -> list[Path]:
    """Files of the repository, as they are in the working tree."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [ROOT / name for name in dict.fromkeys(names) if (ROOT / name).is_file()]


def sizes() -> dict[str, dict[str, int]]:
    """What budget.yaml has numbers for, as it is now."""
    found = {top: Counter[str]() for top in PYTHON[:2]} | {"others": Counter[str](), "lines": Counter[str]()}
    for path in tracked(*(f"{top}/*.py" for top in PYTHON)):
        top, *folders = path.relative_to(ROOT).parts[:-1]
        room = (folders or ["root"])[0]
        part, name = (top, room) if top in found else ("others", top)
        found[part][name] += nodes(path)
    for path in tracked("*.jinja", "*.css", "*.yaml", "*.yml"):
        if path.relative_to(ROOT).parts[0] != "tests":
            found["lines"][path.suffix[1:]] += len(path.read_text().splitlines())
    loading = "import sys, fairall.experiment; print(sum(m.split('.')[0] == 'fairall' for m in sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", loading], capture_output=True, text=True, check=True)
    keys, n_choices = set(flattened(settings())), 0
    for group, paths in choices().items():
        n_choices += len(paths)
        keys |= {f"{group}.{key}" for path in paths.values() for key in with_parents(path, paths)}
    no_keys = ("hydra", "sweeps.", "preset.", "defaults")
    counts = {
        "commands": len(COMMANDS),
        "options": sum(len(command.options) for command in COMMANDS.values()) + len(COMMON),
        "keys": sum(not key.startswith(no_keys) for key in keys),
        "choices": n_choices,
        "modules": int(loaded.stdout),  # that `import fairall.experiment` loads
    }
    return {part: dict(numbers) for part, numbers in found.items()} | {"counts": counts}


def raised(budget: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    """What a change of budget.yaml raises without lowering as much elsewhere."""

    def totals(numbers: Mapping[str, Any]) -> dict[str, int]:
        part = {
            name: sum(numbers[name].values()) for name in ("fairall", "tests", "others", "lines", "counts")
        }
        # Simulations of coverage move from tests to reproduction, where a study proves what a test asserted.
        # Its words move to YAML, a line of which counts as much as a line of code.
        return {
            "fairall and reserve": part["fairall"] + numbers["reserve"],
            "tests, others and lines": part["tests"] + part["others"] + NODES_OF_A_LINE * part["lines"],
            "counts": part["counts"],
            "reserve": numbers["reserve"],
        }

    then = totals(before)
    return [f"{name}: {now} > {then[name]}" for name, now in totals(budget).items() if now > then[name]]


def committed_before() -> Mapping[str, Any] | None:
    """budget.yaml of the commit that touched it before the working tree's, None without one."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout

    name = BUDGET.relative_to(ROOT)
    for commit in git("log", "-2", "--format=%H", "--", str(name)).split():
        text = git("show", f"{commit}:{name}")
        if text and text != BUDGET.read_text():
            return yaml.safe_load(text)
    return None


def test_sizes_are_within_the_budget_and_lower_ones_lower_it() -> None:
    budget, wrong = yaml.safe_load(BUDGET.read_text()), []
    for part, numbers in sizes().items():
        assert numbers.keys() == budget[part].keys(), part
        slack = SLACK if part in ("fairall", "tests", "others") else 0
        wrong += [
            f"{part} {name}: {number}, budget {budget[part][name]}"
            for name, number in numbers.items()
            if not budget[part][name] - slack <= number <= budget[part][name]
        ]
    assert wrong == []


def test_a_number_is_raised_only_by_lowering_another() -> None:
    before = committed_before()
    if before is None:
        pytest.skip("no earlier budget in the history of this checkout")
    assert raised(yaml.safe_load(BUDGET.read_text()), before) == []


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"fairall": {"a": 2, "c": 8}, "tests": {"x": 2}, "others": {"x": 4}}, []),
        ({"fairall": {"a": 15}, "reserve": 5}, []),
        ({"fairall": {"a": 11}}, ["fairall and reserve: 21 > 20"]),
        ({"fairall": {"a": 9}, "reserve": 11}, ["reserve: 11 > 10"]),
        ({"lines": {"x": 4}, "others": {"x": -4}}, []),
        ({"lines": {"x": 4}}, ["tests, others and lines: 34 > 27"]),
    ],
)
def test_what_is_raised_is_found(change: dict[str, Any], found: list[str]) -> None:
    before = {part: {"x": 3} for part in ("tests", "others", "lines", "counts")}
    before |= {"fairall": {"a": 5, "b": 5}}
    assert raised(before | {"reserve": 10} | change, before | {"reserve": 10}) == found


def test_no_code_is_made_of_strings() -> None:
    for path in tracked(*(f"{top}/*.py" for top in PYTHON if top != "tests")):
        for node in ast.walk(ast.parse(path.read_text())):
            called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            assert called not in ("exec", "eval"), f"{path}:{node.lineno}"  # type: ignore[attr-defined]
        assert "# fmt: " not in path.read_text(), path


def test_rooms_are_few_and_all_have_a_place_in_the_order() -> None:
    folders = {path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")} - {Path()}
    root = list(PACKAGE.glob("*.py"))
    assert len(root) <= ROOT_MODULES
    assert len(folders) + len(root) <= MOST
    assert {name.split(".")[0] for name in modules()} <= set(ROOMS)


def test_imports_run_in_one_direction_and_not_in_a_circle() -> None:
    assert (against_the_direction(), circle()) == ([], [])


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
    (tmp_path / "data" / "c.py").write_text("view = 'fairall.experiment'\nname = 'fairall.replace'\n")
    (tmp_path / "experiment.py").write_text("")
    assert against_the_direction(tmp_path) == [
        "data.__main__ imports cli.main",
        "data.a imports models.x",
        "data.c imports experiment",
    ]
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
