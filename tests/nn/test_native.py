"""Compiled code against the same in torch."""

import gc
import os
import re
from collections.abc import Sequence
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
from fairall.nn.native import fastest
from fairall.nn.stacked import StackedMLP, evaluated
from fairall.runtime.process import over_replicates, use_threads
from fairall.runtime.randomness import SeedStreams
from tests.conftest import PHASE1, own_process

if native.kernels() is None:
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
E = 4
RATE = 1e-3
EXTREME = torch.tensor([1.0, -1.0, 0.5, -0.1]).view(E, 1, 1)


def unlabelled(features: list[Feature], n: int) -> People:
    draw = np.random.default_rng(n)
    others = {Kind.REAL: draw.normal, Kind.COUNT: draw.poisson}
    x = [draw.choice(of.codes, n) if of.codes else others[of.kind](1.0, size=n) for of in features]
    s = torch.tensor(draw.choice([-1.0, 1.0], n)).float()
    return People(torch.tensor(np.stack(x, 1)).float(), s, torch.full_like(s, torch.nan))


def task_of(features: list[Feature], n: int, inputs: NetInputs, **changes: Any) -> Phase1Task:
    return Phase1Task(
        pool=unlabelled(features, n),
        validation=unlabelled(features, 70),
        schema=Schema(features, inputs),
        seeds=changes.pop("seeds", range(E)),
        latent_size=3,
        vae_arch=changes.pop("vae_arch", [20, 12]),
        group_blind=False,
        config=replace(PHASE1, **{"batch_size": 48, "beta": 0.7} | changes),
        epochs=10,
    )


def trained(
    features: list[Feature] = MIXED,
    n: int = 100,
    *,
    inputs: NetInputs = NetInputs.codes,
    epochs: int = 2,
    threads: int | None = 1,
    done: Sequence[int] = (),
    start: tuple[int, Any, Any] = (0, [], 0.0),
    **changes: Any,
) -> tuple[Any, list[Tensor]]:
    """A training of Phase I, and after each epoch the losses and all parameters, shape (E, 1 + n).

    Args:
        features: of n people.
        n: of people.
        inputs: how nets see the features.
        epochs: number of them.
        threads: in which it is computed.
        done: seeds that are done after the first epoch.
        start: number of a parameter, seeds, and what it is set to at first.
        changes: of the configuration and the task.
    """
    task = task_of(features, n, inputs, **changes)
    vae, streams = task.untrained_vae(task.streams()), SeedStreams(task.seeds, "draws")
    number, some, value = start
    with torch.no_grad():
        list(vae.parameters())[number][some] = value
    use_threads(threads)
    training, after = fastest(Phase1Epochs, vae, task.pool, task.config), []
    for epoch in range(epochs):
        draws = streams.permutations(n), streams.normal(n, 3, task.config.elbo_samples)
        stopped = torch.tensor([epoch > 0 and seed in done for seed in task.seeds])
        loss = training.epoch(*draws, stopped, RATE)
        values = [loss[:, None], *(parameter.flatten(1) for parameter in vae.parameters())]
        after.append(torch.cat(values, 1).detach())
    return training, after


