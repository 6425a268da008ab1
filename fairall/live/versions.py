"""Versions of a policy in a ledger: the first one, and how they are stored and read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import sqlalchemy as sql
import torch

from fairall.config.compose import PLACES, checked_node, compose_config, places
from fairall.config.schema import Config, ExplorationRule
from fairall.data.own_table import OwnTable
from fairall.data.people import Decided
from fairall.decide.load import IN_MLFLOW, find_policy
from fairall.display.progress import Display
from fairall.errors import FairAllError
from fairall.experiment import Job, job, warmed_up
from fairall.live import chain
from fairall.live.people import encoded
from fairall.live.state import Update, joined, packed, split, unpacked
from fairall.live.store import APPLICATIONS, OUTCOMES, VERSIONS, DamagedError
from fairall.models.learner import Learner
from fairall.online.process import Process
from fairall.policy import CONFIG, FEATURES, SUMS, WEIGHTS, Policy
from fairall.results.runs import run_folder
from fairall.storage.checkpoint import Checkpoint
from fairall.storage.files import write_sums
from fairall.tables.cells import spelling


@dataclass(frozen=True)
class Guard:
    """What is kept of how a version compares with the policy on duty then, as of `guard.compared`."""

    why: str | None = None
    value: dict[str, float] | None = None
    doubt: str | None = None


@dataclass(frozen=True)
class Report:
    """What is read again of the report of a version.

    Attributes:
        first: `Due.first` of the version.
        good: share of good labels of the people whom it has learnt from; None where it is not known.
        people, labels: numbers of those.
        clock: latest time in the ledger when it was made; None of the first version.
        guard: of its comparison; that of the first version is empty.
    """

    first: int
    good: float | None = None
    people: int = 0
    labels: int = 0
    clock: int | None = None
    guard: Guard = Guard()


@dataclass(frozen=True)
class Version:
    """A version of the policy.

    Attributes:
        policy: its learner, with what tables of people it reads.
        process: the same learner, with exploration and the state of training as far as it was read.
        state: the whole state of training; None where it was not read.
        good: share of good labels of the people of the warm-up; None where it is not known.
    """

    policy: Policy
    process: Process
    state: Any = None
    good: float | None = None

    @classmethod
    def of(cls, policy: Policy) -> Version:
        """The version of a policy, with a fresh state of training."""
        return cls(policy, Process(policy.learner, config_of(policy).exploration))

    @property
    def decides_by_state(self) -> bool:
        """Whether decisions depend on more than the weights, as those of methods that explore by memory."""
        bounded = self.process.exploration.rule is ExplorationRule.bounded
        return bounded or type(self.process.learner).explore is not Learner.explore

    @property
    def training(self) -> dict[str, Any]:
        """The state of training, as `restore` takes it."""
        parts = self.process.learner.training_state()["parts"]
        return {"parts": parts, "memory": self.process.memory.state_dict()}

    @property
    def luck(self) -> bytes:
        """State of what the next decisions depend on beside the version: random numbers and time steps."""
        process = self.process
        return packed({"decisions": process.decisions.state_dict(), "taken": process.taken.state_dict()})

    def restore(self, state: Any) -> Version:
        """The version with a state of `training`."""
        learner = self.process.learner
        learner.load_training_state({"modules": learner.state_dict(), "parts": state["parts"]})
        self.process.memory.load_state_dict(state["memory"])
        return replace(self, state=state)

    def learnt(self, updates: Sequence[Update]) -> Version:
        """The version after further updates; this one is no longer to be used."""
        self.process.learn(update.decided for update in updates)
        policy, learner = self.policy, self.process.learner
        after = Policy(learner, policy.reader, policy.points, policy.config, policy.modules)
        return replace(self, policy=after, state=None)

    def columns(self, before: Any | None = None, updates: Sequence[Update] = ()) -> dict[str, Any]:
        """Values of the columns of `VERSIONS`: `weights`, `state`, `memory` and their `sum`.

        Args:
            before: state of the version that it was made from; None without one.
            updates: by which it was made.
        """
        state = self.training
        memory = packed(split(state, before, updates))
        with saved(self.policy) as folder:
            weights = (folder / WEIGHTS).read_bytes()
        columns = {"weights": weights, "state": packed(state), "memory": memory}
        return columns | {"sum": chain.checksum(columns)}


def first(words: Sequence[str], modules: Collection[str] = ()) -> Version:
    """The first version of a ledger.

    Args:
        words: a finished run, as of `fairall.load_policy`, with the state of training of its last time step,
            where its folder is there; or the words of a run, of which Phase I and the warm-up are made.
        modules: as of `fairall.load_policy`.

    Raises:
        FairAllError: where there is no such run, a word is not possible, or the method learns nothing.
    """
    runs = [word for word in words if "=" not in word]
    if runs:
        further = [word for word in words if word not in runs[:1] and not word.startswith(PLACES)]
        if further:
            raise FairAllError(f"{further[0]}: {runs[0]} is a finished run; give a run, or the words of one")
        version = _of_run(runs[0], places(words[1:]), modules)
    else:
        version = after_warm_up(job(compose_config(*words)))
    config = config_of(version.policy)
    if not version.process.learner.learns:
        raise FairAllError(f"model={config.name('model')} learns nothing: decide by it with fairall decide")
    if config.splits > 1:
        raise FairAllError("splits: a ledger is of one split of the people; set splits=1")
    if config.amounts is not None:
        raise FairAllError("dataset.gain: a ledger values decisions at one cost; leave gain and loss out")
    if config.parts:
        raise FairAllError(
            f"world.{next(iter(config.parts))}: the world of a ledger is the real one; leave world out"
        )
    return version


def _of_run(run: str, config: Config, modules: Collection[str]) -> Version:
    """The last state of a finished run; of a policy without its run the weights alone."""
    version, state = Version.of(find_policy(run, config, modules)[0]), None
    if not run.startswith(IN_MLFLOW):
        folder = run_folder(run, Path(config.outputs_dir) / "runs")
        state = Checkpoint(folder / "checkpoint.pt", folder.name, seconds=float("inf")).load()
    if state is None:
        told = "has no checkpoint: version 1 has the weights of its policy, and neither optimiser nor memory"
        Display().say(f"Warning: {run} {told}")
    else:
        version.process.load_state_dict(state["process"])
    return version


def after_warm_up(task: Job, display: Display | None = None) -> Version:
    """The learner of a run after Phase I and the warm-up."""
    training = warmed_up(task, display)
    policy = Policy.of(training.learner, training.data)
    policy.config = training.config.stored()
    decided = training.decided
    good = float(decided.label[decided.accepted].mean()) if decided.accepted.any() else None
    return Version(policy, training.process, good=good)


def outcome_words(config: Config) -> dict[str, str]:
    """Column of the outcome, and its words, as a run's own table has them; empty for other data sets."""
    node = config.dataset
    if node["_target_"] != f"{OwnTable.__module__}.{OwnTable.__qualname__}":
        return {}
    found = {name: str(node[name]) for name in ("label", "positive")}
    with suppress(FairAllError):  # the table of a finished run may be gone
        words = (
            OwnTable(checked_node({"dataset": node}, "dataset")).cells.frame[node["label"]].dropna().unique()
        )
        others = [str(word) for word in words if spelling(word) != spelling(found["positive"])]
        found |= {"negative": others[0]} if len(others) == 1 else {}
    return found


