"""Model cards of learnt policies, as Markdown (Mitchell et al. 2019, Model Cards for Model Reporting)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import fairall
from fairall.config.choices import description, shown
from fairall.config.paths import configuration_root
from fairall.data.table import group_name
from fairall.metrics import Quantity
from fairall.results.groups import SPLITS
from fairall.results.interpretable import CAUTION, interpretable
from fairall.results.numbers import interval_text, mean_and_std
from fairall.results.paper import paper_metrics
from fairall.results.table import Markdown, code, markdown_rows, without_empty
from fairall.results.terminal import noise, shown_measures
from fairall.results.title import run_title

# Source and terms of a data set, and what its users have to know.
TERMS = {
    "credit": "H. Hofmann, Statlog (German Credit Data), UCI Machine Learning Repository, "
    "doi:10.24432/C5NC77, CC BY 4.0.",
    "compas": "ProPublica's file of Broward County, Florida, 2013 and 2014; it has no licence and names "
    "people.",
    "meps": "Medical Expenditure Panel Survey, HC-181, under the data-use agreement of the Agency for "
    "Healthcare Research and Quality: statistical use only, no identification, no linking.",
    "adult": "B. Becker and R. Kohavi, Adult, UCI Machine Learning Repository, doi:10.24432/C5XW20, "
    "CC BY 4.0.",
    "law": "LSAC's bar passage study (Wightman 1998), a file of the user's own that may not be passed on.",
    "fico": "Tables of the Federal Reserve's report to Congress of 2007 on credit scores.",
    "synthetic": "Drawn from the structural causal model of the paper's appendix B.1; it describes nobody.",
}
CAVEATS = {
    "credit": [
        "The table has granted loans of one German bank from the 1970s: people whom the bank rejected are "
        "missing, and banking and law have changed.",
        "Sex is read from a column of sex and marital status together, whose published code table is wrong "
        "(Grömping 2019): some of the group called female are single men.",
    ],
    "compas": [
        "The label is a new arrest, not a new offence. Who is arrested depends on policing, so the label may "
        "itself be biased by race. No decision on bail, sentence or parole may rest on this policy.",
        "Of other groups than African-American and Caucasian defendants it says nothing.",
    ],
    "meps": [
        "The label, ten or more medical visits, measures the use of health care, not the need for it: people "
        "with worse access have fewer visits at the same need.",
        "The data-use agreement covers what is derived from the people: nobody may try to identify or link "
        "them, with the saved policy either.",
    ],
    "adult": [
        "Income above $50,000 in the census of 1994 is nobody's creditworthiness; the threshold is arbitrary "
        "(Ding et al. 2021), and nobody decides on such a question.",
    ],
    "law": [
        "The table has people who were admitted and took the bar examination: rejected applicants are "
        "missing. Passing the bar is not what a law school selects for.",
    ],
    "fico": [
        "People are drawn from published distributions of two groups' scores of 2003; one feature, the "
        "score, cannot stand for a credit application.",
    ],
    "synthetic": ["Its people are made up: measures say nothing about any population."],
}  # fmt: skip
OWN = [
    "Whether the label means what the decision is for, and who is missing from the table because of past "
    "decisions, was not checked by fairall.",
]
REFERENCES = ("accept_all", "oracle", "oracle_fair")
MEASURE_COLUMNS = (
    "measure", "name", "mean ± std", "95 % interval", "accept all", "knows every label", "with parity",
    "paper",
)  # fmt: skip
ESSENTIAL = (
    "effective_utility", "effective_dpu", "mean_utility", "mean_dpu", "mean_acceptance",
    "mean_equal_opportunity",
)  # fmt: skip


def model_card(config: dict[str, Any], summary: dict[str, Any], identity: str) -> str:
    """The card of a finished run; the same text for the same arguments.

    Args:
        config: of the run, as plain containers.
        summary: summary.json of the run.
        identity: the run's id.
    """
    from fairall.results.page import rendered  # imports matplotlib, which a finished run needs no more

    dataset, model = config["dataset"], config["model"]
    own = dataset["name"] not in TERMS
    return (
        rendered(
            "model_card.md.jinja",
            {
                "config": config,
                "summary": summary,
                "identity": identity,
                "version": fairall.__version__,
                "title": run_title(config),
                "caution": None if interpretable(config) else CAUTION,
                "method": described("model", model["name"])
                or f"A method of the user's own, {model['_target_']}.",
                "page": page_of(model["name"]),
                "data": described("dataset", dataset["name"]) or f"People read by {dataset['_target_']}.",
                "file": Path(dataset["path"]).name if dataset.get("path") else None,
                "terms": TERMS.get(dataset["name"]),
                "caveats": OWN if own else CAVEATS[dataset["name"]],
                "world": [*config["world"]],
                "measures": measure_table(config, summary),
                "oracle": "oracle" in summary["references"],
                "paper": bool(paper_metrics(config)),
                "noise": noise(summary),
                "groups": _sizes_of_groups(summary["groups"]),
                "accepted": _accepted_of_groups(summary["groups"], config["evaluation"]["window"]),
                "column": summary["groups"]["column"],
                "share": share,
                "words": Markdown(" ".join(_words(config).splitlines())),  # in a block of code
            },
        )
        + "\n"
    )


def measure_table(
    config: dict[str, Any], summary: dict[str, Any], names: Sequence[str] | None = None
) -> Markdown:
    """A table of measures, ×100, with the columns of `MEASURE_COLUMNS` that have a value.

    Args:
        config: of the run, as plain containers.
        summary: of the run.
        names: of the measures; those of the run's table by default.
    """
    paper = paper_metrics(config)
    quantities = _quantities(summary["measures"])
    rows = []
    for name in shown_measures(summary["measures"], paper) if names is None else names:
        measured, printed = summary["aggregate"].get(name), paper.get(name.removesuffix("_sampled"))
        if measured is None:
            continue
        references = [summary["references"].get(policy, {}).get(name) for policy in REFERENCES]
        rows.append(
            [
                quantities[name].heading,
                code(name),
                mean_and_std(measured["mean"], measured["std"]),
                interval_text(measured["interval"]),
                *("" if one is None else f"{100 * one['mean']:.2f}" for one in references),
                "" if printed is None else mean_and_std(*printed, digits=1),
            ]
        )
    return markdown_rows(*without_empty(MEASURE_COLUMNS, rows))


def share(spread: Mapping[str, Any] | None) -> str:
    """An acceptance rate and its 95 % interval over seeds as text, in percent."""
    if spread is None:
        return "unknown"
    mean = f"{100 * spread['mean']:.1f} %"
    return mean if spread["interval"] is None else f"{mean} {interval_text(spread['interval'], digits=1)}"


def _quantities(measures: Mapping[str, Any]) -> dict[str, Quantity]:
    """The quantities that a run's table may show, by name."""
    quantities: dict[str, Quantity] = {}
    for name, plain in measures.items():
        quantity = Quantity.from_plain(name, plain)
        sampled = replace(quantity.sampled(), label=f"{quantity.label}, decisions drawn")
        for one in (quantity, sampled):
            quantities |= {part.name: part for part in (one, one.mean(), one.variation())}
    return quantities


