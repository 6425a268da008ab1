"""Random command lines, YAML files, tables and saved policies, most of them wrong."""

from __future__ import annotations

import copy
import functools
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import torch
import yaml
from safetensors.torch import load, save

from fairall.policy import CONFIG, FEATURES, WEIGHTS

VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    7,
    0.5,
    -3.0,
    -0.0,
    1e-320,
    1e308,
    float("inf"),
    float("nan"),
    10**8,
    2**31,
    2**63,
    10**400,
    "",
    "a",
    "mean",
    "nan",
    "real",
    "count",
    "binary",
    "null",
    "no",
    "1e999",
    "0x10",
    "???",
    "F64",
    "fairlog",
    "fairall_II",
    "credit",
    "synthetic",
    "csv",
    "lenient",
    "logged",
    "quick",
    "fixed",
    "text",
    '""',
    "[]",
    "{}",
    "[1,2]",
    "[[1]]",
    "[0.5,a]",
    "{a: 1}",
    "{a: {b: []}}",
    "${seed}",
    "${nope}",
    "${oc.env:HOME}",
    "${oc.env:NOPE}",
    "${oc.env:HOME",
    "${model}",
    "${.}",
    "..",
    "../x",
    "/etc/passwd",
    "a,b",
    "choice(1,2)",
    "range(1,3)",
    "glob(*)",
    "sort(3,2)",
    "os.system",
    "antigravity.fly",
    "torch.nn.Linear",
    "fairall.__main__.main",
    "fairall.models.vae",
    "fairall.models.learner.Learner",
    "fairall.models.constant.Constant",
    "=",
    "==",
    "=1+1",
    "\\",
    "'",
    '"',
    "(",
    ")",
    "[",
    "}",
    "a b",
    "a\nb",
    "\t",
    "\x00",
    "\u202e",
    "ü",
    "💥",
    "x" * 300,
    "x" * 5000,
    [],
    [1],
    [-1],
    [0, 0],
    [10**7, 10**7],
    [64] * 3000,
    ["a", "a"],
    {},
    {"a": 1},
    {"a": {"b": []}},
    [[[]]],
]
KEYS = ["name", "kind", "extra", "_target_", "_partial_", "seeds", "", "1", "a.b", "${x}"]
BIG = ("rows", "path", "raw_file")  # keys of a data set that take more memory or time than a test should
OPTIONS = ["--help", "--cfg", "job", "-p", "model", "--foo", "-x", "--multirun", "--resolve", ""]
HEADERS = ["", "# @package _global_\n", "# @package model\n", "# @package ${x}\n"]
SIGNS = "ab:- {}[]&*!|>%@`'\"#\n\t"  # of which YAML is made
PIECES = [b'"', b",", b"\r", b"\n", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"inf", b"-", b"\xe9", b"=1", b"  "]
HEADER = 8  # bytes of the length of the header of weights.safetensors
Files = dict[str, bytes]
"""Content of a saved policy by name: config.yaml, features.json and weights.safetensors."""


@functools.cache
def configuration() -> dict[str, Any]:
    """Plain containers of a configuration, with the keys of several models and data sets, but `BIG`."""
    from omegaconf import OmegaConf

    from fairall.config.compose import compose_config

    merged: dict[str, Any] = {"sweeps": None, "hparams": None, "preset": None, "hydra/launcher": None}
    for words in ([], ["model=fairlog", "dataset=synthetic"], ["dataset=compas"], ["initial_policy=logged"]):
        plain: Any = OmegaConf.to_container(compose_config(*words), resolve=False, enum_to_str=True)
        for key, value in plain.items():
            whole = isinstance(value, dict) and isinstance(merged.get(key), dict)
            merged[key] = merged[key] | value if whole else value
    for big in BIG:
        merged["dataset"].pop(big, None)
    return merged


def command_line(chance: random.Random) -> list[str]:
    """One to four words."""
    return [
        _override(chance) if chance.random() < 0.75 else chance.choice(OPTIONS)
        for _ in range(chance.randint(1, 4))
    ]


