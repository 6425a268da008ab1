"""Set up the process of a command: current folder, what its terminal can show, logs of other libraries."""

from __future__ import annotations

import codecs
import logging
import os
import sys
from io import TextIOWrapper

# In place of characters that an encoding lacks; any other one is written as Python would, \xfc.
ASCII = {
    "−": "-", "–": "-", "±": "+-", "×": "x", "·": "*", "≤": "<=", "≥": ">=", "≈": "~", "½": "1/2", "²": "^2",
    "→": "->", "↑": "up", "↓": "down", "…": "...", "’": "'", "Σ": "sum", "√": "sqrt", "ỹ": "y~", "ũ": "u~",
    "α": "alpha", "β": "beta", "ε": "epsilon", "θ": "theta", "λ": "lambda", "π": "pi", "σ": "sigma",
    "φ": "phi",
}  # fmt: skip
# They tell of each of their parts, and of the font cache that the first figure makes.
TALKATIVE = {"alembic": logging.WARNING, "matplotlib.font_manager": logging.ERROR}
REPLACE = "fairall.replace"  # name of the error handler


def prepare() -> None:
    """Call first in every command, and in the processes it starts: what cannot be shown is replaced.

    Raises:
        SystemExit: with one line, where the current folder has been deleted.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=REPLACE)
    for name, level in TALKATIVE.items():
        logging.getLogger(name).setLevel(level)
    try:
        os.getcwd()  # noqa: PTH109 (pathlib would be imported for nothing)
    except FileNotFoundError:
        sys.exit("fairall: the current folder has been deleted; change to another one with cd FOLDER")


def shown(text: str, encoding: str) -> str:
    """`text` as a terminal of that encoding shows it."""
    return text.encode(encoding, REPLACE).decode(encoding)


def _replacement(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    replaced = (
        ASCII.get(character) or character.encode("ascii", "backslashreplace").decode("ascii")
        for character in lacking
    )
    return "".join(replaced), error.end


codecs.register_error(REPLACE, _replacement)