def about(policy: Policy) -> dict[str, str]:
    """Configuration and features of a policy, as a ledger keeps them."""
    with saved(policy) as folder:
        return {name: (folder / name).read_text(encoding="utf-8") for name in (CONFIG, FEATURES)}


@contextmanager
def saved(policy: Policy) -> Iterator[Path]:
    """A temporary folder with a policy, named as that of a run."""
    with TemporaryDirectory() as name:
        folder = Path(name) / "policy"
        folder.mkdir()
        policy.save(folder, config_of(policy))
        yield folder


def config_of(policy: Policy) -> Config:
    """The configuration of a policy that was loaded or just made."""
    assert policy.config is not None
    return policy.config


def lineage(connection: sql.Connection, number: int) -> list[int]:
    """The numbers of a version and of those that it was made from, the first one first.

    Raises:
        FairAllError: where there is no such version.
    """
    parents = {row.id: row.parent for row in chain.read(connection, VERSIONS)}
    if number not in parents:
        raise FairAllError(f"version {number}: no such version; there are 1 to {len(parents)}")
    found = [number]
    while (parent := parents[found[-1]]) is not None:
        if not 1 <= parent < found[-1]:
            raise DamagedError(f"version {found[-1]} is made from version {parent}")
        found.append(parent)
    return found[::-1]


