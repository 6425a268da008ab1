"""What the paper leaves open: each question is a study of runs, and a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairall import FairAllError
from fairall.display import PageTable, mean_interval, number
from reproduction import questions_figures as figures
from reproduction.items import difference_of
from reproduction.kinds import Spec, table
from reproduction.plan import nearest
from reproduction.questions_hidden import held
from reproduction.study import Study
from reproduction.values import Facts, by_words, finished


def rates(spec: Spec, runs: Sequence[Facts]) -> PageTable:
    """A row per group of people, the smallest last: how many they are, and how many of them are accepted."""
    cells: list[Facts] = []
    for setting, own in by_words(finished(runs), spec["group"]).items():
        people = own[0]["planned"].run.named_groups
        for name, group in sorted(people.items(), key=lambda item: -sum(item[1].people.values())):
            size, place = sum(group.people.values()), {"group": setting, "name": name}
            cells.append(place | {"column": "people", "cell": f"{size}"})
            cells.append(place | {"column": "label 1", "cell": number(group.base_rate)})
            for run in own:
                accepted = run["planned"].run.named_groups[name].accepted_in_window
                known = {of: run[of] for of in ("dataset", "groups")} | {"group": name, "people": size}
                known |= {"base_rate": group.base_rate, "method": run["tool"]}
                one = {"column": run["tool"], "cell": mean_interval(accepted)}
                cells.append(place | one | {"records": [known | difference_of(accepted, "accepted")]})
    tools = dict.fromkeys(run["tool"] for run in finished(runs))
    return table(spec, runs, cells, ["people", "label 1", *tools])


ASKED = {
    "truth": Study("questions_truth", figures.draw_truth),
    "hidden": Study("questions_hidden", figures.draw_loss, figures.losses, {"held": held}),
    "groups": Study("questions_groups", figures.draw_groups, kinds={"rates": rates}),
    "amounts": Study("questions_amounts", figures.draw_earned, figures.earnings),
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
    complete = [ASKED[word](overrides, folder, into, jobs) for word in dict.fromkeys(asked)]
    return all(complete)
