"""From the file of a log to page, files and terminal output: what `python -m fairall evaluate` does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from fairall.display.console import AnyConsole
from fairall.display.format import interval, number
from fairall.display.progress import Display
from fairall.display.table import PageTable, print_table
from fairall.errors import FairAllError, SeveralErrors, count
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
from fairall.evaluate.analysis import CHOICES, SECTIONS, chance
from fairall.evaluate.comparison import Comparison
from fairall.evaluate.estimated.estimators import LABELS
from fairall.evaluate.estimated.fairness import MEASURES
from fairall.evaluate.evaluation import Evaluation, judge
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.plain import plain
from fairall.evaluate.policies import LOGGED
from fairall.runtime.reading import why_no_file

JSON = "evaluation.json"
TITLE = "FairAll: evaluation from past decisions"
OPTIONS = {"groups": "--groups", "decision_maker": "--decision-maker", "time": "--monitor"}  # by key
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
class Shown:
    """An evaluation or a comparison as it is shown.

    Attributes:
        found: what is shown.
        file: the log's; None in Python.
        folder: written to; None before.
    """

    found: Evaluation | Comparison
    file: Path | None = None
    folder: Path | None = None
    _made: dict[str, PageTable | None] = field(default_factory=dict, repr=False)

    @property
    def difference(self) -> Comparison | None:
        """Of a comparison; None for one policy."""
        return self.found if isinstance(self.found, Comparison) else None

    @cached_property
    def evaluations(self) -> dict[str, Evaluation]:
        """One, or the two that are compared, by the name shown."""
        if isinstance(self.found, Evaluation):
            return {self.found.policy: self.found}
        first, second = self.found.first, self.found.second
        return {f"A: {first.policy}": first, f"B: {second.policy}": second}

    @property
    def first(self) -> Evaluation:
        """The first policy, for what all of them share."""
        return next(iter(self.evaluations.values()))

    @property
    def log(self) -> DecisionLog:
        """The log."""
        return self.first.log

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
        of_policies: dict[str, Evaluation | Comparison] = {**self.evaluations}
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


def _worth(found: Evaluation | Comparison) -> str:
    """The first estimate of the utility that there is."""
    for estimator, value in found.values.items():
        if not pd.isna(value.estimate):
            ends = interval(value.low, value.high) or "no interval"
            end = "".join(f", {text}" for text in [chance(value.probability)] if text)
            return f"{number(value.estimate)} {ends} per 100 people, {LABELS[estimator]}{end}"
    return "not known"


def _alike(found: Evaluation | Comparison) -> str:
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


def _trust(found: Evaluation | Comparison) -> str:
    """What is refused or in doubt, and what the estimates rest on."""
    if isinstance(found, Comparison):
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


def evaluate_log(
    path: str | Path,
    words: Sequence[str] = (),
    *,
    frame: pd.DataFrame | None = None,
    policies: Sequence[str | None] = (None,),
    groups: Sequence[str] = (),
    decision_maker: str | None = None,
    score: str | None = None,
    score_of: str = "positive",
    monitor: str | None = None,
    proba: Sequence[str] = (),
    outputs_dir: str | Path = "outputs",
    out: Path | None = None,
    typed: str = "",
    **options: Any,
) -> Shown:
    """Read a log, judge one policy or compare two, write the page and its files, and print the result.

    Args:
        path: of the log, CSV or Parquet, or a ledger.
        words: KEY=VALUE, see `DecisionLog.read`.
        frame: likewise.
        policies: one or two, as of `target_policy`; None for the one that took the logged decisions.
        groups: columns whose combinations are the groups; by default `sensitive`.
        decision_maker: column of who decided, for bounds.
        score: column of a probability by a model that is to be validated.
        score_of: label that it is the probability of, `positive` or `negative`.
        monitor: column of times, to watch the policy at all of them.
        proba: what the probabilities of policies are of, as of `judge`: one word, or one for each policy.
        outputs_dir: where runs are looked for by their ids.
        out: folder to write to; by default `evaluations/` in `outputs_dir`, which is beside the file of a
            `frame`, by the names of log and policies.
        typed: command line of the user, for the last line of the page.
        options: further ones of `judge`.

    Returns:
        What was shown, with its `folder`, the content of evaluation.json, and `failure` where the exit code
        is to be 1.

    Raises:
        FairAllError: where the log or a policy cannot be used, or the folder cannot be written.
    """
    display = Display()
    with display.phase("Reading", 1) as done:
        not_features = [name for name in policies if name is not None and name != score]
        further = {"decision_maker": decision_maker, "time": monitor, "score": score}
        try:
            log = DecisionLog.read(
                path, words, frame=frame, groups=groups, not_features=not_features, **further
            )
        except FairAllError as error:
            lines = [f"{key}= is {option}" for key, option in OPTIONS.items() if f"{key}=" in str(error)]
            raise SeveralErrors([*str(error).splitlines(), *lines]) from error
        if score is not None and score not in log.raw:
            raise FairAllError(f"--score {score}: the log has no such column")
        done()
    with display.phase("Fitting", 1) as done:
        found = judge(
            policies,
            log,
            outputs_dir=outputs_dir,
            score=score,
            score_of=score_of,
            proba=proba[0] if len(proba) == 1 else proba or None,
            **options,
        )
        done()
    with display.phase("Judging", 1) as done:
        shown = Shown(found[0] if len(found) == 1 else Comparison(*found), Path(path))
        shown.content  # noqa: B018  computes everything
        done()
    if out is None:
        names = ("decisions" if one.policy == LOGGED else one.policy for one in found)
        name = re.sub(r"[^\w.-]+", "-", "-".join([Path(path).stem, *names]))
        beside = Path() if frame is None or why_no_file(Path(path)) else Path(path).parent
        out = beside / outputs_dir / "evaluations" / name
    shown.folder = out
    with display.phase("Writing", 1) as done:
        shown.write(out, typed)
        done()
    shown.print()
    print(f"Evaluation: {out / 'index.html'}")
    return shown
