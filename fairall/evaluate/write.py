"""From the file of a log to page, files and terminal output: what the command line does."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from fairall.decide.load import HERE
from fairall.errors import FairAllError
from fairall.evaluate import figures, tables
from fairall.evaluate.comparison import Comparison
from fairall.evaluate.evaluation import judge
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.policies import target_policy
from fairall.evaluate.shown import Shown, doubts, told
from fairall.results.page import PageFigure, write_page
from fairall.results.page import write as write_text
from fairall.results.table import Item
from fairall.results.terminal import Display, print_table
from fairall.runtime.console import AnyConsole

JSON = "evaluation.json"
HIDDEN, CHOICES = "What the rejected may hide", "Thresholds and costs"  # sections


def evaluate_log(
    path: Path,
    words: Sequence[str] = (),
    *,
    policies: Sequence[str | None] = (None,),
    groups: Sequence[str] = (),
    decision_maker: str | None = None,
    score: str | None = None,
    propensity_model: str = "auto",
    outcome_model: str = "auto",
    smallest_cell: int = 10,
    trust: Collection[str] = (),
    config: dict[str, Any] = HERE,
    folder: Path | None = None,
    command: str = "",
) -> Shown:
    """Read a log, judge one policy or compare two, write the page and its files, and print the result.

    Args:
        path: of the log, CSV or Parquet.
        words: KEY=VALUE, see `DecisionLog.read`.
        policies: one or two, as of `target_policy`; None for the one that took the logged decisions.
        groups: columns whose combinations are the groups; by default `sensitive`.
        decision_maker: column of who decided, for contraction.
        score: column of the probability of a positive label by a model that is to be validated.
        propensity_model: `auto` or `logistic`.
        outcome_model: likewise.
        smallest_cell: people below which nothing is shown.
        trust: modules of methods that may be imported, see `fairall.load_policy`.
        config: with `outputs_dir` and `tracking.uri`, where runs and policies are looked for.
        folder: to write to; by default `evaluations/` in `outputs_dir`, by the names of log and policies.
        command: command line of the user, for the last line of the page.

    Returns:
        What was shown, with its `folder`, the content of evaluation.json, and `failure` where the exit code
        is to be 1.

    Raises:
        FairAllError: where the log or a policy cannot be used, or the folder cannot be written.
    """
    display = Display()
    with display.phase("Reading", 1) as done:
        not_features = [name for name in (*policies, score) if name is not None]
        log = DecisionLog.read(
            path, words, groups=groups, decision_maker=decision_maker, not_features=not_features
        )
        if score is not None and score not in log.raw:
            raise FairAllError(f"--score {score}: the log has no such column")
        done()
    with display.phase("Fitting", 1) as done:
        found = judge(
            policies,
            log,
            find=partial(target_policy, config=config, modules=trust),
            propensity_model=propensity_model,
            outcome_model=outcome_model,
            smallest_cell=smallest_cell,
            score=score,
        )
        done()
    with display.phase("Judging", 1) as done:
        shown = Shown.of(found[0] if len(found) == 1 else Comparison(*found), path)
        done()
    if folder is None:
        name = re.sub(r"[^\w.-]+", "-", "-".join([path.stem, *shown.names]))
        folder = Path(config["outputs_dir"]) / "evaluations" / name
    shown = replace(shown, folder=folder)
    write(shown, folder, command)
    show(shown)
    print(f"Evaluation: {folder / 'index.html'}")
    return shown


def write(shown: Shown, folder: Path, command: str) -> None:
    """Write evaluation.json, index.html, tables/ and figures/.

    Args:
        shown: what to write.
        folder: to write to.
        command: command line of the user.

    Raises:
        FairAllError: where the folder cannot be written.
    """
    of_sections = {
        "Value": [tables.value_table(shown)],
        "Fairness": [tables.fairness_table(shown), tables.groups_table(shown)],
        HIDDEN: [],
        CHOICES: [tables.thresholds_table(shown), tables.costs_table(shown)],
        "Checks": [tables.calibration_table(shown), tables.balance_table(shown)],
    }
    sections: dict[str, list[Item]] = {
        name: [*(one for one in some if one.records), *_pictures(shown, name)]
        for name, some in of_sections.items()
    }
    filled = {name: items for name, items in sections.items() if items}
    opening = [shown.title, *told(shown), *doubts(shown)]
    texts = {"opening": opening, "folded": {CHOICES: "Tables"}, "made": command}
    write_page(folder, "FairAll: evaluation from past decisions", filled, **texts)
    content = json.dumps(shown.content, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        write_text(folder / JSON, content + "\n")
    except OSError as error:
        reason = error.strerror or error
        raise FairAllError(
            f"cannot write to {folder}: {reason}; choose another place with --out FOLDER"
        ) from error


def show(shown: Shown) -> None:
    """Print the sentences and the tables of value, fairness and groups."""
    console = AnyConsole()
    console.print(shown.title, style="bold")
    for line in (*told(shown), *doubts(shown)):
        console.print(line)
    console.print()
    for table in (tables.value_table(shown), tables.fairness_table(shown), tables.groups_table(shown)):
        if table.shown:
            print_table(table)


def _pictures(shown: Shown, section: str) -> list[PageFigure]:
    """The figures of a section that there is something to show in."""
    plains = list(shown.plains.values())
    answered, groups = all(one["sensitivity"] for one in plains), len(plains[0]["groups"])
    # Section, key, title, how it is drawn, whether it is wide, and whether there is something to draw.
    known: list[tuple[str, str, str, Callable[[Any], Figure], bool, bool]] = [
        ("Value", "plane", "Value against unfairness", figures.draw_plane, True,
         shown.difference is not None and answered),
        ("Value", "estimators", "Utility by estimator", figures.draw_value, False, True),
        ("Value", "overlap", "Overlap", figures.draw_overlap, groups > 2, groups > 0),
        ("Fairness", "gaps", "What selection hides", figures.draw_fairness, len(plains) > 1, True),
        (HIDDEN, "sensitivity", "Sensitivity", figures.draw_sensitivity, True, answered),
        (HIDDEN, "contraction", "Contraction", figures.draw_contraction, False,
         all(one["contraction"] for one in plains)),
        (CHOICES, "curves", "Thresholds", figures.draw_thresholds, True,
         any(one["thresholds"] for one in plains)),
        ("Checks", "reliability", "Reliability by group", figures.draw_reliability, groups > 2,
         groups > 0 and shown.first("calibration") is not None),
    ]  # fmt: skip
    return [
        PageFigure(
            key=key, title=title, note=figures.NOTES[key], section=section, wide=wide,
            draw=partial(draw, shown.evaluations if key == "overlap" else shown.plains),
        )
        for of, key, title, draw, wide, there in known
        if of == section and there
    ]  # fmt: skip
