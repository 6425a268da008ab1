"""Runs that are killed at random moments, and inputs that are mostly wrong, for as long as one likes."""

from __future__ import annotations

import random
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentTypeError
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.in_process import Ended, fault, typed, untrained
from benchmarks.nonsense import command_line, damaged_table, yaml_text

NAME = "soak"
KILLED = "kills"
SMALL = [
    "preset=quick", "seeds=3", "schedule.phase1_epochs=30", "schedule.warm_up_epochs=10",
    "schedule.time_steps=20", "evaluation.window=[10,20]", "evaluation.decisions=true",
    "checkpoint_seconds=0", "tracking.enabled=false",
]  # fmt: skip
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
INTERRUPTED = [128 + by for by in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
SECONDS, BYTES = 60, 2**30  # more of an input is a failure
SHOWN = 10  # failures at the end
# How signals that can be handled end a process: before it listens for them, and afterwards.
ENDS = {by: (-by, 128 + by, 0) for by in (signal.SIGTERM, signal.SIGHUP)} | {signal.SIGKILL: (-9, 0)}
LOANS = [
    "dataset=csv", "dataset.path=people.csv", "dataset.label=repaid", "dataset.positive=yes",
    "dataset.sensitive=sex", "dataset.advantaged=male",
]  # fmt: skip


@dataclass
class Report:
    """What was tried, and what fell.

    Attributes:
        ended: how often inputs of a kind ended with an exit code.
        failures: what happened, and the words that do it again, by kind and number.
    """

    ended: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: dict[str, tuple[str, str]] = field(default_factory=dict)

    def fail(self, kind: str, number: int, why: str, words: Sequence[str]) -> None:
        """Take note of a failure."""
        self.ended[kind, "failed"] += 1
        self.failures[f"{kind}:{number}"] = why, shlex.join(words)

    def table(self, seed: int) -> str:
        """Counts by kind, and the first failures with what reproduces each."""
        kinds = sorted({kind for kind, _ in self.ended})
        rows = [["", "tried", "succeeded", "one line", "failed"]]
        for kind in kinds:
            counts = [self.ended[kind, how] for how in ("succeeded", "one line", "failed")]
            rows.append([kind, *map(str, (sum(counts), *counts))])
        lines = ["".join(f"{cell:>12}" for cell in row) for row in rows]
        for place, (why, words) in [*self.failures.items()][:SHOWN]:
            lines += [f"{place}: {why}", f"  {words}"]
            lines += [f"  again: python -m benchmarks {NAME} --seed {seed} --only {place}"]
        return "\n".join(lines)


def soak(kills: int, inputs: int, seed: int, folder: Path, advance: Callable[[int], None]) -> Report:
    """Kill runs in a second thread while this one tries inputs.

    Args:
        kills: how many.
        inputs: how many, of all kinds in turn.
        seed: of the random numbers; the n-th case is the same every time.
        folder: gets the files of failures, by kind and number.
        advance: called with the number of kills and inputs done since the last call.
    """
    report = Report()
    with tempfile.TemporaryDirectory(prefix="fairall-soak-") as scratch, ThreadPoolExecutor(1) as pool:
        stop: list[bool] = []
        killing = pool.submit(_kill_all, kills, seed, Path(scratch), folder, report, advance, stop)
        try:
            if inputs:
                with _policy(Path(scratch)) as policy:
                    for number in range(inputs):
                        kind = [*INPUTS][number % len(INPUTS)]
                        try_input(kind, number, seed, policy, folder, report)
                        advance(1)
            killing.result()
        finally:
            stop.append(True)
    return report


def case(word: str) -> str:
    """A case of the command line."""
    kind, _, number = word.partition(":")
    if kind not in {KILLED, *INPUTS} or not number.isdecimal():
        raise ArgumentTypeError(f"it must be KIND:NUMBER, KIND one of {', '.join((KILLED, *INPUTS))}")
    return word


def again(place: str, seed: int, folder: Path) -> Report:
    """Try one case of `soak` again, KIND:NUMBER."""
    kind, _, number = place.partition(":")
    report = Report()
    with tempfile.TemporaryDirectory(prefix="fairall-soak-") as scratch:
        if kind == KILLED:
            _kill_run(int(number), seed, KILLS_OF_A_RUN, Path(scratch), folder, report)
        else:
            with _policy(Path(scratch)) as policy:
                try_input(kind, int(number), seed, policy, folder, report)
    return report


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


def _kill_all(
    kills: int,
    seed: int,
    scratch: Path,
    folder: Path,
    report: Report,
    advance: Callable[[int], None],
    stop: Sequence[bool],
) -> None:
    done = number = 0
    # A run may end before the signal: several are started for a kill at most.
    while done < kills and number < 5 * kills and not stop:
        killed = _kill_run(number, seed, min(KILLS_OF_A_RUN, kills - done), scratch, folder, report)
        advance(killed)
        done, number = done + killed, number + 1


def _kill_run(number: int, seed: int, most: int, scratch: Path, folder: Path, report: Report) -> int:
    """Compare a run that is killed up to `most` times with one that is not; how often it was killed."""
    chance = random.Random(f"{seed} {KILLED} {number}")
    words = [
        *SMALL, f"model={chance.choice(MODELS)}", chance.choice(DATASETS), f"seed={chance.randrange(1000)}",
        *chance.choice(WORLDS).split(),
    ]  # fmt: skip
    command, kills = [sys.executable, "-m", "fairall", *words], 0
    calm, hunted = scratch / f"calm {number}", scratch / f"hunted {number}"
    for place in (calm, hunted):
        place.mkdir()
    try:
        began = time.monotonic()
        _left_alone(command, calm)
        whole = max(0.1, time.monotonic() - began - START_UP)
        for _ in range(most):
            by = chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
            killed, code = kill_at_random(command, hunted, chance, whole, by)
            if code not in ENDS[by]:
                raise FaultError(f"exit code {code} after {by.name}")
            if not killed:
                break
            kills += 1
        _left_alone(command, hunted)
        _compare(calm, hunted)
    except (FaultError, subprocess.TimeoutExpired) as failure:
        report.fail(KILLED, number, str(failure), words)
        _keep(hunted, folder / f"{KILLED}-{number}", f"{failure}: {shlex.join(words)}")
    else:
        report.ended[KILLED, "succeeded"] += kills
    shutil.rmtree(calm)
    shutil.rmtree(hunted)
    return kills


class FaultError(Exception):
    """What should not have happened."""


def _left_alone(command: Sequence[str], cwd: Path) -> None:
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=LONGEST, check=False)
    if ended.returncode or ended.stderr:
        raise FaultError(f"exit code {ended.returncode}: {ended.stderr.strip()[-300:]}")


