"""Files of plain containers of tensors, with checksums; nothing of them is executed."""

from __future__ import annotations

import io
import math
import pickletools
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairall.errors import FairAllError
from fairall.storage.files import atomic

STORAGES = {
    f"torch {name}Storage": dtype
    for name, dtype in {
        "Double": torch.float64, "Float": torch.float32, "Half": torch.float16, "BFloat16": torch.bfloat16,
        "Long": torch.int64, "Int": torch.int32, "Short": torch.int16, "Char": torch.int8,
        "Byte": torch.uint8, "Bool": torch.bool, "ComplexFloat": torch.complex64,
        "ComplexDouble": torch.complex128,
    }.items()
}  # fmt: skip
LITERALS = ("BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT")
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
MOST_PICKLED = 256 * 1024  # bytes; a tensor has about 150
MOST_AXES = 10  # of a tensor
TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class DamagedFileError(FairAllError):
    """The content of a file differs from what was written to it."""


def save_tensors(state: dict[str, Any], path: Path) -> None:
    """Write `state` to `path` atomically."""
    serialised = io.BytesIO()  # torch's own errors do not give the system's reason
    torch.save(state, serialised)
    with atomic(path) as temporary:
        temporary.write_bytes(serialised.getbuffer())


def load_tensors(path: Path) -> dict[str, Any]:
    """Read what `save_tensors` wrote.

    Raises:
        OSError: if the file cannot be read; FileNotFoundError if there is none.
        DamagedFileError: if a checksum (CRC-32, one per tensor) does not match.
    """
    content = path.read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            broken = archive.testzip()
        if broken is None:
            return torch.load(io.BytesIO(content), weights_only=True)
    except MemoryError:
        raise
    except Exception as error:  # zipfile and torch raise many types for damaged headers
        raise DamagedFileError(f"{path} is damaged ({type(error).__name__})") from error
    raise DamagedFileError(f"{path} is damaged (checksum of {broken})")


def load_foreign_tensors(path: Path) -> Any:
    """Read what `save_tensors` wrote of dicts and tensors, in a file that somebody else may have made.

    `torch.load(weights_only=True)` runs no code of a file, but can be made to take any amount of memory: by
    compressed members, and by calls such as `torch.Tensor(n)` in its pickle. Here nothing takes more memory
    than the file has bytes, and the pickle can do no more than put tensors into dicts.

    Raises:
        OSError: if the file cannot be read; FileNotFoundError if there is none.
        DamagedFileError: if it is not such a file, or a checksum (CRC-32, one per tensor) does not match.
    """
    with path.open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return _content(archive, path)
        except (MemoryError, DamagedFileError):
            raise
        except Exception as error:  # zipfile, pickletools and torch raise many types
            raise DamagedFileError(f"{path} is damaged ({type(error).__name__})") from error


def _content(archive: zipfile.ZipFile, path: Path) -> Any:
    members = archive.infolist()
    stored = all(one.compress_type == zipfile.ZIP_STORED for one in members)
    if not stored or sum(one.file_size for one in members) > path.stat().st_size:
        raise DamagedFileError(f"{path} says that it expands; torch.save stores without compression")
    folder = members[0].filename.partition("/")[0]
    if archive.read(f"{folder}/byteorder").decode() != sys.byteorder:
        raise DamagedFileError(f"{path} is of a machine with another byte order")
    if archive.getinfo(f"{folder}/data.pkl").file_size > MOST_PICKLED:
        raise DamagedFileError(f"{path} holds more than {MOST_PICKLED} bytes beside its tensors")
    return _rebuilt(archive.read(f"{folder}/data.pkl"), _Storages(archive, folder).storage)


class _Storages:
    """The members of an archive as flat tensors, each read once."""

    def __init__(self, archive: zipfile.ZipFile, folder: str) -> None:
        self.archive = archive
        self.folder = folder
        self.known: dict[str, Tensor] = {}

    def storage(self, kind: str, dtype: torch.dtype, key: str, location: str, numel: int) -> Tensor:
        """The storage of a persistent id of `torch.save`, shape (numel,)."""
        if key not in self.known:
            content = self.archive.read(f"{self.folder}/data/{key}")
            self.known[key] = torch.empty(len(content) // dtype.itemsize, dtype=dtype)
            # Into memory of torch's own, which is aligned.
            self.known[key].view(torch.uint8).numpy()[:] = np.frombuffer(content, np.uint8)
        found = self.known[key]
        if found.dtype is not dtype or len(found) != numel:
            raise ValueError("the storage has another size or type")
        return found


def _rebuilt(pickled: bytes, storage: Callable[..., Tensor]) -> Any:
    """The containers in a pickle of `torch.save`, by an interpreter of the few opcodes that these need.

    Args:
        pickled: of dicts with texts as keys, plain values and tensors.
        storage: from the parts of a persistent id to a flat tensor.

    Raises:
        ValueError: for another opcode or an impossible value; other exceptions where opcodes are in disorder.
    """
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}

    def popped(start: int) -> list[Any]:
        items = stack[start:]
        del stack[start:]
        return items

    argument: Any
    for opcode, argument, _ in pickletools.genops(pickled):
        name = opcode.name
        if name in LITERALS:
            stack.append(argument)
        elif name in CONSTANTS:
            stack.append(CONSTANTS[name])
        elif name == "EMPTY_DICT":
            stack.append({})
        elif name == "MARK":
            marks.append(len(stack))
        elif name == "TUPLE":
            stack.append(tuple(popped(marks.pop())))
        elif name in TUPLES:
            stack.append(tuple(popped(len(stack) - TUPLES[name])))
        elif name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name == "GLOBAL":
            stack.append(GLOBALS[argument])
        elif name == "BINPERSID":
            stack.append(storage(*stack.pop()))
        elif name == "REDUCE":
            function, arguments = popped(len(stack) - 2)
            if function is not _empty and function is not _tensor:
                raise ValueError("only dicts and tensors are made by calls")
            stack.append(function(*arguments))
        elif name in ("SETITEM", "SETITEMS"):
            items = popped(marks.pop() if name == "SETITEMS" else len(stack) - 2)
            for key, value in zip(items[::2], items[1::2], strict=True):
                if not isinstance(key, str):
                    raise ValueError("keys are texts")
                stack[-1][key] = value
        elif name == "BUILD":
            stack.pop()  # the versions of modules, which torch adds to a state
        elif name == "STOP":
            return stack.pop()
        elif name != "PROTO":
            raise ValueError(f"opcode {name}")
    raise ValueError("no end")


def _empty() -> dict[str, Any]:
    return {}


def _tensor(storage: Tensor, offset: int, size: Any, stride: Any, *_: Any) -> Tensor:
    """A tensor with elements of a storage, none of them twice."""
    whole = all(type(number) is int for number in (offset, *size, *stride))
    if not whole or len(size) > MOST_AXES or math.prod(size) > len(storage):
        raise ValueError("the tensor is not of its storage")
    return storage.as_strided(size, stride, offset)


GLOBALS = STORAGES | {"collections OrderedDict": _empty, "torch._utils _rebuild_tensor_v2": _tensor}
