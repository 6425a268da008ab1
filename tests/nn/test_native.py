"""Compiled code against the same in torch."""

import gc
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fairall.config.schema import NetInputs
from fairall.data.features import Feature, Kind, Schema
from fairall.data.people import People
from fairall.models.phase1 import Phase1Epochs, Phase1Task
from fairall.nn import native
from fairall.nn.native import calls, fastest
from fairall.nn.native.calls import over_replicates, use_threads
from fairall.nn.stacked import StackedMLP, average_probability, evaluated
from fairall.runtime.randomness import SeedStreams
from tests.conftest import PHASE1, own_process

if calls.kernels() is None:
    pytest.skip("numba is not installed, or switched off", allow_module_level=True)

KINDS = {
    "real": [Feature("a", Kind.REAL), Feature("b", Kind.REAL)],
    "count": [Feature("c", Kind.COUNT)],
    "binary": [Feature("d", Kind.BINARY, (1.0, 2.0)), Feature("e", Kind.BINARY, (0.0, 1.0))],
    "categorical": [
        Feature("f", Kind.CATEGORICAL, (3.0, 5.0, 6.0)),
        Feature("g", Kind.CATEGORICAL, (0.0, 1.0, 2.0, 3.0)),
    ],
}
MIXED = [features[i] for i in (0, 1) for features in KINDS.values() if i < len(features)]
E = 3
NONE = torch.zeros(E, dtype=torch.bool)  # seeds that are done
RATE = 1e-3


def unlabelled(features: list[Feature], n: int) -> People:
    draw = np.random.default_rng(n)
    columns = {
        Kind.REAL: lambda f: draw.normal(size=n),
        Kind.COUNT: lambda f: draw.poisson(4.0, size=n),
        Kind.BINARY: lambda f: draw.choice(f.codes, size=n),
        Kind.CATEGORICAL: lambda f: draw.choice(f.codes, size=n),
    }
    x = np.stack([columns[feature.kind](feature) for feature in features], 1)
    s = torch.tensor(draw.choice([-1.0, 1.0], size=n)).float()
    return People(torch.tensor(x).float(), s, torch.full_like(s, torch.nan))


def task_of(features: list[Feature], n: int, **changes: Any) -> Phase1Task:
    config = replace(PHASE1, batch_size=48, learning_rate=1e-2, beta=0.7, validate_every=5, margin=0.0)
    keys = changes.keys() & vars(config).keys()
    config = replace(config, **{key: changes.pop(key) for key in keys})
    inputs = changes.pop("inputs", NetInputs.codes)
    return Phase1Task(
        pool=unlabelled(features, n),
        validation=unlabelled(features, 70),
        schema=Schema(features, inputs),
        seeds=changes.pop("seeds", range(E)),
        latent_size=3,
        vae_arch=changes.pop("vae_arch", [20, 12]),
        group_blind=False,
        config=config,
        epochs=changes.pop("epochs", 10),
    )


