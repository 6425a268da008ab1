"""Versions of a policy in a ledger: the first one, and how they are stored and read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import sqlalchemy as sql
import torch
from torch import Tensor

from fairall.config.checks import require
from fairall.config.compose import PLACES, checked_node, compose_config, places
from fairall.config.schema import Config, ExplorationRule
from fairall.data.own_table import OwnTable
from fairall.data.people import Decided, float32
from fairall.data.prepared import Amounts, Scaler
from fairall.decide.load import IN_MLFLOW, find_policy
from fairall.display.progress import Display
from fairall.errors import FairAllError
from fairall.experiment import Job, job, warmed_up
from fairall.live import chain
from fairall.live.people import cells_of
from fairall.live.record import applications, frame, lineage
from fairall.live.state import packed, remembered, remembering, replayed, unpacked
from fairall.live.store import APPLICATIONS, LEARNT, STATES
from fairall.models.learner import Learner
from fairall.models.memory import Memory
from fairall.online.process import Process
from fairall.policy import CONFIG, FEATURES, SUMS, WEIGHTS, Policy, schema_of
from fairall.results.runs import run_folder
from fairall.storage.checkpoint import Checkpoint
from fairall.storage.files import write_sums
from fairall.tables.cells import spelling


@dataclass(frozen=True)
class Version:
    """A version of the policy.

    Attributes:
        policy: its learner, with what tables of people it reads.
        process: the same learner, with exploration and the state of training as far as it was read.
        memories: of its learner, as they are replayed from whom it has learnt from (`state.replayed`); none
            where the state of training was not read, or was made now.
        good: share of good labels of the people of the warm-up; None where it is not known.
        number: in its ledger.
    """

    policy: Policy
    process: Process
    memories: dict[str, Memory] = field(default_factory=dict)
    good: float | None = None
    number: int = 1

    @classmethod
    def of(cls, policy: Policy) -> Version:
        """The version of a policy, with a fresh state of training."""
        assert policy.config is not None
        return cls(policy, Process(policy.learner, policy.config.exploration))

    @property
    def config(self) -> Config:
        """The configuration of its run."""
        assert self.policy.config is not None
        return self.policy.config

    @contextmanager
    def saved(self) -> Iterator[Path]:
        """A temporary folder with the policy, named as that of a run."""
        with TemporaryDirectory() as name:
            folder = Path(name) / "policy"
            folder.mkdir()
            self.policy.save(folder, self.config)
            yield folder

    @property
    def about(self) -> dict[str, str]:
        """Configuration and features, as a ledger keeps them."""
        with self.saved() as folder:
            return {name: (folder / name).read_text(encoding="utf-8") for name in (CONFIG, FEATURES)}

    @property
    def decides_by_state(self) -> bool:
        """Whether decisions depend on more than the weights, as those of methods that explore by memory."""
        bounded = self.process.exploration.rule is ExplorationRule.bounded
        return bounded or type(self.process.learner).explore is not Learner.explore

    @property
    def training(self) -> dict[str, Any]:
        """The state of training, as `restore` takes it."""
        parts = self.process.learner.training_state()["parts"]
        return {"parts": dict(sorted(parts.items())), "memory": self.process.memory.state_dict()}

    @property
    def luck(self) -> bytes:
        """State of what the next decisions depend on beside the version: random numbers and time steps."""
        process = self.process
        return packed({"decisions": process.decisions.state_dict(), "taken": process.taken.state_dict()})

    def draw_on(self, luck: bytes) -> None:
        """Go on from a state of `luck`."""
        for name, state in unpacked(luck).items():
            getattr(self.process, name).load_state_dict(state)

    @cached_property
    def scaler(self) -> Scaler:
        """The scaler of features."""
        return Scaler(schema_of(self.policy.reader))

    def encoded(self, people: pd.DataFrame) -> tuple[Tensor, Tensor]:
        """X (N, D) and s (N,) of applications; x of somebody who was forgotten is 0."""
        reader, known = self.policy.reader, people["features"].notna().to_numpy()
        x = torch.zeros(len(people), len(reader.features))
        cells = cells_of(people["features"][known].tolist(), reader.names)
        x[torch.tensor(known)] = self.scaler.transform(reader.read(cells, needs_group=False)[0])
        return x, float32(people["s"].to_numpy(dtype=float))

    @property
    def money(self) -> bool:
        """Whether what decisions are worth is in money, by person."""
        return self.config.amounts is not None

    def amounts(self, people: pd.DataFrame) -> np.ndarray:
        """Gain and loss of N applications, shape (2, N), with `money` of nobody forgotten."""
        amounts, cost = Amounts.of(self.scaler.schema, self.config.amounts), self.config.cost.value
        if amounts is None:
            return np.tile([[1.0 - cost], [cost]], len(people))
        return amounts.decided_by(self.encoded(people)[0]).T.numpy()

    def probability(self, people: pd.DataFrame) -> np.ndarray:
        """Acceptance probabilities of applications (N,), without exploration of the ledger."""
        if people.empty:
            return np.zeros(0)
        return self.policy.combined(self.policy.encoded_propensity(*self.encoded(people)))

    def restore(self, state: Any) -> Version:
        """The version with a state of `training`."""
        learner = {"modules": self.process.learner.state_dict(), "parts": state["parts"]}
        self.process.load_state_dict({"memory": state["memory"], "learner": learner})
        return self

    def learnt(self, updates: Sequence[Decided]) -> Version:
        """The version after further updates; this one is no longer to be used."""
        self.process.learn(updates)
        for memory, decided in product(self.memories.values(), updates):
            memory.add(decided)
        policy, learner = self.policy, self.process.learner
        after = Policy(learner, policy.reader, policy.points, policy.config, policy.modules)
        return replace(self, policy=after)

    def update(self, people: pd.DataFrame) -> Decided:
        """People as a learner gets them, the same for all seeds; the propensity of a forgotten one is NaN.

        That of a person's decision is not known: it counts as certain, 1 or 0.

        Args:
            people: B of them, as of `record.applications`, with `label`.
        """
        propensity = people["propensity"].mask(people["override"].notna(), people["accepted"])
        columns = propensity.mask(people["forgotten"]), people["accepted"], people["label"].fillna(0)
        return self.decided(*self.encoded(people), *(column.to_numpy(dtype=float) for column in columns))

    def decided(self, x: Tensor, s: Tensor, *columns: np.ndarray) -> Decided:
        """N people for all seeds, with propensity, decision and label, shape (N,) each."""
        n_seeds, values = len(self.policy.seeds), (x, s, *map(float32, columns))
        x, s, propensity, accepted, label = (one.expand(n_seeds, *one.shape).contiguous() for one in values)
        return Decided(x, s, propensity, accepted > 0, label)

    def packed(self) -> bytes:
        """The column `state` of `STATES`."""
        state = self.training
        for columns, name, values in remembered(state, self.memories):
            if torch.equal(columns[name], values):  # `read` replays them
                columns[name] = None
        with self.saved() as folder:
            weights = torch.frombuffer(bytearray((folder / WEIGHTS).read_bytes()), dtype=torch.uint8)
        return packed(state | {WEIGHTS: weights})


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
    config, learner = version.config, version.process.learner
    model = "a method that learns; of the others fairall decide takes decisions"
    require(learner.learns, "model", config.name("model"), model)
    require(config.splits == 1, "splits", config.splits, "1: a ledger is of one split of the people")
    parts = ", ".join(config.parts)
    require(not parts, "world", parts, "left out: the world of a ledger is the real one")
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
    if "positive" not in node:
        return {}
    found = {name: str(node[name]) for name in ("label", "positive")}
    with suppress(FairAllError):  # the table of a finished run may be gone
        cells = OwnTable(checked_node({"dataset": node}, "dataset")).cells.frame
        words = map(str, cells[node["label"]].dropna().unique())
        others = [word for word in words if spelling(word) != spelling(found["positive"])]
        found |= {"negative": others[0]} if len(others) == 1 else {}
    return found


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
        kept: `about` of any version.
        number: of the version.
        modules: as of `fairall.load_policy`.
        whole: whether its state of training is needed; else it is read where decisions depend on it.

    Raises:
        FairAllError: where there is no such version, or it is damaged.
    """
    state = unpacked(chain.last(connection, STATES, "version", number).state)
    with TemporaryDirectory() as name:
        folder = Path(name)
        for file in (CONFIG, FEATURES):
            (folder / file).write_text(kept[file], encoding="utf-8")
        (folder / WEIGHTS).write_bytes(state[WEIGHTS].numpy().tobytes())
        write_sums(folder / SUMS, [CONFIG, FEATURES, WEIGHTS])
        version = replace(Version.of(Policy.load(folder, modules=modules)), number=number)
    if not whole and not version.decides_by_state:
        return version
    numbers = lineage(connection, number)
    first = unpacked(chain.last(connection, STATES, "version", numbers[0]).state)
    updates = _updates(connection, version, numbers) if remembering(version.process) else []
    memories = replayed(version.process, first, updates)
    for columns, column, values in remembered(state, memories):
        if columns[column] is None:
            columns[column] = values
    return replace(version.restore(state), memories=memories)


def _updates(connection: sql.Connection, version: Version, numbers: Sequence[int]) -> list[Decided]:
    """The updates by which versions were made, with the outcomes that each of them knew."""
    updates = []
    for _, learnt in frame(LEARNT, chain.read(connection, LEARNT, "version", numbers)).groupby("version"):
        ids = learnt["application"].tolist()
        rows = chain.read(connection, APPLICATIONS, "id", ids)
        people = applications(connection, rows, learnt).loc[ids]
        updates += [version.update(part) for _, part in people.groupby(learnt["part"].to_numpy())]
    return updates
