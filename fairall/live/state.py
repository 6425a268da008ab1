"""The state of training as bytes, without copies of the people who are in the ledger."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load as deserialised
from safetensors.torch import save as serialised
from torch import Tensor

from fairall.data.people import Decided
from fairall.errors import FairAllError
from fairall.models.known import Known, hashes
from fairall.models.memory import Memory

STRUCTURE = "structure"  # key of the metadata
BASE = "x", "s", "propensity", "accepted", "label"  # columns of a memory that are known of everybody
SEEDS = 10_000  # more than there are
S = torch.arange(-1.0, 100.0)  # values of s, and more
KEPT = "all", "accepted"  # people whom a memory may keep


class Update(NamedTuple):
    """People of one update of a learner.

    Attributes:
        decided: fields (E, B, ...); a forgotten person is a rejected one of propensity 0.
        accepted: who was accepted, forgotten people too, shape (B,), bool.
    """

    decided: Decided
    accepted: Tensor


def packed(state: Any) -> bytes:
    """Nested dicts, lists and tuples of tensors and plain values as a safetensors file.

    Tensors are numbered; the containers, with these numbers, are JSON in its metadata.
    """
    tensors: dict[str, Tensor] = {}

    def plain(node: Any) -> Any:
        if isinstance(node, Tensor):
            tensors[str(len(tensors))] = node.detach().clone(memory_format=torch.contiguous_format)
            return {"tensor": len(tensors) - 1}
        if isinstance(node, dict):
            return {"dict": [[key, plain(value)] for key, value in node.items()]}
        if isinstance(node, list | tuple):
            return {type(node).__name__: [plain(value) for value in node]}
        return node

    structure = json.dumps(plain(state))
    return serialised(tensors, {STRUCTURE: structure})


def unpacked(content: bytes) -> Any:
    """Inverse of `packed`.

    Raises:
        FairAllError: where it is no such file.
    """
    try:
        tensors = deserialised(content)
        size = int.from_bytes(content[:8], "little")
        structure = json.loads(json.loads(content[8 : 8 + size])["__metadata__"][STRUCTURE])

        def state(node: Any) -> Any:
            if not isinstance(node, dict):
                return node
            ((kind, value),) = node.items()
            if kind == "tensor":
                return tensors[str(value)]
            if kind == "dict":
                return {key: state(one) for key, one in value}
            return (tuple if kind == "tuple" else list)(state(one) for one in value)

        return state(structure)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise FairAllError("the state of a version cannot be read: the ledger is damaged") from error


def memories(state: Any, kept: Sequence[str] = Memory.kept) -> Iterator[dict[str, Any]]:
    """The states of `models.memory.Memory`, or of what has `kept`, in a state, always in the same order."""
    if isinstance(state, dict) and state.keys() == {*kept}:
        yield state
    elif isinstance(state, dict | list | tuple):
        for one in state.values() if isinstance(state, dict) else state:
            yield from memories(one, kept)


def split(state: Any, before: Any | None, learnt: Sequence[Update]) -> list[dict[str, Any]]:
    """Empty the memories in a state, and return what `joined` needs to fill them again.

    A column of a memory is whole, or the part that was added since the parent: `tail` where it is stored,
    `rows` where it is that of the people whom the version has learnt from.

    Args:
        state: of a version; its memories have no columns afterwards.
        before: of its parent, whole; None without one.
        learnt: its updates.
    """
    found, rows = [], {kept: _rows(learnt, kept) for kept in KEPT} if learnt else {}
    olds = [None] * len(list(memories(state))) if before is None else [*memories(before)]
    for memory, old in zip(memories(state), olds, strict=True):
        columns, new = memory["columns"], {}
        for name, values in columns.items():
            new[name] = {"whole": values}
            tail = (
                None
                if old is None
                else _tail(values, memory["added"], old["columns"].get(name), old["added"])
            )
            if tail is not None:
                new[name] = {"tail": tail}
            for kept, of in rows.items():
                if "tail" in new[name] and name in of and torch.equal(new[name]["tail"], of[name]):
                    new[name] = {"rows": kept}
        found.append({"added": memory["added"], "columns": new})
        memory["columns"] = {}
    return found


def joined(state: Any, parts: Sequence[dict[str, Any]], before: Any | None, learnt: Sequence[Update]) -> None:
    """Inverse of `split`: fill the memories in a state again."""
    olds = [None] * len(parts) if before is None else [*memories(before)]
    rows = {kept: _rows(learnt, kept) for kept in KEPT} if learnt else {}
    for memory, part, old in zip(memories(state), parts, olds, strict=True):
        for name, stored in part["columns"].items():
            if "whole" in stored:
                memory["columns"][name] = stored["whole"]
                continue
            tail = rows[stored["rows"]][name] if "rows" in stored else stored["tail"]
            assert old is not None
            memory["columns"][name] = _extended(old["columns"][name], old["added"], tail)


def blanked(state: Any, x: Tensor) -> bool:
    """Overwrite people with features x (D,) in the memories of a state by rejected ones of propensity 0.

    Entries of `Known` by a hash of these features, with any s, are removed.

    Returns:
        Whether there were any.
    """
    found = False
    for memory in memories(state):
        columns = {
            name: next(iter(of.values())) if isinstance(of, dict) else of
            for name, of in memory["columns"].items()
        }
        if not isinstance(columns.get("x"), Tensor):
            continue
        same = (columns["x"] == x).all(-1)
        found |= bool(same.any())
        for values in columns.values():
            if isinstance(values, Tensor) and values.shape[:2] == same.shape:
                values[same] = 0
    for known in memories(state, Known.kept):
        beyond = known["hashes"].unsqueeze(-1) - hashes(x.expand(len(S), -1), S)
        others = ((beyond < 0) | (beyond >= SEEDS)).all(-1)  # the number of the seed is added to a hash
        found |= not bool(others.all())
        known |= {name: known[name][others] for name in Known.kept}
    return found


def _rows(learnt: Sequence[Update], kept: str) -> dict[str, Tensor]:
    """Columns (E, n, ...) of the people of some updates whom a memory keeps, the same for all seeds."""
    chosen = torch.cat([one.accepted for one in learnt])
    chosen = chosen if kept == "accepted" else torch.ones_like(chosen)
    return {name: torch.cat([getattr(one.decided, name) for one in learnt], 1)[:, chosen] for name in BASE}


def _tail(values: Tensor, added: Tensor, old: Tensor | None, before: Tensor) -> Tensor | None:
    """What a column (E, M, ...) has after that of the parent; None where it does not continue that."""
    if old is None or len(before) != len(added) or values.shape[1] < int(added.max()):
        return None
    more = added - before
    if (more != more[0]).any():
        return None
    starts = before.tolist()
    if any(not torch.equal(values[e, :n], old[e, :n]) for e, n in enumerate(starts)):
        return None
    return torch.stack([values[e, n : n + int(more[0])] for e, n in enumerate(starts)])


def _extended(old: Tensor, before: Tensor, tail: Tensor) -> Tensor:
    """A column with the `tail` (E, n, ...) after the rows `before` (E,) of each seed."""
    n = tail.shape[1]
    column = old.new_zeros(len(old), max(1, int(before.max()) + n), *old.shape[2:])
    for e, start in enumerate(before.tolist()):
        column[e, :start] = old[e, :start]
        column[e, start : start + n] = tail[e]
    return column
