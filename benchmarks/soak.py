"""Commands of ledgers that are killed before their writes, and random inputs: an error is one line."""

from __future__ import annotations

import itertools
import random
import resource
import shlex
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

import pandas as pd

from benchmarks.errors import FaultError
from benchmarks.in_process import Ended, typed
from benchmarks.inputs import CHANGES, command_line, damaged_table, hostile, yaml_text
from benchmarks.kills import killed_day
from benchmarks.machine import MAXRSS
from benchmarks.tables import applicants

VERBS = "verbs"
INTERRUPTED = [128 + by for by in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
SECONDS, BYTES = 60, 2**30  # more of an input is a failure
LOANS = """
    dataset=csv dataset.path=people.csv dataset.label=repaid dataset.positive=good dataset.sensitive=sex
    dataset.advantaged=m
""".split()
FEW = "model=fairlog preset=quick seeds=3 schedule.time_steps=4 evaluation.window=[2,4]".split()


class TooLongError(BaseException):
    """An input takes more than `SECONDS`; not an Exception, which the package might catch."""

    @staticmethod
    def throw(*_: object) -> NoReturn:
        """Handle SIGALRM."""
        raise TooLongError(f"more than {SECONDS} s")


class Soak:
    """Kills and inputs whose n-th case is the same every time.

    Args:
        seed: of the random numbers.
        folder: gets the files of failures, by kind and number.

    Attributes:
        ended: how often a case of a kind "succeeded", ended with "one line" or "failed".
    """

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed, self.folder = seed, folder
        self.ended: Counter[tuple[str, str]] = Counter()

    def kill_verbs(self, times: int) -> None:
        """Kill commands of ledgers `times` times in all."""
        for number in range(times):
            self.kill_day(number, times - self.ended[VERBS, "succeeded"])

    def kill_day(self, number: int, most: int | None = None) -> None:
        """Kill the commands of a random day of a ledger, at most so many times."""
        with self._case(VERBS, number) as (chance, cwd):
            kills = killed_day(["loans.db"] * 2, cwd, chance, step=chance.randint(3, 12))
            for _ in itertools.islice(kills, most):
                self.ended[VERBS, "succeeded"] += 1

    def inputs(self, number: int) -> None:
        """Try inputs of all kinds in turn, `number` in all."""
        with saved_policy() as policy:
            for place in range(number):
                self.try_input([*INPUTS][place % len(INPUTS)], place, policy)

    def try_input(self, kind: str, number: int, policy: Path) -> None:
        """Try an input, with a policy of `saved_policy`."""
        with self._case(kind, number) as (chance, cwd):
            code = tried(kind, chance, policy, cwd)
            self.ended[kind, "one line" if code else "succeeded"] += 1

    def again(self, kind: str, number: int) -> None:
        """Try one case again."""
        if kind == VERBS:
            self.kill_day(number)
        else:
            with saved_policy() as policy:
                self.try_input(kind, number, policy)

    def table(self) -> pd.DataFrame:
        """Counts by kind and end."""
        counts = pd.Series(self.ended).unstack(fill_value=0)
        return counts.reindex(columns=["succeeded", "one line", "failed"], fill_value=0)

    @contextmanager
    def _case(self, kind: str, number: int) -> Iterator[tuple[random.Random, Path]]:
        """Random numbers and a folder for a case; reports a failure and keeps its files."""
        with tempfile.TemporaryDirectory(prefix="fairall-soak-") as place:
            try:
                yield random.Random(f"{self.seed} {kind} {number}"), Path(place)
            except FaultError as failure:
                self.ended[kind, "failed"] += 1
                why = f"{kind}:{number}: {failure}: {shlex.join(failure.words)}"
                again = f"again: python -m benchmarks soak --seed {self.seed} --only {kind}:{number}"
                print(f"{why}\n  {again}", flush=True)
                kept = self.folder / f"{kind}-{number}"
                shutil.copytree(place, kept, dirs_exist_ok=True, ignore=shutil.ignore_patterns("cache"))
                (kept / "why.txt").write_text(f"{why}\n", encoding="utf-8", errors="backslashreplace")


def _words(chance: random.Random, policy: Path, cwd: Path) -> Ended:
    return typed(*command_line(chance), cwd=cwd)


def _files(chance: random.Random, policy: Path, cwd: Path) -> Ended:
    group = chance.choice(["preset", "model", "dataset", "protocol"])
    own = cwd / "conf" / group / "own.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(yaml_text(chance, group), encoding="utf-8")
    return typed(f"{group}=own", "-cd", str(cwd / "conf"), cwd=cwd)


def _table(chance: random.Random, policy: Path, cwd: Path) -> Ended:
    (cwd / "people.csv").write_bytes(damaged_table(chance, (policy.parent / "people.csv").read_bytes()))
    if chance.random() < 0.5:
        return typed(*LOANS, cwd=cwd)
    ended = typed("data", "describe", "people.csv", *LOANS[2:], cwd=cwd)
    found = [line for line in ended.stdout.splitlines() if line.startswith("To fix: ")]
    if ended.returncode and not ended.stderr:
        ended.stderr = "".join(f"{line}\n" for line in found[:1])  # its findings are its output
    return ended


def _people(chance: random.Random, policy: Path, cwd: Path) -> Ended:
    (cwd / "people.csv").write_bytes(damaged_table(chance, (policy.parent / "people.csv").read_bytes()))
    strict = ["--strict"] if chance.random() < 0.5 else []
    return typed("decide", str(policy), "people.csv", "-o", "decided.csv", *strict, cwd=cwd)


def _policies(chance: random.Random, policy: Path, cwd: Path) -> Ended:
    """A saved policy with files that somebody hostile has changed, and with sums that are right."""
    from fairall.storage.files import write_sums

    (cwd / "policy").mkdir()
    for name, content in hostile(chance, {name: (policy / name).read_bytes() for name in CHANGES}).items():
        (cwd / "policy" / name).write_bytes(content)
    write_sums(cwd / "policy" / "SUMS", list(CHANGES))
    shutil.copy(policy.parent / "people.csv", cwd)
    return typed("decide", "policy", "people.csv", "-o", "decided.csv", cwd=cwd)


INPUTS: dict[str, Callable[[random.Random, Path, Path], Ended]] = {
    "overrides": _words,
    "files": _files,
    "tables": _table,
    "people": _people,
    "policies": _policies,
}
"""What tries an input of each kind: (random numbers, saved policy, working folder) to how it ended."""


def tried(kind: str, chance: random.Random, policy: Path, cwd: Path) -> int:
    """Try an input of `INPUTS`; the exit code.

    Raises:
        FaultError: if it takes too long or too much memory, or ends otherwise than well or in one line.
    """
    signal.signal(signal.SIGALRM, TooLongError.throw)
    before, began = peak_bytes(), time.monotonic()
    words: Sequence[str] = ()
    try:
        with untrained():
            signal.alarm(SECONDS)
            ended = INPUTS[kind](chance, policy, cwd)
        words = ended.args
        if ended.returncode in INTERRUPTED:
            raise KeyboardInterrupt  # the command took a signal that was for the soak
        made = {"conf", "people.csv", "policy"} | ({"decided.csv"} if ended.returncode == 0 else set())
        why = fault(ended, cwd, made)
    except (Exception, TooLongError) as error:  # whatever a user would see as a traceback
        why = f"{type(error).__name__}: {str(error)[:300]}"
    finally:
        signal.alarm(0)
    if why is None and peak_bytes() - before > BYTES:
        why = f"took {(peak_bytes() - before) / 2**30:.1f} GiB of memory"
    if why is not None:
        raise FaultError(f"{why} after {time.monotonic() - began:.1f} s", words)
    return ended.returncode


def fault(ended: Ended, folder: Path, made: set[str]) -> str | None:
    """What is wrong with how a command ended; None if it succeeded, or failed with one line.

    Args:
        ended: of `typed`.
        folder: where it ran.
        made: names of files that may be there besides `outputs`.
    """
    code, errors = ended.returncode, ended.stderr
    if code not in (0, 1, 2):
        return f"exit code {code}"
    if "Traceback" in errors or "recursion" in errors:
        return "a traceback"
    if code == 0 and errors:
        return "exit code 0 with an error"
    # A sweep has a line for each job that fails, and a table of the user one more, on its keys.
    lines = [line for line in errors.splitlines() if "keys of the table" not in line]
    if code and (len(lines) != 1 if "--multirun" not in ended.args else not lines):
        return f"{len(lines)} lines of error"
    left = {path.name for path in folder.iterdir()} - made - {"outputs"}
    return f"left {', '.join(sorted(left))}" if left else None


@contextmanager
def untrained() -> Iterator[None]:
    """Runs end with a one-line error before their first training step, up to which words can spoil them."""
    from fairall import experiment
    from fairall.errors import FairAllError

    def prepared(composed: Any, *_: Any, **__: Any) -> NoReturn:
        experiment.job(composed)
        raise FairAllError("ready to train")

    with mock.patch.object(experiment, "run", prepared):
        yield


@contextmanager
def saved_policy() -> Iterator[Path]:
    """A saved policy, and beside it people.csv, the people that it was learned from."""
    with tempfile.TemporaryDirectory(prefix="fairall-soak-") as home:
        people = applicants(600, 12).dropna().drop(columns=["granted", "propensity"]).round(2)
        people.to_csv(Path(home) / "people.csv", index=False)
        ended = typed(*LOANS, *FEW, "tracking.enabled=false", cwd=Path(home))
        if ended.returncode:
            raise FaultError(ended.stderr, ended.args)
        (policy,) = Path(home).glob("outputs/runs/*/*/*/policy")
        yield Path(shutil.move(policy, home))


def peak_bytes() -> int:
    """Most bytes of memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * MAXRSS
