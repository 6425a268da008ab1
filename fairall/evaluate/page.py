"""What all analyses say of one policy or two: verdict, evaluation.json, page and terminal output."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from fairall.display.console import AnyConsole
from fairall.display.format import interval, number
from fairall.display.table import PageTable, print_table
from fairall.errors import FairAllError, count
from fairall.evaluate.analyses.choices import CHOICES as THRESHOLDS
from fairall.evaluate.analyses.fairness import GAPS
from fairall.evaluate.analyses.groups import GROUPS, RATES
from fairall.evaluate.analyses.impact import IMPACT
from fairall.evaluate.analyses.monitor import MONITOR
from fairall.evaluate.analyses.score import SCORE
from fairall.evaluate.analyses.sensitivity import SENSITIVITY, up_to
from fairall.evaluate.analyses.swaps import SWAPS
from fairall.evaluate.analyses.treatment import TREATMENT
from fairall.evaluate.analyses.value import VALUES
from fairall.evaluate.analysis import CHOICES, SECTIONS, Shown, chance
from fairall.evaluate.comparison import Difference
from fairall.evaluate.estimated.estimators import LABELS
from fairall.evaluate.estimated.fairness import MEASURES
from fairall.evaluate.judgement import Judgement
from fairall.evaluate.plain import plain

JSON = "evaluation.json"
TITLE = "FairAll: evaluation from past decisions"
MODELS = {
    "propensity": "Model of the decision",
    "labelled": "Model of which labels are known",
    "outcome": "Model of the label",
}
ANALYSES = {
    analysis.key: analysis
    for analysis in (
        *(VALUES, SWAPS, GAPS, TREATMENT, IMPACT, GROUPS),
        *(SCORE, THRESHOLDS, MONITOR, SENSITIVITY),
    )
}
PRINTED = ("value", "fairness", "groups", "treatment", "impact", "score")  # on the terminal


@dataclass
class Page(Shown):
    """All that the analyses say, and the verdict.

    Attributes:
        file: the log's; None in Python.
        folder: written to; None before.
    """

    file: Path | None = None
    folder: Path | None = None
    _made: dict[str, PageTable | None] = field(default_factory=dict, repr=False)

    @property
    def found(self) -> Judgement | Difference:
        """The policy, or the difference of two."""
        return self.difference or self.first

    @property
    def failure(self) -> str | None:
        """What is refused although the log has labels: one line, for exit code 1."""
        refused = self.found.refused
        return None if refused is None or not self.log.revealed.any() else f"refused: {refused}"

    @property
    def title(self) -> str:
        """One line."""
        policies = " and ".join(one.policy for one in self.evaluations.values())
        on = "" if self.file is None else f" on {self.file.name}"
        return f"{'Comparison' if self.difference else 'Evaluation'} of {policies}{on}"

    @property
    def tables(self) -> dict[str, PageTable]:
        """Those that have records, by key of the analysis."""
        made = {key: self.made(key) for key in ANALYSES}
        return {key: table for key, table in made.items() if table is not None}

    def made(self, key: str) -> PageTable | None:
        """The table of an analysis, computed once; None without records."""
        if key not in ANALYSES:
            raise FairAllError(f"table {key!r}: the tables are {', '.join(ANALYSES)}")
        if key not in self._made:
            self._made[key] = ANALYSES[key].table(self)
        return self._made[key]

    def records(self, key: str) -> pd.DataFrame:
        """The records of an analysis; see `Answered.table`."""
        table = self.made(key)
        return pd.DataFrame() if table is None else table.records.infer_objects()

    @cached_property
    def content(self) -> dict[str, Any]:
        """Content of evaluation.json."""
        log, evaluations = self.log, self.evaluations
        policies = [
            {"name": name, "rule": one.rule, "draw": one.draw, "acceptance": float(one.target.mean())}
            for name, one in evaluations.items()
        ]
        models = [
            {"model": name, "name": model.name, "log_loss": model.log_loss, "auc": model.auc}
            for name, model in self.first.models.fitted.items()
            if model is not None
        ]
        about_log = {
            "people": len(log),
            "accepted": int(log.accepted.sum()),
            "labelled": int(log.revealed.sum()),
            "persons": None if log.person is None else len(set(log.person.tolist())),
            "cost": log.cost,
            "propensities": "estimated" if log.propensity is None else "recorded",
        }
        return {
            "title": self.title,
            "verdict": self.verdict,
            "refused": self.found.refused,
            "in_doubt": [text for one in evaluations.values() for text in one.in_doubt],
            "warnings": self.warnings,
            "notes": self.notes,
            "policies": policies,
            "log": about_log,
            "models": plain(models),
            "tables": {key: _rows(table.records) for key, table in self.tables.items()},
        }

    @property
    def notes(self) -> list[str]:
        """On the log and the policies, each once."""
        evaluations = self.evaluations.values()
        return [*dict.fromkeys(text for one in evaluations for text in (*one.log.notes, *one.notes))]

    @property
    def warnings(self) -> list[str]:
        """Further ones than the signs of doubt, each once."""
        evaluations = self.evaluations.values()
        return [*dict.fromkeys(text for one in evaluations for text in one.warnings[len(one.in_doubt) :])]

    @cached_property
    def verdict(self) -> list[str]:
        """What the policy is worth, whether groups are treated alike, how far to trust it: a line each."""
        of_policies: dict[str, Judgement | Difference] = {**self.evaluations}
        if self.difference is not None:
            of_policies["B − A"] = self.difference
        lines = []
        for title, about in (("Utility", _worth), ("Groups", _alike), ("Trust", _trust)):
            texts = [
                f"{policy}: {text}" if self.difference else text
                for policy, found in of_policies.items()
                if (text := about(found))
            ]
            lines.append(f"{title}: {'; '.join(texts)}")
        return lines

    def basis(self) -> Iterator[str]:
        """What the verdict rests on: the policies, the log, its models, warnings; a sentence each."""
        for name, evaluation in self.evaluations.items():
            accepted = number(float(evaluation.target.mean()))
            yield f"{name}: accepts {accepted} % of the people. Rule: {evaluation.rule}"
        for analysis in ANALYSES.values():
            yield from analysis.told(self)
        about, log = self.content["log"], self.log
        people = "people" if log.person is None else f"rows of {about['persons']} people"
        cost = "gain and loss of each row" if log.cost is None else f"cost c = {log.cost:g}"
        groups = count(len(self.first.models.shown), "group")
        yield (
            f"Log: {len(log)} {people}, {about['accepted']} accepted, {about['labelled']} with a label; "
            f"{groups}; {cost}; propensities {about['propensities']}"
        )
        for model in self.content["models"]:
            scores = f"log loss {model['log_loss']:.3f}, AUC {model['auc']:.2f}"
            yield f"{MODELS[model['model']]}: {model['name']} (out of fold: {scores})"
        yield from (f"Warning: {text}" for text in self.warnings)
        yield from (f"Note: {text}" for text in self.notes)

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
        sections = {name: [item for item in items if item.section == name] for name in ("", *SECTIONS)}
        filled = {name: some for name, some in sections.items() if some}
        terms = yaml.safe_load(files(__package__).joinpath("terms.yaml").read_text(encoding="utf-8"))
        texts = {"folded": {CHOICES: "Tables"}, "defined": terms, "made": command}
        write_page(folder, TITLE, filled, opening=[self.title, *self.verdict], basis=[*self.basis()], **texts)
        content = json.dumps(self.content, indent=2, ensure_ascii=False, allow_nan=False)
        try:
            write(folder / JSON, content + "\n")
        except OSError as error:
            why = f"{error.strerror or error}; choose another place with -o FOLDER"
            raise FairAllError(f"cannot write to {folder}: {why}") from error

    def print(self) -> None:
        """Print the sentences, and the tables in `PRINTED`."""
        console = AnyConsole()
        console.print(self.title, style="bold")
        for line in (*self.verdict, "", *self.basis(), ""):
            console.print(line)
        for table in (self.tables[key] for key in PRINTED if key in self.tables):
            if table.shown:
                print_table(table)


def _rows(records: pd.DataFrame) -> list[dict[str, Any]]:
    """Records as evaluation.json holds them, without what is missing."""
    return [
        {key: value for key, value in row.items() if value is not None}
        for row in plain(records.to_dict("records"))
    ]


def _worth(found: Judgement | Difference) -> str:
    """The first estimate of the utility that there is."""
    for estimator, value in found.values.items():
        if not pd.isna(value.estimate):
            ends = interval(value.low, value.high) or "no interval"
            end = "".join(f", {text}" for text in [chance(value.probability)] if text)
            return f"{number(value.estimate)} {ends} per 100 people, {LABELS[estimator]}{end}"
    return "not known"


def _alike(found: Judgement | Difference) -> str:
    """The gap of each rate, and whether it is above 0 for certain."""
    refused = found.fairness["dpu"]["dr"]
    if pd.isna(refused.estimate):
        return f"not compared, {refused.why}"
    texts = []
    for measure in RATES:
        gap = found.fairness[measure]["dr"]
        if pd.isna(gap.low):
            state = "not known"
        else:
            differ = round(gap.low, 3) > 0 or round(gap.high, 3) < 0  # as shown
            state = f"{number(gap.estimate)} {interval(gap.low, gap.high)}{'' if differ else ', may be 0'}"
        texts.append(f"{MEASURES[measure].rate} {state}")
    return f"gaps in {'; '.join(texts)}"


def _trust(found: Judgement | Difference) -> str:
    """What is refused or in doubt, and what the estimates rest on."""
    if isinstance(found, Difference):
        one_refused = found.first.refused_value or found.second.refused_value
        if found.refused_value:
            return "" if one_refused else found.refused_value
        return f"which of the two earns more is certain {up_to(found.turning_point)}"
    texts = [f"refused, {found.refused}"] if found.refused else []
    texts += [*found.in_doubt, *([f"no interval of the utility, {found.few}"] if found.few else [])]
    if not found.refused_value:
        observed = found.logged and found.models.labelled is None
        texts.append(
            "utility observed, rates by label right if the log holds everything that decided"
            if observed
            else "right if the log holds everything that decided"
        )
    return "; ".join(texts)
