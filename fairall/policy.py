"""Saved policies: load one from a folder and compute acceptance probabilities of people."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from omegaconf import OmegaConf
from safetensors import SafetensorError
from safetensors.torch import load as deserialised
from safetensors.torch import save as serialised
from scipy.special import expit
from torch import Tensor

import fairall
from fairall.config.compose import checked_node, require_trusted
from fairall.config.schema import Config, FairnessRule
from fairall.data.features import Schema
from fairall.data.prepared import PreparedData, Scaler
from fairall.errors import FairAllError
from fairall.models.estimators import Fitted
from fairall.models.learner import Learner, Setting
from fairall.nn.stacked import in_chunks
from fairall.runtime.randomness import FixedSamples, SeedStreams
from fairall.runtime.reading import read_bytes
from fairall.storage.files import atomic, damaged, write_sums, write_text
from fairall.storage.stored import of_plain, read_json, read_stored
from fairall.tables.cells import shown
from fairall.tables.people import PeopleReader

FORMAT = 10  # of the folder; increased when older folders would be read wrongly
CONFIG, FEATURES, WEIGHTS, SUMS = "config.yaml", "features.json", "weights.safetensors", "SUMS"
EXTRA = "_extra_state"  # end of the names of archives of estimators
LEARNER, POINTS_NAME = "learner.", "points"  # names of tensors: a prefix of those of the state, and one
SAMPLES_AT_ONCE = 300_000  # of all replicates, since a layer of a net keeps a value per unit and sample
MOST_SHOWN = 500  # characters of a message about them
DECIMALS = 6  # of combined probabilities: beyond them is rounding of float32, which depends on other rows
ENSEMBLES = ("mean", "median")  # over seeds
ONE_SEED = "seed:"  # before its number


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

    def __init__(
        self,
        learner: Learner,
        reader: PeopleReader,
        points: Tensor,
        config: Config | None = None,
        modules: Collection[str] = (),
    ) -> None:
        self.learner = learner
        self.reader = reader
        self.points = points
        self.config = config
        self.modules = modules

    @classmethod
    def of(cls, learner: Learner, data: PreparedData) -> Policy:
        """The policy of a learner trained on `data`."""
        return cls(learner, data.reader, _points_of(learner))

    def save(self, folder: Path, config: Config) -> None:
        """Write config.yaml, features.json, weights.safetensors and, last, SUMS."""
        (folder / SUMS).unlink(missing_ok=True)
        with atomic(folder / CONFIG) as temporary:
            OmegaConf.save(OmegaConf.create(config.to_plain()), temporary)
        plain = {"format": FORMAT, "fairall": fairall.__version__} | asdict(self.reader)
        write_text(folder / FEATURES, json.dumps(plain, indent=1, allow_nan=False) + "\n")
        state = {LEARNER + name: tensor for name, tensor in self.learner.state_dict().items()}
        # Copies, since the format has no tensors that share memory.
        copies = {
            name: tensor.clone(memory_format=torch.contiguous_format)
            for name, tensor in (state | {POINTS_NAME: self.points}).items()
        }
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
        folder = Path(folder)
        reader = load_reader(folder)
        stored = read_stored(folder / CONFIG)
        try:
            require_trusted(stored.model, "model", modules)
            config = replace(stored, model=checked_node({"model": stored.model}, "model"))
        except FairAllError as error:
            raise FairAllError(f"{folder / CONFIG}: {shown(str(error), MOST_SHOWN)}") from error
        learner_tensors, points = _tensors(folder / WEIGHTS, config.seeds)
        learner = _built(config, reader, learner_tensors, folder)
        fits = _kinds(learner.state_dict()) == _kinds(learner_tensors)
        if fits:
            learner.load_state_dict(learner_tensors)
            for part in learner.modules():
                if isinstance(part, Fitted):
                    part.trusted = set(modules)
                    part.read()
            fits = points.shape[1] == _points_of(learner).shape[1]
        if not fits:
            raise FairAllError(f"{folder / WEIGHTS} does not fit {config.model._target_}: run it anew")
        return cls(learner, reader, points, stored, tuple(modules))

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

    def _computed(
        self, compute: Callable[[Tensor, Tensor, SeedStreams], Tensor], x: Tensor, s: Tensor
    ) -> np.ndarray:
        """Values (E, N) of encoded people by every seed's policy."""
        seeds = self.seeds
        streams = FixedSamples(seeds, self.points)
        _, size, n_points = self.points.shape
        per_person = 2 * n_points if size else 0  # for each of two ũ
        rows = max(1, SAMPLES_AT_ONCE // (len(seeds) * per_person)) if per_person else None
        stacked = x.expand(len(seeds), -1, -1), s.expand(len(seeds), -1)
        with torch.no_grad():
            values = in_chunks(lambda x, s: compute(x, s, streams), *stacked, rows=rows)
        return values.numpy()

    def decision_proba(
        self, people: pd.DataFrame, *, policy: str = "mean", strict: bool = False
    ) -> np.ndarray:
        """Probabilities of rejection and acceptance by all seeds together, shape (N, 2), float64.

        Arguments and errors as for `propensity` and `combined`.
        """
        accepted = self.combined(self.propensity(people, strict=strict), policy)
        return np.stack([1.0 - accepted, accepted], axis=1)

    def decide(self, people: pd.DataFrame, *, policy: str = "mean", strict: bool = False) -> np.ndarray:
        """Decisions, shape (N,): 1 where the probability of acceptance is at least `threshold`, else 0.

        Arguments and errors as for `decision_proba`.
        """
        accepted = self.decision_proba(people, policy=policy, strict=strict)[:, 1] >= self.threshold
        return accepted.astype(int)

    def predict_proba(
        self, people: pd.DataFrame, *, policy: str = "mean", strict: bool = False
    ) -> np.ndarray:
        """Estimates of p(ỹ = 0 | x, s) and p(ỹ = 1 | x, s) by all seeds together, shape (N, 2), float64.

        Arguments and errors as for `propensity`, `encoded_label_probability` and `combined`.
        """
        positive = self.encoded_label_probability(*self.encoded(people, strict=strict))
        positive = self.combined(positive, policy)
        return np.stack([1.0 - positive, positive], axis=1)

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
                sound &= torch.isfinite(weights).reshape(len(sound), -1).all(dim=1).numpy()
        return [seed for seed, is_sound in zip(self.seeds, sound, strict=True) if not is_sound]

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
        sound = propensity[self.deciding("mean")].astype(float)
        if len(sound) < 2:
            return np.full(sound.shape[1], np.nan)
        return sound.std(axis=0, ddof=1).round(DECIMALS)

    def deciding(self, policy: str) -> list[int]:
        """Positions of the seeds that `policy` consists of; arguments and errors as for `combined`."""
        if policy in ENSEMBLES:
            sound = [k for k, seed in enumerate(self.seeds) if seed not in self.diverged]
            if not sound:
                raise FairAllError("the policies of all seeds have diverged: none is left to decide")
            return sound
        number = policy.removeprefix(ONE_SEED)
        if number == policy or not number.isdecimal():
            raise FairAllError(f"policy {policy}: no such policy; there are mean, median and seed:NUMBER")
        if int(number) not in self.seeds:
            raise FairAllError(f"policy {policy}: no such seed; there are {', '.join(map(str, self.seeds))}")
        if int(number) in self.diverged:
            raise FairAllError(f"policy {policy} has diverged: choose another, or the mean of the others")
        return [self.seeds.index(int(number))]


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


def _points_of(learner: Learner) -> Tensor:
    """Points of the size that the learner asks for, see `FixedSamples`."""
    seeds, schema = learner.setting.seeds, learner.setting.schema
    somebody = torch.tensor([feature.codes[0] if feature.codes else 0.0 for feature in schema])
    streams = FixedSamples(seeds)
    learner.propensity(somebody.expand(len(seeds), 1, -1), torch.ones(len(seeds), 1), streams)
    return streams.points


def load_reader(folder: Path) -> PeopleReader:
    """The `Policy.reader` of a saved policy, without its learner; raises as `Policy.load`."""
    _refuse_damaged(folder)
    path = folder / FEATURES
    plain = read_json(path, dict[str, Any])
    if plain.get("format") != FORMAT:
        by = f"{shown(str(plain.get('fairall')))}; this is {fairall.__version__}"
        raise FairAllError(f"{folder} was saved by another version of fairall ({by}); run it anew")
    try:
        reader = of_plain(PeopleReader, plain)
        schema_of(reader)
    except (ValueError, FairAllError) as error:
        raise FairAllError(f"{path}: {shown(str(error), MOST_SHOWN)}") from error
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


def _tensors(path: Path, n_seeds: int) -> tuple[dict[str, Tensor], Tensor]:
    """State of the learner and points of a policy of `n_seeds` seeds; raises as `Policy.load`."""
    try:
        stored = deserialised(read_bytes(path))
    except SafetensorError as error:
        reason = shown(str(error), MOST_SHOWN)
        raise FairAllError(f"{path}: cannot be read ({reason}); run it anew") from error
    points = stored.pop(POINTS_NAME, torch.empty(0))
    if points.ndim != 3 or points.dtype != torch.float32 or not points.shape[2]:
        raise FairAllError(f"{path} does not hold the weights and points of a policy: run it anew")
    state = {name.removeprefix(LEARNER): tensor for name, tensor in stored.items()}
    if len(points) != n_seeds:
        raise FairAllError(f"{path} holds {len(points)} seeds, and {CONFIG} says seeds={n_seeds}")
    return state, points


def _built(config: Config, reader: PeopleReader, tensors: dict[str, Tensor], folder: Path) -> Learner:
    """The untrained learner of a configuration, which may need room in proportion to its saved `tensors`."""
    from fairall.nn.bounded import Bounded, TooLargeError  # a policy that is saved needs it not

    target = config.model._target_
    try:
        with Bounded(sum(one.numel() for one in tensors.values()), len(tensors)):
            return learner_of(config, Setting.of(schema_of(reader), config))
    except FairAllError as error:
        raise FairAllError(f"{folder}: {shown(str(error), MOST_SHOWN)}") from error
    except TooLargeError as error:
        raise FairAllError(
            f"{folder / CONFIG} describes larger nets than {WEIGHTS} holds: run it anew"
        ) from error
    except Exception as error:  # a class of the user's may raise anything
        reason = shown(f"{type(error).__name__}: {error}", MOST_SHOWN)
        raise FairAllError(f"{folder / CONFIG}: {target} cannot be made from it ({reason})") from error


def _kinds(state: Mapping[str, Any]) -> dict[str, Any]:
    """Shapes and types of the tensors of a state by name, None for anything else; archives have any size."""
    kinds = {name: (one.shape, one.dtype) if isinstance(one, Tensor) else None for name, one in state.items()}
    return kinds | {name: state[name].dtype for name in state if name.endswith(EXTRA)}


def _refuse_damaged(folder: Path) -> None:
    """Raise FairAllError unless `folder` holds an unchanged policy."""
    if not (folder / SUMS).exists() and not (folder / CONFIG).exists():
        within = folder / "policy"
        hint = f"; did you mean {within}?" if within.is_dir() else ""
        raise FairAllError(f"{folder} is not a policy: {folder / CONFIG} is missing{hint}")
    for name in damaged(folder / SUMS, among=(CONFIG, FEATURES, WEIGHTS)):
        path = folder / name
        wrong = "damaged, edited" if path.exists() else "missing"
        raise FairAllError(f"{path} is {wrong}, or of another version of fairall; run it anew")
