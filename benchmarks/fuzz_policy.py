"""Mutations of a saved policy with sums that match, as somebody hostile could send them."""

from __future__ import annotations

import copy
import io
import json
import random
import resource
import sys
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml

from fairall.errors import FairAllError
from fairall.policy import CONFIG, FEATURES, SUMS, WEIGHTS, Policy
from fairall.storage.files import sha256

VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 7, 0.5, -3.0, 1e-320, 1e308, float("inf"), float("nan"), 10**8, 2**31,
    2**63, 10**400, "", "a", "mean", "nan", "real", "count", "binary", "???", "${seed}", "${oc.env:HOME}",
    "${oc.env:HOME", "os.system", "os.path", "antigravity.fly", "fairall.__main__.main", "fairall.models.vae",
    "fairall.models.learner.Learner", "fairall.models.constant.Constant", "..", "a\nb", "x" * 5000, "\u202e",
    [], [1], [-1], [0, 0], [10**7, 10**7], [64] * 3000, ["a", "a"], {}, {"a": 1}, {"a": {"b": []}}, [[[]]],
]  # fmt: skip
KEYS = ["name", "kind", "extra", "_target_", "_partial_", "seeds", "", "1", "a.b", "${x}"]
FLOATS = [0.0, -1.0, 1e30, float("inf"), float("-inf"), float("nan")]


@dataclass
class Outcomes:
    """What mutations led to.

    Attributes:
        loaded: number of policies that gave probabilities.
        refused: number that were refused in one line.
        wrong: what else happened, a line each, with the number of the mutation.
        slowest: longest time of one of them in seconds, and its number.
        memory: by which the largest memory of the process has grown, bytes.
    """

    loaded: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)
    slowest: tuple[float, int] = (0.0, 0)
    memory: int = 0


def fuzz_policy(saved: Path, scratch: Path, n: int, *, seed: int = 0) -> Outcomes:
    """Load mutations of a policy, and compute probabilities with those that load.

    Args:
        saved: folder of a policy, which stays as it is.
        scratch: an empty folder to write mutations to.
        n: number of mutations; the first are those of `ATTACKS`.
        seed: of the random ones. The same arguments give the same mutations.
    """
    names = (CONFIG, FEATURES, WEIGHTS)
    original = {name: (saved / name).read_bytes() for name in names}
    found, before = Outcomes(), _memory()
    for number in range(n):
        draw = random.Random(f"{seed} {number}")
        contents = ATTACKS[number](original) if number < len(ATTACKS) else _mutated(original, draw)
        for name, content in contents.items():
            (scratch / name).write_bytes(content)
        (scratch / SUMS).write_text("".join(f"{sha256(scratch / name)}  {name}\n" for name in names))
        start = time.perf_counter()
        _try(scratch, found, f"mutation {number} of seed {seed}")
        found.slowest = max(found.slowest, (time.perf_counter() - start, number))
    found.memory = _memory() - before
    return found


def _try(folder: Path, found: Outcomes, told: str) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            policy = Policy.load(folder)
            propensity = policy.propensity(policy.reader.example())
            policy.combined(propensity)
    except FairAllError as error:
        found.refused += 1
        if "\n" in str(error) or len(str(error)) > 1000:
            found.wrong.append(f"{told}: not one line of at most 1000 characters: {str(error)[:200]!r}")
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}, line {last.lineno}"
        found.wrong.append(f"{told}: {type(error).__name__}: {str(error)[:200]!r} ({where})")
    else:
        found.loaded += 1
        if propensity.shape != (len(policy.seeds), 2):
            found.wrong.append(f"{told}: probabilities of shape {propensity.shape}")


def _mutated(original: dict[str, bytes], draw: random.Random) -> dict[str, bytes]:
    """The three files, one of them changed in one to three places."""
    name = draw.choice(list(original))
    content = original[name]
    for _ in range(draw.choice([1, 1, 2, 3])):
        change = _damaged if draw.random() < 0.25 else CHANGES[name]
        try:
            content = change(content, draw)
        except Exception:  # an earlier change leaves nothing that this one could change
            content = _damaged(content, draw)
    return original | {name: content}