def with_descendants(connection: sql.Connection, numbers: Collection[int]) -> list[int]:
    """Versions, and those that were made from them."""
    found = set(numbers)
    for row in chain.read(connection, VERSIONS):
        found |= {row.id} if row.parent in found else set()
    return sorted(found)


def read(
    connection: sql.Connection,
    kept: Mapping[str, str],
    number: int,
    *,
    modules: Collection[str] = (),
    whole: bool = False,
) -> Version:
    """A version of a ledger.

    Args:
        connection: in a transaction.
        kept: by `about`.
        number: of the version.
        modules: as of `fairall.load_policy`.
        whole: whether its state of training is needed; else it is read where decisions depend on it.

    Raises:
        FairAllError: where there is no such version, or it is damaged.
    """
    with TemporaryDirectory() as name:
        folder = Path(name)
        for file in (CONFIG, FEATURES):
            (folder / file).write_text(kept[file], encoding="utf-8")
        (folder / WEIGHTS).write_bytes(chain.version(connection, number)["weights"])
        write_sums(folder / SUMS, [CONFIG, FEATURES, WEIGHTS])
        version = Version.of(Policy.load(folder, modules=modules))
    if not whole and not version.decides_by_state:
        return version
    before = None
    for one in lineage(connection, number):
        stored = chain.version(connection, one)
        state, memory = unpacked(stored["state"]), unpacked(stored["memory"])
        refers = any("rows" in of for part in memory for of in part["columns"].values())
        joined(state, memory, before, updates_of(connection, version.policy, one) if refers else [])
        before = state
    return version.restore(before)


def updates_of(connection: sql.Connection, policy: Policy, number: int) -> list[Update]:
    """The updates by which a version was made from its parent."""
    rows = chain.learnt_rows(connection, number).set_index("application")
    outcomes = rows["outcome"].dropna().astype(int).tolist()
    labels = {row.id: row.label for row in chain.read(connection, OUTCOMES, OUTCOMES.c.id, outcomes)}
    found = people(connection, rows.index.tolist())
    found["label"] = rows["outcome"].map(labels)
    return [update(part, policy) for _, part in found.groupby(rows["part"])]


def people(connection: sql.Connection, numbers: Sequence[int]) -> pd.DataFrame:
    """Applications by their numbers."""
    return chain.frame(connection, APPLICATIONS, APPLICATIONS.c.id, numbers).set_index("id").sort_index()


def update(own: pd.DataFrame, policy: Policy) -> Update:
    """People as a learner gets them, the same for all seeds.

    Args:
        own: B of them, as of `people`, with `label`.
        policy: whose features they have.
    """
    known = torch.tensor(own["features"].notna().to_numpy(dtype=bool))
    accepted = torch.tensor(own["accepted"].to_numpy(dtype=bool))
    x = encoded(own["features"].fillna("").tolist(), policy.reader)
    s, propensity, label = (
        torch.where(known, torch.tensor(own[name].fillna(0).to_numpy(dtype=float)), 0.0).float()
        for name in ("s", "propensity", "label")
    )
    columns = (x, s, propensity, accepted & known, torch.where(accepted & known, label, 0.0))
    n_seeds = len(policy.seeds)
    return Update(Decided(*(one.expand(n_seeds, *one.shape).contiguous() for one in columns)), accepted)
