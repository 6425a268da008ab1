"""Runs from which the golden tables were made: words of the command line and what was measured."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from fairall import Result
from fairall.metrics import Spread
from fairall.results.result import spreads
from reproduction.plan import Planned, plan
from tests.made_up import made_up

OF_ALL = {"accept_all": 0.05, "oracle": 0.4, "oracle_fair": 0.35}  # level of each reference policy
# Measures of a reference policy, as differences from its level.
REFERENCE_MEASURES = {
    "effective_utility": 0.0,
    "effective_dpu": 0.01,
    "effective_dpu_pooled": 0.02,
    "mean_utility": 0.03,
    "mean_dpu": 0.04,
    "mean_cfu": 0.05,
    "mean_ground_truth_utility": 0.06,
    "mean_equal_opportunity": 0.07,
    "tv_utility": 0.0,
    "regret": 0.08,
}


class Made(NamedTuple):
    """A run of made-up measures."""

    words: str
    shift: float  # value that all measures are near
    collapsed: tuple[int, ...] = ()  # seeds that accept nobody in the last half of the time steps
    latents: bool = False  # whether seeds have measures of the latent
    warnings: tuple[str, ...] = ()


def _runs() -> list[Made]:
    levels = {"fairall_I_II": 0.2, "fairall_II": 0.19, "fairlog": 0.194, "unfairlog": 0.15}
    harsh = [
        Made(
            f"model={model} dataset={dataset} seeds=10",
            level,
            collapsed=(0, 1, 2) if (model, dataset) == ("fairlog", "compas") else (),
            latents=(model, dataset) == ("fairall_I_II", "credit"),
            warnings=("2 seeds (0, 4) diverged",) if model == "fairlog" else (),
        )
        for dataset in ("credit", "compas")
        for model, level in levels.items()
    ]
    synthetic = [Made(f"model={model} dataset=synthetic seeds=10", of) for model, of in levels.items()]
    return [
        *harsh,
        *synthetic,
        Made("model=opt_fair dataset=synthetic", 0.3),
        Made("model=fairlog dataset=credit protocol=published_code seeds=10", 0.21),
        Made("model=fairall_I_II dataset=credit protocol.kl=cdf seeds=10", 0.18, latents=True),
        *(
            Made(f"model={model} dataset={dataset}", of)
            for dataset in ("credit", "compas")
            for model, of in (("greedy", 0.22), ("adopt", 0.25))
        ),
        Made("model=greedy dataset=credit model.learning_rate=0.5", 0.1),
        Made("model=fairlog dataset=credit world.capacity.share=0.25 world.capacity.rule=top", 0.1),
        Made("model=fairlog dataset=credit world.delay.steps=10", 0.12),
        Made("model=fairlog dataset=credit world.noise.disadvantaged.positive=0.1", 0.13),
        Made("model=fairlog dataset=credit world=drift", 0.14),
        Made("model=fairlog dataset=fico world=feedback", 0.15),
        Made("model=accept_all dataset=fico world=feedback", 0.05),
    ]


RUNS = _runs()


@functools.cache
def results() -> list[Result]:
    """The results of `RUNS`; not to be changed."""
    return [_result(number, made) for number, made in enumerate(RUNS)]


def _result(number: int, made: Made) -> Result:
    one = made_up(*made.words.split(), shift=made.shift, number=number)
    n, half = len(one.seeds), one.steps["time_step"].max() // 2
    gone = one.steps["seed"].isin(made.collapsed) & (one.steps["time_step"] > half)
    steps = one.steps.assign(acceptance_rate=one.steps["acceptance_rate"].mask(gone, 0.0))
    of_latent = {
        "latent_variance_gap": [0.9 if k < 3 else 0.1 for k in range(n)],  # three are switched
        "latent_label_agreement": [-0.9 if k % 4 == 0 else 0.9 for k in range(n)],  # two others flipped
        "latent_label_auc": [0.8] * n,
    }
    levels = {
        (policy, name): Spread(level + apart + 0.001 * number, 0.01, None)
        for policy, level in OF_ALL.items()
        for name, apart in REFERENCE_MEASURES.items()
    }
    return replace(
        one,
        steps=steps,
        per_seed=one.per_seed.assign(**(of_latent if made.latents else {})),
        references=spreads(levels),
        warnings=made.warnings,
        path=Path("outputs/runs") / one.name("model") / one.name("dataset") / f"{number:012x}",
        finished=float(number),
    )


@functools.cache
def planned(sweep: str, *words: str) -> list[Planned]:
    """`plan` for one sweep, of ten seeds unless the words say otherwise; not to be changed."""
    seeds = [] if any(word.startswith("seeds=") for word in words) else ["seeds=10"]
    return plan([sweep], [*seeds, *words])


def result(*words: str, number: int = 0, **options: Any) -> Result:
    """A made-up result of a run; see `made_up`."""
    return made_up(*words, number=number, path=Path(f"{number:012x}"), finished=float(number), **options)