def _compare(calm: Path, hunted: Path) -> None:
    (expected,), (found,) = (
        [path.parent for path in where.glob("outputs/runs/*/*/*/DONE")] for where in (calm, hunted)
    )
    for name in COMPARED:
        if (found / name).read_bytes() != (expected / name).read_bytes():
            raise FaultError(f"{name} is not that of the run that was not killed")
    left = [path for path in (hunted / "outputs").rglob(".*") if path.is_file()]
    left += [path for path in hunted.iterdir() if path.name != "outputs"]
    if left:
        raise FaultError(f"left {left[0].relative_to(hunted)}")


def _words(chance: random.Random, policy: Path, cwd: Path) -> Ended:
    return typed(*command_line(chance), cwd=cwd)


def _files(chance: random.Random, policy: Path, cwd: Path) -> Ended:
    group = chance.choice(["preset", "model", "dataset", "protocol"])
    own = cwd / "conf" / group / "own.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(yaml_text(chance), encoding="utf-8")
    return typed(f"{group}=own", "-cd", str(cwd / "conf"), cwd=cwd)


def _table(chance: random.Random, policy: Path, cwd: Path) -> Ended:
    (cwd / "people.csv").write_bytes(damaged_table(chance, (policy.parent / "people.csv").read_bytes()))
    if chance.random() < 0.5:
        return typed(*LOANS, cwd=cwd)
    ended = typed("check", "people.csv", *LOANS[2:], cwd=cwd, module="fairall.data")
    *_, last = ended.stdout.splitlines() or [""]
    if ended.returncode and not ended.stderr and last.startswith("To fix: "):
        ended.stderr = f"{last}\n"  # its finding is its output
    return ended


def _people(chance: random.Random, policy: Path, cwd: Path) -> Ended:
    (cwd / "people.csv").write_bytes(damaged_table(chance, (policy.parent / "people.csv").read_bytes()))
    strict = ["--strict"] if chance.random() < 0.5 else []
    return typed(str(policy), "people.csv", "-o", "decided.csv", *strict, cwd=cwd, module="fairall.decide")


