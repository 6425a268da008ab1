"""What many tests need: commands, composed configurations, small people, and where raw data is."""

import ast
import contextlib
import copy
import functools
import io
import itertools
import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock
from sqlalchemy import Engine, event
from torch import Tensor

from benchmarks import in_process
from benchmarks.in_process import Ended, typed
from benchmarks.machine import compile_code
from fairall.config.compose import compose_config as compose
from fairall.config.compose import typed_config
from fairall.config.schema import Config, ModelConfig
from fairall.data.dataset import dataset
from fairall.data.features import Feature, Kind, Schema
from fairall.data.people import Decided, People
from fairall.data.prepared import PreparedData
from fairall.experiment import job
from fairall.models.learner import Learner, Setting
from fairall.models.phase1 import Phase1Config
from fairall.nn import native
from fairall.online.evaluation import History
from fairall.online.training import Training
from fairall.runtime.process import use_threads
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Cache, Checkpoint
from fairall.tracking.store import create_database
from fairall.worlds.part import World
from tests.composed import composed_once

ComposeConfig = Callable[..., Config]
MakePeople = Callable[[int], People]
MakeSetting = Callable[..., Setting]
Put = Callable[[Path], str]
CHECKOUT = Path(__file__).resolve().parents[1]
LOANS = Path(__file__).parent / "data" / "loans.csv"
MEANING = "dataset.label=repaid dataset.positive=yes dataset.sensitive=sex dataset.advantaged=male".split()
PHASE1 = Phase1Config(
    updates=None,
    share=1.0,
    batch_size=16,
    learning_rate=3e-2,
    annealed=False,
    beta=0.8,
    elbo_samples=1,
    validate_every=1,
    validation_samples=4,
    patience=None,
    margin=0.1,
)

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _same_state_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reset what earlier tests leave: draws, threads, how subnormal numbers are computed, MLflow's store.

    Without the width of a terminal, which workers of pytest-xdist are given, tables are not narrowed.
    """
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)  # which mlflow.set_tracking_uri sets
    torch.manual_seed(0)
    use_threads(1)
    torch.set_flush_denormal(False)


@pytest.fixture(scope="session", autouse=True)
def _compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compile before the first test, so that no command of a test does, and says so.

    The first of several processes that test does it for all.
    """
    folder = tmp_path_factory.getbasetemp().parent
    source = Path(native.__file__).with_name("kernels.py")
    with FileLock(folder / "compiling.lock"):
        kept = [path.stat().st_mtime for path in source.parent.glob("__pycache__/kernels.policy_epoch-*.nbi")]
        if native.kernels() is None or max(kept, default=0.0) > source.stat().st_mtime:
            return
        compile_code()


@pytest.fixture(scope="session", autouse=True)
def _without_waiting_for_disks() -> Iterator[None]:
    """Let neither files nor SQLite wait for the disk: what tests look at survives all but a loss of power."""

    def at_once(connection: Any, _: object) -> None:
        with contextlib.suppress(sqlite3.DatabaseError):  # files of tests that are no databases
            if isinstance(connection, sqlite3.Connection):
                connection.execute("pragma synchronous = off")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", lambda _: None)
        event.listen(Engine, "connect", at_once)
        yield
        event.remove(Engine, "connect", at_once)


@pytest.fixture(scope="session", autouse=True)
def _composed_once() -> Iterator[None]:
    with composed_once():
        yield


@pytest.fixture
def in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder is one of the test's own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs without their figures, which take as long as a small run."""
    monkeypatch.setattr("fairall.results.figures.save_figure", in_process.undrawn)


def succeeded(*words: str, cwd: Path, **options: Any) -> Ended:
    """`typed` for a command that ends well and has nothing to say on stderr."""
    ended = typed(*words, cwd=cwd, **options)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended


def refused(*words: str, cwd: Path, **options: Any) -> str:
    """The one line with which a command ends that cannot be done."""
    ended = typed(*words, cwd=cwd, **options)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1), ended.stderr
    return ended.stderr


def typed_line(command: str, cwd: Path) -> Ended:
    """`typed` for a line of documentation, `python -m MODULE WORDS`, of which * stands for what is there."""
    _, _, module, *words = shlex.split(command)
    named = [sorted(map(str, cwd.glob(word))) if "*" in word else [word] for word in words]
    return typed(*itertools.chain(*named), cwd=cwd, module=module)


