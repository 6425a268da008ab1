"""What all analyses say of one policy or two: verdict, evaluation.json, page and terminal output."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from fairall.display.format import number
from fairall.display.progress import AnyConsole
from fairall.display.table import PageTable, print_table
from fairall.errors import FairAllError
from fairall.evaluate.analyses.choices import CHOICES as THRESHOLDS
from fairall.evaluate.analyses.fairness import GAPS
from fairall.evaluate.analyses.groups import GROUPS
from fairall.evaluate.analyses.impact import IMPACT
from fairall.evaluate.analyses.monitor import MONITOR
from fairall.evaluate.analyses.score import SCORE
from fairall.evaluate.analyses.sensitivity import SENSITIVITY, up_to
from fairall.evaluate.analyses.swaps import SWAPS
from fairall.evaluate.analyses.treatment import TREATMENT
from fairall.evaluate.analyses.value import VALUES
from fairall.evaluate.analysis import CHOICES, SECTIONS, Judged, Shown, text
from fairall.evaluate.comparison import Difference
from fairall.evaluate.estimated.estimators import LABELS
from fairall.evaluate.estimated.fairness import MEASURES
from fairall.evaluate.judgement import Judgement
from fairall.evaluate.plain import plain

MODELS = {
    "propensity": "Model of the decision",
    "labelled": "Model of which labels are known",
    "outcome": "Model of the label",
}
ANALYSES = {
    analysis.key: analysis
    for analysis in (VALUES, SWAPS, GAPS, TREATMENT, IMPACT, GROUPS, SCORE, THRESHOLDS, MONITOR, SENSITIVITY)
}
PRINTED = ("value", "fairness", "groups", "treatment", "impact", "score", "monitor")  # on the terminal


@dataclass
class Page(Shown):
    """All that the analyses say, and the verdict.

    Attributes:
        file: name of the log's; empty in Python.
    """

    file: str = ""

    @property
    def refused(self) -> str | None:
        """What cannot be estimated of the policy, or of the difference of two."""
        return (self.difference or self.first).refused

    @property
    def failure(self) -> str | None:
        """What is refused although the log has labels: one line, for exit code 1."""
        return f"refused: {self.refused}" if self.refused and self.log.revealed.any() else None

    @property
    def title(self) -> str:
        """One line."""
        policies = " and ".join(one.policy for one in self.evaluations.values())
        return f"Evaluation of {policies}" + (self.file and f" on {self.file}")

    @cached_property
    def tables(self) -> dict[str, PageTable]:
        """Those that have records, by key of the analysis."""
        return {key: table for key, analysis in ANALYSES.items() if (table := analysis.table(self))}

    @cached_property
    def content(self) -> dict[str, Any]:
        """Content of evaluation.json."""
        log = self.log
        return dict(
            plain(
                {
                    "title": self.title,
                    "verdict": self.verdict,
                    "refused": self.refused,
                    "in_doubt": self._each(lambda one: one.in_doubt),
                    "warnings": self._each(lambda one: one.warnings[len(one.in_doubt) :]),
                    "notes": self._each(lambda one: (*one.log.notes, *one.notes)),
                    "policies": [
                        {"name": name, "rule": one.rule, "acceptance": one.target.mean()}
                        for name, one in self.evaluations.items()
                    ],
                    "log": {
                        "people": len(log),
                        "accepted": log.accepted.sum(),
                        "labelled": log.revealed.sum(),
                        "persons": None if log.person is None else len(set(log.person)),
                        "cost": log.cost,
                        "propensities": "estimated" if log.propensity is None else "recorded",
                    },
                    "models": [
                        {"model": name, "name": model.name, "log_loss": model.log_loss, "auc": model.auc}
                        for name, model in self.first.models.fitted.items()
                        if model
                    ],
                    "tables": {
                        key: [row.dropna().to_dict() for _, row in table.records.iterrows()]
                        for key, table in self.tables.items()
                    },
                }
            )
        )

    def _each(self, texts: Callable[[Judgement], Iterable[str]]) -> list[str]:
        return [*dict.fromkeys(text for one in self.evaluations.values() for text in texts(one))]

    @cached_property
    def verdict(self) -> list[str]:
        """What the policy is worth, whether groups are treated alike, how far to trust it: a line each."""
        begin = "{}: " if self.difference else ""
        return [
            f"{title}: {'; '.join(begin.format(name) + about(one) for name, one in self.judged.items())}"
            for title, about in ABOUT.items()
        ]

    def basis(self) -> Iterator[str]:
        """What the verdict rests on: the policies, the log, its models, warnings; a sentence each."""
        content = self.content
        for policy in content["policies"]:
            yield (
                f"{policy['name']}: accepts {number(policy['acceptance'])} % of the people. "
                f"Rule: {policy['rule']}"
            )
        for analysis in ANALYSES.values():
            yield from analysis.told(self)
        about_log = [f"{name} {value}" for name, value in content["log"].items() if value is not None]
        yield f"Log: {', '.join(about_log)}"
        for model in content["models"]:
            yield (
                f"{MODELS[model['model']]}: {model['name']} (out of fold: log loss {model['log_loss']:.3f}, "
                f"AUC {model['auc']:.2f})"
            )
        yield from (f"Warning: {text}" for text in content["warnings"])
        yield from (f"Note: {text}" for text in content["notes"])

    def write(self, folder: Path, command: str) -> None:
        """Write evaluation.json, index.html, tables/ and figures/.

        Args:
            folder: to write to.
            command: command line of the user.

        Raises:
            FairAllError: where the folder cannot be written.
        """
        from fairall.display.page import write, write_page  # imports matplotlib

        figures = (analysis.figure(self) for analysis in ANALYSES.values())
        items = [*self.tables.values(), *filter(None, figures)]
        sections = {
            name: some
            for name in ("", *SECTIONS)
            if (some := [item for item in items if item.section == name])
        }
        terms = files(__package__).joinpath("terms.yaml").read_text("utf-8")
        content = json.dumps(self.content, indent=2, ensure_ascii=False, allow_nan=False)
        try:
            write_page(
                folder,
                "FairAll: evaluation from past decisions",
                sections,
                opening=[self.title, *self.verdict],
                basis=[*self.basis()],
                folded={CHOICES: "Tables"},
                defined=yaml.safe_load(terms),
                made=command,
            )
            write(folder / "evaluation.json", content + "\n")
        except OSError as error:
            raise FairAllError(
                f"cannot write to {folder}: {error.strerror}; choose another place with -o FOLDER"
            ) from error

    def print(self) -> None:
        """Print the sentences, and the tables in `PRINTED`."""
        console = AnyConsole()
        console.print(self.title, style="bold")
        for line in (*self.verdict, "", *self.basis(), ""):
            console.print(line)
        for key, table in self.tables.items():
            if key in PRINTED:
                print_table(table)


def _worth(judged: Judged) -> str:
    """The first estimate of the utility that there is."""
    known = (name for name, value in judged.values.items() if number(value.estimate))
    return next((f"{text(judged.values[name])}, {LABELS[name]}" for name in known), "not known")


def _alike(judged: Judged) -> str:
    """The gap of each rate."""
    acceptance = judged.fairness["dpu"]["dr"]
    if not number(acceptance.estimate):
        return f"not compared, {acceptance.why}"
    gaps = (f"{MEASURES[name].rate} {text(views['dr'])}" for name, views in judged.fairness.items())
    return f"gaps in {'; '.join(gaps)}"


def _trust(judged: Judged) -> str:
    """What is refused or in doubt, and what the estimates rest on."""
    refused = judged.refused_value
    if isinstance(judged, Difference):
        return refused or f"which of the two earns more is certain {up_to(judged.turning_point)}"
    texts = [f"refused, {judged.refused}"] if judged.refused else []
    if not refused:
        observed = judged.logged and judged.models.labelled is None
        what = "utility observed, rates by label " * observed
        texts += [*judged.in_doubt, f"{what}right if the log holds everything that decided"]
    return "; ".join(texts)


ABOUT = {"Utility per 100 people": _worth, "Groups": _alike, "Trust": _trust}  # lines of the verdict
