"""Runs in folders: found, read and checked, or described at a glance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fairall.display.format import QUICK, interpretable
from fairall.errors import FairAllError
from fairall.runtime.reading import DamagedFileError, is_folder, why_no_file
from fairall.storage.files import holder
from fairall.storage.run_folder import RunFolder
from fairall.storage.stored import read_json

if TYPE_CHECKING:
    from fairall.results.result import Result  # imports pandas, which a list of methods does not need

COLUMNS = ("seed", "time_step", "utility", "dpu", "effective_utility", "effective_dpu")  # required
NO_RUN = "not the folder of a run, which is outputs/runs/METHOD/DATASET/ID"
TOLERANCE = 1e-5  # metrics.csv has seven digits; relative of values above 1, which are money
MEASURES = ("mean_utility", "mean_dpu")  # of an outline


class Results(NamedTuple):
    """Results of a folder of runs, and the folders that have none, with the reason."""

    results: list[Result]
    left_out: list[tuple[Path, str]]


def load_results(folder: str | Path = "outputs/runs") -> Results:
    """The results of all finished runs in a folder of `METHOD/DATASET/ID`."""
    results, left_out = [], []
    for path in sorted(child for child in Path(folder).glob("*/*/*") if child.is_dir()):
        try:
            results.append(load(path))
        except FairAllError as error:
            left_out.append((path, str(error)))
    return Results(results, left_out)


def load_result(run: str | Path, *, outputs_dir: str | Path = "outputs") -> Result:
    """The result of a finished run.

    Args:
        run: its folder, or the beginning of its id.
        outputs_dir: where ids are looked for, in `runs/`.

    Raises:
        FairAllError: where there is no such run, or it is unfinished, damaged, or of another version.
    """
    path = run_folder(str(run), Path(str(outputs_dir)) / "runs")
    if not any((path / name).exists() for name in ("config.yaml", "DONE")):
        raise FairAllError(f"{path}: {NO_RUN}")
    try:
        return load(path)
    except FairAllError as error:
        raise FairAllError(f"{path}: {error}") from error


def run_folder(word: str, runs_folder: Path) -> Path:
    """The folder of a run by its path or the beginning of its id.

    Raises:
        FairAllError: where there is none, or more than one.
    """
    if not word:  # Path would take it for the current folder
        raise FairAllError("an empty name is no run: give its folder or the beginning of its id")
    if is_folder(Path(word)):
        return Path(word).resolve()
    if why_no_file(Path(word)) is None:
        raise FairAllError(f"{word}: a file, not the folder of a run")
    by_id = is_folder(runs_folder) and "/" not in word
    matches = [path for path in runs_folder.glob(f"*/*/{word}*") if path.is_dir()] if by_id else []
    if not matches:
        raise FairAllError(f"{word}: no such run, neither a folder nor an id in {runs_folder}")
    if len(matches) > 1:
        raise FairAllError(f"{word}: {len(matches)} runs have ids that begin so; give more of the id")
    return matches[0].resolve()


def load(path: Path) -> Result:
    """The result in the folder of a run.

    Raises:
        FairAllError: where it is unfinished, or a file is missing, broken or inconsistent with another.
    """
    from fairall.results.result import Result

    folder, anew = RunFolder(path), "run it anew with force=true"
    if not folder.done:
        raise FairAllError("unfinished: the same command goes on with it")
    if damage := folder.damage():
        raise FairAllError(f"{damage}; the same command makes it again")
    try:
        result = Result.read(folder)
        problem = _problem(result)
    except FileNotFoundError as error:
        raise FairAllError(f"{Path(error.filename).name} is missing; {anew}") from error
    except OSError as error:
        raise FairAllError(f"{Path(error.filename).name} cannot be read ({error.strerror})") from error
    except DamagedFileError as error:
        raise FairAllError(f"{error.path.name} is damaged ({error.reason}); {anew}") from error
    except FairAllError as error:  # of the configuration
        raise FairAllError(f"{error}; {anew}") from error
    if problem is not None:
        raise FairAllError(f"{problem}; {anew}")
    return result


def _problem(result: Result) -> str | None:
    """What is inconsistent in a result whose files can be read; None for nothing."""
    lacking = [name for name in COLUMNS if name not in result.steps]
    if lacking:
        return f"metrics.csv lacks the column {lacking[0]}"
    split = result.config.evaluation.split
    if result.evaluation.split != split or split not in result.groups["all"].people:
        return f"summary.json is not of the {split} people, and config.yaml is"
    time_steps, seeds = result.config.schedule.time_steps, result.seeds
    if len(seeds) != result.config.seeds:
        return f"summary.json has {len(seeds)} seeds, config.yaml {result.config.seeds}"
    expected = {(seed, step) for seed in seeds for step in range(time_steps + 1)}
    present = list(zip(result.steps["seed"], result.steps["time_step"], strict=True))
    if set(present) != expected or len(present) != len(expected):
        return (
            f"metrics.csv has {len(present)} rows, not one for each of {len(seeds)} seeds and "
            f"{time_steps + 1} time steps"
        )
    last, whole = result.last("effective_utility"), result.values("effective_utility")
    if not ((last - whole).abs().dropna() < TOLERANCE * whole.abs().clip(lower=1.0)).all():
        return "metrics.csv and summary.json are of different results"
    return None


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
    """

    path: Path
    state: str
    time: float
    measures: Mapping[str, tuple[float, float | None]]
    reason: str = ""


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
    return sorted(map(_outline, paths), key=lambda one: (one.time, one.path))


def _outline(path: Path) -> Outline:
    done = path / "DONE"
    if not done.exists():
        times = [one.stat().st_mtime for one in (path, *path.glob("checkpoint*.pt")) if one.exists()]
        return Outline(
            path, "running" if holder(path.with_suffix(".lock")) else "interrupted", max(times), {}
        )
    time = done.stat().st_mtime
    try:
        damage = RunFolder(path).damage(among=("config.yaml", "summary.json"))
        if damage is None:
            values = read_json(path / "summary.json", _Glance).aggregate
            known = {name: (one.mean, one.std) for name in MEASURES if (one := values.get(name))}
            if config := RunFolder(path).read_config():
                return Outline(path, "finished" if interpretable(config.preset) else QUICK, time, known)
            damage = "config.yaml is damaged or of an earlier version of fairall"
    except OSError as error:  # deleted meanwhile, or not to be read
        damage = f"{Path(error.filename).name}: {error.strerror}"
    except FairAllError as error:
        damage = str(error).removeprefix(f"{path}/")
    return Outline(path, "damaged", time, {}, damage)
