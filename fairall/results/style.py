"""Colours and matplotlib settings of figures."""

from __future__ import annotations

# Palette of Okabe and Ito, safe for colour-blind readers.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "#7F7F7F"
PURPLE = "#CC79A7"
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "savefig.dpi": 150,
    # Without a fixed salt the files of two equal runs would differ.
    "svg.hashsalt": "fairall",
}