def own_process(*words: str | Path, **options: Any) -> Ended:
    """Python with these words in a process of its own, for five minutes at most."""
    usual = {"capture_output": True, "text": True, "timeout": 300}
    return subprocess.run([sys.executable, *map(str, words)], **(usual | options))


def imported(code: str, *names: str) -> tuple[str, list[str]]:
    """What `code` prints in a process of its own, and which of the modules `names` it imports."""
    ask = f"import sys\n{code}\nprint([name for name in {names!r} if name in sys.modules])"
    ended = own_process("-c", ask, check=True)
    *said, found = ended.stdout.splitlines(keepends=True)
    return "".join(said), ast.literal_eval(found)


def only_whole(values: Iterable[Any]) -> list[Any]:
    """Parameters of tests that `make test` leaves out."""
    return [pytest.param(value, marks=pytest.mark.whole) for value in values]


def run_folder(outputs: Path) -> Path:
    """The folder of the one run in `outputs`."""
    (folder,) = (path for path in outputs.glob("runs/*/*/*") if path.is_dir())
    return folder


def examples(usual: int) -> int:
    """How many inputs a test by random inputs tries: `usual`, or `$FAIRALL_FUZZ`."""
    return int(os.environ.get("FAIRALL_FUZZ", usual))


def cache_in(folder: Path) -> Cache:
    """A cache that keeps no checkpoints but at the end."""
    return Cache(folder, checkpoint_seconds=3600.0)


class Uncached(Cache):
    """A cache that keeps nothing."""

    def result(self, key: str, make: Callable[[Checkpoint], dict[str, Any]]) -> dict[str, Any]:
        return make(no_checkpoint())


def no_cache() -> Cache:
    """For trainings that should keep nothing."""
    return Uncached(Path("never"), checkpoint_seconds=float("inf"))


def no_checkpoint() -> Checkpoint:
    """For trainings that keep nothing on the way."""
    return Checkpoint(Path("never"), "none", seconds=float("inf"))


def training_of(*words: str) -> Training:
    """The run of a command line with `preset=quick`, before it starts."""
    return job(compose("preset=quick", *words))


def as_saved(state: Any) -> Any:
    """The state as a checkpoint gives it back."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=True)


def files_of(folder: Path) -> dict[str, bytes]:
    """The content of all files, by their paths in a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def assert_same_history(a: History, b: History) -> None:
    """Check that two histories are the same to the last bit, wherever their steps are kept."""
    torch.testing.assert_close(a.state_dict(), b.state_dict(), rtol=0, atol=0, equal_nan=True)


def training_by(learner: Learner, config: Config, data: PreparedData) -> Training:
    """The run of a learner of one's own, or of one that was made for this configuration."""
    learner.setting = Setting.of(data.schema, config)
    world = World(config, data, learner.setting.seeds)
    return Training(learner, config.initial_policy.build(), config, world)


def run_online(training: Training, time_steps: int) -> History:
    """Its history after some time steps."""
    training.learn_online(time_steps, lambda **_: None, lambda: None)
    return training.history


def assert_resumed_alike(whole: Training, resumed: Training, saved_at: int, end: int) -> None:
    """Check that Phase II goes on from another's saved state to the same end."""
    run_online(whole, saved_at)
    saved = as_saved(whole.state_dict())
    run_online(whole, end)
    resumed.load_state_dict(saved)
    run_online(resumed, end)
    assert_same_history(whole.history, resumed.history)


def warm_up(learner: Learner, decided: Decided) -> list[dict[str, float]]:
    """All of a learner's warm-up; the figures of its epochs."""
    return [learner.warm_up_epoch(decided, epoch) for epoch in range(learner.setting.schedule.warm_up_epochs)]


class Shown(Learner):
    """Learns nothing, and keeps what it is shown; subclasses say how it decides."""

    def __init__(self) -> None:
        super().__init__(ModelConfig(), None)  # type: ignore[arg-type]
        self.seen: list[Decided] = []

    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        return {}

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        raise NotImplementedError

    def update(self, decided: Decided) -> None:
        self.seen.append(decided)


