"""`fairall completion`: scripts for the shells, and the words that they offer at the cursor.

It is asked at every TAB, and imports neither Hydra nor torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

from fairall.config.choices import LISTS, MAIN, choices, configuration_keys, settings
from fairall.errors import FairAllError

SHELLS = ("bash", "zsh")
COMMANDS = ("completion", "list", "show")
# Options of Hydra's command line, by what they take.
FLAGS = ("--help", "--version", "--hydra-help", "--multirun", "--run", "--resolve", "--shell-completion")
WITH_VALUE = ("--config-dir", "-cd", "--config-name", "--config-path", "--package", "--experimental-rerun")
WITH_CHOICE = {
    "--cfg": ("job", "hydra", "all"),
    "--info": ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath"),
}


def completion(words: Sequence[str]) -> str:
    """Output of `fairall completion WORDS`.

    Args:
        words: a shell, for its script; or `words --` and those of a command line, of which the last is to be
            completed, as the scripts ask.

    Raises:
        FairAllError: where it is no known shell.
    """
    if words[:2] == ["words", "--"]:
        return "".join(f"{word}\n" for word in completions(words[2:]))
    if len(words) != 1 or words[0] not in SHELLS:
        raise FairAllError(
            f'completion takes a shell, {" or ".join(SHELLS)}: eval "$(fairall completion bash)"'
        )
    return files("fairall.config").joinpath(f"completion.{words[0]}").read_text()


def completions(words: Sequence[str]) -> list[str]:
    """Completions of the last word of a command line; empty if the word may be a file.

    `KEY=` and `NODE.` go on, all others are whole words.
    """
    *before, word = words or [""]
    previous = before[-1] if before else ""
    if previous in WITH_CHOICE:
        return _beginning(word, WITH_CHOICE[previous])
    if previous in WITH_VALUE:
        return []
    if word.startswith("-"):
        return _beginning(word, [*FLAGS, *WITH_VALUE, *WITH_CHOICE])
    own = next((value for name, value in pairwise(before) if name in ("-cd", "--config-dir")), None)
    key, equals, value = word.partition("=")
    if equals:
        several, comma, last = value.rpartition(",")  # of --multirun
        there = [*choices(own)[key]] if key in MAIN else []
        return [f"{key}={several}{comma}{name}" for name in _beginning(last, there)]
    given = dict(other.split("=", 1) for other in before if "=" in other)
    command = next((other for other in before if other in COMMANDS), "")
    if command == "completion":
        return _beginning(word, SHELLS)
    if command:
        there = [*LISTS] if command == "list" else _runs(given.get("outputs_dir"))
        return _beginning(word, [*there, "outputs_dir="])
    commands = COMMANDS if not before else ()
    return _beginning(word, [*commands, *_keys(word, configuration_keys(given, own))])


def _keys(word: str, keys: Sequence[str]) -> list[str]:
    """Keys inside the node of a word, up to their next dot; a group as `GROUP=` until its dot is typed."""
    node = word[: word.rfind(".") + 1]
    inside = [key.removeprefix(node).partition(".") for key in keys if key.startswith(node)]
    shown = [f"{node}{name}{dot or '='}" for name, dot, _ in inside if node or not dot or name not in MAIN]
    return list(dict.fromkeys(shown))


def _runs(outputs: str | None) -> list[str]:
    """Ids of the runs in a folder of outputs, or in the default one."""
    folder = Path(outputs or settings()["outputs_dir"]) / "runs"
    return sorted(path.parent.name for path in folder.glob("*/*/*/config.yaml"))


def _beginning(word: str, words: Sequence[str]) -> list[str]:
    return [one for one in words if one.startswith(word)]
