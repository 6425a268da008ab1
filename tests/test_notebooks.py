"""The notebooks: they execute with preset=quick and give what they say; their stored outputs are small."""

import base64
import json
import re
from pathlib import Path

import nbformat
import pandas as pd
import pytest
import yaml
from nbformat import NotebookNode

from examples.execute import executed

CHECKOUT = Path(__file__).parents[1]
EXAMPLES = CHECKOUT / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
# Cells whose outputs do not depend on the preset.
SAME = {"quickstart": ["csv"], "your_own_data": ["log", "check", "selection", "past"]}

GAP = 14.8  # true equal-opportunity gap of the log, printed by examples/loans.py


def outputs(notebook: NotebookNode, cell: str) -> list[NotebookNode]:
    """Of the cell with this id."""
    (found,) = (one.outputs for one in notebook.cells if one.id == cell)
    return found


def text(notebook: NotebookNode, cell: str) -> str:
    """All text of a cell's outputs."""
    return "\n".join(one.get("text") or one.data["text/plain"] for one in outputs(notebook, cell))


def rows(notebook: NotebookNode, cell: str) -> list[list[str]]:
    """Rows of the table of a cell, without its head; a name that spans rows is in the first of them."""
    html = outputs(notebook, cell)[-1].data["text/html"]
    found = re.findall(r"<tr>.*?</tr>", html, re.DOTALL)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in found]


def numbers(notebook: NotebookNode, cell: str) -> dict[str, list[float]]:
    """Numbers of a table of three columns or more, by the name of the row."""
    return {row[0]: [float(number) for number in row[1:] if number] for row in rows(notebook, cell)}


def run_in(notebook: str, folder: Path) -> NotebookNode:
    """The notebook, executed with preset=quick, without an error or a warning."""
    made = executed(EXAMPLES / f"{notebook}.ipynb", folder, preset="quick")
    said = [one.text for cell in made.cells for one in cell.get("outputs", []) if one.get("name") == "stderr"]
    assert said == []
    stored = nbformat.read(EXAMPLES / f"{notebook}.ipynb", as_version=4)
    assert [cell.source for cell in made.cells] == [cell.source for cell in stored.cells]
    for cell in SAME[notebook]:
        assert text(made, cell) == text(stored, cell)
    for path in folder.glob("outputs/runs/*/*/*/config.yaml"):
        assert yaml.safe_load(path.read_text())["preset"] == "quick"
    return made


@pytest.mark.whole
def test_quickstart(tmp_path: Path) -> None:
    notebook = run_in("quickstart", tmp_path)
    runs = {path.parent.relative_to(tmp_path / "outputs" / "runs").parent.as_posix()
            for path in tmp_path.glob("outputs/runs/*/*/*/DONE")}  # fmt: skip
    assert runs == {"fairall_I_II/credit", "fairlog/credit", "fairlog/loans"}
    assert [one.output_type for one in outputs(notebook, "run")] == ["stream"]  # plain text
    assert all("image/png" in outputs(notebook, cell)[0].data for cell in ("curve", "explain"))

    compared = numbers(notebook, "compare")
    assert compared["accept_all"][1:3] == [0.0, 100.0]
    for method, name in (("FairAll (I+II)", "fairall_I_II"), ("FairLog", "fairlog")):
        (path,) = tmp_path.glob(f"outputs/runs/{name}/credit/*/summary.json")
        mean = json.loads(path.read_text())["aggregate"]["mean_utility"]["mean"]
        assert compared[method][0] == pytest.approx(100 * mean, abs=0.051)

    (truth,) = re.findall(r"simulation: (-?[\d.]+)", text(notebook, "evaluate"))
    _, low, high = numbers(notebook, "evaluate")["dr"]
    assert low - 1 < float(truth) < high + 1

    explanation = json.loads((tmp_path / "outputs" / "why" / "explanation.json").read_text())
    moved = sum(row["contribution"] for row in explanation["contributions"])
    assert explanation["average"] + moved == pytest.approx(explanation["probability"], abs=1e-5)


@pytest.mark.whole
def test_your_own_data(tmp_path: Path) -> None:
    notebook = run_in("your_own_data", tmp_path)
    assert text(notebook, "check").endswith("Ready to run.\n")

    for _, naive, weighted, true in numbers(notebook, "selection").values():
        assert abs(weighted - true) < abs(naive - true) / 4
    past = numbers(notebook, "past")
    assert past["naive"] == [0.0, 0.0, 0.0]
    assert past["no assumption"][0] < past["dr"][1] < GAP < past["dr"][2] < past["no assumption"][1]

    truth = re.search(r"officers (-?[\d.]+), learnt (-?[\d.]+)", text(notebook, "compare"))
    assert truth is not None
    estimates = [[float(cell) for cell in row[-3:]] for row in rows(notebook, "compare")[:2]]
    for true, (_, low, high) in zip(map(float, truth.groups()), estimates, strict=True):
        assert low - 1 < true < high + 1

    decisions = pd.read_csv(tmp_path / "decisions.csv")
    accepted = decisions["decision"] == 1
    assert len(decisions) == len(pd.read_csv(tmp_path / "applicants.csv"))
    assert 0 < accepted.sum() <= 0.2 * len(decisions)
    assert decisions["probability"][accepted].min() >= decisions["probability"][~accepted].max()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_outputs(path: Path) -> None:
    content = path.read_text()
    assert len(content) < 200_000
    assert not re.findall(r"/(?:home|root|tmp|usr|work|Users)/", content)
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    without = {"setup", "decide"}
    assert all(cell.outputs for cell in code if cell.id not in without)
    assert "do not interpret" not in json.dumps([cell.outputs for cell in code])
    assert notebook.metadata.keys() == {"kernelspec"}
    for cell in code:
        assert (cell.execution_count, cell.metadata) == (None, {})
        for output in cell.outputs:
            assert output.get("name") != "stderr"
            assert "\x1b" not in output.get("text", "")
            assert len(base64.b64decode(output.get("data", {}).get("image/png", ""))) < 60_000
