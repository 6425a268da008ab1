"""Which figures the report has, and of which runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from matplotlib.figure import Figure

from fairall.report import labels, plots
from fairall.report.drawing import Drawing
from fairall.report.latent_space import Space, latent_space
from fairall.report.tables import Asked
from fairall.results.finished import Run
from fairall.results.paper import of_synthetic_figures

BAND = "Mean over seeds; the band is one standard deviation."
EVERYBODY = "Thin dashed line: accept everybody, where it was measured."
EXPECTED = "Measured on test people from acceptance probabilities."


def over_time(asked: Sequence[Asked], dataset: str, initial_policy: str) -> Drawing:
    """Test utility and DPU of every method on a data set."""
    own = [one for one in asked if one.dataset == dataset]
    return _drawing(
        f"{dataset}_{initial_policy}",
        f"{labels.dataset(dataset)}, {initial_policy} initial policy",
        f"Utility by the proxy label and demographic-parity unfairness over time steps. "
        f"{EXPECTED} {BAND} {EVERYBODY}",
        "Figures: methods over time",
        own,
        lambda: plots.over_time(_by_model(own), plots.UTILITY_AND_DPU),
    )


def synthetic(asked: Sequence[Asked], optimal: Sequence[Asked], initial_policy: str) -> Drawing:
    """All four measures of every method on synthetic data, with the optimal policies' lines."""

    def lines() -> dict[str, tuple[str, dict[str, float]]]:
        found = {}
        for one in optimal:
            label = labels.method(one.model)
            if one.run is not None:
                found[one.model] = (label, plots.levels(one.run, labels.SYNTHETIC))
            else:
                readings = of_synthetic_figures(initial_policy, one.model)
                found[one.model] = (
                    f"{label} (printed)",
                    {key: (low + high) / 2 for key, (low, high) in readings.items()},
                )
        return found

    return _drawing(
        f"synthetic_{initial_policy}",
        f"Synthetic data, {initial_policy} initial policy",
        "Utility by the proxy label and by the ground truth, demographic-parity and counterfactual "
        "unfairness over time steps, and the levels of the optimal fair and unfair policies. "
        f"{EXPECTED} {BAND} {EVERYBODY}",
        "Figures: synthetic data",
        asked,
        lambda: plots.over_time(_by_model(asked), labels.SYNTHETIC, optimal=lines()),
        also_missing=[one for one in optimal if one.run is None],
    )


def costs(asked: Sequence[Asked]) -> Drawing:
    """Effective utility and DPU of FairAll against the cost of a positive decision."""

    def draw() -> Figure:
        by_dataset: dict[str, list[Run]] = {}
        for one in asked:
            if one.run is not None:
                by_dataset.setdefault(one.dataset, []).append(one.run)
        return plots.against_cost(by_dataset, labels.EFFECTIVE)

    return _drawing(
        "costs",
        "FairAll (I+II) at other costs, harsh initial policy",
        "Effective utility and DPU after the last time step against the cost c. "
        "Mean and standard deviation over seeds.",
        "Figures: costs and policies",
        asked,
        draw,
    )


def policies(asked: Sequence[Asked], dataset: str) -> Drawing:
    """Test utility and DPU of FairAll with each of its policies on a data set."""
    own = [one for one in asked if one.dataset == dataset]

    def draw() -> Figure:
        runs = {one.planned.config["model"]["policy"]: one.run for one in own if one.run is not None}
        return plots.over_time(runs, plots.UTILITY_AND_DPU, labels={name: LABELS[name] for name in runs})

    return _drawing(
        f"policies_{dataset}",
        f"FairAll (I+II) with other policies, {labels.dataset(dataset)}, harsh initial policy",
        f"Utility by the proxy label and demographic-parity unfairness over time steps. "
        f"{EXPECTED} {BAND} {EVERYBODY}",
        "Figures: costs and policies",
        own,
        draw,
    )


# As matplotlib typesets them.
LABELS = {
    "z_dec": r"$\pi^Z_\mathrm{dec}$",
    "z_clf": r"$\pi^Z_\mathrm{clf}$",
    "z_label": r"$\pi^Z_\mathrm{label}$",
    "clf": r"$\pi_\mathrm{clf}$",
    "dec": r"$\pi_\mathrm{dec}$",
}


def plane(asked: Sequence[Asked], initial_policy: str) -> Drawing:
    """Every method's mean test utility and unfairness with intervals, a panel per data set."""
    return _drawing(
        f"plane_{initial_policy}",
        f"Utility against unfairness, {initial_policy} initial policy",
        "Means over the time steps of evaluation.window on test people, with 95 % intervals over "
        "seeds (Student's t). The dashed line joins the methods that no other beats in both (Pareto front).",
        "Figures: utility against unfairness",
        asked,
        lambda: plots.plane(_by_dataset(asked)),
    )


def acceptance(asked: Sequence[Asked], initial_policy: str) -> Drawing:
    """Acceptance of applicants by group over time; runs from before this was measured count as missing."""
    measured = [
        one
        if one.run is None or len(one.run.curve("acceptance_rate_advantaged"))
        else Asked(one.planned, None)
        for one in asked
    ]
    return _drawing(
        f"acceptance_{initial_policy}",
        f"Acceptance by group, {initial_policy} initial policy",
        "Share of each step's applicants of either group who were accepted, averaged over "
        f"{plots.SMOOTH} steps. {BAND}",
        "Figures: acceptance by group",
        measured,
        lambda: plots.acceptance(_by_dataset(measured)),
    )


def latents(asked: Sequence[Asked], dataset: str) -> Drawing:
    """Latent spaces of the methods that have one, on a data set."""
    own = [one for one in asked if one.dataset == dataset and "latent_size" in one.planned.config["model"]]
    spaces: dict[str, Space] = {}
    seen = []
    for one in own:
        space = None if one.run is None else latent_space(one.run)
        if space is not None:
            spaces[one.model] = space
        seen.append(one if space is not None else Asked(one.planned, None))
    return _drawing(
        f"latents_{dataset}",
        f"Latent spaces, {labels.dataset(dataset)}, harsh initial policy",
        "Latent means of test people by the first seed's policy at the end, on their two leading principal "
        "axes: left by the sensitive attribute, right by the proxy label. A fair latent mixes the groups on "
        "the left.",
        "Figures: latent spaces",
        seen,
        partial(plots.latents, spaces),
    )


def _drawing(
    key: str,
    title: str,
    text: str,
    section: str,
    asked: Sequence[Asked],
    draw: Callable[[], Figure],
    *,
    also_missing: Sequence[Asked] = (),
) -> Drawing:
    missing = [one.planned.command for one in (*asked, *also_missing) if one.run is None]
    there = any(one.run is not None for one in asked)
    return Drawing(key, title, text, section, draw if there else None, missing)


def _by_model(asked: Sequence[Asked]) -> dict[str, Run]:
    return {one.model: one.run for one in asked if one.run is not None}


def _by_dataset(asked: Sequence[Asked]) -> dict[str, dict[str, Run]]:
    found: dict[str, dict[str, Run]] = {}
    for one in asked:
        if one.run is not None:
            found.setdefault(one.dataset, {})[one.model] = one.run
    return found
