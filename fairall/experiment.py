"""One run from its configuration to its result: data, training, evaluation, folder, MLflow."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from omegaconf import DictConfig

from fairall.config.checks import require
from fairall.config.choices import targets
from fairall.config.compose import checked, compose_config
from fairall.config.schema import Config, objectives_of
from fairall.data.dataset import Dataset, dataset
from fairall.data.prepared import PreparedData
from fairall.display.progress import Display
from fairall.errors import FairAllError
from fairall.metrics import load_measures, summaries
from fairall.models.learner import Setting
from fairall.online.training import Training, short_of
from fairall.runtime.process import prepare_processor, short_of_memory, use_threads
from fairall.storage.checkpoint import Cache, Checkpoint
from fairall.storage.identity import OwnCode, own_code, run_id
from fairall.storage.run_folder import CARD, CHECKPOINT, Origin, RunFolder, source_tags
from fairall.worlds.part import World

if TYPE_CHECKING:  # reading results and policies is imported where they are
    from fairall.results.result import Result

DEFAULTS = "defaults"  # value of `hyperparameters` without values in conf/hparams/


class Job(Training):
    """A run that has not started.

    Attributes:
        own_code: the user's, in the identity.
        folder: of the result, named by the identity.
    """

    own_code: OwnCode
    folder: RunFolder


def prepare(source: Dataset, config: Config) -> PreparedData:
    """The people of a run."""
    return source.replicates(config.seeds, config.splits, config.protocol.scaler)


def job(composed: DictConfig, people: Callable[[Dataset, Config], PreparedData] = prepare) -> Job:
    """Build everything that a run needs from its configuration; nothing is written.

    `people` loads the data: `prepare`, or a cache of it for many jobs.

    Raises:
        FairAllError: where a value of the configuration is impossible or the data are missing.
    """
    from fairall.policy import learner_of

    config = checked(composed)
    source = dataset(config.dataset)
    data = people(source, config)
    setting = Setting.of(data.schema, config)
    world = World(config, data, setting.seeds)
    further, keys = config.evaluation.measures, getattr(data.pool_table.sensitive, "keys", None)
    measures = (*load_measures(further, keys, by_replicate=config.splits > 1), *world.measures)
    possible = [quantity.name for quantity in summaries(measures)]
    if config.evaluation.split == "validation":
        from fairall.measuring.selection import SELECTION  # imports scipy.optimize, a third of a second

        possible += SELECTION
    for objective in objectives_of(config.objective):
        require(objective in possible, "objective", objective, f"one of {', '.join(possible)}")
    policy = config.initial_policy.build()
    learner = learner_of(config, setting, world.share)
    named = [name.rpartition(".")[0] for name in (*targets(config.to_plain()), *further)]
    functions = [measure.function for measure in measures]
    made = Job(learner, policy, config, world, measures)
    made.own_code = own_code(named, source, policy, learner, *world.parts.values(), *functions)
    names = [f"{function.__module__}.{function.__qualname__}" for function in functions]
    identity = run_id(config, data.fingerprint(), [*names, *made.own_code.hashes.items()])
    runs = Path(config.outputs_dir, "runs")
    made.folder = RunFolder(runs / config.model.name / config.dataset.name / identity)
    return made


def is_finished(composed: DictConfig, people: dict[str, Any] | None = None) -> bool:
    """Whether a configuration has a finished and undamaged result of this version.

    Args:
        composed: by Hydra, of type `Config`.
        people: of the data sets that earlier calls have loaded, to check many configurations; added to here.

    Raises:
        FairAllError: where a value of the configuration is impossible or the data are missing.
    """
    loaded = {} if people is None else people

    def load(source: Dataset, config: Config) -> PreparedData:
        key = repr((source.config, config.protocol.scaler, config.splits, config.seeds))
        try:
            found = loaded[key] if key in loaded else prepare(source, config)
        except FairAllError as error:
            found = error  # kept: a failing download should not be tried again for every run
        loaded[key] = found
        if isinstance(found, FairAllError):
            raise found
        return found

    requested = job(composed, load)
    return not requested.config.force and requested.folder.intact(print)


@short_of_memory()
def run(*what: DictConfig | str, display: Display | None = None, command: str = "", **values: Any) -> Result:
    """Run a configuration, resume an interrupted run, or return the finished result.

    Args:
        what: words as on the command line, `run("model=greedy", "dataset=credit")`, or a configuration of
            type `Config`, composed by Hydra (`fairall.compose_config`).
        display: what to show on the terminal or in the notebook; everything, unless given.
        command: that started the run, for MLflow.
        values: words as Python values by key, `run(model="greedy", seeds=3)`, as of `compose_config`.

    Raises:
        FairAllError: where a word or a value is impossible or the outputs cannot be written.
        MemoryError: where the run needs more memory than there is.
        Stopped: where the process was asked to stop, after the state has been saved.
    """
    if len(what) == 1 and isinstance(composed := what[0], DictConfig):
        if values:
            raise FairAllError(f"{', '.join(values)}: give a configuration, or words and keywords, not both")
    else:
        composed = compose_config(*map(str, what), **values)
    began, cpu_began = time.time(), time.process_time()
    training, display = job(composed), display or Display()
    config, folder = training.config, training.folder
    if config.tracking.enabled:
        from fairall.tracking.store import require_store

        require_store(config)
    prepare_processor()
    use_threads(config.threads)
    notes = [*training.data.notes, *training.notes(), *training.own_code.doubts]
    if config.hyperparameters == DEFAULTS and training.learner.learns:
        notes.append(
            f"no hyperparameters are selected for {config.model.name} on {config.dataset.name}, so it has "
            "the defaults of its file"
        )
    for note in (*notes, *short_of(training)):
        display.say(f"Note: {note}.")
    for warning in training.warnings():
        display.say(f"Warning: {warning}.")
    from fairall.results.result import Result

    with folder.locked(log=display.say):
        folder.refuse_others(config)
        intact = folder.intact(display.say)
        if intact and not config.force:
            result = Result.read(folder)
            display.say(f"Already done; force=true runs it anew: {folder.path}")
        else:
            from fairall.measuring.measure import measure  # a run that is done needs none of it

            if not intact:
                (folder.path / "DONE").unlink(missing_ok=True)
            with folder.recording(anew=config.force, log=display.say) as making:
                origin = Origin(command, source_tags() if config.tracking.enabled else {}, began)
                origin.write(making.path)
                making.write_config(config)
                cache = cache_of(config, display)
                path = making.path / CHECKPOINT
                training.run(
                    Checkpoint(path, folder.path.name, config.checkpoint_seconds, display.say), cache, display
                )
                result = measure(training, cache)
                write_files(result, training, making)
                replace(origin, cpu_seconds=time.process_time() - cpu_began).write(making.path)
                making.finish()
            result = replace(result, path=folder.path, finished=time.time())
            for note in training.own_code.imported_since():
                display.say(f"Note: {note}.")
        show_result(result, display)
        if config.tracking.enabled:
            say_where_logged(folder.path, config, display)
    return result


def warmed_up(training: Training, display: Display | None = None) -> Training:
    """A run after Phase I and the warm-up, with nothing kept but the shared cache."""
    display = display or Display()
    training.pretrain(cache_of(training.config, display), display)
    training.warm_up(display, lambda: None)
    return training


def write_files(result: Result, training: Training, folder: RunFolder) -> None:
    """Write the files of a result: tables, model card, policy and figures."""
    # Imported here: a command whose run is done needs no matplotlib.
    from fairall.measuring.decisions import decision_table
    from fairall.measuring.latent_quality import latent
    from fairall.policy import CONFIG, FEATURES, SUMS, WEIGHTS, Policy
    from fairall.results.card import model_card
    from fairall.results.figures import draw_latent, draw_learning, draw_phase1

    if training.config.evaluation.decisions:
        folder.write_decisions([decision_table(training)])
    result.save(folder)
    folder.write_text(CARD, model_card(result, folder.path.name))
    paths = [folder.file(f"policy/{name}") for name in (CONFIG, FEATURES, WEIGHTS, SUMS)]
    Policy.of(training.learner, training.data).save(paths[0].parent, result.config)
    title = f"{result.title}; {result.evaluation.split} set"
    path = folder.file("figures/learning.png")
    draw_learning(result.steps, result.measures, result.summary(), path, title=title)
    if training.curves is not None:
        draw_phase1(training.curves, folder.file("figures/phase1.png"), title=f"Phase I of {result.title}")
    people = training.evaluation.people
    z = latent(training.learner, people, len(result.seeds))
    if z is not None and np.isfinite(z[0]).all():
        title = f"seed {result.seeds[0]} of {title}"
        draw_latent(z[0], people.replicate(0), folder.file("figures/latent.png"), title=title)


def cache_of(config: Config, display: Display) -> Cache:
    """The cache that all runs in `outputs_dir` share."""
    return Cache(Path(config.outputs_dir, "cache"), config.checkpoint_seconds, display.say)


def show_result(result: Result, display: Display) -> None:
    """Print the warnings of a saved result, its table, and where it is."""
    for warning in result.warnings:
        display.say(f"Warning: {warning}.")
    if not display.progress_only:
        from fairall.results.terminal import print_result

        print_result(result)
    display.say(f"Results: {result.path}")


def say_where_logged(path: Path, config: Config, display: Display) -> None:
    """Log the result in a run's folder to MLflow and print where, or warn where MLflow cannot be reached."""
    from fairall.tracking.logger import log
    from fairall.tracking.store import UnreachableError, how_to_look, page_address

    try:
        logged = log(path, config)
    except UnreachableError as error:
        how = "; to register it, repeat the command" if config.tracking.register else ""
        display.say(f"Warning: {error}. `python -m fairall mlflow sync` logs it later{how}.")
        return
    page = f"         {page_address(config, logged.experiment)}"
    for line in (f"MLflow:  {how_to_look(config)}", page, *logged.registered):
        display.say(line)
