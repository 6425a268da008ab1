"""One line for each error of Hydra, OmegaConf or FairAll that a user can correct."""

from __future__ import annotations

import errno
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass

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

from fairall.config.choices import choices_of_groups, configuration_keys
from fairall.config.schema import GROUPS
from fairall.config.words import nearest, nearest_key, not_an_override, unreadable
from fairall.errors import FairAllError
from fairall.runtime.credentials import hidden
from fairall.runtime.signals import raise_if_requested

# Errors that a user can correct; any other is a defect and keeps its traceback.
USER_ERRORS = (FairAllError, HydraException, OmegaConfBaseException, OSError, MemoryError)
# Choices that come with a package of their own, and our extra that installs it.
EXTRAS = {
    ("hydra/launcher", "joblib"): "launchers",
    ("hydra/launcher", "submitit_local"): "launchers",
    ("hydra/launcher", "submitit_slurm"): "launchers",
    ("hydra/launcher", "ray"): "ray",
}
# How Hydra's messages begin that are not told apart by their types.
IN_FILE = re.compile(r"In '[^']*': \w+ raised while composing config")
SEVERAL = re.compile(r"(Ambiguous value for argument|Sweep parameters) '")
# OmegaConf on a value that an Enum does not have.
CHOICES = re.compile(r"expected one of \[(.*)\]")
GROUPS_ONLY = ("hparams", "preset", "sweeps")  # groups that are no keys of the configuration


def exit_code(work: Callable[[], int], overrides: Sequence[str]) -> int:
    """Run a command; report a user's error in one line on standard error.

    Args:
        work: runs the command and returns its exit code.
        overrides: words of the command line.

    Returns:
        The exit code.
    """
    try:
        return work()
    except USER_ERRORS as error:
        return report_error(error, overrides)


@contextmanager
def in_one_line(overrides: Sequence[str]) -> Iterator[None]:
    """Raise the errors of Hydra and OmegaConf as FairAllError with the line of `message`.

    Args:
        overrides: words as on the command line.
    """
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
    """One line about an exception of Hydra, OmegaConf or our own.

    Args:
        error: the exception.
        overrides: words of the command line.
    """
    # Under a debugger OmegaConf chains an error that lacks the key.
    cause = error if isinstance(error, OmegaConfBaseException) else error.__cause__ or error
    if isinstance(error, OSError) and not isinstance(error, HydraException):
        return _of_system(error)
    if isinstance(error, MemoryError):
        return "there is not enough memory for this: fewer seeds, or smaller nets"
    if isinstance(error, OverrideParseException):
        return _unreadable(error, overrides)
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        return _unknown_choice(error)
    if isinstance(cause, MissingMandatoryValue):
        return f"{cause.full_key!s} has no value: give it one with {cause.full_key!s}=VALUE"
    if IN_FILE.match(str(error)) and isinstance(error.__context__, OmegaConfBaseException):
        return _in_file(error, error.__context__)
    if isinstance(error, ConfigCompositionException) and isinstance(
        cause, ConfigKeyError | ConfigAttributeError
    ):
        return _unknown_key(str(cause.full_key), overrides)
    if isinstance(error, ConfigCompositionException) and SEVERAL.match(str(error)):
        return _several(str(error).split("'")[1])
    if isinstance(error, HydraException) and isinstance(cause, OmegaConfBaseException):
        word = _first_line(error).removeprefix("Error merging override ")
        if choices := CHOICES.search(str(cause)):
            return f"{word} is not possible: it must be {' or '.join(choices[1].split(', '))}"
        if "is not a ListConfig" in str(cause):
            key, _, value = word.partition("=")
            return f"{word} is not possible: it must be a list, '{key}=[{value}]'"
        return f"{word}: {_first_line(cause)}"
    return _first_line(error)


def _of_system(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    then = "; the same command goes on from what was saved" if error.errno == errno.ENOSPC else ""
    return f"{where}{error.strerror or error}{then}"


def _unknown_choice(error: MissingConfigException) -> str:
    group, _, choice = str(error.missing_cfg_file).rpartition("/")
    if not group:
        return f"there is no configuration {choice!r}"
    if (group, choice) in EXTRAS:
        return f"{group}={choice}: not installed yet; pip install 'fairall[{EXTRAS[group, choice]}]'"
    if choice.endswith("_schema") and group in GROUPS:
        return (
            f"{group}={choice}: there are no schemas to inherit: delete {choice} from `defaults` of the "
            "file; config_type of the class that its _target_ names gives its keys their types"
        )
    choices = [option for option in error.options or () if not option.startswith("_")]
    listed = f"there are {', '.join(choices)}" if choices else "there are none yet"
    return f"{group}={choice}: no such {group}{nearest(choice, choices, group)}; {listed}"


def _unreadable(error: OverrideParseException, overrides: Sequence[str]) -> str:
    word = error.override
    if "=" not in word.lstrip("=") and not word.startswith("~"):
        return not_an_override(word, overrides, choices_of_groups())
    return unreadable(word) or f"cannot read {word!r}: {_first_line(error.message)}"


def _several(word: str) -> str:
    """On a word with several values, each of which would be a run."""
    key, _, values = word.partition("=")
    hint = f"{word}: several values are several runs: add --multirun"
    if key in choices_of_groups() or "(" in values:
        return hint
    return f"{hint}; a list is '{key}=[{values}]', one value with commas '{key}=\"{values}\"'"


def _in_file(error: Exception, cause: OmegaConfBaseException) -> str:
    """On an unknown key or a value of another type in a YAML file."""
    file = str(error).split("'")[1]
    if not isinstance(cause, ConfigKeyError | ConfigAttributeError):
        return f"{file}.yaml: {cause.full_key}: {_first_line(cause)}"
    known = [field.name for field in fields(cause.object_type)] if is_dataclass(cause.object_type) else []
    key = str(cause.full_key)
    there = f"; there are {', '.join(sorted(known))}" if known else ""
    return f"{file}.yaml: {key}: no such key{nearest(key.rpartition('.')[2], known)}{there}"


def _unknown_key(key: str, overrides: Sequence[str]) -> str:
    chosen = dict(word.split("=", 1) for word in overrides if "=" in word)
    whole = [known.split(".") for known in configuration_keys(chosen)]
    known = {".".join(parts[:n]): None for parts in whole for n in range(1, len(parts) + 1)}  # nodes too
    return f"{key}: no such key{nearest_key(key, [*known, *GROUPS_ONLY])}; --help lists them all"


def _first_line(message: object) -> str:
    return str(message).strip().split("\n")[0]


def raised_by_hydra(error: Exception) -> bool:
    """Whether the code of Hydra, or of what it reads with, raised an exception that it did not expect."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return frame.f_globals.get("__name__", "").split(".")[0] in ("hydra", "omegaconf", "antlr4", "yaml")
