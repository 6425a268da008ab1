"""The monitor beside the online loop: against a simulated truth, and in runs."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from fairall.measuring.measure import measure
from fairall.measuring.monitor import known, monitored
from fairall.measuring.sequences import LARGEST_GAP
from fairall.models.learner import ProgressCallback
from fairall.online.training import Training
from fairall.results.card import model_card
from fairall.results.figures import draw_learning
from fairall.results.monitor import Monitor
from fairall.results.result import Result
from fairall.results.terminal import Display
from fairall.storage.checkpoint import Checkpoint
from fairall.storage.run_folder import RunFolder
from fairall.tables.overlap import LEAST_EFFECTIVE
from tests.conftest import no_cache, run_folder, training_of, typed
from tests.worlds.conftest import ALL_PARTS

BOTH = np.array([-1.0, 1.0])
UNFAIR = ("model=unfairlog", "dataset=synthetic", "schedule.time_steps=20", "evaluation.window=[10,20]")


def simulated(
    seed: int,
    gap: float,
    *,
    level: float = 0.45,
    share: float = 0.4,
    steps: int = 30,
    drift: float = 0.0,
    spread: float = 0.0,
) -> pd.DataFrame:
    """What is known of a policy with a gap between π of the groups, which changes by `drift` in all.

    π of the group whose share is not `share` is `level`, with a standard deviation of `spread` over time.
    """
    draw = np.random.default_rng(seed)
    s = np.where(draw.random((steps, 64)) < share, 1.0, -1.0)
    of_step = gap + drift * np.arange(steps)[:, None] / steps
    leniency = np.clip(draw.normal(level, spread, (steps, 1)), 0.0, 0.7)
    propensity = leniency + of_step * (s > 0)
    return known(s, draw.random(s.shape) < propensity, propensity, BOTH)


def test_intervals_cover_the_truth_at_all_steps_together() -> None:
    """Of a policy whose gap goes from 20 points to nothing."""
    covered, seen = [], []
    for seed in range(400):
        table = simulated(seed, 0.2, drift=-0.2, spread=0.1).dropna()
        covered.append(table["truth"].between(table["low"], table["high"]).all())
        seen.append((table["gap"] - table["truth"]).abs().max() > 0.01)
    assert np.mean(covered) >= 0.95 - 2 * np.sqrt(0.05 * 0.95 / 400)
    assert np.mean(seen) > 0.95  # the truth is not what is observed


@pytest.mark.parametrize(("gap", "share"), [(0.051, 0.4), (0.051, 0.2), (0.03, 0.2), (0.15, 0.1)])
def test_intervals_cover_where_nobody_of_a_group_is_accepted(gap: float, share: float) -> None:
    """The rate of 0 has no variance in the data, and a small one of few people often has none."""
    covered = []
    for seed in range(400):
        table = simulated(seed, gap, level=0.0, share=share).dropna()
        covered.append(table["truth"].between(table["low"], table["high"]).all())
    assert np.mean(covered) >= 0.95 - 2 * np.sqrt(0.05 * 0.95 / 400)


def test_a_gap_of_epsilon_gives_few_alarms_and_few_acquittals() -> None:
    tables = [simulated(seed, LARGEST_GAP, spread=0.1) for seed in range(400)]
    found = np.mean([table["found"].iloc[-1] for table in tables])
    excluded = np.mean([(table["excluded"] == 1).any() for table in tables])
    assert found <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 400)
    assert excluded <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 400)


def test_a_large_gap_is_found_and_none_is_excluded() -> None:
    large = [simulated(seed, 0.3) for seed in range(40)]
    assert np.mean([table["found"].iloc[-1] for table in large]) == 1
    assert not any(table["excluded"].any() for table in large)
    for table in large:
        assert (np.diff(table["wealth"]) >= 0).all()
        assert ((table["wealth"] >= 20) == (table["found"] == 1)).all()
    none = [simulated(seed, 0.0, steps=200) for seed in range(20)]
    assert np.mean([table["excluded"].iloc[-1] for table in none]) > 0.8
    assert np.mean([table["found"].iloc[-1] for table in none]) <= 0.05


def test_what_is_known_written_out() -> None:
    draw = np.random.default_rng(0)
    s = draw.integers(0, 3, (12, 20)).astype(float)
    propensity = 0.3 + 0.2 * s
    accepted = draw.random(s.shape) < propensity
    table = known(s, accepted, propensity, np.arange(3.0))
    for t in range(12):
        until, own = s[: t + 1].ravel(), table.iloc[t]
        sizes = np.bincount(until.astype(int), minlength=3)
        if sizes.min() < LEAST_EFFECTIVE:
            assert own[["gap", "low", "high", "truth"]].isna().all()
            continue
        rates, truths = (
            [of[: t + 1].ravel()[until == code].mean() for code in range(3)] for of in (accepted, propensity)
        )
        assert own["gap"] == pytest.approx(max(rates) - min(rates))
        assert own["truth"] == pytest.approx(max(truths) - min(truths)) == pytest.approx(0.4)
        assert 0.0 <= own["low"] < own["gap"] < own["high"] <= 1.0
    assert table["gap"].notna().any()
    assert table["gap"].isna().any()


def checkpoint(folder: Path) -> Checkpoint:
    return Checkpoint(folder / "checkpoint.pt", "none", seconds=0.0)


def trained(folder: Path, *words: str) -> Training:
    training = training_of("evaluation.monitor=true", *words)
    training.run(checkpoint(folder), no_cache(), Display(progress_only=True))
    return training


@pytest.fixture(scope="module")
def unfair(tmp_path_factory: pytest.TempPathFactory) -> Training:
    return trained(tmp_path_factory.mktemp("unfair"), *UNFAIR, "seeds=3")


def test_unfairness_of_a_run_is_found(unfair: Training, tmp_path: Path) -> None:
    result = measure(unfair, unfair.config.to_plain(), no_cache())
    monitor = result.monitor
    assert monitor is not None
    assert list(monitor.steps) == [
        "seed", "time_step", "gap", "low", "high", "truth", "wealth", "found", "excluded",
    ]  # fmt: skip
    first = monitor.first("found")
    assert (first <= 20).sum() >= 2
    plain = result.to_plain()["monitor"]
    assert plain["found"] == {"seeds": int((first <= 20).sum()), "median_step": monitor.median_step("found")}
    assert monitor.sentence() in model_card(result, "0")
    draw_learning(result, tmp_path / "learning.png")
    folder = RunFolder(tmp_path)
    folder.write_config(result.config)
    result.save(folder)
    folder.write_text("DONE", "")
    again = Result.read(folder).monitor
    assert again is not None
    pd.testing.assert_frame_equal(again.steps, monitor.steps, rtol=1e-6, check_dtype=False)


@pytest.mark.parametrize(
    "words", [[*ALL_PARTS], ["protocol.effective=decided_again"]], ids=["worlds", "again"]
)
def test_it_watches_the_decisions_taken(words: list[str], tmp_path: Path) -> None:
    training = trained(tmp_path, "model=random", "dataset=fico", "evaluation.decisions=true", *words)
    history, table = training.history, monitored(training).steps
    for e, (_, own) in enumerate(table.groupby("seed")):
        s = history.s[:, e].flatten()
        for name, of in (("gap", history.accepted), ("truth", history.propensity)):
            rates = [of[:, e].flatten()[s == sign].double().mean().item() for sign in (-1, 1)]
            assert own[name].iloc[-1] == pytest.approx(abs(rates[0] - rates[1]), abs=1e-6)


def test_a_run_resumed_has_the_same_monitor(unfair: Training, tmp_path: Path) -> None:
    class Stopping(Display):
        @contextmanager
        def phase(self, name: str, total: int, *, done: int = 0) -> Iterator[ProgressCallback]:
            steps = 0

            def advance(**_: float | int | None) -> None:
                nonlocal steps
                steps += 1
                if (name, steps) == ("Phase II", 9):
                    raise InterruptedError

            yield advance

    words = "evaluation.monitor=true", *UNFAIR, "seeds=3"
    with pytest.raises(InterruptedError):
        training_of(*words).run(checkpoint(tmp_path), no_cache(), Stopping())
    resumed = training_of(*words)
    resumed.run(checkpoint(tmp_path), no_cache(), Display(progress_only=True))
    pd.testing.assert_frame_equal(monitored(resumed).steps, monitored(unfair).steps, check_exact=True)


def test_a_diverged_seed_has_no_values_and_does_not_count(tmp_path: Path) -> None:
    training = trained(tmp_path, *UNFAIR, "seeds=3")
    training.history.steps.read()["measure utility"][14:, 1] = torch.nan
    result = measure(training, training.config.to_plain(), no_cache())
    assert result.monitor is not None
    steps = result.monitor.steps
    own = steps[steps["seed"] == 1].drop(columns=["seed", "time_step"])
    assert own.iloc[14:].isna().all(axis=None)
    assert own.iloc[:14]["found"].notna().all()
    assert list(result.monitor.first("found").index) == [0, 2]
    draw_learning(result, tmp_path / "learning.png")


def test_without_values_there_are_words_and_a_figure(unfair: Training, tmp_path: Path) -> None:
    result = measure(unfair, unfair.config.to_plain(), no_cache())
    assert result.monitor is not None
    steps = result.monitor.steps
    columns = steps.columns[2:]
    for gone in (list(columns), ["gap", "low", "high", "truth"]):  # all seeds have diverged; too few people
        empty = Monitor(LARGEST_GAP, steps.assign(**dict.fromkeys(gone, np.nan)))
        plain = empty.to_plain()
        assert (plain["gap"], plain["truth"]) == (None, None)
        json.dumps(plain, allow_nan=False)
        made = Result(**(vars(result) | {"monitor": empty}))
        draw_learning(made, tmp_path / "learning.png")
        assert empty.sentence() in model_card(made, "0")


def test_the_median_counts_seeds_without_an_alarm() -> None:
    def of(*first: int) -> Monitor:
        rows = [
            {"seed": e, "time_step": t, "found": float(t >= at)}
            for e, at in enumerate(first)
            for t in (1, 2, 3)
        ]
        return Monitor(0.05, pd.DataFrame(rows))

    assert of(1, 3, 9).median_step("found") == 3
    assert of(1, 9, 9).median_step("found") is None
    assert of(1, 9).median_step("found") is None
    assert of(1, 2).median_step("found") == 1.5


def test_it_changes_no_other_file_and_is_made_again(tmp_path: Path) -> None:
    words = ["model=unfairlog", "preset=quick", "schedule.warm_up_epochs=2", "tracking.enabled=false"]
    folders = []
    for monitor in ("false", "true"):
        (cwd := tmp_path / monitor).mkdir()
        ended = typed(*words, f"evaluation.monitor={monitor}", cwd=cwd)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert ("Monitor: A gap above 5 points" in ended.stdout) == (monitor == "true")
        folders.append(run_folder(cwd / "outputs"))
    without, watched = folders
    assert without.name != watched.name
    assert not (without / "monitor.csv").exists()
    for name in ("metrics.csv", "policy/weights.safetensors"):
        assert (without / name).read_bytes() == (watched / name).read_bytes()
    plain, further = (json.loads((path / "summary.json").read_text()) for path in folders)
    assert further.pop("monitor")["largest_gap"] == LARGEST_GAP
    assert plain == further
    assert "  monitor.csv\n" in (watched / "DONE").read_text()
    before = (watched / "monitor.csv").read_bytes()
    (watched / "monitor.csv").unlink()
    ended = typed(*words, "evaluation.monitor=true", cwd=tmp_path / "true")
    assert "monitor.csv is damaged or missing; the result is made again" in ended.stdout
    assert (watched / "monitor.csv").read_bytes() == before
