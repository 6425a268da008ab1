"""The command `fairall`: a first word that is a verb is done here; anything else is a run."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import sys
from collections.abc import Sequence

from fairall.runtime.process import USAGE, require_address_space, run_command
from fairall.runtime.signals import Stopped

LIGHT = {"list", "-h", "--help", "--version"}  # words of commands that load no large library


def main(words: Sequence[str] | None = None) -> int:
    """Run a command line and return the exit code.

    Args:
        words: of the command line; None: those of the process.
    """
    return run_command(_main, words)


def _main(words: list[str]) -> int:
    if not LIGHT.intersection(words):
        require_address_space()
    from fairall.cli.parser import COMMANDS, in_words, second_words, unknown

    verb, second, *_ = [*words, "", ""]
    several = second_words(verb)
    if several and second in ("-h", "--help"):
        for name in several:
            of = COMMANDS[f"{verb} {name}"]
            print(f"{f'python -m fairall {verb} {name} {of.takes}':<48} {of.does}")
        return 0
    if f"{verb} {second}" in COMMANDS:
        return _done(f"{verb} {second}", words[2:])
    if verb in COMMANDS:
        return _done(verb, words[1:])
    if "list" in several and (not second or second.startswith("-") or "=" in second):
        return _done(f"{verb} list", words[1:])
    if several and verb != "tune":
        print(f"fairall: {unknown(verb, words[1:])}", file=sys.stderr)
        return USAGE
    if verb == "tune":
        words = ["--multirun", f"sweeps={second}", *words[2:]]
    from fairall.cli.run import run

    return run(in_words(words[1:] if verb == "run" else words))


def _done(name: str, words: Sequence[str]) -> int:
    """Do what a verb says, and return the exit code."""
    from fairall.cli.parser import COMMANDS, Parser

    given = Parser(name).read(words)
    given.typed = shlex.join(["python", "-m", "fairall", *name.split(), *words])
    try:
        with contextlib.redirect_stdout(io.StringIO()) if given.json else contextlib.nullcontext():
            done = COMMANDS[name].work(given)
        if given.json:
            from fairall.storage.stored import strict

            print(json.dumps(strict(done.document), indent=1, allow_nan=False))
        return done.code
    except Stopped as stopped:
        stopped.then = stopped.then if COMMANDS[name].resumes else "starts anew"
        raise
    except Exception as error:
        from fairall.config.messages import has_line, report_error

        if not has_line(error):
            raise
        chosen = [f"dataset={given.name}"] if name in ("data fetch", "data describe") else []
        return report_error(error, [*chosen, *given.words])
