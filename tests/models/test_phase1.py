from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from fairall.data.features import Schema
from fairall.models import phase1
from fairall.models.learner import PretrainCurves, ProgressCallback
from fairall.models.phase1 import Phase1Config, Phase1Task, train_phase1
from fairall.models.vae import ConditionalVAE
from fairall.nn import native
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Checkpoint
from tests.conftest import PHASE1, MakePeople, no_checkpoint
from tests.models.conftest import same

both = pytest.mark.usefixtures("computed")


@pytest.fixture
def task(schema: Schema, people: MakePeople) -> Phase1Task:
    """A task of small nets, and of few people, so that later epochs overfit."""
    return Phase1Task(people(20), people(40), schema, [0, 1], 2, [16], False, PHASE1, 60)


@pytest.fixture(params=["compiled", "torch"])
def computed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is trained is so by compiled code, and by what replaces it."""
    if request.param == "torch":
        monkeypatch.setattr(native, "kernels", lambda: None)


def train(
    task: Phase1Task,
    *,
    checkpoint: Checkpoint | None = None,
    progress: ProgressCallback = lambda **_: None,
    **changes: Any,
) -> tuple[ConditionalVAE, PretrainCurves]:
    config = replace(task.config, **{key: changes.pop(key) for key in vars(PHASE1).keys() & changes})
    task = replace(task, config=config, **changes)
    return train_phase1(task, progress=progress, checkpoint=checkpoint or no_checkpoint())


@both
def test_the_best_validation_epoch_is_kept_and_seeds_that_overfit_are_done_early(task: Phase1Task) -> None:
    vae, curves = train(task, epochs=150)
    assert (curves.best_epoch == curves.epochs[curves.validation.argmin(0)]).all()
    assert (curves.kept_loss == curves.validation.min(0).values).all()
    # A run that stops there ends with the same weights.
    stopped, _ = train(task, epochs=int(curves.best_epoch[0]))
    assert same([of[0] for of in vae.parameters()], [of[0] for of in stopped.parameters()])
    impatient, short = train(task, epochs=150, patience=30, margin=0.0)
    assert short.epochs[-1] == short.best_epoch.max() + 30 < 150
    assert (short.best_epoch == curves.best_epoch).all()
    assert same(impatient.state_dict(), vae.state_dict())
    # Seeds go on that are no worse than their best by the margin.
    assert train(task, epochs=150, patience=30, margin=1e3)[1].epochs[-1] == 150


@both
def test_a_seed_that_is_done_changes_no_more_whoever_trains_on(task: Phase1Task) -> None:
    # A patience of one epoch and no margin: each seed is done at its first step upwards.
    together, curves = train(task, patience=1, margin=0.0, seeds=range(4))
    assert len({*curves.best_epoch.tolist()}) > 1
    for seed in range(4):
        alone, own = train(task, patience=1, margin=0.0, seeds=[seed])
        assert own.best_epoch[0] == curves.best_epoch[seed]
        found, known = ([of[e] for of in vae.parameters()] for vae, e in ((alone, 0), (together, seed)))
        torch.testing.assert_close(found, known)


class InterruptionError(Exception):
    """As a kill, but for the test itself."""


@both
@pytest.mark.parametrize("last", [1, 11, 13])  # one of the seeds is done after 10 epochs, the other after 14
def test_training_goes_on_after_any_epoch_to_the_same_end(
    last: int, task: Phase1Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairall.storage.checkpoint.MAX_SHARE", torch.inf)
    whole, curves = train(task, patience=1, margin=0.0)
    assert 11 < curves.epochs[-1] < 60
    told: list[dict[str, float]] = []

    def interrupted(**now: float) -> None:
        told.append(now)
        if len(told) == last + 1:
            raise InterruptionError

    kept = Checkpoint(tmp_path / "state.pt", "phase1", seconds=0.0)
    with pytest.raises(InterruptionError):
        train(task, patience=1, margin=0.0, checkpoint=kept, progress=interrupted)
    resumed, further = train(task, patience=1, margin=0.0, checkpoint=kept, progress=interrupted)
    assert told[last + 1] == {"resumed": last}
    assert same([vars(curves), whole.state_dict()], [vars(further), resumed.state_dict()])


@both
def test_a_seed_that_diverges_leaves_the_others_as_they_are(
    task: Phase1Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    untrained_vae = Phase1Task.untrained_vae

    def poisoned(self: Phase1Task, streams: SeedStreams) -> ConditionalVAE:
        vae = untrained_vae(self, streams)
        with torch.no_grad():
            next(vae.parameters())[1] = torch.inf
        return vae

    sound, known = train(task, epochs=5, seeds=[0, 1, 2])
    monkeypatch.setattr(Phase1Task, "untrained_vae", poisoned)
    mixed, curves = train(task, epochs=5, seeds=[0, 1, 2])
    assert (curves.best_epoch == 0).tolist() == [False, True, False]
    for own, other in zip(mixed.parameters(), sound.parameters(), strict=True):
        assert torch.equal(own[[0, 2]], other[[0, 2]])
        assert own[1].isnan().all()
    assert torch.equal(curves.kept_loss[[0, 2]], known.kept_loss[[0, 2]])
    assert not curves.kept_loss[1].isfinite()


@pytest.mark.parametrize(
    ("updates", "share", "n_people", "within"),
    [
        (None, 1.0, 10**6, 200),
        (800, 1.0, 64, 200),  # 4 minibatches of 16
        (799, 1.0, 64, 199),
        (799, 1.0, 65, 159),  # the fifth has one person
        (1, 1.0, 64, 1),  # an epoch at least
        (None, 0.33, 64, 66),
        (400, 0.33, 64, 33),
        (None, 0.001, 64, 1),
    ],
)
def test_epochs_within_a_number_of_updates(
    updates: int | None, share: float, n_people: int, within: int
) -> None:
    assert replace(PHASE1, updates=updates, share=share).epochs_within(200, n_people) == within


@both
def test_epochs_are_trained_at_their_rate(task: Phase1Task, monkeypatch: pytest.MonkeyPatch) -> None:
    config = replace(PHASE1, annealed=True, learning_rate=0.5)
    rates = [config.rate(epoch, 4) for epoch in (1, 2, 3, 4)]
    assert rates == pytest.approx([0.5, 0.25 + 0.125 * 2**0.5, 0.25, 0.25 - 0.125 * 2**0.5])
    assert replace(config, annealed=False).rate(4, 4) == 0.5
    monkeypatch.setattr(Phase1Config, "rate", lambda self, epoch, epochs: 0.0 if epoch <= epochs else 1.0)
    assert same(task.untrained_vae(task.streams()).state_dict(), train(task, epochs=3)[0].state_dict())


@pytest.mark.parametrize(
    ("patience", "epochs", "shortened"),
    [(300, 2000, (10, 16, 300)), (300, 200, (1, 2, 30)), (300, 1, (1, 1, 1)), (None, 1, (1, 1, None))],
)
def test_patience_and_validation_are_shortened_with_the_epochs(
    patience: int | None, epochs: int, shortened: tuple[int | None, ...]
) -> None:
    planned = replace(PHASE1, updates=90, validate_every=10, validation_samples=16, patience=patience)
    found = planned.shortened(epochs, 2000)
    assert (found.validate_every, found.validation_samples, found.patience) == shortened


def test_every_field_of_a_task_and_of_its_configuration_enters_the_key(
    task: Phase1Task, people: MakePeople, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_config = [replace(PHASE1, **{of.name: 7}) for of in fields(Phase1Config)]  # type: ignore[arg-type]
    pools = [replace(task.pool, s=-task.pool.s), replace(task.pool, x=task.pool.x + 1)]
    values: dict[str, list[Any]] = {of.name: [7] for of in fields(Phase1Task)} | {
        "pool": pools,
        "validation": [people(7)],
        "schema": [Schema(list(task.schema)[1:])],
        "config": of_config,
    }
    others = [replace(task, **{name: value}) for name, some in values.items() for value in some]
    keys = [task.key(), *(other.key() for other in others)]
    assert len(set(keys)) == len(keys)
    assert replace(task, pool=replace(task.pool, label=1 - task.pool.label)).key() == task.key()
    monkeypatch.setattr(phase1, "processor", lambda: "another")
    assert task.key() not in keys
