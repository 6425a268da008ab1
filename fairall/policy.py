"""Saved policies: load one from a folder and compute acceptance probabilities of people."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from omegaconf import OmegaConf
from safetensors.torch import load as deserialised
from safetensors.torch import save as serialised
from scipy.special import expit
from torch import Tensor, nn

import fairall
from fairall.config.checks import require
from fairall.config.compose import checked_node, require_trusted
from fairall.config.schema import Config, FairnessRule
from fairall.data.features import Schema
from fairall.data.prepared import PreparedData, Scaler
from fairall.errors import FairAllError, one_line
from fairall.models.estimators import Fitted
from fairall.models.learner import Learner, Setting
from fairall.nn.stacked import in_chunks
from fairall.runtime.randomness import FixedSamples, SeedStreams
from fairall.storage.files import atomic, damaged, write_sums, write_text
from fairall.storage.stored import of_plain, read_bytes, read_json, read_stored
from fairall.tables.people import PeopleReader

FORMAT = 10  # of the folder; increased when older folders would be read wrongly
CONFIG, FEATURES, WEIGHTS, SUMS = "config.yaml", "features.json", "weights.safetensors", "SUMS"
LEARNER, POINTS_NAME = "learner", "points"  # names of tensors: a prefix of those of the state, and one
SAMPLES_AT_ONCE = 300_000  # of all replicates, since a layer of a net keeps a value per unit and sample
DECIMALS = 6  # of combined probabilities: beyond them is rounding of float32, which depends on other rows
ENSEMBLES = ("mean", "median")  # over seeds


@dataclass(eq=False, repr=False)
class Policy:
    """The policies of all seeds of a finished run.

    Attributes:
        learner: trained, E replicates.
        reader: of tables of people.
        points: standard normal, averaged over instead of draws, shape (E, size, n).
        config: of the run, as it is stored (`Config.stored`); None for a policy that was not loaded.
        modules: that `load` was given.
        classes_: negative and positive label, the columns of `predict_proba`.
    """

    classes_: ClassVar[np.ndarray] = np.array([0, 1])

    learner: Learner
    reader: PeopleReader
    points: Tensor
    config: Config | None = None
    modules: Collection[str] = ()

    @classmethod
    def of(cls, learner: Learner, data: PreparedData) -> Policy:
        """The policy of a learner trained on `data`, with points of the size that the learner asks for."""
        streams, schema = FixedSamples(learner.setting.seeds), learner.setting.schema
        somebody = torch.tensor([feature.codes[0] if feature.codes else 0.0 for feature in schema])
        s = torch.ones(len(streams.seeds), 1)
        learner.propensity(somebody.expand(len(s), 1, -1), s, streams)
        return cls(learner, data.reader, streams.points)

    def save(self, folder: Path, config: Config) -> None:
        """Write config.yaml, features.json, weights.safetensors and, last, SUMS."""
        (folder / SUMS).unlink(missing_ok=True)
        with atomic(folder / CONFIG) as temporary:
            OmegaConf.save(OmegaConf.create(config.to_plain()), temporary)
        plain = {"format": FORMAT, "fairall": fairall.__version__} | asdict(self.reader)
        write_text(folder / FEATURES, json.dumps(plain, indent=1, allow_nan=False) + "\n")
        state = nn.ModuleDict({LEARNER: self.learner}).state_dict() | {POINTS_NAME: self.points}
        # Copies, since the format has no tensors that share memory.
        copies = {name: tensor.clone(memory_format=torch.contiguous_format) for name, tensor in state.items()}
        with atomic(folder / WEIGHTS) as temporary:
            temporary.write_bytes(serialised(copies))
        write_sums(folder / SUMS, [CONFIG, FEATURES, WEIGHTS])

    @classmethod
    def load(cls, folder: str | Path, *, modules: Collection[str] = ()) -> Policy:
        """Read what `save` wrote, as data that a stranger may have written: no code of it is run.

        Args:
            folder: `policy/` in the folder of a run.
            modules: names of modules, or of packages, that may be imported for a method of one's own. Those
                of this package may be, and what this process has imported already.

        Raises:
            FairAllError: where `folder` is no policy, a file of it is missing, changed or not possible,
                another version of this package saved it, or the method's module may not or cannot be
                imported.
        """
        from fairall.nn.bounded import Bounded  # a policy that is saved needs it not

        folder = Path(folder)
        reader, stored = load_reader(folder), read_stored(folder / CONFIG)
        with one_line(f"{folder}: cannot be loaded; run it anew"):
            require_trusted(stored.model, "model", modules)
            config = replace(stored, model=checked_node({"model": stored.model}, "model"))
            tensors = deserialised(read_bytes(folder / WEIGHTS))
            points = tensors.pop(POINTS_NAME)
            require(len(points) == config.seeds, "seeds", config.seeds, f"as in {WEIGHTS}, {len(points)}")
            with Bounded(sum(one.numel() for one in tensors.values()), len(tensors)):
                learner = learner_of(config, Setting.of(schema_of(reader), config))
            nn.ModuleDict({LEARNER: learner}).load_state_dict(tensors)
            for part in learner.modules():
                if isinstance(part, Fitted):
                    part.trusted = set(modules)
                    part.read()
            policy = cls(learner, reader, points, stored, tuple(modules))
            policy.propensity(reader.example())  # raises where points do not fit the learner
        return policy

    def propensity(self, people: pd.DataFrame, *, strict: bool = False) -> np.ndarray:
        """π(d=1 | x, s) of every seed's policy, shape (E, N), in [0, 1].

        A function of the person: other rows and the order of rows change nothing but float rounding, if a
        method of your own follows docs/extending.md.

        Args:
            people: raw features by name, coded as in the raw file, and the sensitive attribute: a column `s`
                in {−1, +1} or, in a table without it, the column of the raw file. A policy that decides
                without it (`fairness.blind=true`) needs none. Other columns are ignored.
            strict: refuse categories unknown in training, and features without a value in any row; otherwise
                they are replaced by the feature's default with a warning.

        Raises:
            FairAllError: where a column is missing or holds an invalid value: text among numbers, an invalid
                count, a third value of a binary feature, a categorical feature without any known value, a
                missing value of a feature without a default.

        Warns:
            UserWarning: once for all replaced values, see `strict`, and for numbers outside the training
                range by more than its width.
        """
        return self.encoded_propensity(*self.encoded(people, strict=strict))

    def encoded(self, people: pd.DataFrame, *, strict: bool = False) -> tuple[Tensor, Tensor]:
        """Scaled x (N, D) and s (N,), float32; arguments, errors and warning as for `propensity`."""
        x, s, found = self.read(people, strict=strict)
        if found:
            warnings.warn("; ".join(found), stacklevel=3)
        return x, s

    def read(self, people: pd.DataFrame, *, strict: bool = False) -> tuple[Tensor, Tensor, list[str]]:
        """People as of `encoded`, without its warning, and what it would warn of, a sentence each."""
        x, s, found = self.reader.read(
            people, refuse_unknown=strict, refuse_empty=strict, needs_group=self.learner.reads_s
        )
        return Scaler(schema_of(self.reader)).transform(x), torch.tensor(s, dtype=torch.float32), found

    def encoded_propensity(self, x: Tensor, s: Tensor) -> np.ndarray:
        """π(d=1 | x, s) of every seed's policy, shape (E, N), for x (N, D) and s (N,) as of `encoded`."""
        return self._computed(self.learner.propensity, x, s)

    def encoded_label_probability(self, x: Tensor, s: Tensor) -> np.ndarray:
        """Every seed's estimate of p(ỹ = 1 | x, s), shape (E, N), float64, for people as of `encoded`.

        Raises:
            FairAllError: where the method has none, see `estimates_label`.
        """
        if not self.estimates_label:
            raise FairAllError(
                f"model={self.learner.config.name} has no estimate of p(label = 1), only a probability of "
                "acceptance: decision_proba"
            )
        return expit(self._computed(self.learner.log_odds, x, s))

    def encoded_margin(self, x: Tensor, s: Tensor) -> np.ndarray:
        """`Learner.margin` of every seed's policy, shape (E, N), float64, for people as of `encoded`."""
        return self._computed(self.learner.margin, x, s)

    @torch.no_grad()
    def _computed(
        self, compute: Callable[[Tensor, Tensor, SeedStreams], Tensor], x: Tensor, s: Tensor
    ) -> np.ndarray:
        """Values (E, N) of encoded people by every seed's policy."""
        n_seeds, size, n_points = self.points.shape
        # For each of two ũ; a method without points computes on everybody at once.
        rows = max(1, SAMPLES_AT_ONCE // (n_seeds * 2 * n_points)) if size else None
        streams = FixedSamples(self.seeds, self.points)
        stacked = x.expand(n_seeds, -1, -1), s.expand(n_seeds, -1)
        return in_chunks(lambda x, s: compute(x, s, streams), *stacked, rows=rows).numpy()

    def decision_proba(
        self, people: pd.DataFrame, *, policy: str = "mean", strict: bool = False
    ) -> np.ndarray:
        """Probabilities of rejection and acceptance by all seeds together, shape (N, 2), float64.

        Arguments and errors as for `propensity` and `combined`.
        """
        return self._both(self.propensity(people, strict=strict), policy)

    def decide(self, people: pd.DataFrame, *, policy: str = "mean", strict: bool = False) -> np.ndarray:
        """Decisions, shape (N,): 1 where the probability of acceptance is at least `threshold`, else 0.

        Arguments and errors as for `decision_proba`.
        """
        return (self.decision_proba(people, policy=policy, strict=strict)[:, 1] >= self.threshold).astype(int)

    def predict_proba(
        self, people: pd.DataFrame, *, policy: str = "mean", strict: bool = False
    ) -> np.ndarray:
        """Estimates of p(ỹ = 0 | x, s) and p(ỹ = 1 | x, s) by all seeds together, shape (N, 2), float64.

        Arguments and errors as for `propensity`, `encoded_label_probability` and `combined`.
        """
        return self._both(self.encoded_label_probability(*self.encoded(people, strict=strict)), policy)

    def _both(self, values: np.ndarray, policy: str) -> np.ndarray:
        positive = self.combined(values, policy)
        return np.column_stack([1.0 - positive, positive])

    def predict(self, people: pd.DataFrame, *, policy: str = "mean", strict: bool = False) -> np.ndarray:
        """The likelier labels, 1 or 0, shape (N,), which are no decisions: those are of `decide`.

        Arguments and errors as for `predict_proba`.
        """
        return (self.predict_proba(people, policy=policy, strict=strict)[:, 1] >= 0.5).astype(int)

    @property
    def seeds(self) -> list[int]:
        """The E seeds."""
        return list(self.learner.setting.seeds)

    @property
    def estimates_label(self) -> bool:
        """Whether the method estimates p(ỹ = 1 | x, s)."""
        return self.learner.estimates_label

    @property
    def threshold(self) -> float:
        """Least probability of acceptance at which a decision that is not drawn is positive.

        That of the learner's rule; ½ where its π is 0 or 1, of which the probability is the share of seeds
        that accept.
        """
        rule = self.learner.rule
        return rule.threshold if rule.drawn else 0.5

    @cached_property
    def diverged(self) -> list[int]:
        """Seeds whose policy has weights or probabilities that are not finite."""
        sound = np.isfinite(self.propensity(self.reader.example())).all(axis=1)
        for weights in self.learner.parameters():
            if weights.shape[:1] == sound.shape:
                sound &= weights.reshape(len(sound), -1).isfinite().all(1).numpy()
        return np.array(self.seeds)[~sound].tolist()

    def combined(self, values: np.ndarray, policy: str = "mean", *, decimals: int = DECIMALS) -> np.ndarray:
        """What one policy made of those of all seeds says of people.

        Args:
            values: of every seed, shape (E, N): acceptance probabilities, estimates of p(ỹ = 1 | x, s), or
                margins, with `MARGIN_DECIMALS`.
            policy: `mean` or `median` over the seeds that have not diverged, or one of them, as `seed:3`.
            decimals: to which the result is rounded.

        Returns:
            Shape (N,), float64.

        Raises:
            FairAllError: if there is no such policy, or it has diverged.
        """
        average = np.median if policy == "median" else np.mean
        combined = average(values[self.deciding(policy)].astype(float), axis=0)
        if not np.isfinite(combined).all():
            raise FairAllError(f"policy {policy}: for some people its probability is not a number")
        return combined.round(decimals)

    def spread(self, propensity: np.ndarray) -> np.ndarray:
        """Standard deviation over the seeds that have not diverged, shape (N,); NaN for a single seed."""
        return pd.DataFrame(propensity[self.deciding("mean")], dtype=float).std().round(DECIMALS).to_numpy()

    def deciding(self, policy: str) -> list[int]:
        """Positions of the seeds that `policy` consists of; arguments and errors as for `combined`."""
        sound = {f"seed:{seed}": k for k, seed in enumerate(self.seeds) if seed not in self.diverged}
        chosen = [k for name, k in sound.items() if policy in (name, *ENSEMBLES)]
        if not chosen:
            known = f"mean and median of {', '.join(sound) or 'none'}"
            raise FairAllError(f"policy {policy}: no such policy, or it has diverged; there are {known}")
        return chosen


def learner_of(config: Config, setting: Setting, share: float = 1.0) -> Learner:
    """The untrained learner of a run, with thresholds where `config.fairness` asks for them.

    Args:
        config: of the run.
        setting: the problem that it learns in.
        share: places per applicant.

    Raises:
        FairAllError: where the method has nothing that thresholds could be chosen for.
    """
    learner: Learner = config.model.build(setting)
    if config.fairness.rule is FairnessRule.none:
        return learner
    from fairall.models.fairness import BlindThresholds, FairThresholds

    kind = BlindThresholds if config.fairness.blind else FairThresholds
    return kind(config.fairness, learner, share)


def load_reader(folder: Path) -> PeopleReader:
    """The `Policy.reader` of a saved policy, without its learner; raises as `Policy.load`."""
    for name in damaged(folder / SUMS, among=(CONFIG, FEATURES, WEIGHTS)):
        raise FairAllError(
            f"{folder / name} is missing, damaged, edited, or of another version of fairall; give the folder "
            "policy/ of a run, or run it anew"
        )
    with one_line(f"{folder / FEATURES}: cannot be read; run it anew"):
        plain = read_json(folder / FEATURES, dict[str, Any])
        if plain.get("format") != FORMAT:
            version = f"{plain.get('fairall')}; this is {fairall.__version__}"
            raise FairAllError(f"it was saved by another version of fairall ({version})")
        reader = of_plain(PeopleReader, plain)
        schema_of(reader)
    return reader


def schema_of(reader: PeopleReader) -> Schema:
    """The features as learners see them; raises FairAllError if two have one name, or a reserved one."""
    return Schema(
        reader.features,
        mean=[feature.mean for feature in reader.features],
        scale=[feature.scale for feature in reader.features],
        n_groups=reader.n_groups,
        crossed=reader.sensitive.crossed if reader.sensitive else (),
    )
