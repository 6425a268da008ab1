"""Untrained policies, each made once, and people to decide on."""

import functools
import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import torch
from pytest_regressions.file_regression import FileRegressionFixture

from fairall.config.compose import checked, compose_config
from fairall.data.dataset import dataset
from fairall.models.learner import Setting
from fairall.policy import Policy, learner_of
from tests.conftest import MEANING, succeeded
from tests.test_policy import crowd

Made = tuple[Path, Policy]
Policies = Callable[..., Made]
LOANS = "dataset=csv", *MEANING, "dataset.kinds={rooms: categorical}", "seeds=4"


def made(folder: Path, *words: str) -> Made:
    """An untrained policy for people like those of `crowd`, and where it is saved."""
    crowd().to_csv(folder / "training.csv", index=False)
    config = checked(compose_config(*LOANS, f"dataset.path={folder / 'training.csv'}", *words))
    data = dataset(config.dataset).prepare()
    policy = Policy.of(learner_of(config, Setting.of(data.schema, config)), data)
    with torch.no_grad():
        for weights in policy.learner.parameters():
            weights.mul_(1.5)  # to differ between people and seeds
    policy.save(folder / "policy", config)
    return folder / "policy", policy


@pytest.fixture(scope="session")
def policies(tmp_path_factory: pytest.TempPathFactory) -> Policies:
    """The policy of some words, see `made`."""
    return functools.cache(lambda *words: made(tmp_path_factory.mktemp("made"), *words))


@pytest.fixture
def people(tmp_path: Path) -> pd.DataFrame:
    """30 people, also in people.csv."""
    people = crowd(30).drop(columns="repaid")
    people.insert(0, "id", [f"00{i}" for i in range(30)])
    people.to_csv(tmp_path / "people.csv", index=False)
    return people


def decided(
    folder: Path, run: object, words: str = "", *, people: str = "people.csv", out: str = "out.csv"
) -> tuple[pd.DataFrame, str]:
    """What `decide` writes, with texts where cells are empty, and what it prints."""
    said = succeeded("decide", str(run), people, "-o", out, *words.split(), cwd=folder).stdout
    read = pd.read_csv if out.endswith("csv") else pd.read_parquet
    return read(folder / out), said


def check_text(text: str, known: FileRegressionFixture) -> None:
    """Compare a text with the file of the test, numbers to six digits."""
    known.check(re.sub(r"\d\.\d{7,}", lambda number: f"{float(number[0]):.6f}", text), extension=".txt")
