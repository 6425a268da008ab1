"""Files of the figures of a page."""

import io
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from fairall.results import page


def drawn() -> Figure:
    figure = Figure(figsize=(2.0, 1.5), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="tab:blue", linewidth=5)  # not only pixels at its edges
    axes.axhline(0.5, color="black")
    axes.set(title="title", xlabel="x")
    page.legend_below(figure, {"line": axes.lines[0]}, 1)
    return figure


def colours(png: bytes) -> set[tuple[int, ...]]:
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))
    return {tuple(map(int, one)) for one in np.unique(pixels.reshape(-1, 3), axis=0)}


def rgb(colour: str) -> tuple[int, ...]:
    return tuple(round(255 * part) for part in mpl.colors.to_rgb(colour))


def test_a_dark_figure_has_the_same_size_and_nothing_black(tmp_path: Path) -> None:
    light, dark = page.save(drawn, tmp_path / "figure")
    assert (tmp_path / "figure.png").read_bytes() == light
    assert Image.open(io.BytesIO(light)).size == Image.open(io.BytesIO(dark)).size
    assert {(0, 0, 0), (255, 255, 255), rgb("tab:blue")} <= colours(light)
    assert {rgb(page.NIGHT), rgb(page.INK), rgb("tab:blue")} <= colours(dark)
    assert not {(0, 0, 0), (255, 255, 255)} & colours(dark)


def test_equal_figures_have_equal_files(tmp_path: Path) -> None:
    both = [tmp_path / name for name in ("first", "second")]
    for stem in both:
        page.save(drawn, stem)
    for ending in (".png", ".pdf"):
        first, second = (stem.with_suffix(ending).read_bytes() for stem in both)
        assert first == second


@pytest.mark.parametrize("dpi", [40, 80])
def test_resolution(dpi: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "DPI", dpi)
    light, _ = page.save(drawn, tmp_path / "figure")
    assert Image.open(io.BytesIO(light)).size[0] == 2 * dpi
