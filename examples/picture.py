"""Draw the picture of the README: utility and unfairness over time of three runs, between their references.

    python -m fairall --multirun model=fairall_I_II,fairlog,unfairlog dataset=credit
    python examples/picture.py docs/figures/start.png RUN RUN RUN

The references are measured by every run on its own people; here they are those of the first one.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt

import fairall
from fairall.display.style import save_figure
from fairall.results.figures import band

PANELS = {"utility": "Utility ×100: higher is better", "dpu": "Unfairness (DPU) ×100: lower is better"}
# Later ones are drawn over earlier ones.
METHODS = {
    "unfairlog": ("UnfairLog", "#009E73"),
    "fairlog": ("FairLog", "#E69F00"),
    "fairall_I_II": ("FairAll (I+II)", "#0072B2"),
}
REFERENCES = {
    "oracle": ("oracle: knows every label", "--"),
    "oracle_fair": ("oracle with parity", "-."),
    "accept_all": ("accept everybody", ":"),
}


def draw(runs: list[str], path: Path) -> None:
    """Draw the mean over seeds, a band of one standard deviation, and the references as lines.

    Args:
        runs: folders or ids of finished runs of `METHODS` on the same data.
        path: PNG to write.
    """
    results = {one.name("model"): one for one in map(fairall.load_result, runs)}
    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, panels = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained", dpi=160)
    for axes, (measure, title) in zip(panels, PANELS.items(), strict=True):
        for model, (label, colour) in METHODS.items():
            band(axes, results[model].curve(measure), bounds=(0, 1), label=label, color=colour, lw=1.8)
        references = next(iter(results.values())).references["mean"]
        for policy, (label, dashes) in REFERENCES.items():
            height = 100 * references[policy, f"mean_{measure}"]
            axes.axhline(height, color="#444444", ls=dashes, lw=1.3, label=label)
        axes.set(xlabel="time step", xlim=(0, 200))
        axes.set_title(title, fontsize=11)
    panels[0].set_ylim(10, 21.5)
    panels[1].set_ylim(-0.3, 15)
    handles, labels = panels[0].get_legend_handles_labels()
    order = [2, 3, 1, 4, 0, 5]  # a row of methods, a row of references
    figure.legend(
        [handles[one] for one in order],
        [labels[one] for one in order],
        loc="outside lower center",
        ncols=3,
        frameon=False,
    )
    save_figure(figure, path)


if __name__ == "__main__":
    draw(sys.argv[2:], Path(sys.argv[1]))
