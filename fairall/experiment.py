"""One run from its configuration to its result: data, training, evaluation, folder, MLflow."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from fairall.config.checks import require
from fairall.config.schema import Config, ScalerRows, objectives_of
from fairall.config.validation import checked
from fairall.data.dataset import Dataset, dataset
from fairall.data.prepared import PreparedData
from fairall.metrics import Measure, load_measures, summaries
from fairall.models.learner import Learner, Setting
from fairall.nn.native.calls import use_threads
from fairall.online.footprint import short_of
from fairall.online.initial_policy import InitialPolicy
from fairall.online.training import Training
from fairall.results.paper import paper_metrics
from fairall.results.terminal import Display
from fairall.results.title import run_title
from fairall.results.write import write_result
from fairall.runtime.process import prepare_processor, short_of_memory
from fairall.storage.cache import Cache
from fairall.storage.identity import run_id
from fairall.storage.run_folder import RunFolder
from fairall.tracking.client import how_to_look, page_address
from fairall.tracking.outbox import Outbox, Sent
from fairall.worlds.world import World

DEFAULTS = "defaults"  # value of `hyperparameters` without values in conf/hparams/


@dataclass(frozen=True)
class Job:
    """A run that has not started.

    Attributes:
        config: of the run.
        plain: the same as plain containers.
        data: the people of the run.
        world: that the run happens in.
        initial_policy: decides on the people of the warm-up.
        learner: untrained.
        measures: the standard ones and the user's.
        identity: of the result.
        folder: of the result.
    """

    config: Config
    plain: dict[str, Any]
    data: PreparedData
    world: World
    initial_policy: InitialPolicy
    learner: Learner
    measures: tuple[Measure, ...]
    identity: str
    folder: RunFolder


def prepare(source: Dataset, scaler: ScalerRows) -> PreparedData:
    """The people of a run."""
    return source.prepare(scaler=scaler)


def job(composed: DictConfig, people: Callable[[Dataset, ScalerRows], PreparedData] = prepare) -> Job:
    """Build everything that a run needs from its configuration; nothing is written.

    Args:
        composed: by Hydra, of type `Config`.
        people: loads the data; `prepare`, or a cache of it for many jobs.

    Raises:
        FairAllError: where a value of the configuration is impossible or the data are missing.
    """
    config = checked(composed)
    source = dataset(config.dataset)
    data = people(source, config.protocol.scaler)
    setting = Setting.of(data.schema, config)
    world = World.of(config, data, setting.seeds)
    measures = (*load_measures(config.evaluation.measures), *world.measures)
    possible = [quantity.name for quantity in summaries(measures)]
    if config.evaluation.split == "validation":
        from fairall.results.selection import SELECTION  # imports scipy.optimize, a third of a second

        possible += SELECTION
    for objective in objectives_of(config.objective):
        require(objective in possible, "objective", objective, f"one of {', '.join(possible)}")
    policy: InitialPolicy = config.initial_policy.build()
    learner: Learner = config.model.build(setting)
    plain, functions = config.to_plain(), (measure.function for measure in measures)
    identity = run_id(plain, data.fingerprint(), source, policy, learner, *world.parts.values(), *functions)
    folder = RunFolder(Path(config.outputs_dir) / "runs" / config.model.name / config.dataset.name / identity)
    return Job(config, plain, data, world, policy, learner, measures, identity, folder)


@short_of_memory()
def run(
    composed: DictConfig, display: Display | None = None, *, command: str = ""
) -> tuple[dict[str, Any], Path]:
    """Run a configuration, resume it where it was interrupted, or return its finished result.

    Args:
        composed: by Hydra, of type `Config`.
        display: what to show on the terminal; everything, unless given.
        command: that started the run, for MLflow.

    Returns:
        The run's summary (`summary.summarise`) and its folder.

    Raises:
        FairAllError: where a value of the configuration is impossible or the outputs cannot be written.
        MemoryError: where the run needs more memory than there is.
        Stopped: where the process was asked to stop, after the state has been saved.
    """
    task, display = job(composed), display or Display()
    config, plain, folder = task.config, task.plain, task.folder
    prepare_processor()
    use_threads(config.threads)
    training = Training(task.learner, task.initial_policy, config, task.world, task.measures)
    notes = (*task.data.notes, *training.notes(), *untuned(config, task.learner), *short_of(training))
    for note in notes:
        display.say(f"Note: {note}.")
    for warning in training.warnings():
        display.say(f"Warning: {warning}.")
    with folder.locked(log=display.say):
        folder.refuse_others(plain)
        intact = folder.intact(display.say)
        if intact and not config.force:
            summary = folder.read_summary()
            display.say(f"Already done; force=true runs it anew: {folder.path}")
            registered = Outbox(plain, folder.path, display.say).flush()
        else:
            if not intact:
                folder.reopen()
            with folder.recording(anew=config.force, log=display.say) as making:
                outbox = Outbox(plain, making.path, display.say)
                with outbox.recording(command):
                    making.write_config(plain)
                    checkpoint = making.checkpoint(seconds=config.checkpoint_seconds, log=display.say)
                    training.run(checkpoint, phase1_cache(config, display), display)
                    summary = write_result(training, plain, making)
                    outbox.result_made(cpu_seconds=time.process_time())
                    making.finish()
                registered = outbox.flush()
    show_result(plain, summary, folder.path, display)
    for sentence in registered:
        display.say(sentence)
    return summary, folder.path


def phase1_cache(config: Config, display: Display) -> Cache:
    """The cache of Phase I, shared by all runs in `outputs_dir`."""
    return Cache(Path(config.outputs_dir) / "cache" / "phase1", config.checkpoint_seconds, display.say)


def untuned(config: Config, learner: Learner) -> list[str]:
    """A note where no hyperparameters have been selected for the method on the data set."""
    if config.hyperparameters != DEFAULTS or not learner.learns:
        return []
    model, dataset = config.model.name, config.dataset.name
    return [f"no hyperparameters are selected for {model} on {dataset}, so it has the defaults of its file"]


def show_result(plain: dict[str, Any], summary: dict[str, Any], folder: Path, display: Display) -> None:
    """Print the table of a result, its warnings, and where it is.

    Args:
        plain: configuration of the run as plain containers.
        summary: by `write_result`.
        folder: of the run.
        display: prints.
    """
    display.result(run_title(plain), summary, paper_metrics(plain), plain["evaluation"]["window"])
    for warning in summary["warnings"]:
        display.say(f"Warning: {warning}.")
    display.say(f"Results: {folder}")
    look, sent = how_to_look(plain), Sent.read(folder)
    if look is not None and sent.result:
        display.say(f"MLflow:  {look}")
        display.say(f"         {page_address(plain, sent.experiment)}")
