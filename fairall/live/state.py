"""The state of training as bytes, without copies of the people who are in the ledger."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as deserialised
from safetensors.torch import save as serialised
from torch import Tensor

from fairall.config.schema import ExplorationRule
from fairall.data.people import Decided
from fairall.errors import FairAllError
from fairall.models.known import Known, hashes
from fairall.models.memory import Memory
from fairall.online.process import Process

STRUCTURE = "structure"  # name of a tensor
BASE = "x", "s", "propensity", "accepted", "label"  # columns of a memory that are known of everybody
SEEDS = 10_000  # more than there are
S = torch.arange(-1.0, 100.0)  # values of s, and more


def packed(state: Any) -> bytes:
    """Nested dicts and lists of tensors and plain values as a safetensors file; tuples become lists.

    Tensors are numbered; the containers, with these numbers, are JSON in a tensor of bytes.
    """
    tensors: dict[str, Tensor] = {}

    def plain(node: Any) -> Any:
        if isinstance(node, Tensor):
            tensors[str(len(tensors))] = node.detach().clone(memory_format=torch.contiguous_format)
            return {"tensor": len(tensors) - 1}
        if isinstance(node, dict):
            return {"dict": [[key, plain(value)] for key, value in node.items()]}
        return [*map(plain, node)] if isinstance(node, list | tuple) else node

    structure = json.dumps(plain(state)).encode()
    return serialised(tensors | {STRUCTURE: torch.frombuffer(bytearray(structure), dtype=torch.uint8)})


def unpacked(content: bytes) -> Any:
    """Inverse of `packed`.

    Raises:
        FairAllError: where it is no such file.
    """
    try:
        tensors = deserialised(content)

        def container(node: dict[str, Any]) -> Any:
            return dict(node["dict"]) if "dict" in node else tensors[str(node["tensor"])]

        return json.loads(tensors[STRUCTURE].numpy().tobytes(), object_hook=container)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise FairAllError("the state of a version cannot be read: the ledger is damaged") from error


def remembering(process: Process) -> dict[str, Memory]:
    """Memories that keep people, by the name of the part of a learner; that of exploration is ""."""
    bounded = process.exploration.rule is ExplorationRule.bounded
    found = {"": process.memory} if bounded else {}
    for prefix, module in process.learner.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, Memory) and value.keep != "step":
                found[f"{prefix}.{name}".lstrip(".")] = value
    return found


def replayed(process: Process, first: Any, updates: Sequence[Decided]) -> dict[str, Memory]:
    """Memories of a version, by the names of `remembering`, if they hold people as they were decided on.

    Args:
        process: of the version.
        first: state of training of the first version, whose people are not in the ledger.
        updates: of all versions since; the propensity of people who were forgotten is NaN, and they are
            remembered as rejected ones of propensity 0 with x = 0.
    """
    found = {}
    for name, memory in remembering(process).items():
        found[name] = twin = copy.copy(memory)
        twin.load_state_dict(_parts(first)[name])
        twin.columns = {column: values for column, values in twin.columns.items() if column in BASE}
        for decided in updates:
            twin.add(decided)
        forgotten = twin.columns.get("propensity", torch.zeros(0)).isnan()
        for values in twin.columns.values():
            values[forgotten] = 0
    return found


def remembered(state: Any, memories: Mapping[str, Memory]) -> Iterator[tuple[dict[str, Any], str, Tensor]]:
    """Columns of memories in a state, the name of each, and its values in `memories`."""
    for name, memory in memories.items():
        for column, values in memory.state_dict()["columns"].items():
            yield _parts(state)[name]["columns"], column, values


def blanked(state: Any, x: Tensor, memories: Mapping[str, Memory]) -> Any:
    """A state with rejected ones of propensity 0 in place of people with features x (D,) in its memories.

    So is what it has besides of those who are such in `memories`, as of `replayed`. Entries of `Known` by a
    hash of these features, with any s, are removed. The state itself is changed.
    """
    for name, memory in memories.items():
        there, own = memory.state_dict()["columns"], _parts(state)[name]["columns"]
        if own["x"] is None:
            nobody = (there["x"] == 0).all(-1) & (there["propensity"] == 0)
            for values in own.values():
                if values is not None:
                    values[nobody] = 0
    for part in _parts(state).values():
        if part.keys() == {*Memory.kept}:
            columns = {name: values for name, values in part["columns"].items() if values is not None}
            if "x" in columns:
                same = (columns["x"] == x).all(-1)
                for values in columns.values():
                    values[same] = 0
        if part.keys() == {*Known.kept}:
            beyond = part["hashes"].unsqueeze(-1) - hashes(x.expand(len(S), -1), S)
            others = ((beyond < 0) | (beyond >= SEEDS)).all(-1)  # the number of the seed is added to a hash
            part |= {name: part[name][others] for name in Known.kept}
    return state


def _parts(state: Any) -> dict[str, Any]:
    """Parts of a state of training by the names of `remembering`."""
    return {**state["parts"], "": state["memory"]}
