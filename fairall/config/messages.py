"""One-line messages for errors of Hydra, OmegaConf and FairAll that a user can correct."""

from __future__ import annotations

import errno
import os
import re
import shlex
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf.errors import (
    ConfigAttributeError,
    ConfigKeyError,
    MissingMandatoryValue,
    OmegaConfBaseException,
)
from yaml import MarkedYAMLError

from fairall.config.choices import MAIN, VERBS, VERBS_ALSO_CALLED, choices, flattened
from fairall.config.schema import Config, plain
from fairall.config.words import ALSO_CALLED, Words, nearest, nearest_key, table_file, typed
from fairall.errors import FairAllError, SeveralErrors
from fairall.runtime.credentials import hidden
from fairall.runtime.process import NO_MEMORY, out_of_memory
from fairall.runtime.signals import raise_if_requested

# Errors that a user can correct; see `has_line`.
USER_ERRORS = (FairAllError, HydraException, OmegaConfBaseException, OSError, MemoryError)
NO_KEY = (ConfigKeyError, ConfigAttributeError)
CHOICE = re.compile(r"[a-z_][^\[\]{}]*", re.IGNORECASE)  # the name of a choice, or several for --multirun


def has_line(error: BaseException) -> bool:
    """Whether `message` has a line about an exception; others are defects and keep their traceback."""
    return isinstance(error, USER_ERRORS) or out_of_memory(error)


@contextmanager
def in_one_line(overrides: Words) -> Iterator[None]:
    """Raise the errors of Hydra, OmegaConf and the system as FairAllError with the line of `message`."""
    try:
        yield
    except (HydraException, OmegaConfBaseException, OSError) as error:
        raise FairAllError(message(error, overrides)) from error
    except (TypeError, ValueError, MarkedYAMLError) as error:
        if not raised_by_hydra(error):
            raise
        raise FairAllError(unexpected(error, overrides)) from error


def report_error(error: Exception, overrides: Words) -> int:
    """Print the line of `message` to standard error; returns the exit code.

    Raises:
        Stopped: if a stop was requested, which libraries may have turned into an error of theirs.
        BrokenPipeError: as given; `run_command` knows whether it is of the output.
    """
    raise_if_requested()
    if isinstance(error, BrokenPipeError):
        raise error
    # A key of a file may have ends of lines in it.
    for line in error.told if isinstance(error, SeveralErrors) else [message(error, overrides)]:
        print(f"fairall: {' '.join(hidden(line).splitlines())}", file=sys.stderr)
    return 1


@contextmanager
def ending() -> Iterator[None]:
    """End the process after an error in a callback, of which Hydra would warn and go on."""
    try:
        yield
    except Exception as error:
        if has_line(error):
            raise SystemExit(report_error(error, sys.argv[1:])) from None
        traceback.print_exc()
        raise SystemExit(1) from None


def message(error: Exception, overrides: Words) -> str:
    """One line about an exception of Hydra, OmegaConf or our own, given the words of the command line."""
    if isinstance(error, MemoryError):
        return "there is not enough memory for this: fewer seeds, or smaller nets"
    if out_of_memory(error):
        return NO_MEMORY
    if isinstance(error, OverrideParseException):
        return unreadable(error.override, error.message)
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        return _unknown_choice(str(error.missing_cfg_file), error.options or ())
    if isinstance(error, OSError) and not isinstance(error, HydraException):
        then = "; the same command goes on from what was saved" if error.errno == errno.ENOSPC else ""
        return f"{error.filename}: " * bool(error.filename) + f"{error.strerror or error}{then}"
    said = " ".join(str(error).split())
    in_file = said.partition(": ")[0] + ": " if said.startswith("In '") else ""
    cause = error if isinstance(error, OmegaConfBaseException) else error.__cause__
    cause = error.__context__ if in_file else cause
    if isinstance(error, HydraException | OmegaConfBaseException) and isinstance(
        cause, OmegaConfBaseException
    ):
        return in_file + _of_key(cause)
    if isinstance(error, HydraException):
        return _not_a_choice(overrides) or f"{said}; --help lists all keys"
    return str(error).strip().split("\n")[0]


