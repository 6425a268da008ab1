"""Terminal output: replacements for characters that its encoding lacks, logs and warnings of libraries."""

from __future__ import annotations

import codecs
import logging
import os
import sys
import sysconfig
import traceback
import warnings
from io import TextIOWrapper
from typing import TextIO

# Replacements for characters that an encoding lacks; any other one is written as an escape such as \xfc.
_PAIRS = """
    − -  – -  ± +-  × x  · *  ≤ <=  ≥ >=  ≈ ~  ½ 1/2  ² ^2  → ->  ↑ up  ↓ down  … ...  ’ '  Σ sum  √ sqrt
    ỹ y~  ũ u~  α alpha  β beta  ε epsilon  θ theta  λ lambda  π pi  σ sigma  φ phi  Γ Gamma
""".split()
ASCII = dict(zip(_PAIRS[::2], _PAIRS[1::2], strict=True))
# Loggers that report every step of their own: migrations, the font cache of the first figure.
LOG_LEVELS = {"alembic": logging.WARNING, "matplotlib.font_manager": logging.ERROR}
REPLACE = "fairall.replace"  # name of the error handler
# Folders of code that is not the user's: this package, installed ones, Python's own, their commands.
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
KINDS = ("stdlib", "platstdlib", "purelib", "platlib", "scripts")
INSTALLED = tuple(f"{folder}{os.sep}" for folder in (PACKAGE, *map(sysconfig.get_path, KINDS)))


def prepare() -> None:
    """Set the error handler of standard output and error; keep to what concerns the user.

    That is: set log levels of other libraries, and have their warnings shown where code of the user's has
    called them. With Python's option -W, or PYTHONWARNINGS, all are shown that it says.

    Raises:
        SystemExit: with one line, if the current folder has been deleted.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=REPLACE)
    for name, level in LOG_LEVELS.items():
        logging.getLogger(name).setLevel(level)
    if not sys.warnoptions:
        warnings.showwarning = _show_warning
    try:
        os.getcwd()  # noqa: PTH109 (avoids importing pathlib)
    except FileNotFoundError:
        sys.exit("fairall: the current folder has been deleted; change to another one with cd FOLDER")


def shown(text: str, encoding: str) -> str:
    """`text` with the characters replaced that `encoding` lacks."""
    return text.encode(encoding, REPLACE).decode(encoding)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning as Python does, where this package or code of the user's has caused it.

    Of one that a library causes in another the user can mend nothing. `RuntimeWarning` and the like come from
    numpy where the line is of this package.
    """
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_stack(None)]
    callers = [name for name in files if name not in (__file__, warnings.__file__)]
    ours = category is UserWarning and callers[0].startswith(PACKAGE + os.sep)
    of_user = not all(name.startswith(("<", *INSTALLED)) for name in map(_absolute, callers))
    if (ours or of_user) and (stream := file or sys.stderr):
        stream.write(warnings.formatwarning(message, category, filename, lineno, line))


def _absolute(name: str) -> str:
    """A file of code as an absolute path; `<string>` and the like as they are."""
    return name if name.startswith("<") else os.path.abspath(name)  # noqa: PTH100


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
