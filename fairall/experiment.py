"""One run from its configuration to its result."""

from __future__ import annotations

import gc
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig

from fairall.config.schema import Config, EffectiveDecisions, ScalerRows
from fairall.config.target import target_class
from fairall.config.validation import checked
from fairall.data.dataset import Dataset, dataset
from fairall.data.people import Decided
from fairall.data.prepared import PreparedData
from fairall.errors import FairAllError
from fairall.models.learner import Learner, PretrainCurves, Setting
from fairall.online.evaluation import Evaluation
from fairall.online.loop import NO_EXPLORATION, OnlineLearning
from fairall.results.paper import paper_figures
from fairall.results.summary import FIGURES
from fairall.results.terminal import Display
from fairall.results.title import run_title
from fairall.results.write import Learned, write_result
from fairall.runtime import signals
from fairall.runtime.processor import prepare_processor, short_of_memory
from fairall.storage.cache import Cache
from fairall.storage.identity import run_id
from fairall.storage.run_folder import RunFolder
from fairall.tracking.client import how_to_look
from fairall.tracking.outbox import Records, Told

DEFAULTS = "defaults"  # what `hyperparameters` is where no file of conf/hparams/ says otherwise


@dataclass(frozen=True)
class Job:
    """A run before it is run.

    Attributes:
        config: of the run.
        plain: the same as plain containers.
        data: everyone the run will meet.
        learner: untrained.
        identity: of the result.
        folder: where that is, or will be.
    """

    config: Config
    plain: dict[str, Any]
    data: PreparedData
    learner: Learner
    identity: str
    folder: RunFolder


def prepare(source: Dataset, scaler: ScalerRows) -> PreparedData:
    """Everyone a run will meet."""
    return source.prepare(scaler=scaler)


def job(composed: DictConfig, people: Callable[[Dataset, ScalerRows], PreparedData] = prepare) -> Job:
    """What a configuration asks for, checked; nothing is written.

    Args:
        composed: by Hydra, of type `Config`.
        people: as `prepare`, for who asks for many jobs of the same people.

    Raises:
        FairAllError: where the configuration asks for something impossible or the data are not there.
    """
    config, plain = checked(composed)
    if config.objective not in FIGURES:
        raise FairAllError(
            f"objective={config.objective} is not possible: it must be one of {', '.join(FIGURES)}"
        )
    source = dataset(config.dataset)
    data = people(source, config.protocol.scaler)
    learner: Learner = target_class(config.model, "model")(config.model, Setting.of(data.schema, config))
    identity = run_id(plain, data.fingerprint(), learner, source)
    folder = RunFolder(Path(config.outputs_dir) / "runs" / config.model.name / config.dataset.name / identity)
    return Job(config, plain, data, learner, identity, folder)


@short_of_memory()
def run(composed: DictConfig, display: Display | None = None) -> tuple[dict[str, Any], Path]:
    """Runs what the configuration says, or goes on with it, or finds it done; README.md says what it leaves.

    Args:
        composed: by Hydra, of type `Config`.
        display: what to tell the terminal; everything, unless given.

    Returns:
        The run's summary (`summary.summarise`) and its folder.

    Raises:
        FairAllError: where the configuration asks for something impossible or the outputs cannot be written.
        MemoryError: where it asks for more than there is.
        Stopped: where the process is asked to stop; the same call goes on from what was saved.
    """
    asked = job(composed)
    prepare_processor(asked.config.threads)
    config, plain, data, folder = asked.config, asked.plain, asked.data, asked.folder
    decided = initially_decided(config, data)
    display = display or Display()
    untuned = _untuned(config) if asked.learner.learns else []
    for note in (*data.notes, *untuned):
        display.say(f"Note: {note}.")
    with folder.claimed(say=display.say):
        folder.refuse_others(plain)
        if _whole(folder, display) and not config.force:
            summary = folder.read_summary()
            display.say(f"Already done; force=true runs it anew: {folder.path}")
            Records(plain, folder.path, display.say).settle()
        else:
            with folder.making(anew=config.force, say=display.say) as making:
                records = Records(plain, making.path, display.say)
                with records.making(shlex.join(["python", "-m", "fairall", *sys.argv[1:]])):
                    making.write_config(plain)
                    end_start_up()
                    learned = _learn(asked.learner, config, data, decided, making, display)
                    summary = write_result(learned, config, plain, data, making)
                records.result_made(cpu_seconds=time.process_time())
                making.finish()
                records.settle()
    _tell(plain, summary, folder.path, display)
    return summary, folder.path


