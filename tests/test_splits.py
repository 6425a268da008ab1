"""`splits`: replicates with people of their own, against runs on one split each."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from fairall.config.compose import compose_config, typed_config
from fairall.config.schema import Config, ScalerRows
from fairall.data.dataset import Dataset, dataset
from fairall.data.load import load_dataset
from fairall.data.prepared import PreparedData
from fairall.decide.explain import explain
from fairall.display.progress import Display
from fairall.errors import FairAllError
from fairall.experiment import job, prepare
from fairall.measuring.measure import measure
from fairall.models.latent_learner import LatentLearner
from fairall.models.phase1 import Phase1Epochs
from fairall.nn import native
from fairall.online.training import Training
from fairall.policy import Policy
from fairall.results.result import Result
from fairall.results.runs import load_result
from fairall.storage.checkpoint import Checkpoint
from reproduction.latents import latent_space
from tests.conftest import cache_in, run_folder, succeeded

STEPS = "schedule.time_steps=5", "evaluation.window=[1,5]"
SHORT = *STEPS, "schedule.phase1_epochs=6", "schedule.warm_up_epochs=4"
RACES = "dataset.groups=[Caucasian,African-American,Hispanic]"


Trained = Callable[..., tuple[Training, Result]]


@pytest.fixture
def trained(tmp_path: Path) -> Trained:
    """The finished training of a command line, perhaps on other people, and its result."""
    numbers = itertools.count()

    def run(*words: str, people: Callable[[Dataset, Config], PreparedData] = prepare) -> Any:
        training = job(compose_config(*SHORT, *words), people)
        checkpoint = Checkpoint(tmp_path / f"{next(numbers)}", "none", seconds=float("inf"))
        cache = cache_in(tmp_path / "cache")
        training.run(checkpoint, cache, Display(progress_only=True))
        return training, measure(training, cache)

    return run


@pytest.mark.whole
@pytest.mark.parametrize(
    "words",
    [
        ["model=fairall_I_II", "dataset=credit"],
        ["model=fairall_II", "dataset=synthetic", "evaluation.split=validation"],
        ["model=parity_ensemble", "dataset=credit", "world=capacity", "protocol.scaler=each_file"],
        ["model=oracle_fair", "dataset=fico", "world=drift", "world.drift.label.advantaged=-0.5"],
        # A net: scores of a linear model are tied but for rounding, at which thresholds differ.
        ["model=greedy", "dataset=compas", RACES, "fairness=demographic_parity", "model.clf_arch=[32]"],
    ],
    ids=" ".join,
)
def test_a_seed_is_what_a_run_on_its_split_alone_gives(words: list[str], trained: Trained) -> None:
    try:
        dataset(typed_config(*words).dataset).table()
    except FairAllError as error:
        pytest.skip(f"no raw data: {error}")

    def second(source: Dataset, config: Config) -> PreparedData:
        source.prepare(scaler=config.protocol.scaler)
        return source.resplit(1).prepare(scaler=config.protocol.scaler)

    drawn_anew = f"initial_policy.random_state={typed_config(*words).initial_policy.random_state + 1}"
    _, together = trained(*words, "seeds=2", "splits=2")
    alone = trained(*words, "seeds=1"), trained(*words, "seeds=1", "seed=1", drawn_anew, people=second)
    for seed, (_, one) in enumerate(alone):
        own = together.steps[together.steps["seed"] == seed].reset_index(drop=True)
        pd.testing.assert_frame_equal(own, one.steps, rtol=1e-3, atol=1e-4)
        pd.testing.assert_series_equal(
            together.per_seed.loc[seed], one.per_seed.loc[seed], rtol=1e-3, atol=1e-3
        )
    sizes = [[one.groups["all"].people for _, one in alone], together.groups["all"].people]
    assert sizes[0] == [sizes[1]] * 2


def test_people_of_each_split_are_as_many_and_others() -> None:
    data = load_dataset("credit").replicates(4, 2, ScalerRows.training_rows)
    assert data.test.x.shape == (4, 150, len(data.schema))
    first, second, again, _ = data.test.x
    assert (torch.equal(first, again), torch.equal(first, second)) == (True, False)
    assert torch.equal(first, load_dataset("credit").prepare().test.x)
    people = [torch.cat([data.train.x[e], data.test.x[e], data.validation.x[e]]) for e in (0, 1)]
    everybody, others = (np.unique(of.numpy(), axis=0) for of in people)
    assert np.array_equal(everybody, others)
    known, others = (np.unique(of[:-150].numpy(), axis=0) for of in people)
    assert not np.array_equal(known, others)  # who is for validation differs


def test_means_over_splits_have_the_spread_of_other_people(trained: Trained) -> None:
    """The utility of the oracle varies over splits by about the standard error of test people."""
    people = "dataset.rows={pool:200,validation:100,test:200}"
    words = "model=oracle", "dataset=synthetic", people
    _, one_split = trained(*words, "seeds=2")
    _, splits = trained(*words, "seeds=8", "splits=8")
    assert one_split.per_seed["mean_utility"].std() == 0.0
    error = splits.evaluation.utility_standard_error
    assert error is not None
    ratio = splits.per_seed["mean_utility"].std() / error
    low, high = np.sqrt(stats.chi2.ppf([1e-3, 1 - 1e-3], 7) / 7)  # of the deviation of eight normal means
    assert low < ratio < high


def test_drift_moves_the_people_of_every_split(trained: Trained) -> None:
    words = "model=greedy", "dataset=credit", "world=drift", "world.drift.advantaged_share=0.3"
    training, _ = trained(*words, "world.drift.course=step", "world.drift.start=1", "seeds=3", "splits=3")
    moved = training.world.evaluated(training.data.test, 3)
    shares = (moved.s > 0).double().mean(1)
    assert (shares - 0.3).abs().max() < 0.08
    assert len(set(shares.tolist())) > 1


def test_compiled_phase1_learns_from_each_pool() -> None:
    made = job(compose_config("dataset=credit", "seeds=2", "splits=2"))
    learner = made.learner
    assert isinstance(learner, LatentLearner)
    task = learner.phase1_task(made.data, made.config.model.phase1)
    order, noise = task.streams().permutations(64), torch.randn(2, 64, task.latent_size, 1)
    pool = task.pool.rows(torch.arange(64))
    found = []
    for kind in (Phase1Epochs, native.Phase1Epochs):
        vae = task.untrained_vae(task.streams())
        training = kind(vae, pool, task.config)
        losses = (
            training.epoch(order, noise, torch.zeros(2, dtype=torch.bool), 1e-3),
            training.loss(pool, noise),
        )
        found.append([*losses, *vae.parameters()])
    torch.testing.assert_close(*found, rtol=1e-3, atol=1e-4)


@pytest.mark.whole
def test_a_run_is_saved_resumed_and_explained(tmp_path: Path) -> None:
    words = "dataset=credit", "preset=quick", "seeds=2", "splits=2", "tracking.enabled=false"
    ended = succeeded(*words, "evaluation.decisions=true", cwd=tmp_path)
    assert "of one of 2 splits" in " ".join(ended.stdout.split())
    folder = run_folder(tmp_path / "outputs")
    assert "splits=2" in (folder / "model_card.md").read_text()
    run, policy = load_result(folder), Policy.load(folder / "policy")
    first, second = (latent_space(run, seed) for seed in (0, 1))
    assert first is not None
    assert second is not None
    assert len(first[1]) == 150
    assert not np.array_equal(first[2], second[2])
    assert len(explain(policy, policy.reader.example(), 0).contributions) == len(policy.reader.names) + 1
