"""Made-up runs: folders as a run leaves them, with random measures."""

import functools
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fairall.results.summary import columns, summarise

from fairall.config.compose import compose_config
from fairall.config.validation import typed
from fairall.report.plan import Planned, plan
from fairall.results import page
from fairall.storage.run_folder import RunFolder

MakeRun = Callable[..., Path]


def made_up(seeds: int, time_steps: int, shift: float, number: int) -> pd.DataFrame:
    """A table like metrics.csv, whose values are near `shift`."""
    generator = np.random.default_rng(number)
    steps = time_steps + 1
    table = pd.DataFrame({"seed": np.repeat(range(seeds), steps), "time_step": np.tile(range(steps), seeds)})
    for name in columns()[2:]:
        own = shift + np.repeat(generator.normal(0, 0.01, seeds), steps)
        table[name] = own + generator.normal(0, 0.01, seeds * steps)
        if name.startswith(("effective", "acceptance")):
            table.loc[table["time_step"] == 0, name] = np.nan
    return table[columns()]


@functools.cache
def configuration(*words: str) -> dict[str, Any]:
    """The configuration of a command line as plain containers, composed once; not to be changed."""
    return typed(compose_config(*words)).to_plain()


@functools.cache
def planned(sweep: str, *words: str) -> list[Planned]:
    """`plan` for one sweep, composed once; not to be changed.

    Of ten seeds, as runs of `lay_down`, unless the words say otherwise.
    """
    seeds = [] if any(word.startswith("seeds=") for word in words) else ["seeds=10"]
    return plan([sweep], [*seeds, *words])


@pytest.fixture(scope="session", autouse=True)
def _coarse_pictures() -> Iterator[None]:
    """Pictures of few pixels, which take less time to draw."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "DPI", 40)
        yield


def lay_down(folder: Path, *words: str, shift: float = 0.1, number: int = 0) -> Path:
    """A finished run beneath `outputs/runs` of a folder."""
    config = configuration(*words)
    table = made_up(config["seeds"], config["schedule"]["time_steps"], shift, number)
    models = folder / "outputs" / "runs" / config["model"]["name"]
    path = models / config["dataset"]["name"] / f"{number:012x}"
    path.mkdir(parents=True)
    run = RunFolder(path)
    run.write_config(config)
    run.write_table(table)
    first, last = config["evaluation"]["window"]
    # As a run does: from what it measured, not from what seven digits keep of it.
    summary = summarise(table, window=(first, last), further={})
    run.write_summary(summary | {"references": {"accept_all": {}, "reject_all": {}}})
    run.finish()
    return path


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """`lay_down` in the test's folder."""
    return partial(lay_down, tmp_path)


def add_references(path: Path, policy: str = "accept_all", /, **measures: float) -> Path:
    """Give a run measures of a reference, by default of accepting everybody, by key of summary.json."""
    run = RunFolder(path)
    summary = run.read_summary()
    of_policy = {name: {"mean": mean, "std": None, "interval": None} for name, mean in measures.items()}
    references = summary["references"] | {policy: of_policy}
    run.write_summary(summary | {"references": references})
    run.finish()
    return path


def set_preset(path: Path, preset: str) -> Path:
    """Gives a run the key `preset` in its config.yaml."""
    run = RunFolder(path)
    run.write_config((run.read_config() or {}) | {"preset": preset})
    run.finish()
    return path
