"""Markdown page of the report for the documentation: text, tables, some figures, and the setting."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

from fairall.report.build import Built, made, write
from fairall.report.durations import read
from fairall.report.written import markdown
from fairall.results.time_left import in_words

FIGURES = ("compas_harsh", "synthetic_harsh", "plane_harsh")  # shown where they exist
COMMANDS = (
    "make reproduce-tables",
    "make reproduce-figures",
    "python -m fairall.report --results docs/results.md",
)


def write_results(built: Built, path: Path, outputs: Path) -> None:
    """Write the page, and copy its figures to `figures/` beside it.

    Args:
        built: the report.
        path: of the page.
        outputs: folder of reproduction.csv.
    """
    shown = built.contents
    lines = ["# Results", "", shown.opening[0], "", *(f"- {line}" for line in shown.opening[1:]), ""]
    lines += ["## Made by", "", *(f"    {command}" for command in COMMANDS), "", _setting(outputs), ""]
    lines += ["## Tables", ""]
    for table in shown.tables:
        if not table.empty:
            lines += [markdown(table), ""]
    drawn = [figure for figure in shown.figures if figure.key in FIGURES and figure.draw is not None]
    if drawn:
        lines += ["## Figures", ""]
        (path.parent / "figures").mkdir(parents=True, exist_ok=True)
    for figure in drawn:
        shutil.copyfile(
            built.folder / "figures" / f"{figure.key}.png", path.parent / "figures" / f"{figure.key}.png"
        )
        lines += [
            f"![{figure.title}](figures/{figure.key}.png)",
            "",
            f"{figure.title}. {figure.text}",
            "",
        ]
    absent = sorted({table.title for table in shown.tables if table.empty})
    if absent:
        lines += ["## Not run", "", *(f"- {title}" for title in absent), ""]
    write(path, "\n".join(lines).rstrip() + "\n")


def _setting(outputs: Path) -> str:
    """Versions, machine and CPU time."""
    parts = [f"{name} {value}" for name, value in made()]
    parts.append(f"{_processor()}, {os.cpu_count()} cores, {platform.system()}")
    measured = read(outputs / "reproduction.csv")
    if measured:
        cpu = sum(one.cpu_seconds for one in measured)
        parts.append(f"{in_words(cpu)} of CPU in {len(measured)} commands")
    return "; ".join(parts) + "."


def _processor() -> str:
    """Model of the processor on Linux, elsewhere its architecture."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
