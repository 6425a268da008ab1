"""From the file of a log to page, files and terminal output: what the command line does."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from fairall.display.console import AnyConsole
from fairall.display.page import write as write_text
from fairall.display.page import write_page
from fairall.display.progress import Display
from fairall.display.table import print_table
from fairall.errors import FairAllError, SeveralErrors
from fairall.evaluate.comparison import Comparison
from fairall.evaluate.evaluation import judge
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.shown.figures import pictures
from fairall.evaluate.shown.sentences import CHOICES, SECTIONS, Shown, doubts, told, verdict
from fairall.evaluate.shown.tables import tables
from fairall.runtime.reading import why_no_file

JSON = "evaluation.json"
TITLE = "FairAll: evaluation from past decisions"
OPTIONS = {"groups": "--groups", "decision_maker": "--decision-maker", "time": "--monitor"}  # by key
# Tables of the terminal, in this order.
PRINTED = (
    *("value", "fairness", "groups", "adverse_impact", "impact_by_score", "impact_bounds"),
    *("discrimination", "calibration", "score_periods"),
)


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
        try:
            log = DecisionLog.read(
                path,
                words,
                frame=frame,
                groups=groups,
                decision_maker=decision_maker,
                time=monitor,
                not_features=not_features,
                score=score,
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
        name = re.sub(r"[^\w.-]+", "-", "-".join([Path(path).stem, *shown.names]))
        beside = Path() if frame is None or why_no_file(Path(path)) else Path(path).parent
        out = beside / outputs_dir / "evaluations" / name
    shown.folder = out
    with display.phase("Writing", 1) as done:
        write(shown, out, typed)
        done()
    show(shown)
    print(f"Evaluation: {out / 'index.html'}")
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
    items = [*tables(shown), *pictures(shown)]
    sections = {name: [item for item in items if item.section == name] for name in ("", *SECTIONS)}
    filled = {name: some for name, some in sections.items() if some}
    terms = yaml.safe_load(files(__package__).joinpath("terms.yaml").read_text(encoding="utf-8"))
    texts = {"folded": {CHOICES: "Tables"}, "defined": terms, "made": command}
    opening, basis = [shown.title, *verdict(shown)], [*told(shown), *doubts(shown)]
    write_page(folder, TITLE, filled, opening=opening, basis=basis, **texts)
    content = json.dumps(shown.content, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        write_text(folder / JSON, content + "\n")
    except OSError as error:
        why = error.strerror or error
        raise FairAllError(f"cannot write to {folder}: {why}; choose another place with -o FOLDER") from error


def show(shown: Shown) -> None:
    """Print the sentences, and the tables in `PRINTED`."""
    console = AnyConsole()
    console.print(shown.title, style="bold")
    for line in (*verdict(shown), "", *told(shown), *doubts(shown)):
        console.print(line)
    console.print()
    made = {table.key: table for table in tables(shown)}
    for table in (made[key] for key in PRINTED if key in made):
        if table.shown:
            print_table(table)
