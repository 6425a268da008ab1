"""Commands that are killed at random moments, and random inputs: a result is whole, an error is one line."""

from __future__ import annotations

import itertools
import random
import resource
import shlex
import shutil
import signal
import subprocess
import sys
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
from benchmarks.in_process import Ended, typed, without_compiling
from benchmarks.inputs import CHANGES, command_line, damaged_table, hostile, yaml_text
from benchmarks.kills import killed_day
from benchmarks.machine import MAXRSS

KILLED, VERBS = "kills", "verbs"
SMALL = """
    preset=quick seeds=3 schedule.phase1_epochs=30 schedule.warm_up_epochs=10 schedule.time_steps=20
    evaluation.window=[10,20] evaluation.decisions=true checkpoint_seconds=0 tracking.enabled=false
""".split()
MODELS = ["fairall_I_II", "fairall_II", "fairlab_I_II", "fairlog", "unfairlog", "greedy", "plot"]
DATASETS = ["dataset=credit", "dataset=fico", "dataset=synthetic"]
WORLDS = [
    "",
    "",
    "world.capacity.number=16",
    "world.delay.steps=2",
    "world.drift.course=step world.drift.start=9",
]
COMPARED = ("metrics.csv", "decisions.csv", "summary.json")
START_UP = 1.5  # seconds in which nothing is done yet that could be lost
KILLS_OF_A_RUN = 8  # at most
LONGEST = 600.0  # seconds of a run that is left to itself
# Exit codes of a process that a signal ends: before it listens for the signal, afterwards, or too late.
ENDS = {by: (-by, 128 + by, 0) for by in (signal.SIGTERM, signal.SIGHUP)} | {signal.SIGKILL: (-9, 0)}
INTERRUPTED = [128 + by for by in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
SECONDS, BYTES = 60, 2**30  # more of an input is a failure
LOANS = """
    dataset=csv dataset.path=people.csv dataset.label=repaid dataset.positive=yes dataset.sensitive=sex
    dataset.advantaged=male
""".split()


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

    def kill(self, times: int) -> None:
        """Kill runs `times` times in all."""
        done = number = 0
        # A run may end before the signal: several are started for a kill at most.
        while done < times and number < 5 * times:
            done += self.kill_run(number, min(KILLS_OF_A_RUN, times - done))
            number += 1

    def kill_run(self, number: int, most: int = KILLS_OF_A_RUN) -> int:
        """Kill a run up to `most` times and compare its result with that of one that is not killed."""
        kills = 0
        with self._case(KILLED, number) as (chance, cwd):
            kills = killed(chance, cwd, most)
            self.ended[KILLED, "succeeded"] += kills
        return kills

    def kill_verbs(self, times: int) -> None:
        """Kill commands of ledgers `times` times in all."""
        for number in range(times):
            self.kill_day(number, times - self.ended[VERBS, "succeeded"])

    def kill_day(self, number: int, most: int | None = None) -> None:
        """Kill the commands of a random day of a ledger once, or `most` of them."""
        with self._case(VERBS, number) as (chance, cwd):
            for _ in itertools.islice(killed_day(["loans.db"] * 2, cwd, chance), most):
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
        if kind == KILLED:
            self.kill_run(number)
        elif kind == VERBS:
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
            except (FaultError, subprocess.TimeoutExpired) as failure:
                self.ended[kind, "failed"] += 1
                why = f"{kind}:{number}: {failure}: {shlex.join(getattr(failure, 'words', ()))}"
                again = f"again: python -m benchmarks soak --seed {self.seed} --only {kind}:{number}"
                print(f"{why}\n  {again}", flush=True)
                kept = self.folder / f"{kind}-{number}"
                shutil.copytree(place, kept, dirs_exist_ok=True, ignore=shutil.ignore_patterns("cache"))
                (kept / "why.txt").write_text(f"{why}\n", encoding="utf-8", errors="backslashreplace")


def killed(chance: random.Random, folder: Path, most: int) -> int:
    """Compare a random run that is killed up to `most` times with one that is not; how often it was killed.

    Raises:
        FaultError: if they differ, or an exit code is wrong.
    """
    words = [
        *SMALL,
        f"model={chance.choice(MODELS)}",
        chance.choice(DATASETS),
        f"seed={chance.randrange(1000)}",
        *chance.choice(WORLDS).split(),
    ]
    command, kills = [sys.executable, "-m", "fairall", *words], 0
    calm, hunted = folder / "calm", folder / "hunted"
    for place in (calm, hunted):
        place.mkdir()
    began = time.monotonic()
    left_alone(command, calm)
    whole = max(0.1, time.monotonic() - began - START_UP)
    for _ in range(most):
        by = chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
        running, code = kill_at_random(command, hunted, chance, whole, by)
        if code not in ENDS[by]:
            raise FaultError(f"exit code {code} after {by.name}", words)
        if not running:
            break
        kills += 1
    left_alone(command, hunted)
    if wrong := difference(calm, hunted):
        raise FaultError(wrong, words)
    return kills


def kill_at_random(
    command: Sequence[str], cwd: Path, chance: random.Random, longest: float, by: int = signal.SIGKILL
) -> tuple[bool, int]:
    """Start a command and send it a signal at a random moment, at most `longest` seconds after the start-up.

    Returns:
        Whether it was still running then, and its exit code.

    Raises:
        subprocess.TimeoutExpired: if it goes on after the signal; it is killed then.
    """
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return False, process.wait(START_UP + chance.uniform(0.0, longest))
    except subprocess.TimeoutExpired:
        process.send_signal(by)
        return True, process.wait(LONGEST / 10)
    finally:
        process.kill()
        process.wait()


def left_alone(command: Sequence[str], cwd: Path) -> None:
    """Run a command to its end.

    Raises:
        FaultError: if it fails or prints an error.
    """
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=LONGEST, check=False)
    told = without_compiling(ended.stderr)
    if ended.returncode or told:
        raise FaultError(f"exit code {ended.returncode}: {told.strip()[-300:]}", command)