def both(task: Phase1Task) -> Iterator[tuple[Any, Any]]:
    """Training in torch and compiled, and the VAE of each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calls, "kernels", lambda: None)
        vae = task.untrained_vae(task.streams())
        yield fastest(Phase1Epochs, vae, task.pool, task.config), vae
    vae = task.untrained_vae(task.streams())
    yield fastest(Phase1Epochs, vae, task.pool, task.config), vae


def draws(task: Phase1Task) -> tuple[Tensor, Tensor]:
    streams, n = SeedStreams(task.seeds, "draws"), len(task.pool)
    return streams.permutations(n), streams.normal(n, task.latent_size, task.config.elbo_samples)


@pytest.mark.parametrize("n_samples", [1, 3])
@pytest.mark.parametrize("inputs", [NetInputs.codes, NetInputs.one_hot])
@pytest.mark.parametrize("features", [*KINDS.values(), MIXED], ids=[*KINDS, "mixed"])
def test_the_first_gradient_of_phase_1_is_that_of_torch(
    features: list[Feature], inputs: NetInputs, n_samples: int
) -> None:
    task = task_of(features, 48, inputs=inputs, elbo_samples=n_samples)
    (oracle, _), (compiled, _) = both(task)
    assert isinstance(oracle, Phase1Epochs)
    assert isinstance(compiled, native.functions.Phase1Epochs)
    expected, loss = oracle.epoch(*draws(task), NONE, RATE), compiled.epoch(*draws(task), NONE, RATE)
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=0.0)
    # After one update Adam's first moment is a tenth of the gradient.
    mean = torch.cat([mean.flatten(1) for mean in oracle.optimiser.means], 1)
    assert (compiled.model.moments[0] - mean).abs().max() < 1e-4 * mean.abs().max()


@pytest.mark.parametrize(
    "changes", [{}, {"batch_size": 700}, {"vae_arch": [300]}, {"elbo_samples": 9}], ids=str
)
def test_some_epochs_leave_the_weights_of_torch(changes: dict[str, Any]) -> None:
    # 1,000 people are no multiple of a minibatch; 700 people and nine samples are computed in parts.
    task = task_of(MIXED, 1000, **{"batch_size": 130} | changes)
    (oracle, of_torch), (twin, compiled) = both(task)
    for _ in range(2):
        expected, loss = oracle.epoch(*draws(task), NONE, RATE), twin.epoch(*draws(task), NONE, RATE)
    torch.testing.assert_close(loss, expected, rtol=1e-4, atol=0.0)
    for n_samples in (1, 16, 300):
        noise = torch.randn(E, len(task.validation), task.latent_size, n_samples)
        known, own = (training.loss(task.validation, noise) for training in (oracle, twin))
        torch.testing.assert_close(own, known, rtol=1e-4, atol=0.0)
    assert int(twin.model.steps) == int(oracle.optimiser.steps[0])
    for own, known in zip(compiled.parameters(), of_torch.parameters(), strict=True):
        assert own.shape == known.shape
        # Adam's first steps have the sign of the gradient alone, which rounding may change near zero.
        assert (own - known).abs().quantile(0.99) < 2e-5


def test_inputs_of_other_nets_are_refused() -> None:
    net = StackedMLP(3, [4], 2, SeedStreams(range(E), "net"))
    for shape in [(E, 1, 5), (1, 3, 5), (E + 1, 3, 5)]:
        with torch.no_grad(), pytest.raises(ValueError, match="inputs of the nets have shape"):
            evaluated(net, torch.ones(shape))


@pytest.mark.parametrize("scale", [1e-3, 30.0, 1e4])
def test_extreme_outputs_are_as_in_torch(scale: float) -> None:
    task = task_of(MIXED, 48)
    first = []
    for training, vae in both(task):
        with torch.no_grad():
            for parameter in vae.decoder.parameters():
                parameter.zero_()
            biases = np.random.default_rng(0).normal(scale=scale, size=vae.decoder.last.bias.shape)
            vae.decoder.last.bias.copy_(torch.from_numpy(biases))
        loss = training.epoch(*draws(task), NONE, RATE)
        first.append((loss, vae.decoder.last.bias.detach().clone()))
    (expected, known), (loss, own) = first
    torch.testing.assert_close(loss, expected, rtol=2e-5, atol=1e-5)
    torch.testing.assert_close(own, known, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("layer", [0, 2, 6])
def test_a_parameter_that_is_not_finite_makes_its_seed_diverge_alone(layer: int, value: float) -> None:
    task = task_of(MIXED, 100)
    sound = task.untrained_vae(task.streams())
    known = fastest(Phase1Epochs, sound, task.pool, task.config).epoch(*draws(task), NONE, RATE)
    vae = task.untrained_vae(task.streams())
    with torch.no_grad():
        list(vae.parameters())[layer][1] = value
    training = fastest(Phase1Epochs, vae, task.pool, task.config)
    loss = training.epoch(*draws(task), NONE, RATE)
    assert torch.equal(loss[[0, 2]], known[[0, 2]])
    loss = training.epoch(*draws(task), NONE, RATE)
    assert loss.isfinite().tolist() == [True, False, True]


def test_nets_and_averages_are_those_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    net = StackedMLP(3, [20, 12], 1, SeedStreams(range(E), "net"))
    x, loc, scale = torch.randn(E, 3, 301), torch.randn(E, 301, 2, 3), torch.rand(E, 301, 2, 3)
    noise = torch.randn(E, 301, 3, 8)
    with torch.no_grad():
        outputs, average = evaluated(net, x), average_probability(net, loc, scale, noise)
        monkeypatch.setattr(calls, "kernels", lambda: None)
        expected, known = evaluated(net, x), average_probability(net, loc, scale, noise)
    torch.testing.assert_close(outputs, expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(average, known, rtol=1e-5, atol=1e-6)
    assert average.std() > 0.01


def test_no_number_depends_on_threads_or_on_other_seeds() -> None:
    def trained(seeds: list[int]) -> tuple[Tensor, ...]:
        task = task_of(MIXED, 300, seeds=seeds)
        vae = task.untrained_vae(task.streams())
        loss = fastest(Phase1Epochs, vae, task.pool, task.config).epoch(
            *draws(task), NONE[:1].expand(len(seeds)), RATE
        )
        return loss, *(parameter.detach().clone() for parameter in vae.parameters())

    one = trained([0, 1, 2, 3])
    for n in (2, 3, None):
        use_threads(n)
        assert all(map(torch.equal, trained([0, 1, 2, 3]), one))
    assert all(torch.equal(own[0], known[2]) for own, known in zip(trained([2]), one, strict=True))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_seed_that_is_done_is_not_updated(threads: int) -> None:
    task = task_of(MIXED, 100)
    known, vae = (task.untrained_vae(task.streams()) for _ in range(2))
    all_go_on, training = (fastest(Phase1Epochs, each, task.pool, task.config) for each in (known, vae))
    first = training.epoch(*draws(task), NONE, RATE)
    all_go_on.epoch(*draws(task), NONE, RATE)
    kept = [parameter[1].clone() for parameter in vae.parameters()]
    use_threads(threads)
    loss = training.epoch(*draws(task), torch.tensor([False, True, False]), RATE)
    expected = all_go_on.epoch(*draws(task), NONE, RATE)
    assert loss[1] == first[1]
    assert torch.equal(loss[[0, 2]], expected[[0, 2]])
    for own, stopped, other in zip(vae.parameters(), kept, known.parameters(), strict=True):
        assert torch.equal(own[1], stopped)
        assert torch.equal(own[[0, 2]], other[[0, 2]])


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("left_out", [None, [], [1], [0, 3, 4], [0, 1, 2, 3, 4, 5, 6]])
def test_every_replicate_is_computed_once_but_those_left_out(
    threads: int, left_out: list[int] | None
) -> None:
    computed: list[int] = []
    mask = None if left_out is None else [e in left_out for e in range(7)]
    use_threads(threads)
    over_replicates(lambda some: computed.extend(range(some.start, some.stop)), 7, mask)
    assert sorted(computed) == [e for e in range(7) if e not in (left_out or [])]


def test_what_fails_in_a_thread_is_raised() -> None:
    use_threads(2)
    with pytest.raises(ZeroDivisionError):
        over_replicates(lambda replicates: 1 // (replicates.start - 2), 3)  # the second thread's


FORKING = """\
import os, signal
from fairall.nn.native.calls import over_replicates, use_threads
use_threads(2)
done = []
over_replicates(lambda replicates: done.extend(range(replicates.start, replicates.stop)), 3)
child = os.fork()
if child == 0:
    signal.alarm(60)
    over_replicates(lambda replicates: done.extend(range(replicates.start, replicates.stop)), 3)
    os._exit(len(done))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_does_not_wait_for_threads_it_lacks() -> None:
    ended = own_process("-c", FORKING, check=True)
    assert ended.stdout == "6\n"


