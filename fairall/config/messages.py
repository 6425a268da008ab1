"""One-line messages for errors of Hydra, OmegaConf and FairAll that a user can correct."""

from __future__ import annotations

import errno
import re
import shlex
import sys
import traceback
from collections.abc import Iterator
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

from fairall.config.choices import MAIN, VERBS, VERBS_ALSO_CALLED, choices, configuration_keys, nodes_and_keys
from fairall.config.words import Words, closest, nearest, nearest_key, respelt, table_file, typed
from fairall.errors import FairAllError, SeveralErrors
from fairall.runtime.credentials import hidden
from fairall.runtime.process import NO_MEMORY, out_of_memory
from fairall.runtime.signals import raise_if_requested

# Errors that a user can correct; see `has_line`.
USER_ERRORS = (FairAllError, HydraException, OmegaConfBaseException, OSError, MemoryError)
# How Hydra's messages begin that are not told apart by their types.
IN_FILE = re.compile(r"In '([^']*)': \w+ raised while composing config")
SEVERAL = re.compile(r"(?:Ambiguous value for argument|Sweep parameters) '([^']*)'")
CHOICES = re.compile(r"expected one of \[(.*)\]")  # OmegaConf on a value that an Enum does not have
# A group or key that Hydra does not find; one that has a value already, typed with +.
NOT_FOUND = re.compile(
    r"(?:In '([^']*)': )?(?:Could not (?:override|delete(?: from config\.)?) '|Override [~+]*)([^'= ]+)"
)
THERE_ALREADY = re.compile(
    r"An item is already at '([^']+)|Multiple values for (\S+)\. |force-add of .*: '\+\+([^=]+)"
)
NO_KEY = (ConfigKeyError, ConfigAttributeError)
MOST_KEYS = 4  # named where a node is given a value
NUMBER = re.compile(r"[^a-z_]*(?:e[+-]?\d+)?", re.IGNORECASE)  # or several


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
    except (TypeError, ValueError) as error:
        if not raised_by_hydra(error) and "null byte" not in str(error):
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
    if not isinstance(error, MemoryError) and out_of_memory(error):
        return NO_MEMORY
    # Under a debugger OmegaConf chains an error that lacks the key.
    cause = error if isinstance(error, OmegaConfBaseException) else error.__cause__ or error
    if isinstance(error, OSError) and not isinstance(error, HydraException):
        then = "; the same command goes on from what was saved" if error.errno == errno.ENOSPC else ""
        return f"{error.filename}: " * bool(error.filename) + f"{error.strerror or error}{then}"
    if isinstance(error, MemoryError):
        return "there is not enough memory for this: fewer seeds, or smaller nets"
    if isinstance(error, OverrideParseException):
        return unreadable(error.override, error.message)
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        return _unknown_choice(error)
    if isinstance(cause, MissingMandatoryValue):
        return f"{cause.full_key!s} has no value: give it one with {cause.full_key!s}=VALUE"
    if (file := IN_FILE.match(str(error))) and isinstance(inner := error.__context__, OmegaConfBaseException):
        in_node = f"{inner.full_key}: {_first_line(inner)}"
        if isinstance(inner, NO_KEY):
            in_node = _no_such_key(str(inner.full_key), overrides)
        return f"{file[1]}.yaml: {in_node}"
    if several := SEVERAL.match(str(error)):
        key, _, values = several[1].partition("=")
        hint = "" if key in MAIN or "(" in values else f"; a list is '{key}=[{values}]'"
        return f"{several[1]}: several values are several runs: add --multirun{hint}"
    if isinstance(error, ConfigCompositionException):
        if isinstance(cause, NO_KEY):
            return _no_such_key(str(cause.full_key), overrides)
        if line := _by_text(str(error), overrides):
            return line
    if isinstance(error, HydraException) and isinstance(cause, OmegaConfBaseException):
        word = _first_line(error).removeprefix("Error merging override ")
        if choices := CHOICES.search(str(cause)):
            return f"{word} is not possible: it must be {' or '.join(choices[1].split(', '))}"
        if "is not a ListConfig" in str(cause):
            key, _, value = word.partition("=")
            return f"{word} is not possible: it must be a list, '{key}=[{value}]'"
        if "is not a subclass of" in str(cause):
            node, _, value = word.partition("=")
            return instead(node, value)
        return f"{word}: {_first_line(cause)}"
    return _first_line(error)


def unexpected(error: Exception, overrides: Words) -> str:
    """Message about an exception that Hydra or its parser did not expect."""
    for word in overrides:
        group, _, value = word.lstrip("+").partition("=")
        if group in MAIN and NUMBER.fullmatch(value):
            return instead(group, value)
    return f"cannot read {shlex.join(overrides)}: {error}"


