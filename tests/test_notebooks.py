"""The notebooks: they execute with preset=quick and give what they say; their stored outputs are small."""

import base64
import json
import re
from pathlib import Path

import nbformat
import pytest
import yaml
from nbformat import NotebookNode

from examples.execute import executed
from tests.conftest import CHECKOUT

EXAMPLES = CHECKOUT / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
# Cells whose outputs do not depend on the preset.
SILENT = {"setup", "decide"}  # cells without outputs
SAME = {"quickstart": ["csv"], "your_own_data": ["log", "check", "selection", "past"], "agent": ["env"]}
SAME |= {"estimator": ["log", "fit", "truth", "pipeline", "search", "learn"]}  # which has no preset
WITH_RUNS = ["quickstart", "your_own_data", "agent"]


def text(notebook: NotebookNode, cell: str) -> str:
    """All text of the outputs of the cell with this id."""
    (found,) = (one.outputs for one in notebook.cells if one.id == cell)
    return "\n".join(one.get("text") or one.data["text/plain"] for one in found)


def assert_same(made: str, stored: str) -> None:
    """Texts are equal, but for .5 in numbers with a point, which depend on the kind of processor."""
    number = re.compile(r"-?\d+\.\d+")
    assert number.sub("", made).split() == number.sub("", stored).split()
    expected = [float(one) for one in number.findall(stored)]
    assert [float(one) for one in number.findall(made)] == pytest.approx(expected, abs=0.5)


@pytest.mark.whole
@pytest.mark.parametrize("name", SAME)
def test_a_notebook_executes_with_quick_runs(name: str, tmp_path: Path) -> None:
    if name == "agent":
        pytest.importorskip("stable_baselines3", reason="needs stable-baselines3: pip install -e '.[dev]'")
    made = executed(EXAMPLES / f"{name}.ipynb", tmp_path, preset="quick")
    stored = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    assert [cell.source for cell in made.cells] == [cell.source for cell in stored.cells]
    code = [cell for cell in made.cells if cell.cell_type == "code"]
    assert [one.text for cell in code for one in cell.outputs if one.get("name") == "stderr"] == []
    assert all(cell.outputs for cell in code if cell.id not in SILENT)
    for cell in SAME[name]:
        assert_same(text(made, cell), text(stored, cell))
    presets = [
        yaml.safe_load(path.read_text())["preset"] for path in tmp_path.glob("outputs/runs/*/*/*/config.yaml")
    ]
    assert ({*presets} == {"quick"}) == (name in WITH_RUNS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_outputs(path: Path) -> None:
    content = path.read_text()
    assert len(content) < 200_000
    assert not re.findall(r"/(?:home|root|tmp|usr|work|Users)/", content)
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs for cell in code if cell.id not in SILENT)
    assert "do not interpret" not in json.dumps([cell.outputs for cell in code])
    assert notebook.metadata.keys() == {"kernelspec"}
    for cell in code:
        assert (cell.execution_count, cell.metadata) == (None, {})
        for output in cell.outputs:
            assert output.get("name") != "stderr"
            assert "\x1b" not in output.get("text", "")
            assert len(base64.b64decode(output.get("data", {}).get("image/png", ""))) < 60_000
