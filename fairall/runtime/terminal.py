"""Terminal output: replacements for characters that its encoding lacks, and log levels of other libraries."""

from __future__ import annotations

import codecs
import logging
import os
import sys
from io import TextIOWrapper

# Replacements for characters that an encoding lacks; any other one is written as an escape such as \xfc.
ASCII = {
    "−": "-", "–": "-", "±": "+-", "×": "x", "·": "*", "≤": "<=", "≥": ">=", "≈": "~", "½": "1/2", "²": "^2",
    "→": "->", "↑": "up", "↓": "down", "…": "...", "’": "'", "Σ": "sum", "√": "sqrt", "ỹ": "y~", "ũ": "u~",
    "α": "alpha", "β": "beta", "ε": "epsilon", "θ": "theta", "λ": "lambda", "π": "pi", "σ": "sigma",
    "φ": "phi", "Γ": "Gamma",
}  # fmt: skip
# Loggers that report every step of their own: migrations, the font cache of the first figure.
LOG_LEVELS = {"alembic": logging.WARNING, "matplotlib.font_manager": logging.ERROR}
REPLACE = "fairall.replace"  # name of the error handler


def prepare() -> None:
    """Set the error handler of standard output and error, and log levels of other libraries.

    Raises:
        SystemExit: with one line, if the current folder has been deleted.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=REPLACE)
    for name, level in LOG_LEVELS.items():
        logging.getLogger(name).setLevel(level)
    try:
        os.getcwd()  # noqa: PTH109 (avoids importing pathlib)
    except FileNotFoundError:
        sys.exit("fairall: the current folder has been deleted; change to another one with cd FOLDER")


def shown(text: str, encoding: str) -> str:
    """`text` with the characters replaced that `encoding` lacks."""
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
