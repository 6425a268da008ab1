"""Find a saved policy: by the folder or the id of a run, or by an address in MLflow."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from tempfile import TemporaryDirectory

from fairall.config.schema import Config
from fairall.errors import FairAllError
from fairall.policy import SUMS, Policy
from fairall.results.runs import load_result, run_folder

IN_MLFLOW = ("runs:/", "models:/")


def load_policy(
    run: str | Path, *, outputs_dir: str | Path = "outputs", modules: Collection[str] = ()
) -> Policy:
    """The saved policy of a finished run.

    Args:
        run: the run's folder, its `policy/` folder, the beginning of its id, or an address in MLflow:
            `runs:/ID/policy`, `models:/NAME/VERSION` or `models:/m-ID`.
        outputs_dir: where ids are looked for, in `runs/`; its MLflow store is used unless the environment
            variable MLFLOW_TRACKING_URI names another.
        modules: see `Policy.load`; needed for a method of your own that your program has not imported.

    Raises:
        FairAllError: where there is no such run, it is unfinished, or the policy is damaged, of another
            version of this package, or of a method whose module may not be imported.
    """
    return find_policy(str(run), Config.of_places(outputs_dir), modules)[0]


def find_policy(run: str, config: Config, modules: Collection[str] = ()) -> tuple[Policy, str]:
    """The policy as of `load_policy`, and a name of its run.

    Args:
        run: see `load_policy`.
        config: with `outputs_dir` and `tracking.uri`, which is preferred to MLFLOW_TRACKING_URI.
        modules: see `load_policy`.
    """
    if not run.startswith(IN_MLFLOW):
        return saved_in(run_folder(run, Path(config.outputs_dir) / "runs"), modules)
    from fairall.tracking.fetch import download
    from fairall.tracking.store import named_uri

    config.tracking.uri = named_uri(config)
    with TemporaryDirectory() as name:
        folder = Path(name)
        try:
            download(run, folder, config)
            for path in folder.rglob(SUMS):
                return Policy.load(path.parent, modules=modules), run
        except FairAllError as error:
            raise FairAllError(f"{run}: {error}") from error
    raise FairAllError(f"{run}: no policy of fairall; one has an address runs:/ID/policy or models:/NAME/1")


def saved_in(path: Path, modules: Collection[str] = ()) -> tuple[Policy, str]:
    """The policy in the folder of a run or of its policy, and a name of the run; raises as `load_policy`."""
    folder = path if (path / SUMS).exists() else load_result(path).path / "policy"
    return Policy.load(folder, modules=modules), (folder.parent if folder.name == "policy" else folder).name