def _damaged(content: bytes, draw: random.Random) -> bytes:
    """Some bytes replaced, removed or repeated."""
    place = draw.randrange(len(content) + 1)
    end = min(len(content), place + draw.choice([1, 1, 4, 50]))
    new = draw.choice(
        [b"", draw.randbytes(end - place), content[place:end] * 2, b"\0", b"\xff", b"&a *a ${x}"]
    )
    return content[:place] + new + content[end:]


def _changed_config(content: bytes, draw: random.Random) -> bytes:
    return yaml.safe_dump(_changed(yaml.safe_load(content), draw), sort_keys=False).encode()


def _changed_features(content: bytes, draw: random.Random) -> bytes:
    return json.dumps(_changed(json.loads(content), draw)).encode()


def _changed(plain: Any, draw: random.Random) -> Any:
    """Plain containers with one value or key changed."""
    plain = copy.deepcopy(plain)
    container, key = draw.choice(list(_places(plain)))
    how = draw.random()
    if how < 0.7:
        container[key] = copy.deepcopy(draw.choice(VALUES))
    elif how < 0.8:
        del container[key]
    elif how < 0.9:
        _, other = draw.choice(list(_places(plain)))
        container[key] = copy.deepcopy(container[other] if other in _keys(container) else container)
    elif isinstance(container, dict):
        container[draw.choice(KEYS)] = draw.choice(VALUES)
    else:
        container.append(copy.deepcopy(container[key]))
    return plain


def _keys(container: Any) -> list[Any]:
    return list(container) if isinstance(container, dict) else list(range(len(container)))


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every container with every key of it."""
    if isinstance(node, dict | list):
        for key in _keys(node):
            yield node, key
            yield from _places(node[key])


def _changed_weights(content: bytes, draw: random.Random) -> bytes:
    how = draw.random()
    if how < 0.5:
        return _archive(content, draw)
    state = torch.load(io.BytesIO(content), weights_only=True)
    tensors = state["learner"]
    name = draw.choice(list(tensors))
    if how < 0.6:
        tensors[name].view(-1)[draw.randrange(tensors[name].numel())] = draw.choice(FLOATS)
    elif how < 0.7:
        tensors[name] = tensors[name][:-1].clone()
    elif how < 0.8:
        tensors[name] = tensors[name].to(draw.choice([torch.float64, torch.int64, torch.bool, torch.float16]))
    elif how < 0.9:
        tensors[draw.choice(["", "other", name])] = draw.choice([1, "a", {}, torch.zeros(3)])
        state[draw.choice(["points", "other"])] = draw.choice([tensors[name], torch.zeros(0, 0, 0), 1.0])
    else:
        del tensors[name]
    return _serialised(state)


def _archive(content: bytes, draw: random.Random) -> bytes:
    """The archive with a member changed, left out, compressed or twice in it."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {one.filename: archive.read(one) for one in archive.infolist()}
    name = draw.choice([*members, *[next(one for one in members if one.endswith("data.pkl"))] * len(members)])
    how = draw.random()
    if how < 0.1:
        del members[name]
    elif how < 0.9:
        members[name] = _damaged(members[name], draw)
    return _zipped(members, zipfile.ZIP_DEFLATED if how > 0.95 else zipfile.ZIP_STORED)


def _zipped(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return written.getvalue()


def _serialised(state: Any) -> bytes:
    written = io.BytesIO()
    torch.save(state, written)
    return written.getvalue()


CHANGES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    CONFIG: _changed_config, FEATURES: _changed_features, WEIGHTS: _changed_weights,
}  # fmt: skip


def _with(name: str, change: Callable[[Any], None]) -> Callable[[dict[str, bytes]], dict[str, bytes]]:
    """An attack that changes the plain content of config.yaml or features.json."""
    load, dump = (yaml.safe_load, yaml.safe_dump) if name == CONFIG else (json.loads, json.dumps)

    def attack(original: dict[str, bytes]) -> dict[str, bytes]:
        plain = load(original[name])
        change(plain)
        return original | {name: dump(plain).encode()}

    return attack


