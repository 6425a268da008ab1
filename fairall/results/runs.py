"""Runs in folders: found, read and checked, or described at a glance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fairall.display.format import QUICK, interpretable
from fairall.errors import FairAllError
from fairall.storage.files import holder
from fairall.storage.run_folder import Origin, RunFolder
from fairall.storage.stored import Plain, is_folder, read_json

if TYPE_CHECKING:
    from fairall.results.result import Result  # imports pandas, which a list of methods does not need

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
    paths = runs_folder.glob("*/*/*") if word else ()
    matches = [path for path in paths if path.name.startswith(word) and path.is_dir()]
    if len(matches) == 1:
        return matches[0].resolve()
    if matches:
        raise FairAllError(f"{word}: {len(matches)} runs have ids that begin so; give more of the id")
    raise FairAllError(f"{word or repr(word)}: no such run, neither a folder nor an id in {runs_folder}")


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
        config = result.config
        # A folder of MLflow's, or changed by hand, may have files of different runs.
        rows = product(result.seeds, range(config.schedule.time_steps + 1))
        steps = result.steps[["seed", "time_step"]].itertuples(index=False, name=None)
        split = {result.evaluation.split} & {*result.groups["all"].people}
        if ([*steps], len(result.seeds), split) != ([*rows], config.seeds, {config.evaluation.split}):
            raise FairAllError("config.yaml, metrics.csv and summary.json are not of one run")
    except (FairAllError, OSError, LookupError, ValueError) as error:
        reason = str(error).replace(f"{path}/", "")
        raise FairAllError(f"{reason}; run it anew with force=true") from error
    return result


@dataclass(frozen=True)
class _Mean:
    mean: float
    std: float | None


@dataclass(frozen=True)
class _Glance:
    """What an outline has of summary.json."""

    aggregate: Mapping[str, _Mean | None]


def outlines(folder: Path) -> list[Plain]:
    """All runs in a folder of `METHOD/DATASET/ID`, the newest last; figures and policies are not checked.

    Returns:
        Objects with `method`, `dataset`, `id`, `path`; `command`, as typed, empty where it is not known;
        `state`: `finished`, `quick` for one of preset=quick, `running`, `interrupted`, or `damaged`; `reason`
        of a damaged one; `time` of completion, or of the last sign of life, seconds since 1970; `measures`:
        mean and standard deviation over seeds, plain units, of `MEASURES`.
    """
    paths = {path.parent for name in ("DONE", "config.yaml") for path in folder.glob(f"*/*/*/{name}")}
    return sorted(map(_outline, paths), key=lambda run: (run["time"], run["path"]))


def _outline(path: Path) -> Plain:
    folder, done = RunFolder(path), path / "DONE"
    run: Plain = dict(zip(("method", "dataset", "id"), path.parts[-3:], strict=True))
    run |= {"path": str(path), "command": Origin.read(path).command, "measures": {}, "reason": ""}
    if not folder.done:
        state = "running" if holder(path.with_suffix(".lock")) else "interrupted"
        return run | {"state": state, "time": path.stat().st_mtime}
    run["time"] = done.stat().st_mtime
    try:
        config = folder.read_config()
        if (damage := folder.damage(among=("config.yaml", "summary.json"))) or config is None:
            raise FairAllError(damage or OLD_CONFIG)
        means = read_json(path / "summary.json", _Glance).aggregate
    except (FairAllError, OSError) as error:
        return run | {"state": "damaged", "reason": str(error).replace(f"{path}/", "")}
    run["measures"] = {name: (mean.mean, mean.std) for name in MEASURES if (mean := means.get(name))}
    return run | {"state": "finished" if interpretable(config.preset) else QUICK}
