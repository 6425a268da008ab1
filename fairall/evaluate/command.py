"""From the file of a log to page, files and terminal output: what `python -m fairall evaluate` does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fairall.display.progress import Display
from fairall.errors import FairAllError, SeveralErrors
from fairall.evaluate.evaluation import Comparison, judge
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.page import Page
from fairall.evaluate.policies import LOGGED
from fairall.runtime.reading import why_no_file

OPTIONS = {"groups": "--groups", "decision_maker": "--decision-maker", "time": "--monitor"}  # by key


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
) -> Page:
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
        What was shown, with the content of evaluation.json, and `failure` where the exit code is to be 1.

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
        shown = found[0].page if len(found) == 1 else Comparison(*found).page
        shown.file = Path(path)
        shown.content  # noqa: B018  computes everything
        done()
    if out is None:
        names = ("decisions" if one.policy == LOGGED else one.policy for one in found)
        name = re.sub(r"[^\w.-]+", "-", "-".join([Path(path).stem, *names]))
        beside = Path() if frame is None or why_no_file(Path(path)) else Path(path).parent
        out = beside / outputs_dir / "evaluations" / name
    with display.phase("Writing", 1) as done:
        shown.write(out, typed)
        done()
    shown.print()
    print(f"Evaluation: {out / 'index.html'}")
    return shown
