"""What figures look like."""

from __future__ import annotations

# Okabe and Ito's palette: told apart by colour-blind readers too.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "#7F7F7F"
PURPLE = "#CC79A7"
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "savefig.dpi": 150,
    # Without it the file would differ between two equal runs.
    "svg.hashsalt": "fairall",
}
