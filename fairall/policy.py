"""A learnt policy as a folder that can be deployed: load it, give it people, get acceptance probabilities."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import torch
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue

from fairall.config import Config
from fairall.data.features import Kind, Schema
from fairall.data.prepare import Scaler
from fairall.errors import FairAllError
from fairall.files import atomic
from fairall.model_node import with_typed_model
from fairall.models.learner import Learner, Setting
from fairall.randomness import SeedStreams
from fairall.target import target_class
from fairall.tensor_files import load_tensors, save_tensors


class Policy:
    """The policies of all seeds of a finished run.

    Attributes:
        learner: trained, E replicates.
        schema: the features it decides on.
        scaler: how raw features are scaled.
    """

    def __init__(self, learner: Learner, scaler: Scaler) -> None:
        self.learner = learner
        self.schema = learner.setting.schema
        self.scaler = scaler

    def save(self, folder: Path, config: dict[str, Any]) -> None:
        """Writes config.yaml (of the run, plain containers), features.json and weights.pt to `folder`."""
        with atomic(folder / "config.yaml") as temporary:
            OmegaConf.save(OmegaConf.create(config), temporary)
        features = [
            feature | {"mean": mean, "scale": scale}
            for feature, mean, scale in zip(
                self.schema.to_plain(), self.scaler.mean, self.scaler.scale, strict=True
            )
        ]
        with atomic(folder / "features.json") as temporary:
            temporary.write_text(json.dumps(features, indent=1) + "\n")
        save_tensors(self.learner.state_dict(), folder / "weights.pt")

    @classmethod
    def load(cls, folder: Path) -> Policy:
        """Reads what `save` wrote. Nothing is unpickled; the module of the method it names is imported.

        Raises:
            FairAllError: where another version of this package has saved it, the method is not there, or its
                weights are damaged.
        """
        stored = OmegaConf.load(folder / "config.yaml")
        typed = with_typed_model(cast(DictConfig, OmegaConf.merge(OmegaConf.structured(Config), stored)))
        try:
            config = cast(Config, OmegaConf.to_object(typed))
        except MissingMandatoryValue as error:
            raise FairAllError(
                f"{folder} was saved by another version of fairall, without {error.full_key}; run it anew"
            ) from error
        learner_class = target_class(config.model, "model")
        columns = json.loads((folder / "features.json").read_text())
        schema = Schema.from_plain(columns, stored.dataset.encoding)
        learner = learner_class(config.model, Setting.of(schema, config))
        learner.load_state_dict(load_tensors(folder / "weights.pt"))
        scaler = Scaler(
            mean=np.array([c["mean"] for c in columns]),
            scale=np.array([c["scale"] for c in columns]),
            real=np.array([feature.kind is Kind.REAL for feature in schema]),
        )
        return cls(learner, scaler)

    def propensity(self, people: pd.DataFrame) -> np.ndarray:
        """π(d=1 | x, s) of every seed's policy.

        Args:
            people: the raw features by name, in the words and numbers of the raw file, and a column `s` in
                {−1, +1}.

        Returns:
            Shape (E, N), in [0, 1]; the same for the same people.

        Raises:
            FairAllError: where a column is missing or holds a value it cannot take.
        """
        x = self.scaler.transform(self.schema.encode(people).to_numpy())
        if "s" not in people:
            raise FairAllError("the column 's' is needed, and the table lacks it")
        if not people["s"].isin([-1, 1]).all():
            raise FairAllError("column 's' holds the sensitive attribute and must be −1 or +1 in every row")
        seeds = list(self.learner.setting.seeds)
        s = torch.tensor(people["s"].to_numpy(), dtype=torch.float32)
        propensity = self.learner.propensity(
            x.expand(len(seeds), -1, -1), s.expand(len(seeds), -1), SeedStreams(seeds, "deployment")
        )
        return propensity.numpy()