def instead(node: str, value: object) -> str:
    """Message about a value for a group or a node, with the keys to which it has to be given."""
    keys = [f"{key}={value}" for key in configuration_keys({}) if key.startswith(f"{node}.")]
    return f"{node}={value}: {node} takes no value itself; give {' or '.join(keys[:MOST_KEYS]) or 'a choice'}"


def _no_such_key(name: str, overrides: Words) -> str:
    """Message about an unknown key, or group as GROUP@NODE."""
    chosen = dict(word.split("=", 1) for word in overrides if "=" in word)
    known = nodes_and_keys(configuration_keys(chosen))
    return f"{name}: no such key{nearest_key(name.partition('@')[0], known)}; --help lists them all"


def _by_text(text: str, overrides: Words) -> str | None:
    """Message about a group or key that is not where Hydra looks for it, as only Hydra's text tells."""
    words = {word.lstrip("+~").partition("=")[0]: word for word in overrides}
    not_found = NOT_FOUND.match(text)
    file, key = not_found.groups() if not_found else (None, None)
    unresolved = text.startswith("Error resolving interpolation")  # of the choices of two groups
    for group in MAIN:
        word = words.get(group, "")
        if word[:1] == "~" and (unresolved or group == key):
            return f"{word}: every run needs a choice of {group}; choose another with {group}=CHOICE"
        if word.startswith(f"{group}=[") and unresolved:
            one_each = shlex.join(["--multirun", re.sub(r"[\[\]]", "", word)])
            return f"{word}: it must be one choice; a run for each: {one_each}"
    if there := THERE_ALREADY.search(text):
        word = words.get(there[1] or there[2] or there[3], "")
        return f"{word}: it has a value already; write {word.lstrip('+')}" if word[:1] == "+" else None
    if key is None:
        return None
    if "No match" in text and f"use +{key}=" in text:  # a folder of `-cd` that is no group of a run
        return f"{key}: no such key, did you mean +{key}=CHOICE?; --help lists them all"
    return f"{file}.yaml: " * bool(file) + _no_such_key(key, overrides)


def _unknown_choice(error: MissingConfigException) -> str:
    group, _, choice = str(error.missing_cfg_file).rpartition("/")
    choices = [option for option in error.options or () if not option.startswith("_")]
    name = str(error.missing_cfg_file).removeprefix("dataset/")
    if group.partition("/")[0] == "dataset" and table_file(name):
        return f"{name} is a file: {_of_csv(name)}"
    listed = f"there are {', '.join(choices)}" if choices else "there are none yet"
    if group == "hydra/launcher":
        listed += "; more come with pip install 'fairall[launchers]' or 'fairall[ray]'"
    return f"{group}={choice}: no such {group or 'configuration'}{nearest(choice, choices)}; {listed}"


def _of_csv(path: str) -> str:
    """The words of a run on a file of people."""
    return f"dataset=csv {respelt(f'dataset.path={path}') or typed('dataset.path', path)}"


def unreadable(word: str, why: str = "") -> str:
    """Message about a word that Hydra cannot read, with a correction; `why` is what Hydra says."""
    return f"cannot read {word!r}: {_correction(word, why)}"


def _correction(word: str, why: str) -> str:
    if "=" in word and (meant := respelt(word)) is not None:
        return f"write {meant}"
    if not word.partition("=")[0].isascii():
        return "a key on the command line has letters a to z, digits, _ and .; give others in a YAML file"
    if "=" in word:
        return _first_line(why)
    known = {name.strip("-"): name for name in ("--help", "--version", "--multirun")}
    there = choices()
    for group in reversed(MAIN):
        word_of = "--multirun sweeps" if group == "sweeps" else group
        known |= {group: f"{word_of}=CHOICE"} | {name: f"{word_of}={name}" for name in there[group]}
    known |= {verb: f"python -m fairall {verb}" for verb in VERBS}
    verbs = (verb for verb, names in VERBS_ALSO_CALLED.items() if word.lower() in names.split())
    found = [known[name] for name in closest(next(verbs, word), known)]
    if table_file(word):
        found = [_of_csv(word)]
    hint = f"did you mean {' or '.join(found)}?" if found else "it is not KEY=VALUE, without spaces"
    return f"{hint}; `python -m fairall list` lists all names"


def _first_line(message: object) -> str:
    return str(message).strip().split("\n")[0]


def raised_by_hydra(error: Exception) -> bool:
    """Whether Hydra, or its parser, raised an exception that it did not expect."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return frame.f_globals.get("__name__", "").split(".")[0] in ("hydra", "omegaconf", "antlr4", "yaml")
