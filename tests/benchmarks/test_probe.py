import itertools
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from benchmarks import probe
from benchmarks.probe import COMPILED, Stopwatch, count_products, parts, reached_rate
from fairall.data.features import Schema
from fairall.models.phase1 import Phase1Epochs
from fairall.models.vae import ConditionalVAE
from fairall.nn import native
from fairall.nn.stacked import StackedMLP
from fairall.runtime.randomness import SeedStreams
from tests.conftest import PHASE1, MakePeople
from tests.models.conftest import built, decided_on

pytestmark = pytest.mark.whole

SMALL = """
    preset=quick seeds=1 schedule.phase1_epochs=1 schedule.warm_up_epochs=1 schedule.time_steps=2
    evaluation.window=[1,2] tracking.enabled=false
""".split()
WITH_NETS = ["Phase I", "Warm-up", "Phase II", "evaluation"]
FORWARD = 2 * 7 * (3 * 5 + 5 * 1)  # two replicates, seven people, layers 3 -> 5 -> 1


def test_the_parts_of_a_run_add_up_to_the_whole(tmp_path: Path) -> None:
    table = parts(["model=fairall_I_II", *SMALL], tmp_path / "parts.csv")
    assert table.index.tolist() == ["start-up", *WITH_NETS, "rest", "whole"]
    seconds = table[["cpu_seconds", "wall_seconds"]]
    assert (seconds > 0).all(axis=None)
    # Only the start and the end of the interpreter are seen from outside alone.
    assert (seconds.drop("whole").sum() <= seconds.loc["whole"]).all()
    assert table["billion_products"]["start-up"] == 0
    assert table["billion_products"].drop("whole").sum() == pytest.approx(table["billion_products"]["whole"])
    assert (table["ratio"][WITH_NETS] > 1).all(), "one core does not do more than its products"


def test_a_part_inside_another_interrupts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = SimpleNamespace(
        process_time=itertools.count().__next__, perf_counter=itertools.count(step=2).__next__
    )
    monkeypatch.setattr(probe, "time", clocks)
    watch = Stopwatch("start-up")
    with watch.part("outer"), watch.part("inner"):
        pass
    with pytest.raises(ValueError, match="broken"), watch.part("broken"):
        raise ValueError("broken")
    assert watch.running == "rest"
    assert watch.used == {
        "start-up": [1, 2, 0],
        "outer": [2, 4, 0],
        "inner": [1, 2, 0],
        "rest": [1, 2, 0],
        "broken": [1, 2, 0],
    }


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    for owner, names in ((torch, ["baddbmm"]), (native.kernels(), COMPILED)):
        for name in names:
            monkeypatch.setattr(owner, name, getattr(owner, name))  # restored in the end
    found: list[int] = []
    count_products(found.append)
    return found


def test_forward_products_are_those_of_the_layers(counted: list[int]) -> None:
    net = StackedMLP(3, [5], 1, SeedStreams([0, 1], "test"))
    with torch.no_grad():
        net(torch.ones(2, 7, 3))
    assert sum(counted) == FORWARD


def test_products_that_are_differentiated_count_for_their_gradients(counted: list[int]) -> None:
    net = StackedMLP(3, [5], 1, SeedStreams([0, 1], "test"))
    net(torch.ones(2, 7, 3))
    of_input = 2 * 7 * 3 * 5  # the input itself has no gradient
    assert sum(counted) == 3 * FORWARD - of_input


def test_compiled_products_count_as_those_of_torch(
    schema: Schema, people: MakePeople, counted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(PHASE1, batch_size=4, elbo_samples=3)
    pool = people(10)
    order, noise = SeedStreams([0, 1], "draws").permutations(10), torch.randn(2, 10, 2, 3)

    def all_products() -> int:
        vae = ConditionalVAE(schema, 2, [6, 5], SeedStreams([0, 1], "test"), utility=False, group_blind=False)
        counted.clear()
        training = native.fastest(Phase1Epochs, vae, pool, config)
        training.epoch(order, noise, torch.zeros(2, dtype=torch.bool), 1e-3)
        with torch.no_grad():
            training.loss(pool, noise)
        return sum(counted)

    compiled = all_products()
    monkeypatch.setattr(native, "kernels", lambda: None)
    assert compiled == all_products()


# With z_clf torch classifies the same people twice.
@pytest.mark.parametrize("policy", ["z_dec", "z_label", "dec"])
@pytest.mark.parametrize("model", ["fairall_II", "fairlab_I_II"])
def test_compiled_products_of_phase_2_count_as_those_of_torch(
    model: str, policy: str, counted: list[int], people: MakePeople, monkeypatch: pytest.MonkeyPatch
) -> None:
    def all_products() -> int:
        counted.clear()
        own = built(model, [0], f"model.policy={policy}", features="abcde")
        own.update(decided_on(people(37)))  # torch pads rows of several replicates to equal numbers
        return sum(counted)

    compiled = all_products()
    monkeypatch.setattr(native, "kernels", lambda: None)
    assert compiled == all_products()


def test_a_core_multiplies() -> None:
    threads = torch.get_num_threads()
    try:
        assert 1e8 < reached_rate() < 1e12
    finally:
        torch.set_num_threads(threads)
