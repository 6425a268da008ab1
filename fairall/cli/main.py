"""The command `fairall`: a first word that is a verb is done here; anything else is a run."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Sequence

from fairall.runtime.process import require_address_space, run_command
from fairall.runtime.signals import Stopped


def main(words: Sequence[str] | None = None) -> int:
    """Run a command line and return the exit code.

    Args:
        words: of the command line; None: those of the process.
    """
    return run_command(_main, words)


def _main(words: list[str]) -> int:
    asked = {"-h", "--help", "--version"}.intersection(words)
    if not asked and words[:1] != ["list"]:  # these load no large library
        require_address_space()
    from fairall.cli.parser import COMMANDS, parser
    from fairall.config.choices import VERBS

    verb = " ".join(words[:2])
    for name in (verb, *words[:1]):
        if name in COMMANDS and name != "tune NAME":  # which is a run
            return _done(name, words[len(name.split()) :])
    first, *others = words or ["run"]
    if first == "tune" and others and not asked:
        first, others = "run", ["--multirun", f"sweeps={others[0]}", *others[1:]]
    if asked:
        parser().parse_args([*asked])
    if first in VERBS[1:]:  # without a known second word; `run` is the first of them
        known = [name for name in COMMANDS if name.startswith(first)]
        parser().error(f"{verb}: no such verb; there are {', '.join(known)}")
    from fairall.cli.run import run

    return run(others if first == "run" else words)


def _done(verb: str, words: Sequence[str]) -> int:
    """Do what a verb says, and return the exit code."""
    from fairall.cli.parser import COMMANDS, read

    try:
        options, lines = read(verb, words), io.StringIO()
        as_json = options.pop("json")
        with contextlib.redirect_stdout(lines if as_json else sys.stdout):
            answer = COMMANDS[verb].work(**options)
        document, code = answer if isinstance(answer, tuple) else (answer, 0)
        if as_json:
            from fairall.storage.stored import strict

            document = {"lines": lines.getvalue().splitlines()} if document is None else document
            print(json.dumps(strict(document), indent=1, allow_nan=False))
        return int(code)
    except Stopped as stopped:
        stopped.then = "starts anew, or goes on from what was saved"
        raise
    except Exception as error:
        from fairall.config.messages import report_error

        return report_error(error)