# 1,000 people are no multiple of a minibatch; 700 people and nine samples are computed in parts.
CASES = [
    *(
        {"features": features, "n": 48, "inputs": inputs, "elbo_samples": n, "epochs": 1}
        for features in (*KINDS.values(), MIXED)
        for inputs in (NetInputs.codes, NetInputs.one_hot)
        for n in (1, 3)
    ),
    # Biases of outputs that are far beyond what is usual.
    *({"n": 48, "start": (-1, slice(None), far * EXTREME), "epochs": 1} for far in (30.0, 1e4)),
    *(
        {"n": 1000, "batch_size": 130, **changes}
        for changes in ({}, {"batch_size": 700}, {"vae_arch": [300]}, {"elbo_samples": 9})
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{len(case.get('features', MIXED))} {case}"[:60])
def test_training_is_that_of_torch(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, own = trained(**case)
    monkeypatch.setattr(native, "takes", lambda *tensors: False)
    oracle, known = trained(**case)
    assert isinstance(oracle, Phase1Epochs)
    assert isinstance(compiled, native.Phase1Epochs)
    assert int(compiled.model.steps) == int(oracle.optimiser.steps[0])
    for ours, theirs in zip(own, known, strict=True):
        torch.testing.assert_close(ours[:, 0], theirs[:, 0], rtol=1e-4, atol=1e-5)
        # Adam's first steps have the sign of the gradient alone, which rounding may change near zero.
        assert (ours - theirs)[:, 1:].abs().quantile(0.99) < 2e-5
    if case["n"] == 48:  # after one update Adam's first moment is a tenth of the gradient
        mean = torch.cat([mean.flatten(1) for mean in oracle.optimiser.means], 1)
        assert (compiled.model.moments[0] - mean).abs().max() < 1e-4 * mean.abs().max()
    people = unlabelled(case.get("features", MIXED), 70)
    for n_samples in (1, 16, 300):
        noise = torch.randn(E, 70, 3, n_samples)
        loss = compiled.loss(people, noise)
        torch.testing.assert_close(loss, oracle.loss(people, noise), rtol=1e-4, atol=0.0)


@pytest.mark.parametrize(
    "changes",
    [
        *({"threads": n} for n in (2, 3, None)),
        {"seeds": [2]},
        *({"start": (layer, 1, value)} for layer in (0, 2, 6) for value in (torch.nan, torch.inf)),
        *({"done": [1], "threads": n} for n in (1, 2)),
    ],
    ids=str,
)
def test_no_number_depends_on_threads_or_on_other_seeds(changes: dict[str, Any]) -> None:
    known, own = trained()[1], trained(**changes)[1]
    if "seeds" in changes:
        known = [of[2:3] for of in known]
    elif "done" in changes:  # it is not updated, and has the loss that it had
        assert torch.equal(own[1][1], known[0][1])
        known[1][1] = known[0][1]
    elif "start" in changes:  # it diverges, alone
        assert own[1][:, 0].isfinite().tolist() == [True, False, True, True]
        known, own = ([of[[0, 2, 3]] for of in one] for one in (known, own))
    assert all(map(torch.equal, own, known))


def test_inputs_of_other_nets_are_refused() -> None:
    net = StackedMLP(3, [4], 2, SeedStreams(range(E), "net"))
    for shape in [(E, 1, 5), (1, 3, 5), (E + 1, 3, 5)]:
        with torch.no_grad(), pytest.raises(ValueError, match="inputs of the nets have shape"):
            evaluated(net, torch.ones(shape))


def test_what_fails_in_a_thread_is_raised() -> None:
    use_threads(2)
    with pytest.raises(ZeroDivisionError):
        over_replicates(lambda replicates: 1 // (replicates.start - 2), 3)  # the second thread's


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("left_out", [None, "", "1", "034", "0123456"])
def test_every_replicate_is_computed_once_but_those_left_out(threads: int, left_out: str | None) -> None:
    computed: list[int] = []
    use_threads(threads)
    mask = None if left_out is None else [str(e) in left_out for e in range(7)]
    over_replicates(lambda some: computed.extend(range(7)[some]), 7, mask)
    assert sorted(computed) == [e for e in range(7) if str(e) not in (left_out or "")]


FORKING = """\
import os, signal
from fairall.runtime.process import over_replicates, use_threads
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

    monkeypatch.setattr(native, "_announced", set())
    source = Path(native.__file__).with_name("kernels.py").read_text()
    names = re.findall(r"^@(?:compiled|inner)\ndef (\w+)", source, re.MULTILINE)
    theirs = [numba.njit(lambda x: x)] * 9  # a function of somebody else's
    for function in (*theirs, *(getattr(native.kernels(), name) for name in names[:25] * 2)):
        with event.trigger_event("numba:compile", data={"dispatcher": function}):
            pass
    lines = [f" function {n} of at most {len(names)}" for n in (10, 20)]
    lines = [f"fairall: compiling{line} ...\n" for line in (", once for this installation", *lines)]
    assert capsys.readouterr().err == "".join(lines)


def test_the_blas_is_the_same_before_functions_are_compiled() -> None:
    code = """
import sys
from fairall.nn.native import blas, kernels
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
from fairall.nn import native
try:
    native.kernels()
except FairAllError as error:
    print(error)
"""
    ended = own_process("-c", code, check=True)
    assert ended.stdout.startswith("numba cannot be imported (")
    assert "NUMBA_DISABLE_JIT=1" in ended.stdout


def test_numba_is_not_imported_where_it_is_switched_off() -> None:
    code = "import sys; from fairall.nn import native; print(native.kernels(), 'numba' in sys.modules)"
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    ended = own_process("-c", code, env=environment, check=True)
    assert ended.stdout == "None False\n"
