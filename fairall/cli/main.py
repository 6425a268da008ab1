"""The command `fairall`: a first word that is a verb is done here; anything else is a run."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Sequence

from fairall.runtime.process import require_address_space, run_command
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
    from fairall.cli.parser import COMMANDS, parser
    from fairall.config.choices import VERBS

    for n in (2, 1):
        if (verb := " ".join(words[:n])) in COMMANDS:
            return _done(verb, words[n:])
    begins_verb = verb in VERBS[1:]  # the first is run
    for word in ("-h", "--help", "--version"):
        if word in words:
            parser("" if begins_verb else _about_runs()).parse_args([word])
    if verb == "tune" and len(words) > 1 and not words[1].startswith("-"):
        words = ["--multirun", f"sweeps={words[1]}", *words[2:]]
    elif begins_verb:
        parser().parse_args([" ".join(words[:2])])  # ends with the verbs that there are
    from fairall.cli.run import run

    return run(words[1:] if verb == "run" else words)


def _about_runs() -> str:
    """The end of --help: exit codes, groups with their choices, and keys with their defaults."""
    from fairall.cli.parser import EXIT_CODES
    from fairall.config.choices import choices, configuration_root

    groups = "\n".join(f"{group}: {', '.join(names)}" for group, names in sorted(choices().items()))
    keys = (
        (configuration_root() / "conf" / "config.yaml").read_text(encoding="utf-8").partition("\nhydra:")[0]
    )
    return (
        f"{EXIT_CODES}\n\nGroups and their choices\n\n{groups}\n\nDefaults (conf/config.yaml); `--cfg job` "
        f"prints every key of a command, those of its groups too, without running it\n\n{keys}"
    )


def _done(verb: str, words: Sequence[str]) -> int:
    """Do what a verb says, and return the exit code."""
    from fairall.cli.parser import read

    work, as_json, options = read(verb, words)
    try:
        with contextlib.redirect_stdout(io.StringIO()) if as_json else contextlib.nullcontext() as lines:
            answer = work(**options)
            document, code = answer if isinstance(answer, tuple) else (answer, 0)
        if lines is not None:
            from fairall.storage.stored import strict

            document = {"lines": lines.getvalue().splitlines()} if document is None else document
            print(json.dumps(strict(document), indent=1, allow_nan=False))
        return int(code)
    except Stopped as stopped:
        stopped.then = "starts anew, or goes on from what was saved"
        raise
    except Exception as error:
        from fairall.config.messages import has_line, report_error

        if not has_line(error):
            raise
        return report_error(error)