@pytest.fixture(scope="session", autouse=True)
def _database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Path]]:
    """MLflow's database without runs, made once: commands copy it, since MLflow takes seconds for each."""

    @functools.cache
    def database() -> Path:
        path = tmp_path_factory.mktemp("store") / "mlflow.db"
        create_database(path)
        return path

    def copy(path: Path) -> None:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(database(), path)  # with the mode of a new file

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("fairall.tracking.store.create_database", copy)
        yield database


@pytest.fixture(scope="session")
def empty_store(_database: Callable[[], Path]) -> Put:
    """Puts MLflow's database, without runs, into a folder of outputs, and returns its address."""

    def put(outputs: Path) -> str:
        outputs.mkdir(parents=True, exist_ok=True)
        return f"sqlite:///{shutil.copy(_database(), outputs)}"

    return put


@dataclass
class Asked:
    """A server on this machine that refuses everything.

    Attributes:
        port: where it listens.
        paths: that were asked of it, in order.
        credentials: the header of each.
    """

    port: int
    paths: list[str] = field(default_factory=list)
    credentials: list[str] = field(default_factory=list)


@pytest.fixture
def asked() -> Iterator[Asked]:
    """A server that refuses everything, and what was asked of it."""

    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known.paths.append(self.path)
            known.credentials.append(self.headers.get("Authorization", ""))
            self.send_response(403)
            self.end_headers()

        do_POST = do_PUT = do_PATCH = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        known = Asked(server.server_port)
        yield known
        server.shutdown()


def logged_runs(client: Any) -> list[Any]:
    """All runs of the experiment `fairall` in MLflow."""
    return list(client.search_runs([client.get_experiment_by_name("fairall").experiment_id]))


@pytest.fixture(scope="session")
def compose_config() -> ComposeConfig:
    """The typed configuration of a command line; the same words are composed once."""
    composed = functools.cache(typed_config)
    return lambda *overrides: copy.deepcopy(composed(*overrides))


@pytest.fixture(scope="session")
def credit(compose_config: ComposeConfig) -> PreparedData:
    """German Credit, ready."""
    return dataset(compose_config().dataset).prepare()


@pytest.fixture(scope="session")
def synthetic(compose_config: ComposeConfig) -> PreparedData:
    """Synthetic people, ready."""
    return dataset(compose_config("dataset=synthetic").dataset).prepare()


@pytest.fixture
def schema() -> Schema:
    """One feature of each kind, and a second categorical one."""
    return Schema(
        [
            Feature("height", Kind.REAL),
            Feature("visits", Kind.COUNT),
            Feature("member", Kind.BINARY, (1.0, 2.0)),
            Feature("colour", Kind.CATEGORICAL, (1.0, 2.0, 3.0)),
            Feature("size", Kind.CATEGORICAL, (0.0, 1.0, 2.0, 5.0)),
        ]
    )


@pytest.fixture
def people() -> MakePeople:
    """People with the features of `schema`."""

    def made(n: int) -> People:
        generator = torch.Generator().manual_seed(n)

        def integers(high: int) -> torch.Tensor:
            return torch.randint(high, (n,), generator=generator)

        x = torch.stack(
            [
                torch.randn(n, generator=generator),
                integers(6).float(),
                1.0 + integers(2),
                1.0 + integers(3),
                torch.tensor([0.0, 1.0, 2.0, 5.0])[integers(4)],
            ],
            dim=-1,
        )
        return People(x, 2.0 * integers(2) - 1.0, integers(2).float())

    return made


@pytest.fixture
def setting(schema: Schema, compose_config: ComposeConfig) -> MakeSetting:
    """The setting of a learner for people of `schema`."""

    def made(seeds: list[int], *overrides: str) -> Setting:
        config = compose_config("preset=quick", *overrides)
        return Setting(schema, config.cost.value, seeds, config.schedule, config.protocol)

    return made


@pytest.fixture(scope="session")
def raw_data() -> Iterator[Path]:
    """The folder of raw files, `$FAIRALL_DATA`, which is set to ../shared/data where it is not."""
    folder = Path(os.environ.get("FAIRALL_DATA") or CHECKOUT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"raw data files are needed, and {folder} is not there; set FAIRALL_DATA")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("FAIRALL_DATA", str(folder))
        yield folder


def records(content: dict[str, Any], table: str, **keys: str) -> list[dict[str, Any]]:
    """Rows of a table of evaluation.json, of those with given keys."""
    found = content["tables"].get(table, [])
    return [row for row in found if all(row.get(name) == value for name, value in keys.items())]