def unexpected(error: Exception, overrides: Words) -> str:
    """Message about an exception that Hydra or its parser did not expect."""
    return _not_a_choice(overrides) or f"cannot read {shlex.join(overrides)}: {' '.join(str(error).split())}"


def unreadable(word: str, why: str = "") -> str:
    """Message about a word that Hydra cannot read, with a correction; `why` is what Hydra says."""
    key, equals, value = map(str.strip, word.partition("="))
    if table_file(word):
        hint = f"did you mean {_of_csv(word)}?"
    elif not equals:
        hint = f"it is not KEY=VALUE, without spaces{_meant(word)}; `python -m fairall list` lists all names"
    elif not key.isascii():
        hint = "a key on the command line has letters a to z, digits, _ and .; give others in a YAML file"
    elif value[:1] in ("[", "{"):
        hint = f"put quotation marks around each text in it ({why.splitlines()[0]})"
    else:
        hint = f"write {typed(key, os.path.expanduser(value))}"  # noqa: PTH111  any text
    return f"cannot read {word!r}: {hint}"


def _of_key(error: OmegaConfBaseException) -> str:
    """Message about a key that has no value or another kind of value, or is not there."""
    key = str(error.full_key)
    if isinstance(error, MissingMandatoryValue):
        return f"{key} has no value: give it one with {key}=VALUE"
    if isinstance(error, NO_KEY):
        near = nearest_key(key, [*flattened(plain(Config())), *MAIN, *ALSO_CALLED])
        return f"{key}: no such key{near}; --cfg job prints them all"
    return f"{key}: {str(error).partition(chr(10))[0]}; --help has keys and values"


def _not_a_choice(overrides: Words) -> str:
    """Message about the first word that gives a group no single choice; empty if there is none."""
    for word in overrides:
        group, _, value = word.lstrip("+~").partition("=")
        if group in MAIN and (word[0] in "+~" or not CHOICE.fullmatch(value)):
            return (
                f"{word}: {group} takes the name of one choice, as {group}=CHOICE, and values belong to the "
                f"keys in it, as {group}.KEY=VALUE"
            )
    return ""


def _unknown_choice(missing: str, options: Words) -> str:
    """Message about a choice that a group does not have."""
    group, _, choice = missing.rpartition("/")
    path = missing.removeprefix("dataset/")
    if group.partition("/")[0] == "dataset" and table_file(path):
        return f"{path} is a file: {_of_csv(path)}"
    known = [option for option in options if not option.startswith("_")]
    listed = ", ".join(known) or "none yet"
    return f"{group}={choice}: no such {group or 'configuration'}{nearest(choice, known)}; there are {listed}"


def _of_csv(path: str) -> str:
    """The words of a run on a file of people."""
    return f"dataset=csv {shlex.quote(f'dataset.path={path}')}"


def _meant(word: str) -> str:
    """What to type in place of a word that is no KEY=VALUE; empty where nothing is similar."""
    words = {name: f"--{name}" for name in ("help", "version", "multirun")}
    for group, names in reversed(choices().items()):
        chosen = f"--multirun {group}" if group == "sweeps" else group
        words |= {name: f"{chosen}={name}" for name in names} | {group: f"{group}=CHOICE"}
    for verb in VERBS:
        names_elsewhere = VERBS_ALSO_CALLED.get(verb, "").split()
        words |= dict.fromkeys([verb, *names_elsewhere], f"python -m fairall {verb}")
    return nearest(word, words, words)


def raised_by_hydra(error: Exception) -> bool:
    """Whether Hydra, or its parser, raised an exception that it did not expect."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return frame.f_globals.get("__name__", "").split(".")[0] in ("hydra", "omegaconf", "antlr4", "yaml")