def yaml_text(chance: random.Random, group: str) -> str:
    """A file for a configuration group: signs, or the configuration's own with a change."""
    if chance.random() < 0.3:
        return "".join(chance.choices(SIGNS, k=chance.randrange(60)))
    content = configuration() if group == "preset" else configuration()[group]
    return chance.choice(HEADERS) + yaml.safe_dump(changed(chance, content), allow_unicode=True)


def damaged(chance: random.Random, content: bytes) -> bytes:
    """`content` with up to three pieces put in, or instead of others."""
    for _ in range(chance.randint(0, 3)):
        at, gone = chance.randint(0, len(content)), chance.choice([0, 1, 1, 5, len(content)])
        piece = chance.choice(PIECES) if chance.random() < 0.7 else chance.randbytes(chance.randint(0, 4))
        content = content[:at] + piece + content[at + gone :]
    return content


def damaged_table(chance: random.Random, content: bytes) -> bytes:
    """A CSV file whose cells, columns, rows, quotes or encoding are changed, or some of its bytes."""
    if chance.random() < 0.3:
        return damaged(chance, content)
    header, *rows = [line.split(",") for line in content.decode().splitlines()]
    for _ in range(chance.randint(1, 3)):
        if chance.random() < 0.3 and header:
            header = changed(chance, header)
        elif rows:
            rows = changed(chance, rows)
    lines = [
        ",".join(map(str, cells)) if isinstance(cells, list) else str(cells) for cells in [header, *rows]
    ]
    encoding = chance.choice(["utf-8"] * 6 + ["utf-8-sig", "latin-1", "utf-16"])
    return "\n".join(lines).encode(encoding, "replace")


def _override(chance: random.Random) -> str:
    node: Any = configuration()
    parts: list[str] = []
    while isinstance(node, dict) and node and (not parts or chance.random() < 0.8):
        parts.append(chance.choice(list(node)))
        node = node[parts[-1]]
    key = ".".join(parts)
    key = chance.choice([key, key, key[:-1] + "x", _text(chance)])
    value = chance.choice(
        [chance.choice(VALUES), _text(chance), chance.uniform(-2, 2), chance.randint(-9, 10**9)]
    )
    sign, equals = (
        chance.choice(["", "", "", "", "+", "++", "~"]),
        chance.choice(["=", "=", "=", "", "==", "@x="]),
    )
    return f"{sign}{key}{equals}{value}"


def _text(chance: random.Random) -> str:
    """Up to 12 characters of ASCII, or of all of Unicode but surrogates."""
    most = chance.choice([0x7F, 0x7F, 0x2FF, 0x10FFFF])
    codes = (chance.randint(0, most) for _ in range(chance.randint(0, 12)))
    return "".join(chr(code) for code in codes if not 0xD800 <= code <= 0xDFFF)


def hostile(chance: random.Random, files: Files) -> Files:
    """One of `ATTACKS`, or the files with one of them changed in one to three places."""
    if chance.random() < 0.1:
        return chance.choice(ATTACKS)(files)
    name = chance.choice(list(files))
    content = files[name]
    for _ in range(chance.choice([1, 1, 2, 3])):
        try:
            content = CHANGES[name](chance, content) if chance.random() < 0.75 else damaged(chance, content)
        except Exception:  # an earlier change leaves nothing that this one could change
            content = damaged(chance, content)
    return files | {name: content}


def _changed_weights(chance: random.Random, content: bytes) -> bytes:
    if chance.random() < 0.5:
        end = HEADER + int.from_bytes(content[:HEADER], "little")
        return _with_header(changed(chance, json.loads(content[HEADER:end])), content[end:])
    tensors = load(content)
    name = chance.choice(list(tensors))
    others = [torch.full_like(tensors[name], value) for value in (0.0, 1e30, float("inf"), float("nan"))]
    tensors[chance.choice([name, "points"])] = chance.choice([*others, tensors.pop(name)[:-1].clone()])
    return save(tensors)


