"""Model cards of learnt policies, as Markdown (Mitchell et al. 2019, Model Cards for Model Reporting)."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

import fairall
from fairall.config.choices import configuration_root, description, shown
from fairall.display.format import CAUTION, mean_interval
from fairall.display.table import Markdown, code, markdown_rows, without_empty
from fairall.metrics import LATENT
from fairall.results.result import Result, bound_of
from fairall.results.terminal import by_group, noise, shown_measures

OWN = [
    "Whether the label means what the decision is for, and who is missing from the table because of past "
    "decisions, was not checked by fairall.",
]
ESSENTIAL = """
    effective_utility effective_dpu mean_utility mean_dpu mean_acceptance mean_equal_opportunity
""".split()


def model_card(result: Result, identity: str) -> str:
    """The card of a finished run; the same text for the same arguments.

    Args:
        result: of the run.
        identity: the run's id.
    """
    from fairall.display.page import rendered  # imports matplotlib, which a finished run needs no more

    config, dataset, model = result.config, result.config.dataset, result.config.model
    known = texts().get(dataset["name"], {})
    data = described("dataset", dataset["name"]) or f"People read by {dataset['_target_']}."
    if len(result.named_groups) > 2:  # the description is of two
        data = data.partition("; S = +1")[0].rstrip(".") + "."
    groups = by_group(result)
    words = [f"{group}={config.name(group)}" for group in ("model", "dataset", "initial_policy", "protocol")]
    values = {key: getattr(config, key) for key in ("preset", "seed", "seeds", "splits")}
    words += [f"{key}={value}" for key, value in values.items() if value is not None]
    words += [f"cost.value={config.cost.value:g}"]
    facts = {
        "result": result,
        "identity": identity,
        "version": fairall.__version__,
        "caution": CAUTION,
        "method": described("model", model["name"]) or f"A method of the user's own, {model['_target_']}.",
        "page": page_of(model["name"]),
        "data": data,
        "file": Path(dataset["path"]).name if dataset.get("path") else None,
        "terms": known.get("terms"),
        "caveats": known.get("caveats", OWN),
        "measures": _measures(result),
        "bound": bound_of(config.fairness),
        "noise": noise(result),
        "groups": markdown_rows(["group", *groups], groups.itertuples()),
        "share": mean_interval(result.groups["all"].accepted) or "unknown",
        "words": Markdown(" ".join(" ".join(words).splitlines())),  # in a block of code
    }
    return rendered("card.md.jinja", facts, "fairall.results") + "\n"


def texts() -> dict[str, Any]:
    """`terms` and `caveats` of the data sets of this package, by name."""
    return yaml.safe_load(files("fairall.results").joinpath("card.yaml").read_text(encoding="utf-8"))


def _measures(result: Result) -> Markdown:
    """The measures, ×100, without those of a latent and columns that have no value."""
    rows = result.summary()
    rows = rows[~rows.index.isin(LATENT)]
    frame = without_empty(shown_measures(rows))
    cells = zip(rows["heading"], map(code, rows.index), *map(frame.get, frame), strict=True)
    return markdown_rows(["measure", "name", *frame], cells)


def described(group: str, name: str) -> str | None:
    """The description of a choice of this package; None for a file of the user's."""
    path = configuration_root() / "conf" / group / f"{name}.yaml"
    return description(path) if path.is_file() else None


def page_of(method: str) -> str | None:
    """The page of a method of this package in docs/; that of all methods where it has none of its own."""
    known = shown(method)
    page = f"docs/methods/{known['page']}.md" if "page" in known else "docs/methods.md"
    return page if known else None
