"""Execute the notebooks beside this file and store their outputs, in some five minutes.

    python examples/execute.py

Times, versions, numbers of cells and colours of a terminal are not stored, and pictures with few colours.
"""

from __future__ import annotations

import base64
import io
import os
import re
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from PIL import Image

FOLDER = Path(__file__).parent
PRESET = re.compile(r'PRESET = "\w+"')  # the line of a notebook
COLOURS = 64  # of a picture
TERMINAL_STYLE = re.compile(r"\x1b\[[\d;]*m")


def executed(path: Path, folder: Path, *, preset: str | None = None) -> NotebookNode:
    """A notebook with the outputs of an execution.

    Args:
        path: of the notebook, which is not changed.
        folder: in which it runs; what it imports is copied there.
        preset: in place of the notebook's, where one is given.

    Raises:
        nbclient.exceptions.CellExecutionError: where a cell fails.
    """
    notebook = nbformat.read(path, as_version=4)
    shutil.copy(FOLDER / "loans.py", folder)
    written = {cell.id: cell.source for cell in notebook.cells}
    if preset is not None:
        for cell in notebook.cells:
            cell.source = PRESET.sub(f'PRESET = "{preset}"', cell.source)
    # `python` in a cell of shell commands is that of the kernel, with the fairall of this checkout.
    environment = os.environ | {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join([str(FOLDER.parent), os.environ.get("PYTHONPATH", "")]),
    }
    client = NotebookClient(
        notebook,
        resources={"metadata": {"path": str(folder)}},
        coalesce_streams=True,
        record_timing=False,
        timeout=600,
    )
    client.execute(env=environment)
    for cell in notebook.cells:
        cell.source = written[cell.id]
        if cell.cell_type == "code":
            cell.execution_count = None
            # Bars of progress, which are gone, leave blanks.
            cell.outputs = [output for output in cell.outputs if output.get("text", "-").strip()]
            for output in cell.outputs:
                _reduce(output)
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return notebook


def _reduce(output: NotebookNode) -> None:
    """Leave out of an output what differs between executions or is large."""
    if "execution_count" in output:
        output.execution_count = None
    if "text" in output:
        output.text = TERMINAL_STYLE.sub("", output.text)
    picture = output.get("data", {}).get("image/png")
    if picture:
        smaller = io.BytesIO()
        Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB").quantize(COLOURS).save(
            smaller, "PNG", optimize=True
        )
        output.data["image/png"] = base64.b64encode(smaller.getvalue()).decode()


if __name__ == "__main__":
    for path in FOLDER.glob("*.ipynb"):
        with TemporaryDirectory() as folder:
            nbformat.write(executed(path, Path(folder)), path)
