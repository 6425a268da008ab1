"""One-line messages for errors of Hydra, OmegaConf and FairAll that a user can correct."""

from __future__ import annotations

import errno
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf.errors import (
    ConfigAttributeError,
    ConfigKeyError,
    InterpolationKeyError,
    MissingMandatoryValue,
    OmegaConfBaseException,
)

from fairall.config.choices import VERBS, flattened
from fairall.config.schema import Config, plain
from fairall.config.words import nearest
from fairall.errors import FairAllError
from fairall.runtime.credentials import hidden
from fairall.runtime.process import NO_MEMORY, out_of_memory
from fairall.runtime.signals import raise_if_requested

USER_ERRORS = (FairAllError, HydraException, OmegaConfBaseException, OSError)
LIBRARIES = ("hydra", "omegaconf", "antlr4", "yaml")  # which raise other exceptions for wrong words and files


def has_line(error: BaseException) -> bool:
    """Whether an exception is reported by `message`; others are defects and keep their traceback."""
    if isinstance(error, USER_ERRORS) or out_of_memory(error):
        return True
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return frame.f_globals.get("__name__", "").partition(".")[0] in LIBRARIES


def report_error(error: Exception) -> int:
    """Print the line of `message` to standard error; returns the exit code.

    Raises:
        Stopped: if a stop was requested, which libraries may have turned into an error of theirs.
        Exception: `error` itself where it is a defect, or a BrokenPipeError, of which `run_command` knows
            whether it is of the output.
    """
    raise_if_requested()
    if isinstance(error, BrokenPipeError) or not has_line(error):
        raise error
    # A key of a file may have ends of lines in it.
    for line in error.args if isinstance(error, FairAllError) else [message(error)]:
        print(f"fairall: {' '.join(hidden(line).splitlines())}", file=sys.stderr)
    return 1


@contextmanager
def ending() -> Iterator[None]:
    """End the process after an error in a callback, of which Hydra would warn and go on."""
    try:
        yield
    except Exception as error:
        if has_line(error):
            raise SystemExit(report_error(error)) from None
        traceback.print_exc()
        raise SystemExit(1) from None


def message(error: Exception) -> str:
    """One line about an exception of Hydra, OmegaConf, the system or FairAll."""
    if isinstance(error, MemoryError):
        return "there is not enough memory for this: fewer seeds, or smaller nets"
    if out_of_memory(error):
        return NO_MEMORY
    if isinstance(error, OverrideParseException):
        word = error.override
        hint = (
            "keys have letters a to z, digits, _ and .; a text with other characters needs two pairs of "
            "quotation marks, as in 'KEY=\"TEXT\"'"
            if "=" in word
            else f"it is not KEY=VALUE, without spaces{nearest(word, VERBS)}; `python -m fairall list` has "
            "names"
        )
        return f"cannot read {word!r}: {hint}"
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, name = error.missing_cfg_file.partition("/")
        if group == "dataset" and Path(name).suffix:
            return f"dataset={name}: no such dataset; a file is dataset=csv dataset.path={name}"
        known = [option for option in error.options or () if not option.startswith("_")]
        return f"{group}={name}: no such {group}{nearest(name, known)}; there are {', '.join(known)}"
    said = " ".join(str(error).split())
    if isinstance(error, HydraException | OmegaConfBaseException):
        for cause in (error, error.__cause__, error.__context__):
            if isinstance(cause, OmegaConfBaseException):
                return of_key(cause, flattened(plain(Config())))
        return f"{said}; --help lists all keys"
    if isinstance(error, OSError):
        then = "; the same command goes on from what was saved" if error.errno == errno.ENOSPC else ""
        return f"{error.filename}: " * bool(error.filename) + f"{error.strerror or error}{then}"
    if isinstance(error, FairAllError):
        return str(error)
    return f"cannot read this command: {said}; each word is KEY=VALUE, and groups take names, as model=NAME"


def of_key(error: OmegaConfBaseException, known: Iterable[str]) -> str:
    """Message about a key that has no value or another kind of value, or is not among those `known`."""
    key = str(error.full_key)
    if isinstance(error, MissingMandatoryValue):
        return f"{key} has no value: give it one with {key}=VALUE"
    if isinstance(error, ConfigKeyError | ConfigAttributeError):
        return f"{key}: no such key{nearest(key, known)}; --cfg job prints them all"
    first, *_ = str(error).splitlines()
    if isinstance(error, InterpolationKeyError):  # by the defaults of conf/config.yaml
        return f"{first}; each group takes one choice, as model=NAME"
    return f"{key}: {first}; --help has keys and values"
