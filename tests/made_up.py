"""Results that no run has made: random measures near a given value, in memory or as the folder of a run."""

import functools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from fairall.config.compose import compose_config, typed
from fairall.config.schema import Config
from fairall.measuring.summary import summarise
from fairall.metrics import STANDARD, Spread, curves
from fairall.results.result import GROUPS, OF_REFERENCES, EvaluationPeople, Group, Result, WarmUp, spreads
from fairall.storage.run_folder import RunFolder

QUICK = ("model=fairlog", "dataset=credit", "preset=quick", "seeds=3")


@functools.cache
def configuration(*words: str) -> Config:
    """The configuration of a command line as results have it, composed once; not to be changed."""
    return typed(compose_config(*words)).stored()


def steps(seeds: int, time_steps: int, shift: float, number: int) -> pd.DataFrame:
    """A table like metrics.csv, whose values are near `shift`."""
    generator, n = np.random.default_rng(number), time_steps + 1
    table = pd.DataFrame({"seed": np.repeat(range(seeds), n), "time_step": np.tile(range(n), seeds)})
    for name in (quantity.name for quantity in curves(STANDARD)):
        own = shift + np.repeat(generator.normal(0, 0.01, seeds), n)
        table[name] = own + generator.normal(0, 0.01, seeds * n)
        if name.startswith(("effective", "acceptance")):
            table.loc[table["time_step"] == 0, name] = np.nan
    return table


def made_up(
    *words: str,
    shift: float = 0.1,
    number: int = 0,
    config: Mapping[str, Any] | None = None,
    references: Mapping[str, Mapping[str, float]] | None = None,
    further: Mapping[str, np.ndarray] | None = None,
    **fields: Any,
) -> Result:
    """A result in memory.

    Args:
        words: of the command line; `QUICK` by default.
        shift: near which its values are.
        number: seed of its noise.
        config: keys to replace in the configuration.
        references: means by policy and measure.
        further: measures per seed besides those of `steps`.
        fields: of `Result`, to replace.
    """
    whole = replace(configuration(*(words or QUICK)), **(config or {}))
    table = steps(whole.seeds, whole.schedule.time_steps, shift, number)
    seeds, window = range(whole.seeds), whole.evaluation.window
    series = {name: torch.tensor(table[name].to_numpy()).view(len(seeds), -1).T for name in table.columns[2:]}
    per_seed, aggregate = summarise(series, further or {}, seeds=seeds, window=window)
    known: dict[str, Mapping[str, float]] = {"accept_all": {}, "reject_all": {}} | dict(references or {})
    levels = {
        (policy, name): Spread(mean, None, None)
        for policy, own in known.items()
        for name, mean in own.items()
    }
    nobody = Group([], {"train": 700, "validation": 150, "test": 150}, 1000, 0.7, None, None)
    made = Result(
        config=whole,
        steps=table,
        measures=STANDARD,
        per_seed=per_seed,
        aggregate=aggregate,
        references=spreads(levels, OF_REFERENCES),
        groups=dict.fromkeys(GROUPS, nobody),
        sensitive_column="sex",
        evaluation=EvaluationPeople("test", 150, 150, 150.0, 0.031, 0.05),
        warm_up=WarmUp(768, 0.2),
        fingerprint="0" * 64,
    )
    return replace(made, **fields)


def lay_down(folder: Path, *words: str, number: int = 0, **options: Any) -> Path:
    """The folder of a finished run with a made-up result, beneath `outputs/runs` of a folder."""
    result = made_up(*words, number=number, **options)
    path = folder / "outputs" / "runs" / result.name("model") / result.name("dataset") / f"{number:012x}"
    path.mkdir(parents=True)
    run = RunFolder(path)
    run.write_config(result.config)
    result.save(run)
    run.finish()
    return path