def _policies(chance: random.Random, policy: Path, cwd: Path) -> Ended:
    """A saved policy with files that somebody hostile has changed, and with sums that are right."""
    from benchmarks.hostile_policies import CHANGES, hostile
    from fairall.storage.files import write_sums

    own = cwd / "policy"
    own.mkdir()
    for name, content in hostile({name: (policy / name).read_bytes() for name in CHANGES}, chance).items():
        (own / name).write_bytes(content)
    write_sums(own / "SUMS", list(CHANGES))
    shutil.copy(policy.parent / "people.csv", cwd)
    return typed("policy", "people.csv", "-o", "decided.csv", cwd=cwd, module="fairall.decide")


INPUTS: dict[str, Callable[[random.Random, Path, Path], Ended]] = {
    "overrides": _words, "files": _files, "tables": _table, "people": _people, "policies": _policies,
}  # fmt: skip
"""What tries an input of each kind: (random numbers, saved policy, working folder) to how it ended."""
# Files of the inputs, and of `decide` where it succeeds.
MAY_BE_THERE = frozenset({"conf", "people.csv", "policy"})


def try_input(kind: str, number: int, seed: int, policy: Path, folder: Path, report: Report) -> None:
    """Try one input, which depends on its kind, its number and the seed."""
    chance = random.Random(f"{seed} {kind} {number}")
    with tempfile.TemporaryDirectory(prefix="fairall-soak-") as place:
        cwd, before, began = Path(place), _peak(), time.monotonic()
        words, why, code = [f"{kind} {number}"], None, 1
        try:
            with untrained(), _at_most(SECONDS):
                ended = INPUTS[kind](chance, policy, cwd)
            words, code = [*ended.args], ended.returncode
            if code in INTERRUPTED:
                raise KeyboardInterrupt  # the command took a signal that was for the soak
            allowed = MAY_BE_THERE | ({"decided.csv"} if code == 0 else set())
            why = fault(ended, cwd, allowed)
        except (Exception, _TooLongError) as error:  # whatever a user would see as a traceback
            why = f"{type(error).__name__}: {str(error)[:300]}"
        if why is None and _peak() - before > BYTES:
            why = f"took {(_peak() - before) / 2**30:.1f} GiB of memory"
        if why is not None:
            report.fail(kind, number, f"{why} after {time.monotonic() - began:.1f} s", words)
            _keep(cwd, folder / f"{kind}-{number}", f"{why}: {shlex.join(words)}")
        else:
            report.ended[kind, "one line" if code else "succeeded"] += 1


class _TooLongError(BaseException):
    """Nothing that the package catches."""


@contextmanager
def _at_most(seconds: int) -> Iterator[None]:
    def too_long(*_: object) -> None:
        raise _TooLongError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _policy(scratch: Path) -> Iterator[Path]:
    """A saved policy, and beside it the table of people that it was learned from."""
    home = scratch / "policy of loans"
    home.mkdir()
    (home / "people.csv").write_text(_loans())
    few = ["schedule.time_steps=4", "evaluation.window=[2,4]", "model=fairlog"]
    ended = typed(*SMALL, *LOANS, *few, cwd=home)
    if ended.returncode:
        raise FaultError(ended.stderr)
    (saved,) = home.glob("outputs/runs/*/*/*/policy")
    yield Path(shutil.move(saved, home))


def _loans() -> str:
    """A table of 300 loans."""
    chance = random.Random(0)
    lines = ["id,age,income,purpose,home_owner,sex,repaid"]
    for row in range(300):
        income, age = round(chance.gauss(30, 8), 1), chance.randint(18, 75)
        words = (
            chance.choice(["car", "house", "school"]),
            chance.choice("yn"),
            chance.choice(["male", "female"]),
        )
        repaid = "yes" if income + chance.gauss(0, 8) > 28 else "no"
        lines.append(f"{row},{age},{income},{','.join(words)},{repaid}")
    return "\n".join(lines) + "\n"


def _keep(place: Path, target: Path, why: str) -> None:
    """Keep the files of a failure, and say why, as a soak may be interrupted."""
    shutil.copytree(place, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("cache"))
    (target / "why.txt").write_text(f"{why}\n", encoding="utf-8", errors="backslashreplace")


def _peak() -> int:
    """Most bytes of memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
