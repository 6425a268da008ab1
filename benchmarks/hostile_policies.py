"""Files of a saved policy as somebody hostile could send them, to be given sums that match."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import torch
import yaml
from safetensors.torch import load, save

from benchmarks.nonsense import damaged
from fairall.policy import CONFIG, FEATURES, WEIGHTS

Files = dict[str, bytes]
"""Content by name: config.yaml, features.json and weights.safetensors."""

VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 7, 0.5, -3.0, 1e-320, 1e308, float("inf"), float("nan"), 10**8, 2**31,
    2**63, 10**400, "", "a", "mean", "nan", "real", "count", "binary", "???", "${seed}", "${oc.env:HOME}",
    "${oc.env:HOME", "os.system", "os.path", "antigravity.fly", "fairall.__main__.main", "fairall.models.vae",
    "fairall.models.learner.Learner", "fairall.models.constant.Constant", "..", "a\nb", "x" * 5000, "\u202e",
    [], [1], [-1], [0, 0], [10**7, 10**7], [64] * 3000, ["a", "a"], {}, {"a": 1}, {"a": {"b": []}}, [[[]]],
]  # fmt: skip
KEYS = ["name", "kind", "extra", "_target_", "_partial_", "seeds", "", "1", "a.b", "${x}"]
FLOATS = [0.0, -1.0, 1e30, float("inf"), float("-inf"), float("nan")]
TYPES = [torch.float64, torch.int64, torch.bool, torch.float16]
ATTACKED = 0.1  # share of attacks, the others are random mutations
HEADER = 8  # bytes of the length of the header of weights.safetensors


def hostile(files: Files, chance: random.Random) -> Files:
    """One of `ATTACKS`, or the files with one of them changed in one to three places."""
    if chance.random() < ATTACKED:
        return chance.choice(ATTACKS)(files)
    name = chance.choice(list(files))
    content = files[name]
    for _ in range(chance.choice([1, 1, 2, 3])):
        change = damaged_at if chance.random() < 0.25 else CHANGES[name]
        try:
            content = change(content, chance)
        except Exception:  # an earlier change leaves nothing that this one could change
            content = damaged_at(content, chance)
    return files | {name: content}


def damaged_at(content: bytes, chance: random.Random) -> bytes:
    """See `nonsense.damaged`."""
    return damaged(chance, content)


def _changed_config(content: bytes, chance: random.Random) -> bytes:
    return yaml.safe_dump(_changed(yaml.safe_load(content), chance), sort_keys=False).encode()


def _changed_features(content: bytes, chance: random.Random) -> bytes:
    return json.dumps(_changed(json.loads(content), chance)).encode()


def _changed_weights(content: bytes, chance: random.Random) -> bytes:
    how = chance.random()
    if how < 0.5:
        end = HEADER + int.from_bytes(content[:HEADER], "little")
        return _with_header(_changed(json.loads(content[HEADER:end]), chance), content[end:])
    tensors = load(content)
    name = chance.choice(list(tensors))
    if how < 0.6:
        tensors[name].view(-1)[chance.randrange(tensors[name].numel())] = chance.choice(FLOATS)
    elif how < 0.7:
        tensors[name] = tensors[name][:-1].clone()
    elif how < 0.8:
        tensors[name] = tensors[name].to(chance.choice(TYPES))
    elif how < 0.9:
        tensors[chance.choice(["", "points", "learner.other"])] = torch.zeros(3)
    else:
        del tensors[name]
    return save(tensors)


def _with_header(header: Any, data: bytes) -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(HEADER, "little") + text + data


def _changed(plain: Any, chance: random.Random) -> Any:
    """Plain containers with one value or key changed."""
    plain = copy.deepcopy(plain)
    container, key = chance.choice(list(_places(plain)))
    how = chance.random()
    if how < 0.7:
        container[key] = copy.deepcopy(chance.choice(VALUES))
    elif how < 0.8:
        del container[key]
    elif how < 0.9:
        _, other = chance.choice(list(_places(plain)))
        container[key] = copy.deepcopy(container[other] if other in _keys(container) else container)
    elif isinstance(container, dict):
        container[chance.choice(KEYS)] = chance.choice(VALUES)
    else:
        container.append(copy.deepcopy(container[key]))
    return plain


def _keys(node: Any) -> list[Any]:
    return list(node) if isinstance(node, dict) else list(range(len(node)))


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every container and key in it."""
    if isinstance(node, dict | list):
        for key in _keys(node):
            yield node, key
            yield from _places(node[key])


CHANGES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    CONFIG: _changed_config, FEATURES: _changed_features, WEIGHTS: _changed_weights,
}  # fmt: skip


def _text(name: str, made: Callable[[bytes], bytes]) -> Callable[[Files], Files]:
    """An attack that changes the content of a file."""
    return lambda files: files | {name: made(files[name])}


def _with(name: str, *keys: Any, to: Any) -> Callable[[Files], Files]:
    """An attack that sets a value of config.yaml or features.json."""
    read, write = (yaml.safe_load, yaml.safe_dump) if name == CONFIG else (json.loads, json.dumps)

    def attack(files: Files) -> Files:
        plain = node = read(files[name])
        for key in keys[:-1]:
            node = node[key]
        node[keys[-1]] = to(node) if callable(to) else to
        return files | {name: write(plain).encode()}

    return attack


def _alias_bomb(content: bytes) -> bytes:
    levels = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    return content + "\n".join(["a0: &a0 [x, x]", *levels, ""]).encode()


_LARGE = {"points": {"dtype": "F32", "shape": [2**31, 2**31], "data_offsets": [0, 4]}}
ATTACKS: list[Callable[[Files], Files]] = [
    _text(CONFIG, _alias_bomb),
    _text(CONFIG, lambda content: content + b"more: " + b"[" * 200_000),
    _text(CONFIG, lambda content: content + b"more: !!python/object/apply:os.system [echo]\n"),
    _text(CONFIG, lambda content: content + b"more: " + b"1:" * 5000 + b"1\n"),
    _with(CONFIG, "outputs_dir", to="${oc.env:HOME}"),
    _with(CONFIG, "seeds", to=10**8),
    _with(CONFIG, "cost", "value", to=-3),
    _with(CONFIG, "model", "_target_", to="antigravity.Learner"),
    _with(CONFIG, "model", "_target_", to="fairall.__main__.Learner"),
    _with(CONFIG, "model", "clf_arch", to=[10**6, 10**6]),
    _with(CONFIG, "model", "clf_arch", to=[1] * 50_000),
    _with(CONFIG, "model", "policy_arch", to=[10**6, 10**6]),
    _with(FEATURES, "features", to=lambda plain: [*plain["features"], plain["features"][0]]),
    _with(FEATURES, "features", to=lambda plain: plain["features"] * 10_000),
    _with(FEATURES, "features", 0, "scale", to=0),
    _with(FEATURES, "features", 0, "lowest", to=1e9),
    _with(FEATURES, "features", 0, "name", to="s"),
    _with(FEATURES, "features", 0, "kind", to="word"),
    _text(FEATURES, lambda _: b"[" * 100_000),
    _text(FEATURES, lambda _: b'{"format": 5, "features": ' + b"9" * 100_000 + b"}"),
    _text(WEIGHTS, lambda _: _with_header(_LARGE, bytes(4))),
    _text(WEIGHTS, lambda content: (2**40).to_bytes(HEADER, "little") + content),
    _text(WEIGHTS, lambda _: save({"points": torch.zeros(2, 0, 1)})),
]
"""What somebody hostile would think of; each must be refused, but for keys that a method lacks."""