def difference(calm: Path, hunted: Path) -> str | None:
    """What differs between the results of a run left alone and of one that was killed, or was left by it."""
    expected, found = (next(where.glob("outputs/runs/*/*/*/DONE")).parent for where in (calm, hunted))
    for name in COMPARED:
        if (found / name).read_bytes() != (expected / name).read_bytes():
            return f"{name} is not that of the run that was not killed"
    left = [path for path in (hunted / "outputs").rglob(".*") if path.is_file()]
    left += [path for path in hunted.iterdir() if path.name != "outputs"]
    return f"left {left[0].relative_to(hunted)}" if left else None


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
    ended = typed("data", "check", "people.csv", *LOANS[2:], cwd=cwd)
    *_, last = ended.stdout.splitlines() or [""]
    if ended.returncode and not ended.stderr and last.startswith("To fix: "):
        ended.stderr = f"{last}\n"  # its finding is its output
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
    """A saved policy, and beside it people.csv, the 300 loans that it was learned from."""
    chance = random.Random(0)
    lines = ["id,age,income,purpose,home_owner,sex,repaid"]
    for row in range(300):
        income, age = round(chance.gauss(30, 8), 1), chance.randint(18, 75)
        words = [
            chance.choice(["car", "house", "school"]),
            chance.choice("yn"),
            chance.choice(["male", "female"]),
        ]
        repaid = "yes" if income + chance.gauss(0, 8) > 28 else "no"
        lines.append(f"{row},{age},{income},{','.join(words)},{repaid}")
    few = ["schedule.time_steps=4", "evaluation.window=[2,4]", "model=fairlog"]
    with tempfile.TemporaryDirectory(prefix="fairall-soak-") as home:
        (Path(home) / "people.csv").write_text("\n".join([*lines, ""]))
        ended = typed(*SMALL, *LOANS, *few, cwd=Path(home))
        if ended.returncode:
            raise FaultError(ended.stderr, ended.args)
        (policy,) = Path(home).glob("outputs/runs/*/*/*/policy")
        yield Path(shutil.move(policy, home))


def peak_bytes() -> int:
    """Most bytes of memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * MAXRSS
