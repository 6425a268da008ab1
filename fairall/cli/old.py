"""The commands of version 0.1, `python -m fairall.ROOM`, in today's words."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence

from fairall.cli.main import main
from fairall.runtime.credentials import withheld
from fairall.runtime.process import USAGE


def forward(room: str, words: Sequence[str] | None = None) -> int:
    """Say what `python -m fairall.ROOM WORDS` is today, do that, and return the exit code."""
    given = [withheld(word) for word in (sys.argv[1:] if words is None else words)]
    if room == "report" and given[:1] != ["compare"]:
        said = " ".join(["python -m reproduction", *given[:1]])
        print(
            f"fairall: python -m fairall.report is now, in a checkout of the source: {said}", file=sys.stderr
        )
        return USAGE
    new = translated(room, given)
    print(f"fairall: python -m fairall.{room} is now: python -m fairall {shlex.join(new)}", file=sys.stderr)
    return main(new)


def translated(room: str, words: list[str]) -> list[str]:
    """Today's words.

    Examples:
        >>> translated("decide", ["RUN", "people.csv", "--explain", "17", "-o", "why"])
        ['explain', 'RUN', 'people.csv', '--row', '17', '-o', 'why']
        >>> translated("evaluate", ["compare", "--policy", "score", "--log", "loans.csv"])
        ['evaluate', 'loans.csv', '--policy', 'decision', '--policy', 'score', '--log']
    """
    words = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    if room == "decide":
        verb = "explain" if "--explain" in words else "decide"
        return [verb, *("--row" if word == "--explain" else word for word in words)]
    log = [] if "tracking.enabled=false" in words else ["--log"]
    if room == "report":
        return [*words, *log]
    if room == "evaluate":
        command, *words = words or [""]
        if "--log" in words[:-1]:
            at = words.index("--log")
            words = [words[at + 1], *words[:at], *words[at + 2 :]]
        if command == "compare" and words.count("--policy") == 1:
            words[1:1] = ["--policy", "decision"]
        return [
            "evaluate",
            *([] if command in ("decisions", "policy", "compare") else [command]),
            *words,
            *log,
        ]
    if "-cd" in words[:2]:  # which stood before the command too
        words = [*words[2:], *words[:2]]
    return [{"tuning": "tune", "tracking": "mlflow"}.get(room, room), *words]