def test_compiling_is_said_and_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import numba
    from numba.core import event

    monkeypatch.setattr(calls, "_announced", set())
    with event.trigger_event("numba:compile", data={"dispatcher": numba.njit(lambda x: x)}):
        pass
    assert capsys.readouterr().err == ""  # a function of somebody else's
    for _ in range(3):
        with event.trigger_event("numba:compile", data={"dispatcher": calls.kernels().exp}):
            pass
    assert capsys.readouterr().err == "fairall: compiling, once for this installation ...\n"
    source = Path(calls.__file__).with_name("kernels.py").read_text()
    names = re.findall(r"^@(?:compiled|inner)\ndef (\w+)", source, re.MULTILINE)
    for name in names[:25]:
        with event.trigger_event("numba:compile", data={"dispatcher": getattr(calls.kernels(), name)}):
            pass
    lines = [f"fairall: compiling function {n} of at most {len(names)} ...\n" for n in (10, 20)]
    assert capsys.readouterr().err == "".join(lines)


def test_the_blas_is_the_same_before_functions_are_compiled() -> None:
    code = """
import sys
from fairall.nn.native.calls import blas, kernels
before = blas()
assert "numba" not in sys.modules and kernels() is not None
assert blas() == before
"""
    own_process("-c", code, check=True)


def test_the_garbage_collector_is_as_before_after_a_compilation() -> None:
    import numba

    @numba.njit
    def callee(x: Any) -> Any:
        return x + 1

    @numba.njit
    def caller(x: Any) -> Any:
        return callee(x)

    for collects in (True, False):
        caller.recompile()
        (gc.enable if collects else gc.disable)()
        try:
            assert caller(1) == 2
            assert gc.isenabled() == collects
        finally:
            gc.enable()


def test_numba_that_cannot_be_imported_is_one_line() -> None:
    code = """
import sys
sys.modules["numba.core"] = None
from fairall.errors import FairAllError
from fairall.nn.native import calls
try:
    calls.kernels()
except FairAllError as error:
    print(error)
"""
    ended = own_process("-c", code, check=True)
    assert ended.stdout.startswith("numba cannot be imported (")
    assert "NUMBA_DISABLE_JIT=1" in ended.stdout


def test_numba_is_not_imported_where_it_is_switched_off() -> None:
    code = "import sys; from fairall.nn.native import calls; print(calls.kernels(), 'numba' in sys.modules)"
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    ended = own_process("-c", code, env=environment, check=True)
    assert ended.stdout == "None False\n"
