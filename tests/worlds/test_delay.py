"""Delay: when a learner gets which decisions, and with which propensities."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fairall.config.checks import check_values
from fairall.data.people import Decided
from fairall.data.prepared import PreparedData
from fairall.worlds.delay import Delay, DelayConfig
from fairall.worlds.noise import Noise
from fairall.worlds.world import World
from tests.conftest import ComposeConfig, as_saved, run_online, succeeded
from tests.worlds.conftest import Fixed, close, online, sampled, setting_of, share_error


def delay(seeds: list[int], steps: int = 0, mean: float | None = None, censored: float = 0.0) -> Delay:
    config = DelayConfig(steps=steps, mean=mean, censored=censored)
    check_values(config, "world.delay")
    return Delay(config, setting_of(None, seeds))


def decisions(time_steps: int, seeds: int = 2, n: int = 30) -> Iterator[Decided]:
    """Half of the people are accepted; x is the time step."""
    for time_step in range(time_steps):
        people = sampled(n, seeds)
        accepted = torch.rand(seeds, n) < 0.5
        one = Decided.reveal(people, torch.full((seeds, n), 0.5 / (1 + time_step)), accepted)
        yield Decided(torch.full((seeds, n, 1), float(time_step)), one.s, one.propensity, accepted, one.label)


def times(due: list[Decided]) -> list[int]:
    return [int(one.x[0, 0, 0]) for one in due]


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_a_constant_delay_gives_what_was_decided_so_many_steps_ago(steps: int) -> None:
    own, decided = delay([0, 1], steps), list(decisions(10))
    for t, one in enumerate(decided):
        due = own.due([one], t)
        assert times(due) == ([t - steps] if t >= steps else [])
        for late in due:
            for name, values in vars(decided[t - steps]).items():
                assert torch.equal(getattr(late, name), values)


def geometric(seeds: list[int], mean: float, time_steps: int) -> tuple[list[list[int]], dict[int, int]]:
    """Time steps that come at each step, and how long each that came has waited."""
    own = delay(seeds, mean=mean)
    come = [times(own.due([one], t)) for t, one in enumerate(decisions(time_steps, len(seeds), 2))]
    return come, {t: now - t for now, due in enumerate(come) for t in due}


def test_a_geometric_delay_has_its_mean_and_its_distribution() -> None:
    n, mean = 6000, 3.0
    come, waited = geometric([0], mean, n)
    assert all(due == sorted(due) for due in come)
    assert max(map(len, come)) > 1
    in_order = [t for due in come for t in due]
    assert in_order != sorted(in_order)
    # Without the last time steps, of which only the early labels have come.
    steps = torch.tensor([waited[t] for t in range(n - 100)]).double()
    assert close(steps.mean(), mean, (mean * (1 + mean) / len(steps)) ** 0.5)
    for k in range(6):
        p = 0.25 * 0.75**k
        assert close((steps == k).double().mean(), p, share_error(p, len(steps)), 4.0)


def test_censored_people_count_as_rejected_and_the_weights_know_it() -> None:
    own, lost = delay([0, 1], censored=0.3), []
    for t, decided in enumerate(decisions(200)):
        (due,) = own.due([decided], t)
        assert not (due.accepted & ~decided.accepted).any()
        torch.testing.assert_close(due.propensity, 0.7 * decided.propensity)
        assert torch.equal(due.label, torch.where(due.accepted, decided.label, 0.0))
        lost.append((decided.accepted & ~due.accepted)[decided.accepted].float())
    share = torch.cat(lost)
    assert close(share.mean(), 0.3, share_error(0.3, len(share)))


def test_what_waits_is_in_the_checkpoint() -> None:
    whole, resumed = (delay([0, 1], mean=4.0, censored=0.2) for _ in range(2))
    decided = list(decisions(40))
    for t, one in enumerate(decided[:20]):
        whole.due([one], t)
    assert whole.waiting
    resumed.load_state_dict(as_saved(whole.state_dict()))
    for t, one in enumerate(decided[20:], start=20):
        a, b = whole.due([one], t), resumed.due([one], t)
        assert len(a) == len(b)
        for mine, its in zip(a, b, strict=True):
            assert all(torch.equal(values, getattr(its, name)) for name, values in vars(mine).items())


@pytest.mark.parametrize("part", ["world.delay.steps=5", "world.delay.mean=3"])
def test_learners_get_propensities_and_labels_of_the_day_of_the_decision(
    part: str, fico: PreparedData, compose_config: ComposeConfig
) -> None:
    learner = Fixed()
    process = online(learner, compose_config("dataset=fico", part, "world.capacity.share=0.3"), fico, [0, 1])
    history = run_online(process, 30)
    of_day = {tuple(propensity.flatten().tolist()): t for t, propensity in enumerate(history.propensity)}
    days = [of_day.pop(tuple(decided.propensity.flatten().tolist())) for decided in learner.seen]
    assert len(days) == 25 if "steps" in part else 15 < len(days) < 30
    for t, decided in zip(days, learner.seen, strict=True):
        assert torch.equal(decided.accepted, history.accepted[t])
        assert torch.equal(decided.label, history.label[t] * history.accepted[t])


def test_labels_are_false_before_they_are_late(compose_config: ComposeConfig, fico: PreparedData) -> None:
    config = compose_config("dataset=fico", "world.delay.steps=3", "world.noise.advantaged.positive=1")
    assert isinstance(World.of(config, fico, [0]).parts["noise"], Noise)
    learner = Fixed()
    history = run_online(online(learner, config, fico, [0]), 8)
    for t, decided in enumerate(learner.seen):
        assert (decided.label[decided.s > 0] == 0).all()
        assert torch.equal(decided.label, history.observed["revealed_label"][t] * history.accepted[t])
        assert (history.label[t] != history.observed["revealed_label"][t]).any()


@pytest.mark.parametrize("values", [{"steps": 3}, {"mean": 2.0}, {"mean": 40.0}, {"censored": 0.5}])
def test_a_note_tells_how_many_labels_come_in_time(values: dict[str, float]) -> None:
    config = DelayConfig(**({"steps": 0, "mean": None, "censored": 0.0} | values))  # type: ignore[arg-type]
    setting = replace(setting_of(None, [0]), time_steps=20)
    own = Delay(config, setting)
    notes, warnings = own.notes(drawn=True), own.warnings(drawn=True)
    come = [t for t, one in enumerate(decisions(20, 1), start=1) for _ in own.due([one], t)]
    assert warnings == []
    # The same after a part of the run.
    assert notes == own.notes(drawn=True)
    if len(come) == 20:
        assert notes == []
    else:
        (note,) = notes
        assert f"{len(come)} of 20 time steps" in note
        assert f"at time step {come[0]}:" in note


def test_labels_that_all_come_too_late_are_a_warning_before_the_run_and_the_numbers(tmp_path: Path) -> None:
    setting = replace(setting_of(None, [0]), time_steps=8)
    for steps, mean, key in ((8, None, "steps=8"), (0, 1e6, "mean=1e+06")):
        own = Delay(DelayConfig(steps=steps, mean=mean, censored=0.0), setting)
        (warning,) = own.warnings(drawn=True)
        assert warning.startswith(f"world.delay.{key}: ")
        assert own.notes(drawn=True) == []
        assert not any(own.due([one], t) for t, one in enumerate(decisions(8, 1), start=1))
    quick = ["preset=quick", "model=random", "tracking.enabled=false", f"outputs_dir={tmp_path}"]
    ended = succeeded(*quick, "world=[capacity,delay]", cwd=tmp_path)
    # Before the run and before its table.
    before, _, _ = ended.stdout.partition("mean_utility")
    assert before.count("Warning: world.delay.steps=10: ") == 2