def _whole(folder: RunFolder, display: Display) -> bool:
    """Whether the result is there; one that is damaged is to be made again."""
    if not folder.done:
        return False
    damaged = folder.damaged()
    if damaged:
        display.say(f"Warning: {folder.path / damaged[0]} is damaged or missing; the result is made again.")
        folder.reopen()
    return not damaged


def end_start_up() -> None:
    """Starts the garbage collector where `__main__` has kept it off, on what is made from here on only."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def _learn(
    learner: Learner,
    config: Config,
    data: PreparedData,
    decided: Decided,
    folder: RunFolder,
    display: Display,
) -> Learned:
    """Phase I, warm-up and Phase II, or what the last checkpoint leaves to do of them."""
    seeds = list(learner.setting.seeds)
    evaluation = Evaluation(getattr(data, config.evaluation.split), config.cost.value, seeds)
    online = OnlineLearning(
        learner,
        data.applicants(config.schedule.applicants, seeds),
        evaluation,
        seeds,
        exploration=config.protocol.exploration if learner.learns else NO_EXPLORATION,
        decide_again=config.protocol.effective is EffectiveDecisions.decided_again,
    )
    checkpoint = folder.checkpoint(seconds=config.checkpoint_seconds, say=display.say)
    curves, warmed_up, epochs = None, 0, learner.warm_up_epochs()
    time_steps = config.schedule.time_steps
    phases = {"Phase I": learner.pretrain_units(), "Warm-up": epochs, "Phase II": time_steps}
    if phases["Phase I"] != config.schedule.phase1_epochs:
        del phases["Phase I"]  # its units are no epochs, and say nothing about the other phases
    display.run_of(phases)
    begun = checkpoint.load()
    if begun is None:
        curves = _pretrain(learner, config, data, display)
    else:
        curves = None if begun["curves"] is None else PretrainCurves(**begun["curves"])
        warmed_up = begun["warmed_up"]
        online.load_state_dict(begun["online"])

    def state() -> dict[str, Any]:
        of_phase1 = None if curves is None else dict(vars(curves))
        return {"curves": of_phase1, "warmed_up": warmed_up, "online": online.state_dict()}

    with signals.deferred():
        with display.phase("Warm-up", epochs, done=warmed_up) as advance:
            while warmed_up < epochs:
                advance(**learner.warm_up_epoch(decided, warmed_up))
                warmed_up += 1
                checkpoint.offer(state)
        with display.phase("Phase II", time_steps, done=max(0, online.history.steps_done)) as advance:
            history = online.run(time_steps, advance, lambda: checkpoint.offer(state))
        checkpoint.keep(state)
    return Learned(learner, decided, history, curves, seeds, evaluation)


def _pretrain(
    learner: Learner, config: Config, data: PreparedData, display: Display
) -> PretrainCurves | None:
    units = learner.pretrain_units()
    if units == 0:
        return None
    with display.phase("Phase I", units) as advance:
        return learner.pretrain(data, phase1_cache(config, display), advance)


def phase1_cache(config: Config, display: Display) -> Cache:
    """What runs share of Phase I."""
    return Cache(Path(config.outputs_dir) / "cache" / "phase1", config.checkpoint_seconds, display.say)


def initially_decided(config: Config, data: PreparedData) -> Decided:
    """The first people of the pool as the initial policy decided on them, for the warm-up (appendix D.2).

    Raises:
        FairAllError: where the policy needs what the data set does not have.
    """
    policy = target_class(config.initial_policy, "initial_policy")(config.initial_policy)
    people = data.warm_up(config.schedule.warm_up_applicants)
    everyone = torch.arange(len(people)).expand(config.seeds, -1)
    propensity = torch.tensor(policy.propensity(data.pool_table), dtype=torch.float32)[everyone]
    accepted = torch.tensor(policy.decide(data.pool_table), dtype=torch.bool)[everyone]
    return Decided.reveal(people.rows(everyone), propensity, accepted)


def _untuned(config: Config) -> list[str]:
    """What to say where nobody has selected hyperparameters for the method on the data set."""
    if config.hyperparameters != DEFAULTS:
        return []
    model, people = config.model.name, config.dataset.name
    return [f"there is no conf/hparams/{model}/{people}.yaml, so {model} has the defaults of its own file"]


def _tell(plain: dict[str, Any], summary: dict[str, Any], folder: Path, display: Display) -> None:
    display.result(run_title(plain), summary, paper_figures(plain), plain["evaluation"]["window"])
    for warning in summary["warnings"]:
        display.say(f"Warning: {warning}.")
    display.say(f"Results: {folder}")
    look = how_to_look(plain)
    if look is not None and Told.read(folder).result:
        display.say(f"MLflow:  {look}")
