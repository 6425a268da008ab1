"""From the file of a log to page, files and terminal output: what `python -m fairall evaluate` does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fairall.display.format import interval
from fairall.display.progress import Display
from fairall.evaluate.evaluation import Comparison, judge
from fairall.evaluate.log import log_keywords
from fairall.evaluate.page import Page
from fairall.evaluate.policies import LOGGED
from fairall.storage.stored import why_no_file

MISSING = (
    "Warning: outcomes of those whom people rejected although policies accepted them are missing, and not at "
    "random; whatever they are, the 95 % interval of the utility per 100 people: {}"
)


def evaluate_log(
    path: str,
    words: Sequence[str],
    *,
    frame: pd.DataFrame | None,
    possible: Sequence[pd.DataFrame],
    policies: Sequence[str | None],
    proba: Sequence[str],
    outputs_dir: str,
    out: Path | None,
    typed: str,
    **options: Any,
) -> Page:
    """Read a log, judge one policy or compare two, write the page and its files, and print the result.

    Args:
        path: of the log, CSV or Parquet, or a ledger.
        words: KEY=VALUE, see `log_keywords`.
        frame: the log in a ledger; None to read the file.
        possible: the log where labels are missing, and not at random, with all of these bad and all good;
            empty for none.
        policies: one or two, as of `target_policy`; None for the one that took the logged decisions.
        proba: what the probabilities of policies are of, as of `judge`: one word, or one for each policy.
        outputs_dir: where runs are looked for by their ids.
        out: folder to write to; by default `evaluations/` in `outputs_dir`, which is beside the file of a
            `frame`, by the names of log and policies.
        typed: command line of the user, for the last line of the page.
        options: further ones of `judge`, which prevail over `words`.

    Returns:
        What was shown, with the content of evaluation.json, and `failure` where the exit code is to be 1.

    Raises:
        FairAllError: where the log or a policy cannot be used, or the folder cannot be written.
    """
    file = Path(path)
    with Display().phase("Evaluating", 1) as done:
        keywords: dict[str, Any] = log_keywords(words) | {"path": path, "outputs_dir": outputs_dir} | options
        keywords["proba"] = proba[0] if len(proba) == 1 else proba or None
        judged = judge(policies, file if frame is None else frame, **keywords)
        ends = [judge(policies, one, **keywords)[0].values["dr"] for one in possible if len(judged) == 1]
        page = judged[0].page if len(judged) == 1 else Comparison(*judged).page
        page.file = file.name
        if out is None:
            names = ("decisions" if one.policy == LOGGED else one.policy for one in judged)
            name = re.sub(r"[^\w.-]+", "-", "-".join([file.stem, *names]))
            beside = Path() if frame is None or why_no_file(file) else file.parent
            out = beside / outputs_dir / "evaluations" / name
        page.write(out, typed)
        done()
    page.print()
    if ends:
        print(MISSING.format(interval(ends[0].low, ends[1].high) or "not known"))
    print(f"Evaluation: {out / 'index.html'}")
    return page
