import csv
import io
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from fairall.results.finished import Run

from fairall.report.claims import REAL, claims_table, judge
from fairall.report.tables import hyperparameter_table
from fairall.results.table import Cell, Lacking, Row, Table, comma_separated, latex, markdown
from tests.report.conftest import planned

AWKWARD = '100 % of a_b & c | {d} ~ #1 $2 ^3 <4> −5 ±6 ×7 ↑ ↓ π λ β ỹ ũ \\ "'


@pytest.fixture(scope="module")
def table() -> Table:
    rows = [
        Row("COMPAS", "FairAll", [Cell("1.0 (0.1)", "1.1 (0.1), −1.0 sd", best=True, marks="R−")]),
        Row("COMPAS", "FairLog", [Cell("missing", "0.9 (0.2)")]),
        Row("MEPS", AWKWARD, [Cell("0.5")]),
    ]
    records = [{"model": "fairall_I_II", "mean": 0.0123456789, "note": 'a, "b"'}]
    lacking = Lacking([("FairLog on COMPAS", "python x"), ("FairLog on MEPS", "python y")], 3)
    return Table(
        key="a_key", title=AWKWARD, note=AWKWARD, columns=["utility ↑"], rows=rows, records=records,
        lacking=lacking,
    )  # fmt: skip


def test_markdown_shows_all_there_is(table: Table) -> None:
    text = markdown(table)
    assert "| COMPAS | FairAll | **1.0 (0.1)** R− *1.1 (0.1), −1.0 sd* |" in text
    assert "| COMPAS | FairLog | missing *0.9 (0.2)* |" in text
    assert text.endswith("|\n\n2 of 3 runs missing: FairLog on COMPAS, FairLog on MEPS.\n")
    lines = [line.replace(r"\|", "") for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in lines} == {4}


def test_latex_has_as_many_cells_in_every_row(table: Table) -> None:
    text = latex(table)
    assert (
        r"COMPAS & FairAll & \textbf{1.0 (0.1)}\textsuperscript{R$-$} \textit{1.1 (0.1), $-$1.0 sd} \\"
        in text
    )
    assert r" & FairLog & missing \textit{0.9 (0.2)} \\" in text
    rows = [line.replace(r"\&", "") for line in text.splitlines() if line.endswith(r"\\")]
    assert {row.count("&") for row in rows} == {2}
    assert text.count(r"\midrule") == 2
    assert r"\midrule" in text.split(r"FairLog & missing")[1].split("MEPS")[0]
    assert "2 of 3 runs missing." in text
    assert text.isascii()


def test_every_table_of_the_report_is_plain_ascii_in_latex() -> None:
    missing = planned("harsh", "dataset=credit")
    with_runs = [replace(one, run=cast(Run, one)) for one in missing]
    for table in (
        hyperparameter_table(with_runs),
        claims_table(judge(REAL, missing), missing, "claims", "Claims"),
    ):
        assert latex(table).isascii()


def test_csv_comes_back(table: Table) -> None:
    (record,) = csv.DictReader(io.StringIO(comma_separated(table)))
    assert record == {"model": "fairall_I_II", "mean": "0.0123456789", "note": 'a, "b"'}


def test_latex_compiles(table: Table, tmp_path: Path) -> None:
    compiler = shutil.which("pdflatex") or shutil.which("tectonic")
    if compiler is None:
        pytest.skip("no LaTeX is installed")
    (tmp_path / "table.tex").write_text(latex(table))
    document = r"\documentclass{article}\usepackage{booktabs,graphicx}\usepackage[T1]{fontenc}"
    document += r"\begin{document}\input{table.tex}\end{document}"
    (tmp_path / "main.tex").write_text(document)
    options = ["-interaction=nonstopmode", "-halt-on-error"] if compiler.endswith("pdflatex") else []
    ended = subprocess.run([compiler, *options, "main.tex"], cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout[-2000:]
    assert (tmp_path / "main.pdf").stat().st_size > 1000