def _text(name: str, made: Callable[[bytes], bytes]) -> Callable[[dict[str, bytes]], dict[str, bytes]]:
    """An attack that changes the content of a file."""
    return lambda original: original | {name: made(original[name])}


def _alias_bomb(content: bytes) -> bytes:
    levels = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    return content + "\n".join(["a0: &a0 [x, x]", *levels, ""]).encode()


def _zip_bomb(content: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {one.filename: archive.read(one) for one in archive.infolist()}
    return _zipped(dict.fromkeys(members, bytes(2**28)), zipfile.ZIP_DEFLATED)


def _calling(pickled: bytes) -> Callable[[bytes], bytes]:
    """The weights with another pickle."""

    def made(content: bytes) -> bytes:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {one.filename: archive.read(one) for one in archive.infolist()}
        return _zipped({name: pickled if name.endswith("data.pkl") else old for name, old in members.items()})

    return made


def _set(*keys: Any, to: Any) -> Callable[[Any], None]:
    def change(plain: Any) -> None:
        for key in keys[:-1]:
            plain = plain[key]
        plain[keys[-1]] = to

    return change


_N = (2 * 10**9).to_bytes(4, "little")
ATTACKS: list[Callable[[dict[str, bytes]], dict[str, bytes]]] = [
    _text(CONFIG, _alias_bomb),
    _text(CONFIG, lambda content: content + b"more: " + b"[" * 200_000),
    _text(CONFIG, lambda content: content + b"more: !!python/object/apply:os.system [echo]\n"),
    _text(CONFIG, lambda content: content + b"more: " + b"1:" * 5000 + b"1\n"),
    _with(CONFIG, _set("outputs_dir", to="${oc.env:HOME}")),
    _with(CONFIG, _set("seeds", to=10**8)),
    _with(CONFIG, _set("cost", "value", to=-3)),
    _with(CONFIG, _set("model", "_target_", to="antigravity.Learner")),
    _with(CONFIG, _set("model", "_target_", to="fairall.__main__.Learner")),
    _with(CONFIG, _set("model", "clf_arch", to=[10**6, 10**6])),
    _with(CONFIG, _set("model", "clf_arch", to=[1] * 50_000)),
    _with(CONFIG, _set("model", "policy_arch", to=[10**6, 10**6])),
    _with(FEATURES, lambda plain: plain["features"].append(plain["features"][0])),
    _with(FEATURES, lambda plain: plain["features"].extend([plain["features"][0]] * 10_000)),
    _with(FEATURES, _set("features", 0, "scale", to=0)),
    _with(FEATURES, _set("features", 0, "lowest", to=1e9)),
    _with(FEATURES, _set("features", 0, "name", to="s")),
    _with(FEATURES, _set("features", 0, "kind", to="word")),
    _text(FEATURES, lambda _: b"[" * 100_000),
    _text(FEATURES, lambda _: b'{"format": 4, "features": ' + b"9" * 100_000 + b"}"),
    _text(WEIGHTS, _zip_bomb),
    _text(WEIGHTS, _calling(b"\x80\x02cbuiltins\nbytearray\nJ" + _N + b"\x85R.")),
    _text(WEIGHTS, _calling(b"\x80\x02ctorch\nTensor\nJ" + _N + b"\x85R.")),
    _text(WEIGHTS, _calling(b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00echo\x85R.")),
    _text(WEIGHTS, _calling(b"\x80\x02}r\xff\xff\xff\x7f.")),
    _text(WEIGHTS, _calling(b"\x80\x02)" + b"\x85" * 500_000 + b".")),
    _text(WEIGHTS, lambda _: _serialised(np.zeros(3))),
]
"""What somebody hostile would think of; each must be refused."""


def _memory() -> int:
    """Largest memory of the process so far, bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
