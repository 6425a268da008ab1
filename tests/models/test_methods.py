import ast
import functools
from pathlib import Path

import pytest
import yaml

from fairall.config.choices import configuration_root, shown

PACKAGE = Path(__file__).parents[2] / "fairall"
# Every run is compared with the oracle.
REFERENCES = PACKAGE / "measuring" / "references.py", "fairall.models.oracle"
CHOICES = [path.stem for path in (configuration_root() / "conf" / "model").glob("*.yaml")]


def named(choice: str) -> str:
    """The module of the class that conf/model/<choice>.yaml names, or that the file it builds on names."""
    node = yaml.safe_load((configuration_root() / "conf" / "model" / f"{choice}.yaml").read_text())
    return node["_target_"].rpartition(".")[0] if "_target_" in node else named(node["defaults"][0])


@functools.cache
def imported(path: Path) -> set[str]:
    modules = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    return modules


@pytest.mark.parametrize(
    "choice",
    """
        consequential dcem ensemble epsilon_greedy explore_exploit fair_reductions neural_ucb
        multiple_imputation sellf_one_step accepted_only reweighting parcelling fuzzy_augmentation heckman
        basl
    """.split(),
)
def test_no_code_names_a_method_of_another_paper(choice: str) -> None:
    assert [path for path in PACKAGE.rglob("*.py") if f'"{choice}"' in path.read_text()] == []
    assert {"label", "page", "colour", "mark"} == shown(choice).keys()


@pytest.mark.parametrize("choice", CHOICES)
def test_no_code_knows_of_a_method(choice: str) -> None:
    method = named(choice)
    own = PACKAGE.parent / f"{method.replace('.', '/')}.py"
    knowing = [path for path in PACKAGE.rglob("*.py") if path != own and method in imported(path)]
    assert own.exists()
    assert [path for path in knowing if (path, method) != REFERENCES] == []
