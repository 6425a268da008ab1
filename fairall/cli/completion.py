"""The words that a shell offers at the cursor.

It is asked at every TAB, and imports neither Hydra nor torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from fairall.cli.listing import LISTS
from fairall.cli.parser import COMMANDS, OPTIONS, PLACES, in_words, second_words
from fairall.cli.verbs import SHELLS
from fairall.config.choices import MAIN, VERBS, choices, configuration_keys, settings

# Options of Hydra's command line, by what they take.
FLAGS = ("--help", "--version", "--hydra-help", "--multirun", "--run", "--resolve", "--shell-completion")
WITH_VALUE = ("--config-dir", "--config-name", "--config-path", "--package", "--experimental-rerun")
WITH_CHOICE = {
    "--cfg": ("job", "hydra", "all"),
    "--info": ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath"),
}
SHORT = {
    "-h": "--help",
    "-m": "--multirun",
    "-r": "--run",
    "-sc": "--shell-completion",
    "-cd": "--config-dir",
    "-cn": "--config-name",
    "-cp": "--config-path",
    "-p": "--package",
    "-c": "--cfg",
    "-i": "--info",
}


def completions(words: Sequence[str]) -> list[str]:
    """What the last word of a command line can be completed to; nothing where it may be a file.

    `KEY=` and `NODE.` go on, all others are whole words.
    """
    *before, word = words or [""]
    verb = before[0] if before and before[0] in VERBS else ""
    several = second_words(verb) if verb else []
    if several and len(before) == 1:
        sweeps = [*choices()["sweeps"]] if verb == "tune" else []
        return _beginning(word, [*several, *sweeps])
    command = f"{verb} {before[1]}" if several and before[1] in several else verb
    if command in COMMANDS:
        return _beginning(word, _of_verb(command, before[len(command.split()) :], word))
    return _of_run(before, word)


def _of_verb(command: str, before: Sequence[str], word: str) -> list[str]:
    """What may come next after a verb and the words `before`."""
    previous, at = before[-1] if before else "", sum("=" not in one for one in before)
    options, takes = COMMANDS[command].options.split(), [*COMMANDS[command].takes.split(), ""]
    wanted = takes[min(at, max(len(takes) - 2, 0))]
    if word.startswith("-"):
        return [*(one.rstrip(".!") for one in options), *PLACES]
    if f"{previous}..." in options:
        wanted = "RUN" if previous == "--policy" else ""
    elif "=" in word or "metavar" in OPTIONS.get(previous, {}):
        return []
    match wanted.removesuffix("..."):
        case "WHAT":
            return [*LISTS, "outputs_dir="]
        case "SHELL":
            return [*SHELLS]
        case "NAME" if command.startswith("data"):
            return [*choices()["dataset"]]
        case "RUN":
            given = dict(one.split("=", 1) for one in in_words(before) if "=" in one)
            folder = Path(given.get("outputs_dir") or settings()["outputs_dir"]) / "runs"
            return [*sorted(path.parent.name for path in folder.glob("*/*/*/config.yaml")), "outputs_dir="]
    return []


def _of_run(before: Sequence[str], word: str) -> list[str]:
    """What may come next in the words of a run."""
    previous = SHORT.get(before[-1], before[-1]) if before else ""
    if previous in WITH_CHOICE:
        return _beginning(word, WITH_CHOICE[previous])
    if previous in WITH_VALUE:
        return []
    if word.startswith("-"):
        return _beginning(word, [*FLAGS, *WITH_VALUE, *WITH_CHOICE, *PLACES])
    own = next((value for name, value in pairwise(before) if name in ("-cd", "--config-dir")), None)
    key, equals, value = word.partition("=")
    if equals:
        several, comma, last = value.rpartition(",")  # of --multirun
        there = [*choices(own)[key]] if key in MAIN else []
        return [f"{key}={several}{comma}{name}" for name in _beginning(last, there)]
    given = dict(other.split("=", 1) for other in before if "=" in other)
    return _beginning(word, [*(() if before else VERBS), *_keys(word, configuration_keys(given, own))])


def _keys(word: str, keys: Sequence[str]) -> list[str]:
    """Keys inside the node of a word, up to their next dot; a group as `GROUP=` until its dot is typed."""
    node = word[: word.rfind(".") + 1]
    inside = [key.removeprefix(node).partition(".") for key in keys if key.startswith(node)]
    shown = [f"{node}{name}{dot or '='}" for name, dot, _ in inside if node or not dot or name not in MAIN]
    return list(dict.fromkeys(shown))


def _beginning(word: str, words: Sequence[str]) -> list[str]:
    return [one for one in words if one.startswith(word)]
