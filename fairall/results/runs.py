"""Runs in folders: found, read and checked, or described at a glance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fairall.display.format import QUICK, interpretable
from fairall.errors import FairAllError
from fairall.runtime.reading import is_folder
from fairall.storage.files import holder
from fairall.storage.run_folder import RunFolder
from fairall.storage.stored import read_json

if TYPE_CHECKING:
    from fairall.results.result import Result  # imports pandas, which a list of methods does not need

COLUMNS = ("seed", "time_step", "utility", "dpu", "effective_utility", "effective_dpu")  # required
NO_RUN = "not the folder of a run, which is outputs/runs/METHOD/DATASET/ID"
MEASURES = ("mean_utility", "mean_dpu")  # of an outline
OLD_CONFIG = "config.yaml is missing, damaged or of an earlier version of fairall"


class Results(NamedTuple):
    """Results of a folder of runs, and the folders that have none, with the reason."""

    results: list[Result]
    left_out: list[tuple[Path, str]]


def load_results(folder: str | Path = "outputs/runs") -> Results:
    """The results of all finished runs in a folder of `METHOD/DATASET/ID`."""
    collection = Results([], [])
    for path in sorted(child for child in Path(folder).glob("*/*/*") if child.is_dir()):
        try:
            collection.results.append(load(path))
        except FairAllError as error:
            collection.left_out.append((path, str(error)))
    return collection


def load_result(run: str | Path, *, outputs_dir: str | Path = "outputs") -> Result:
    """The result of a finished run.

    Args:
        run: its folder, or the beginning of its id.
        outputs_dir: where ids are looked for, in `runs/`.

    Raises:
        FairAllError: where there is no such run, or it is unfinished, damaged, or of another version.
    """
    path = run_folder(str(run), Path(str(outputs_dir)) / "runs")
    try:
        return load(path)
    except FairAllError as error:
        raise FairAllError(f"{path}: {error}") from error


def run_folder(word: str, runs_folder: Path) -> Path:
    """The folder of a run by its path or the beginning of its id.

    Raises:
        FairAllError: where there is none, or more than one.
    """
    if word and is_folder(Path(word)):
        return Path(word).resolve()
    by_id = word and "/" not in word
    matches = [path for path in runs_folder.glob(f"*/*/{word}*") if path.is_dir()] if by_id else []
    if not matches:
        raise FairAllError(f"{word or repr(word)}: no such run, neither a folder nor an id in {runs_folder}")
    if len(matches) > 1:
        raise FairAllError(f"{word}: {len(matches)} runs have ids that begin so; give more of the id")
    return matches[0].resolve()


def load(path: Path) -> Result:
    """The result in the folder of a run.

    Raises:
        FairAllError: where it is unfinished, or a file is missing, broken or inconsistent with another.
    """
    from fairall.results.result import Result

    folder = RunFolder(path)
    if not folder.done:
        begun = (path / "config.yaml").exists()
        raise FairAllError("unfinished: the same command goes on with it" if begun else NO_RUN)
    if damage := folder.damage():
        raise FairAllError(f"{damage}; the same command makes it again")
    try:
        result = Result.read(folder)
        if not _consistent(result):
            raise FairAllError("config.yaml, metrics.csv and summary.json are not of one run")
    except (FairAllError, OSError) as error:
        raise FairAllError(f"{_reason(error, path)}; run it anew with force=true") from error
    return result


def _reason(error: FairAllError | OSError, path: Path) -> str:
    """Why a file in a folder cannot be read, with its name."""
    if isinstance(error, OSError):
        return f"{Path(error.filename).name}: {error.strerror}"
    return str(error).removeprefix(f"{path}/")


def _consistent(result: Result) -> bool:
    """Whether the files of a result, each of which can be read, are of one run."""
    config, steps, seeds = result.config, result.steps, result.seeds
    n, split = config.schedule.time_steps + 1, config.evaluation.split
    if not {*COLUMNS} <= {*steps} or not len(steps) == len(seeds) * n == config.seeds * n:
        return False
    people = result.groups["all"].people
    rows = steps[["seed", "time_step"]].to_numpy().tolist()
    expected = [[seed, time_step] for seed in seeds for time_step in range(n)]
    return rows == expected and result.evaluation.split == split in people


@dataclass(frozen=True)
class Outline:
    """What is known of a run at a glance, finished or not.

    Attributes:
        path: its folder, `METHOD/DATASET/ID`.
        state: `finished`, `quick` for one of preset=quick, `running`, `interrupted`, or `damaged`.
        time: of completion, or of the last sign of life; seconds since 1970.
        measures: mean and standard deviation over seeds, plain units, by name; of `MEASURES`, those that have
            values.
        reason: of a damaged one.
        differs: what a finished one has otherwise than by default.
    """

    path: Path
    state: str
    time: float
    measures: Mapping[str, tuple[float, float | None]]
    reason: str = ""
    differs: str = ""


@dataclass(frozen=True)
class _Mean:
    mean: float
    std: float | None


@dataclass(frozen=True)
class _Glance:
    """What an outline has of summary.json."""

    aggregate: Mapping[str, _Mean | None]


def outlines(folder: Path) -> list[Outline]:
    """All runs in a folder of `METHOD/DATASET/ID`, the newest last; figures and policies are not checked."""
    paths = {path.parent for name in ("DONE", "config.yaml") for path in folder.glob(f"*/*/*/{name}")}
    return sorted(map(_outline, paths), key=lambda run: (run.time, run.path))


def _outline(path: Path) -> Outline:
    from fairall.results.differences import (
        differences,  # with OmegaConf, which a list of methods does not need
    )

    done = path / "DONE"
    if not done.exists():
        state = "running" if holder(path.with_suffix(".lock")) else "interrupted"
        return Outline(path, state, path.stat().st_mtime, {})
    time = done.stat().st_mtime
    try:
        damage = RunFolder(path).damage(among=("config.yaml", "summary.json"))
        config = RunFolder(path).read_config()
        if damage or config is None:
            raise FairAllError(damage or OLD_CONFIG)
        values = read_json(path / "summary.json", _Glance).aggregate
    except (FairAllError, OSError) as error:
        return Outline(path, "damaged", time, {}, _reason(error, path))
    known = {name: (mean.mean, mean.std) for name in MEASURES if (mean := values.get(name))}
    state = "finished" if interpretable(config.preset) else QUICK
    return Outline(path, state, time, known, differs=differences(config))
