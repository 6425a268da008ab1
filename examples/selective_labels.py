"""Compute the numbers of docs/concepts.md, and draw its figures, from credit scores of a known population.

    python examples/selective_labels.py docs/figures

Prints the three tables of the page. 20,000 applicants, half of them white and half black, are drawn from the
data set `fico`, and an initial policy gives loans to some of them. Only these have a label: whether they
repay. The data set has everybody's probability of repaying, with which estimates are compared.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression

from fairall import load_dataset
from fairall.config.compose import typed_config
from fairall.data.fico import CreditScores, Fico
from fairall.data.table import Table
from fairall.display.style import BLUE, GREEN, GREY, ORANGE, STYLE, save_figure
from fairall.tables.overlap import effective_sample_size

WORDS = ["dataset.advantaged_share=0.5", "dataset.rows.pool=20000"]
COST = 0.5
PLACES = 0.4  # share of each group to be accepted, in the third table
GROUPS = {1: "white", -1: "black"}


@dataclass(frozen=True)
class Labels:
    """Decisions of an initial policy on N applicants.

    Attributes:
        accepted: whose label is revealed, shape (N,), bool.
        propensity: probability of that, shape (N,).
    """

    accepted: np.ndarray
    propensity: np.ndarray

    @classmethod
    def of(cls, name: str, table: Table) -> Labels:
        """Decisions of `initial_policy=NAME`."""
        config = typed_config("dataset=fico", f"initial_policy={name}", *WORDS).initial_policy
        policy = config.build()
        return cls(policy.decide(table), policy.propensity(table))


def fitted(table: Table, people: np.ndarray, weight: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """P(repays | score, s) by logistic regression on some people, at R scores; shape (2, R), S = −1 first."""
    x = np.column_stack([table.x["score"] / 100, table.s])
    model = LogisticRegression(C=np.inf).fit(x[people], table.label[people], weight[people])
    return np.stack(
        [model.predict_proba(np.column_stack([scores / 100, np.full(len(scores), s)]))[:, 1] for s in (-1, 1)]
    )


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """A table; its columns but the first are numbers."""
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, ["---"] + ["---:"] * (len(head) - 1), *rows])


def per_cent(values: np.ndarray | list[float]) -> list[str]:
    """Percentages with one decimal."""
    return [f"{100 * value:.1f}".replace("-", "−") for value in values]


def label_table(table: Table, policies: dict[str, Labels]) -> str:
    """Shares of applicants with a label and of loans that are repaid, and numbers of labels."""
    rows = []
    for policy, labels in policies.items():
        for s, name in GROUPS.items():
            group = table.s == s
            seen = group & labels.accepted
            label, weight = table.label[seen], 1 / labels.propensity[seen]
            repay = [label.mean(), np.average(label, weights=weight), table.label[group].mean()]
            numbers = [str(seen.sum()), f"{effective_sample_size(weight):.0f}"]
            rows.append([f"{policy}, {name}", *per_cent([labels.accepted[group].mean(), *repay]), *numbers])
    head = [
        "get a loan",
        "repay, of those",
        "weighted by 1/π",
        "would repay, of all",
        "labels",
        "effective labels",
    ]
    return markdown(["initial policy", *head], rows)


def estimate_table(table: Table, estimates: dict[str, np.ndarray], truth: CreditScores) -> str:
    """Expected repayment by group, and utility of accepting where it exceeds the cost, for each estimate."""
    rows = []
    for name, estimate in (estimates | {"the truth": truth.repays}).items():
        black, white = (truth.share * estimate).sum(1)
        utility = truth.value((estimate > COST).astype(float), COST)
        rows.append([name, *per_cent([white, black, utility])])
    return markdown(["estimate from", "white would repay", "black would repay", "utility"], rows)


def rank_table(table: Table, known: dict[str, np.ndarray], truth: CreditScores) -> str:
    """True acceptance rates of the score that the best `PLACES` of a group's known people have."""
    rows = []
    for name, people in known.items():
        rates = {}
        for row, s in enumerate((-1, 1)):
            threshold = np.quantile(table.x["score"][people & (table.s == s)], 1 - PLACES)
            rates[s] = truth.share[row, truth.score >= threshold].sum()
        rows.append([name, *per_cent([rates[1], rates[-1], rates[1] - rates[-1]])])
    return markdown(["rank among", "white accepted", "black accepted", "difference"], rows)


def panels(title: str) -> tuple[Figure, list[Axes]]:
    """A figure with a panel for each group, white first."""
    figure = Figure(figsize=(7, 2.9), layout="constrained")
    figure.suptitle(title)
    row = cast(list[Axes], list(figure.subplots(1, 2, sharey=True)))
    for axes, name in zip(row, GROUPS.values(), strict=True):
        axes.set(title=name, xlabel="credit score (percentile)", xlim=(0, 100))
    return figure, row


def draw_labels(table: Table, harsh: Labels, path: Path) -> None:
    """Histograms of scores: everybody, and those with a label."""
    figure, row = panels("Applicants, and those with a label under the harsh policy")
    for axes, s in zip(row, GROUPS, strict=True):
        score = table.x["score"][table.s == s]
        for people, colour, label in (
            (score, GREY, "all applicants"),
            (score[harsh.accepted[table.s == s]], BLUE, "with a label"),
        ):
            axes.hist(people, list(range(0, 101, 5)), color=colour, alpha=0.6, label=label)
    row[0].set(ylabel="people")
    row[1].legend()
    save_figure(figure, path)


def draw_estimates(estimates: dict[str, np.ndarray], truth: CreditScores, path: Path) -> None:
    """P(repays | score, group): the truth, and each estimate."""
    figure, row = panels("Probability of repaying, estimated and true")
    for axes, group in zip(row, (1, 0), strict=True):
        axes.plot(truth.score, truth.repays[group], color="black", linewidth=2.5, label="the truth")
        for (name, estimate), colour, line in zip(
            estimates.items(), (BLUE, ORANGE, GREEN), ("-", "--", "-."), strict=True
        ):
            axes.plot(truth.score, estimate[group], color=colour, linestyle=line, label=name)
        axes.axhline(COST, color=GREY, linewidth=0.8, linestyle=":")
    row[0].set(ylabel="P(repays)", ylim=(0, 1.02))
    figure.legend(*row[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    save_figure(figure, path)


def main() -> None:
    """Print the tables and write the figures to the folder named on the command line."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    dataset = cast(Fico, load_dataset("fico", *WORDS))
    table, truth = dataset.table(), dataset.scores
    harsh, lenient = (Labels.of(name, table) for name in ("harsh", "lenient"))
    one, everybody = np.ones(len(table.s)), np.full(len(table.s), True)
    estimates = {
        "labels of the harsh policy": fitted(table, harsh.accepted, one, truth.score),
        "the same, weighted by 1/π": fitted(table, harsh.accepted, 1 / harsh.propensity, truth.score),
        "labels of the lenient policy, weighted": fitted(
            table, lenient.accepted, 1 / lenient.propensity, truth.score
        ),
    }
    known = {
        "people with a loan, harsh policy": harsh.accepted,
        "people with a loan, lenient policy": lenient.accepted,
        "everybody": everybody,
    }
    print(label_table(table, {"harsh": harsh, "lenient": lenient}))
    print(estimate_table(table, estimates, truth))
    print(rank_table(table, known, truth))
    with mpl.rc_context(STYLE):
        draw_labels(table, harsh, folder / "concepts_labels.png")
        draw_estimates(estimates, truth, folder / "concepts_estimates.png")


if __name__ == "__main__":
    main()
