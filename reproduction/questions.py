"""What the paper leaves open: each question is a study of runs, and a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from fairall import Config, FairAllError, load_results, places
from fairall.display import Item
from reproduction.pages import publish, refuse
from reproduction.plan import QUESTIONS, Planned, distinct, nearest, plan, with_runs
from reproduction.questions_amounts import amounts_items
from reproduction.questions_groups import groups_items
from reproduction.questions_hidden import hidden_items
from reproduction.questions_truth import truth_items
from reproduction.runs import make


class Question(NamedTuple):
    """A question, by the word that asks it; its sweeps are in `plan.QUESTIONS`."""

    title: str
    items: Callable[[Sequence[Planned], Config], list[Item]]  # of its runs, finished or not


ASKED = {
    "truth": Question("labels that depend on the group", truth_items),
    "hidden": Question("hidden reasons", hidden_items),
    "groups": Question("more than two groups", groups_items),
    "amounts": Question("amounts by person", amounts_items),
}


def questions(
    overrides: Sequence[str],
    folder: Path | None = None,
    into: Sequence[Path] = (),
    jobs: int | None = None,
    *,
    asked: Sequence[str],
) -> bool:
    """Make the runs that questions lack, and write a page of each; return whether all runs are there.

    Args:
        overrides: words that pick from the axes of the sweeps, or are added to every command.
        folder: of the page, for one question; None: `questions_WORD` in outputs_dir.
        into: pages of the documentation with blocks to fill, for one question.
        jobs: number of runs at once; None: one per core.
        asked: words of `ASKED`.

    Raises:
        FairAllError: where a word asks nothing, none or several are asked and a place for one is given, or a
            page cannot be filled.
    """
    unknown = [word for word in asked if word not in ASKED]
    if unknown or not asked:
        what = f"{unknown[0]}: no such question{nearest(unknown[0], [*ASKED])}" if unknown else "say which"
        raise FairAllError(f"questions: {what}; there are {', '.join(ASKED)}")
    if len(asked) > 1 and (folder or into):
        raise FairAllError("questions: --output and --into are for one question; ask one at a time")
    config = places(overrides)
    refuse(into, config)
    complete = True
    for word in dict.fromkeys(asked):
        planned = plan(QUESTIONS[word], overrides, once=False)
        complete = not make(distinct(planned), overrides, jobs=jobs) and complete
        found = with_runs(planned, load_results(Path(config.outputs_dir) / "runs").results)
        title, items = ASKED[word]
        name = f"questions_{word}"
        shown = {"": items(found, config)}
        publish(name, f"FairAll: {title}", shown, config, folder=folder, into=into, runs=found)
    return complete
