"""One-line messages for errors of Hydra, OmegaConf and FairAll that a user can correct."""

from __future__ import annotations

import errno
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hydra.errors import (
    ConfigCompositionException,
    HydraException,
    MissingConfigException,
    OverrideParseException,
)
from omegaconf.errors import (
    ConfigAttributeError,
    ConfigKeyError,
    MissingMandatoryValue,
    OmegaConfBaseException,
)

from fairall.config.choices import MAIN, VERBS, choices, configuration_keys
from fairall.config.words import closest, nearest, nearest_key, respelt
from fairall.errors import FairAllError
from fairall.runtime.credentials import hidden
from fairall.runtime.signals import raise_if_requested

# Errors that a user can correct; any other is a defect and keeps its traceback.
USER_ERRORS = (FairAllError, HydraException, OmegaConfBaseException, OSError, MemoryError)
# How Hydra's messages begin that are not told apart by their types.
IN_FILE = re.compile(r"In '([^']*)': \w+ raised while composing config")
SEVERAL = re.compile(r"(?:Ambiguous value for argument|Sweep parameters) '([^']*)'")
CHOICES = re.compile(r"expected one of \[(.*)\]")  # OmegaConf on a value that an Enum does not have
NO_KEY = (ConfigKeyError, ConfigAttributeError)


@contextmanager
def in_one_line(overrides: Sequence[str]) -> Iterator[None]:
    """Raise the errors of Hydra and OmegaConf as FairAllError with the line of `message`."""
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        raise FairAllError(message(error, overrides)) from error


def report_error(error: Exception, overrides: Sequence[str]) -> int:
    """Print the line of `message` to standard error; returns the exit code.

    Raises:
        Stopped: if a stop was requested, which libraries may have turned into an error of theirs.
        BrokenPipeError: as given; `run_command` knows whether it is of the output.
    """
    raise_if_requested()
    if isinstance(error, BrokenPipeError):
        raise error
    # A key of a file may have ends of lines in it.
    line = " ".join(hidden(message(error, overrides)).splitlines())
    print(f"fairall: {line}", file=sys.stderr)
    return 1


def message(error: Exception, overrides: Sequence[str]) -> str:
    """One line about an exception of Hydra, OmegaConf or our own, given the words of the command line."""
    # Under a debugger OmegaConf chains an error that lacks the key.
    cause = error if isinstance(error, OmegaConfBaseException) else error.__cause__ or error
    if isinstance(error, OSError) and not isinstance(error, HydraException):
        then = "; the same command goes on from what was saved" if error.errno == errno.ENOSPC else ""
        return f"{error.filename}: " * bool(error.filename) + f"{error.strerror or error}{then}"
    if isinstance(error, MemoryError):
        return "there is not enough memory for this: fewer seeds, or smaller nets"
    if isinstance(error, OverrideParseException):
        return f"cannot read {error.override!r}: {_meant(error)}"
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        return _unknown_choice(error)
    if isinstance(cause, MissingMandatoryValue):
        return f"{cause.full_key!s} has no value: give it one with {cause.full_key!s}=VALUE"
    if (file := IN_FILE.match(str(error))) and isinstance(error.__context__, OmegaConfBaseException):
        return f"{file[1]}.yaml: {_in_node(error.__context__, overrides)}"
    if several := SEVERAL.match(str(error)):
        key, _, values = several[1].partition("=")
        hint = "" if key in MAIN or "(" in values else f"; a list is '{key}=[{values}]'"
        return f"{several[1]}: several values are several runs: add --multirun{hint}"
    if isinstance(error, ConfigCompositionException) and isinstance(cause, NO_KEY):
        return _in_node(cause, overrides)
    if isinstance(error, HydraException) and isinstance(cause, OmegaConfBaseException):
        word = _first_line(error).removeprefix("Error merging override ")
        if choices := CHOICES.search(str(cause)):
            return f"{word} is not possible: it must be {' or '.join(choices[1].split(', '))}"
        if "is not a ListConfig" in str(cause):
            key, _, value = word.partition("=")
            return f"{word} is not possible: it must be a list, '{key}=[{value}]'"
        return f"{word}: {_first_line(cause)}"
    return _first_line(error)


def _in_node(error: OmegaConfBaseException, overrides: Sequence[str]) -> str:
    """Message about an unknown key, with the nearest one, or a value of another type."""
    if not isinstance(error, NO_KEY):
        return f"{error.full_key}: {_first_line(error)}"
    chosen = dict(word.split("=", 1) for word in overrides if "=" in word)
    whole = [known.split(".") for known in configuration_keys(chosen)]
    known = {".".join(parts[:n]): None for parts in whole for n in range(1, len(parts) + 1)}  # nodes too
    return f"{error.full_key}: no such key{nearest_key(str(error.full_key), known)}; --help lists them all"


def _unknown_choice(error: MissingConfigException) -> str:
    group, _, choice = str(error.missing_cfg_file).rpartition("/")
    choices = [option for option in error.options or () if not option.startswith("_")]
    listed = f"there are {', '.join(choices)}" if choices else "there are none yet"
    if group == "hydra/launcher":
        listed += "; more come with pip install 'fairall[launchers]' or 'fairall[ray]'"
    return f"{group}={choice}: no such {group or 'configuration'}{nearest(choice, choices)}; {listed}"


def _meant(error: OverrideParseException) -> str:
    """A correction of a word that Hydra cannot read."""
    word = error.override
    if "=" in word and (meant := respelt(word)) is not None:
        return f"write {meant}"
    if not word.partition("=")[0].isascii():
        return "a key on the command line has letters a to z, digits, _ and .; give others in a YAML file"
    if "=" in word:
        return _first_line(error.message)
    known = {name.strip("-"): name for name in ("--help", "--version", "--multirun")}
    there = choices()
    for group in reversed(MAIN):
        names = there[group]
        word_of = "--multirun sweeps" if group == "sweeps" else group
        known |= {group: f"{word_of}=CHOICE"} | {name: f"{word_of}={name}" for name in names}
    known |= {verb: f"python -m fairall {verb}" for verb in VERBS}
    found = [known[name] for name in closest(word, known)]
    hint = f"did you mean {' or '.join(found)}?" if found else "it is not KEY=VALUE, without spaces"
    return f"{hint}; `python -m fairall list` lists all names"


def _first_line(message: object) -> str:
    return str(message).strip().split("\n")[0]


def raised_by_hydra(error: Exception) -> bool:
    """Whether Hydra, or its parser, raised an exception that it did not expect."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return frame.f_globals.get("__name__", "").split(".")[0] in ("hydra", "omegaconf", "antlr4", "yaml")