def _sizes_of_groups(groups: Mapping[str, Any]) -> Markdown:
    """A table of the groups: people by split, labels and base rate."""
    everybody = groups["all"]
    some_unknown = everybody["labelled"] < sum(everybody["people"].values())
    weights = ", labels weighted by 1/π" if some_unknown else ""
    head = ["group", *SPLITS, "labels in the data", f"base rate of ỹ = 1{weights}"]
    rows = []
    for name, group in _named(groups).items():
        rate = "" if group["base_rate"] is None else f"{100 * group['base_rate']:.1f} %"
        rows.append([name, *(group["people"][split] for split in SPLITS), group["labelled"], rate])
    return markdown_rows(head, rows)


def _accepted_of_groups(groups: Mapping[str, Any], window: Sequence[int]) -> Markdown:
    """A table of the groups: shares of applicants accepted."""
    head = ["group", "over all time steps", f"over time steps {window[0]} to {window[1]}"]
    rows = [
        [name, share(group["accepted"]), share(group["accepted_in_window"])]
        for name, group in _named(groups).items()
    ]
    return markdown_rows(head, rows)


def _named(groups: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """What `groups.groups` has of each group, by name with the raw values."""
    return {
        group_name(sign, groups[group]["values"]) if sign else "all": groups[group]
        for group, sign in (("advantaged", 1), ("disadvantaged", -1), ("all", 0))
    }


def described(group: str, name: str) -> str | None:
    """The description of a choice of this package; None for a file of the user's."""
    path = configuration_root() / "conf" / group / f"{name}.yaml"
    return description(path) if path.is_file() else None


def page_of(method: str) -> str | None:
    """The page of a method of this package in docs/; that of all methods where it has none of its own."""
    known = shown(method)
    if not known:
        return None
    return f"docs/methods/{known['page']}.md" if "page" in known else "docs/methods.md"


def _words(config: dict[str, Any]) -> str:
    """The choices of a run as words of a command line."""
    words = [f"{group}={config[group]['name']}" for group in ("model", "dataset")]
    words += [f"preset={config['preset']}"] if config["preset"] else []
    words += [f"{group}={config[group]['name']}" for group in ("initial_policy", "protocol")]
    words += [f"cost.value={config['cost']['value']:g}", f"seed={config['seed']}", f"seeds={config['seeds']}"]
    return " ".join(words)
