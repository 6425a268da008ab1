"""The share of mutants of a module that the tests of its room notice (mutation testing)."""

from __future__ import annotations

import ast
import io
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path

import coverage
import pandas as pd
import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

from benchmarks.errors import BenchmarkError

FAST = "not whole"
SECONDS = 300  # CPU time of the tests of a mutant, which counts as noticed where they take more
CONTEXTS = "[run]\ndynamic_context = test_function\n"
# What tests import and no mutant changes: imported once, before the processes of the mutants are forked.
HEAVY = "torch pandas scipy.stats sklearn.linear_model matplotlib.pyplot rich jinja2".split()


def share(module: str, tests: Sequence[str], number: int, seed: int, tree: Path) -> pd.DataFrame:
    """Run tests against random mutants of a module.

    The mutants are cosmic-ray's, without those that change annotations or docstrings alone. A mutant is
    noticed if one of the fast tests fails that reach its line, or, where none does, that reach the module.

    Args:
        module: path of the module in `tree`.
        tests: paths of tests in `tree`.
        number: of mutants; all where there are fewer.
        seed: of their choice.
        tree: a copy of a checkout, of which the module is overwritten.

    Returns:
        A row per mutant: line, operator, and whether it was noticed.

    Raises:
        BenchmarkError: where the tests do not pass or do not reach the module.
    """
    path = tree / module
    source = path.read_text()
    possible = mutants(source)
    chosen = random.Random(seed).sample(possible, min(number, len(possible)))
    reached = tests_by_line(module, tests, tree)
    everything = sorted(set().union(*reached.values()))
    if not everything:
        raise BenchmarkError(f"{module}: not reached by {' '.join(tests)}")
    for name in HEAVY:
        import_module(name)
    if fails(everything, tree):
        raise BenchmarkError(f"{module}: its tests fail without a mutant too")
    rows = []
    try:
        for line, operator, mutant in sorted(chosen):
            path.write_text(mutant)
            noticed = fails(sorted(reached.get(line, ())) or everything, tree)
            rows.append({"line": line, "operator": operator, "noticed": noticed})
            print(f"{module}:{line} {operator} {noticed}", flush=True)
    finally:
        path.write_text(source)
    return pd.DataFrame(rows)


def mutants(source: str) -> list[tuple[int, str, str]]:
    """Line, operator and source of each mutant that differs in more than annotations and docstrings."""
    found, unchanged = [], _computing(source)
    for name in operator_names():
        operator_class = get_operator(name)
        if operator_class.arguments():
            continue
        operator = operator_class()
        positions = [
            start for node in ast_nodes(get_ast(source)) for start, _ in operator.mutation_positions(node)
        ]
        for occurrence, (line, _) in enumerate(positions):
            mutant = mutate_code(source, operator, occurrence)
            if mutant is not None and _computing(mutant) != unchanged:
                found.append((line, name, mutant))
    return found


def _computing(source: str) -> str:
    """The syntax tree without annotations of functions and without docstrings; the source if it has none."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return source
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef):
            node.returns = None
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = None
    return ast.dump(tree)


def tests_by_line(module: str, tests: Sequence[str], tree: Path) -> Mapping[int, Collection[str]]:
    """The fast tests that execute each line of a module, by file and name.

    Raises:
        BenchmarkError: where a test fails.
    """
    settings, data = tree / "coverage.ini", tree / "coverage.data"
    settings.write_text(CONTEXTS)
    command = (
        f"coverage run --rcfile={settings} --data-file={data} --include={tree / module} -m pytest".split()
    )
    options = ["-q", "-p", "no:cacheprovider", "-m", FAST]
    run = subprocess.run(
        [sys.executable, "-m", *command, *options, *tests],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        raise BenchmarkError(f"{' '.join(tests)}: tests fail: {run.stdout[-300:]}")
    measured = coverage.CoverageData(str(data))
    measured.read()
    reached: dict[int, set[str]] = defaultdict(set)
    for line, contexts in measured.contexts_by_lineno(str(tree / module)).items():
        for context in filter(None, contexts):  # tests.live.test_due.test_name
            file, _, name = context.rpartition(".")
            while not (tree / f"{file.replace('.', '/')}.py").is_file() and "." in file:  # a class in between
                file, _, outer = file.rpartition(".")
                name = f"{outer}::{name}"
            path = f"{file.replace('.', '/')}.py"
            if (tree / path).is_file():  # hypothesis calls a method of its own `test_function`
                reached[line].add(f"{path}::{name}")
    return reached


def fails(tests: Sequence[str], tree: Path) -> bool:
    """Whether one of some tests fails, or they take more than `SECONDS`, in a process of their own."""
    child = os.fork()
    if not child:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        os.chdir(tree)
        os.environ["PYTHONPATH"] = sys.path[0] = str(tree)
        sys.dont_write_bytecode = True
        for name in [
            name for name in sys.modules if name.partition(".")[0] in ("fairall", "tests", "benchmarks")
        ]:
            del sys.modules[name]
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-m", FAST, *tests])
        os._exit(int(code != 0))
    until = time.monotonic() + 10 * SECONDS  # where they wait for something
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) != 0
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True
