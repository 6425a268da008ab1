"""Made-up runs from which the golden tables were made."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from fairall import Result
from fairall.metrics import Spread
from fairall.results.result import spreads
from reproduction.board import MEASURES, Board, cpu_seconds
from reproduction.plan import LEADERBOARD, Planned, plan
from reproduction.runs import Durations
from tests.made_up import made_up

RUNS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
OF_ALL = {"accept_all": 0.05, "oracle": 0.4, "oracle_fair": 0.35}  # level of each reference policy
# Measures of a reference policy, from its level on in steps of 0.01.
REFERENCE_MEASURES = (
    *("effective_utility", "effective_dpu", "effective_dpu_pooled", "mean_utility", "mean_dpu", "mean_cfu"),
    *("mean_ground_truth_utility", "mean_equal_opportunity", "regret", "tv_utility"),
)
BOARD = [
    "model=fairall_I_II,adopt,greedy,fairlog,plot,fair_reductions",
    "dataset=credit,fico,synthetic",
    "schedule.time_steps=12",
    "evaluation.window=[4,12]",
]


@functools.cache
def results() -> list[Result]:
    """The results of collection.yaml; not to be changed."""
    return [_result(number, **made) for number, made in enumerate(RUNS)]


def _result(
    number: int, words: str, shift: float, collapsed: Sequence[int] = (), latents: bool = False, **noted: Any
) -> Result:
    one = made_up(*words.split(), shift=shift, number=number, finished=float(number), **noted)
    n, half = len(one.seeds), one.steps["time_step"].max() // 2
    gone = one.steps["seed"].isin(collapsed) & (one.steps["time_step"] > half)
    of_latent = {
        "latent_variance_gap": [0.9 if k < 3 else 0.1 for k in range(n)],  # three are switched
        "latent_label_agreement": [-0.9 if k % 4 == 0 else 0.9 for k in range(n)],  # two others flipped
        "latent_label_auc": [0.8] * n,
    }
    levels = {
        (policy, name): Spread(level + 0.01 * k + 0.001 * number, 0.01, None)
        for policy, level in OF_ALL.items()
        for k, name in enumerate(REFERENCE_MEASURES)
    }
    return replace(
        one,
        steps=one.steps.assign(acceptance_rate=one.steps["acceptance_rate"].mask(gone, 0.0)),
        per_seed=one.per_seed.assign(**(of_latent if latents else {})),
        references=spreads(levels),
        path=Path("outputs/runs") / one.name("model") / one.name("dataset") / f"{number:012x}",
    )


def made_board(folder: Path, *words: str) -> Board:
    """A board of made-up runs, in which some are missing or failed, lack seeds or all, or warn.

    On the FICO scores no run knows the oracle; accepting everybody loses on some tasks.

    Args:
        folder: for the file of measured times, of which some commands have two, and some none.
        words: further ones.
    """
    rng, planned, failures = np.random.default_rng(0), [], {}
    times = Durations(folder / "reproduction.csv", ["outputs_dir=/x"])
    needed = plan(LEADERBOARD, ["seeds=10", *BOARD, *words])
    levels = dict(zip(dict.fromkeys(one.row for one in needed), rng.uniform(0.05, 0.4, 99), strict=False))
    for k, one in enumerate(needed):
        known = OF_ALL if one.dataset != "fico" else {"accept_all": -0.05}
        of = {policy: {measure.name: level for measure in MEASURES} for policy, level in known.items()}
        run = made_up(*one.words, shift=levels[one.row], number=k, references=of)
        if k % 13 == 5:
            run.per_seed.iloc[2 : 5 if k % 2 else None] = np.nan
        if k % 17 == 6:
            run.per_seed.iloc[:] = run.aggregate.iloc[:] = np.nan
        if k % 11 == 7:
            failures[one.key] = "law.csv: not found, for a reason which is cut off in the table"
        noted = replace(run, warnings=["2 seeds (0, 4) diverged"] if k % 5 == 0 else [])
        planned.append(replace(one, run=None if k % 11 in (3, 7) else noted))
        for seconds in range(k % 3):
            times.add(one, 99.0, 10.0 + k + seconds)
    return Board(planned, failures, cpu_seconds(folder / "reproduction.csv"))


@functools.cache
def planned(sweep: str, *words: str) -> list[Planned]:
    """`plan` for one sweep, of ten seeds unless the words say otherwise; not to be changed."""
    seeds = [] if any(word.startswith("seeds=") for word in words) else ["seeds=10"]
    return plan([sweep], [*seeds, *words])


def result(*words: str, number: int = 0, **options: Any) -> Result:
    """A made-up result of a run; see `made_up`."""
    return made_up(*words, number=number, path=Path(f"{number:012x}"), finished=float(number), **options)