def _with_header(header: Any, data: bytes) -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(HEADER, "little") + text + data


def changed(chance: random.Random, plain: Any) -> Any:
    """A copy of plain containers with one value or key changed."""
    plain = copy.deepcopy(plain)
    container, key = chance.choice(list(places(plain)))
    other, its = chance.choice(list(places(plain)))
    how = chance.random()
    if how < 0.7:
        container[key] = copy.deepcopy(chance.choice(VALUES))
    elif how < 0.8:
        container[key] = copy.deepcopy(other[its])
    elif how < 0.9 and isinstance(container, dict):
        container[chance.choice(KEYS)] = chance.choice(VALUES)
    elif how < 0.9:
        container.append(copy.deepcopy(container[key]))
    else:
        del container[key]
    return plain


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every container and key in it."""
    if isinstance(node, dict | list):
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            yield node, key
            yield from places(node[key])


CHANGES: dict[str, Callable[[random.Random, bytes], bytes]] = {
    CONFIG: lambda chance, content: yaml.safe_dump(changed(chance, yaml.safe_load(content))).encode(),
    FEATURES: lambda chance, content: json.dumps(changed(chance, json.loads(content))).encode(),
    WEIGHTS: _changed_weights,
}


def _text_of(name: str, made: Callable[[bytes], bytes]) -> Callable[[Files], Files]:
    """An attack that changes the content of a file."""
    return lambda files: files | {name: made(files[name])}


def _with(name: str, *place: Any, to: Any) -> Callable[[Files], Files]:
    """An attack that sets a value of config.yaml or features.json."""

    def made(content: bytes) -> bytes:
        plain = yaml.safe_load(content)  # reads JSON too
        node = functools.reduce(lambda node, key: node[key], place[:-1], plain)
        node[place[-1]] = to(node[place[-1]]) if callable(to) else to
        return (yaml.safe_dump(plain) if name == CONFIG else json.dumps(plain)).encode()

    return _text_of(name, made)


def _alias_bomb(content: bytes) -> bytes:
    levels = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    return content + "\n".join(["a0: &a0 [x, x]", *levels, ""]).encode()


_LARGE = {"points": {"dtype": "F32", "shape": [2**31, 2**31], "data_offsets": [0, 4]}}
ATTACKS: list[Callable[[Files], Files]] = [
    _text_of(CONFIG, _alias_bomb),
    _text_of(CONFIG, lambda content: content + b"more: " + b"[" * 200_000),
    _text_of(CONFIG, lambda content: content + b"more: !!python/object/apply:os.system [echo]\n"),
    _text_of(CONFIG, lambda content: content + b"more: " + b"1:" * 5000 + b"1\n"),
    _with(CONFIG, "outputs_dir", to="${oc.env:HOME}"),
    _with(CONFIG, "seeds", to=10**8),
    _with(CONFIG, "model", "_target_", to="fairall.__main__.Learner"),
    _with(CONFIG, "model", "clf_arch", to=[10**6, 10**6]),
    _with(CONFIG, "model", "clf_arch", to=[1] * 50_000),
    _with(CONFIG, "model", "policy_arch", to=[10**6, 10**6]),
    _with(FEATURES, "features", to=lambda features: features * 10_000),
    _text_of(FEATURES, lambda _: b"[" * 100_000),
    _text_of(FEATURES, lambda _: b'{"format": 5, "features": ' + b"9" * 100_000 + b"}"),
    _text_of(WEIGHTS, lambda _: _with_header(_LARGE, bytes(4))),
    _text_of(WEIGHTS, lambda content: (2**40).to_bytes(HEADER, "little") + content),
    _text_of(WEIGHTS, lambda _: save({"points": torch.zeros(2, 0, 1)})),
]
"""What somebody hostile would think of; each must be refused, but for keys that a method lacks.

tests/test_policy.py has single values that no policy has."""
