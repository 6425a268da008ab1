"""Random command lines, YAML files and tables, most of them wrong."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import Any

GROUPS = [
    "model", "dataset", "initial_policy", "cost", "protocol", "preset", "sweeps", "hparams", "hydra/launcher",
]  # fmt: skip
CHOICES = [
    "fairlog", "fairall_II", "credit", "synthetic", "csv", "lenient", "logged", "quick", "fixed", "text",
]  # fmt: skip
VALUES = [
    "null", "nan", "inf", "-inf", "true", "no", "''", '""', "[]", "{}", "[1,2]", "[-1]", "[[1]]", "[0.5,a]",
    "{a: 1}", "{a: {b: []}}", "0", "-1", "1", "7", "1e-300", "1e999", "-0.0", "0x10", "99999999999999999999",
    "2147483648", "${seed}", "${nope}", "${oc.env:HOME}", "${oc.env:NOPE}", "${model}", "${.}", "../x",
    "/etc/passwd", "a/b", "a,b", "1,2", "choice(1,2)", "range(1,3)", "glob(*)", "sort(3,2)", "os.system",
    "torch.nn.Linear", "fairall.main.cli", "=", "==", "=1+1", "\\", "'", '"', "(", ")", "[", "}", "a b", "\t",
    "\x00", "\u202e", "ü", "💥", "x" * 300,
]  # fmt: skip
BIG = ("dataset.rows", "dataset.path", "dataset.raw_file")  # take more memory or time than a test should
OPTIONS = ["--help", "--cfg", "job", "-p", "model", "--foo", "-x", "--multirun", "--resolve", ""]
HEADERS = ["", "# @package _global_\n", "# @package model\n", "# @package ${x}\n"]
SIGNS = "ab:- {}[]&*!|>%@`'\"#\n\t"  # of which YAML is made
PIECES = [b'"', b",", b"\r", b"\n", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"inf", b"-", b"\xe9", b"=1", b"  "]


@functools.cache
def keys() -> list[str]:
    """Keys of a configuration, of several models and data sets, but `BIG`."""
    from omegaconf import OmegaConf

    from fairall.config.compose import compose_config
    from fairall.storage.identity import flattened

    found = set(GROUPS)
    for words in (
        (),
        ("model=fairlog", "dataset=synthetic"),
        ("dataset=compas",),
        ("initial_policy=logged",),
    ):
        plain: Any = OmegaConf.to_container(compose_config(*words), resolve=False)
        for key in flattened(plain):
            parts = key.split(".")
            found |= {".".join(parts[: n + 1]) for n in range(len(parts))}
    return sorted(key for key in found if not key.startswith(BIG))


def command_line(chance: random.Random) -> list[str]:
    """One to four words."""
    return [
        _override(chance) if chance.random() < 0.75 else chance.choice(OPTIONS)
        for _ in range(chance.randint(1, 4))
    ]


def yaml_text(chance: random.Random) -> str:
    """A file for a configuration group."""
    import yaml

    if chance.random() < 0.3:
        return "".join(chance.choices(SIGNS, k=chance.randrange(60)))
    content = _node(chance, 3) if chance.random() < 0.3 else _mapping(chance, 4, 2)
    return chance.choice(HEADERS) + yaml.safe_dump(content, allow_unicode=True)


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
    rows = [line.split(",") for line in content.decode().splitlines()]
    for _ in range(chance.randint(1, 3)):
        row, column = chance.randrange(len(rows)), chance.randrange(len(rows[0]))
        change = chance.choice(["cell", "cell", "header", "drop", "copy", "short", "long", "rows"])
        if change in ("cell", "header"):
            of = rows[0] if change == "header" else rows[row]
            of[min(column, len(of) - 1)] = chance.choice(VALUES) if chance.random() < 0.7 else _text(chance)
        elif change == "drop" and len(rows[0]) > 1:
            rows = [cells[:column] + cells[column + 1 :] for cells in rows]
        elif change == "copy":
            rows = [[*cells, cells[min(column, len(cells) - 1)]] for cells in rows]
        elif change == "short":
            rows[row] = rows[row][: max(1, column)]
        elif change == "long":
            rows[row] = [*rows[row], "x"]
        elif change == "rows":
            rows = rows[: max(1, row)]
    encoding = chance.choice(["utf-8"] * 6 + ["utf-8-sig", "latin-1", "utf-16"])
    return "\n".join(",".join(cells or [""]) for cells in rows).encode(encoding, "replace")


def _override(chance: random.Random) -> str:
    sign = chance.choice(["", "", "", "", "+", "++", "~"])
    return f"{sign}{_keyword(chance)}{chance.choice(['=', '=', '=', '=', '', '==', '@x='])}{_value(chance)}"


def _keyword(chance: random.Random) -> str:
    key = chance.choice(keys())
    return chance.choice([key, key, key[:-1] + "x", _text(chance)])


def _value(chance: random.Random) -> str:
    kinds: list[Callable[[], str]] = [
        lambda: chance.choice(VALUES + CHOICES),
        lambda: _text(chance),
        lambda: repr(_number(chance)),
        lambda: str(chance.randint(-(10**9), 10**9)),
    ]
    return chance.choice(kinds)()


def _text(chance: random.Random) -> str:
    """Up to 12 characters of ASCII, or of all of Unicode but surrogates."""
    most = chance.choice([0x7F, 0x7F, 0x2FF, 0x10FFFF])
    codes = (chance.randint(0, most) for _ in range(chance.randint(0, 12)))
    return "".join(chr(code) for code in codes if not 0xD800 <= code <= 0xDFFF)


def _number(chance: random.Random) -> float:
    return chance.choice([chance.uniform(-2, 2), chance.uniform(-1, 1) * 10 ** chance.uniform(-300, 300)])


def _node(chance: random.Random, depth: int) -> Any:
    """Plain containers, as YAML writes them."""
    kind = chance.choice(["leaf", "leaf", "list", "mapping"]) if depth else "leaf"
    if kind == "list":
        return [_node(chance, depth - 1) for _ in range(chance.randint(0, 3))]
    if kind == "mapping":
        return _mapping(chance, 3, depth - 1)
    leaves = [chance.choice(VALUES + CHOICES), None, chance.random() < 0.5, chance.randint(-9, 99)]
    return chance.choice([*leaves, _number(chance), _text(chance)])


def _mapping(chance: random.Random, most: int, depth: int) -> dict[str, Any]:
    return {_keyword(chance): _node(chance, depth) for _ in range(chance.randint(0, most))}
