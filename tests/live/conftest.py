"""Ledgers of small learners, and the applicants of simulated runs as tables."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest
import torch

from fairall import Ledger
from fairall.config.compose import compose_config
from fairall.data.dataset import dataset
from fairall.data.own_table import OwnTable
from fairall.data.people import Decided, Decisions, People
from fairall.experiment import job
from fairall.online.training import Training
from fairall.storage.checkpoint import Checkpoint
from tests.conftest import LOANS, MEANING, no_cache

DATA = [
    "dataset=csv",
    f"dataset.path={LOANS}",
    *MEANING,
    "dataset.decision=decision",
    "dataset.accepted=granted",
    "dataset.propensity=propensity",
    "dataset.drop=[id]",
]
SMALL = ["preset=quick", "tracking.enabled=false", "seeds=1", *DATA]
STEP = 86400  # seconds between two time steps
BEGIN = 1_700_000_000 // STEP * STEP
AS_IN_A_RUN = ["live.horizon=null", "live.held_out=0", "live.explore=0"]


@dataclass
class Simulated:
    """A run: its applicants as tables, labels, decisions, and when labels came."""

    training: Training
    tables: list[pd.DataFrame]
    labels: list[np.ndarray]
    propensities: list[np.ndarray]
    accepted: list[np.ndarray]
    due: list[list[int]]  # by time step, numbers of the time steps whose labels came


class Nothing:
    """Shows no progress."""

    def phase(self, name: str, total: int, *, done: int = 0) -> "Nothing":
        return self

    def __enter__(self) -> Callable[..., None]:
        return lambda **_: None

    def __exit__(self, *_: object) -> None: ...


def simulated(*words: str) -> Simulated:
    """The run of `SMALL` and further words, recorded step by step."""
    training = made = job(compose_config(*SMALL, "evaluation.decisions=true", *words))
    source = dataset(made.config.dataset)
    assert isinstance(source, OwnTable)
    raw = source.cells.frame.astype(object).iloc[source.splits.train].reset_index(drop=True)
    rows = {
        encoded(x, s): k for k, (x, s) in enumerate(zip(made.data.train.x, made.data.train.s, strict=True))
    }
    names = [*made.data.reader.names, "sex"]
    found = Simulated(training, [], [], [], [], [])
    numbers: dict[int, int] = {}
    world = training.world
    reveal = world.reveal

    def recorded(people: People, taken: Decisions) -> list[Decided]:
        step = len(found.tables)
        table = raw.loc[[rows[encoded(x, s)] for x, s in zip(people.x[0], people.s[0], strict=True)], names]
        table.insert(0, "id", [f"P{step:03d}-{k:03d}" for k in range(len(table))])
        found.tables.append(table.assign(time=at(step)).reset_index(drop=True))
        found.labels.append(people.label[0].numpy().astype(int))
        found.propensities.append(taken.propensity[0].numpy().copy())
        found.accepted.append(taken.accepted[0].numpy().copy())
        numbers[id(people.x)] = step
        found.people.append(people)  # type: ignore[attr-defined]
        due = reveal(people, taken)
        found.due.append([numbers[id(one.x)] for one in due])
        return due

    found.people = []  # type: ignore[attr-defined]
    world.reveal = recorded  # type: ignore[method-assign]
    with TemporaryDirectory() as folder:
        checkpoint = Checkpoint(Path(folder) / "checkpoint.pt", "simulated", seconds=float("inf"))
        training.run(checkpoint, no_cache(), Nothing())
    return found


def encoded(x: torch.Tensor, s: torch.Tensor) -> bytes:
    return x.numpy().tobytes() + s.numpy().tobytes()


def at(step: float) -> str:
    """The time of a time step."""
    return str(pd.Timestamp(int(BEGIN + STEP * step), unit="s"))


def begun(place: Path, *words: str) -> Ledger:
    """A ledger of the learner of `SMALL` after its warm-up."""
    return Ledger.start(place, *SMALL, f"outputs_dir={place.parent}", *words)


def outcomes_of(table: pd.DataFrame, accepted: np.ndarray, label: np.ndarray, step: float) -> pd.DataFrame:
    """The labels of the accepted people of a time step, which come at another one."""
    columns = {"id": table["id"], "repaid": np.where(label, "yes", "no"), "time": at(step)}
    return pd.DataFrame(columns)[accepted]


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Ledgers after the warm-up, by their words, made once."""
    made: dict[tuple[str, ...], Path] = {}

    def of(*words: str) -> Path:
        if words not in made:
            made[words] = tmp_path_factory.mktemp("ledger") / "loans.db"
            begun(made[words], *words)
        return made[words]

    return of


Make = Callable[..., Ledger]


@pytest.fixture
def ledger(kept: Callable[..., Path], tmp_path: Path) -> Make:
    """A ledger of its own."""

    def made(*words: str, name: str = "loans.db") -> Ledger:
        return Ledger(shutil.copy(kept(*words), tmp_path / name))

    return made
