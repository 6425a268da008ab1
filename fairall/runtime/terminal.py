"""Terminal output: replacements for characters that its encoding lacks, logs and warnings of libraries."""

from __future__ import annotations

import codecs
import logging
import os
import sys
import sysconfig
import warnings
from io import TextIOWrapper

# Replacements for characters that an encoding lacks; any other one is written as an escape such as \xfc.
_PAIRS = """
    − -  – -  ± +-  × x  · *  ≤ <=  ≥ >=  ≈ ~  ½ 1/2  ² ^2  → ->  ↑ up  ↓ down  … ...  ’ '  Σ sum  √ sqrt
    ỹ y~  ũ u~  α alpha  β beta  ε epsilon  θ theta  λ lambda  π pi  σ sigma  φ phi  Γ Gamma
""".split()
ASCII = dict(zip(_PAIRS[::2], _PAIRS[1::2], strict=True))
# Loggers that report every step of their own: migrations, the font cache of the first figure.
LOG_LEVELS = {"alembic": logging.WARNING, "matplotlib.font_manager": logging.ERROR}
# Libraries of which warnings are not shown, as a regular expression.
QUIET = r"(?:aif360|hydra|matplotlib|mlflow|numba|numpy|optuna|pandas|scipy|shap|sklearn|sqlalchemy|torch)\b"
REPLACE = "fairall.replace"  # name of the error handler
# Folders of code that is not the user's: this package, installed ones, Python's own, their commands.
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
KINDS = ("stdlib", "platstdlib", "purelib", "platlib", "scripts")
INSTALLED = tuple(f"{folder}{os.sep}" for folder in (PACKAGE, *map(sysconfig.get_path, KINDS)))


def prepare() -> None:
    """Set the error handler of standard output and error; keep to what concerns the user.

    That is: set log levels of other libraries, and ignore warnings of their code, in which the user can mend
    nothing. With Python's option -W, or PYTHONWARNINGS, all are shown that it says.

    Raises:
        SystemExit: with one line, if the current folder has been deleted.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=REPLACE)
    for name, level in LOG_LEVELS.items():
        logging.getLogger(name).setLevel(level)
    if not sys.warnoptions:
        warnings.filterwarnings("ignore", module=QUIET)
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"fairall\.")  # of numpy
    try:
        os.getcwd()  # noqa: PTH109 (avoids importing pathlib)
    except FileNotFoundError:
        sys.exit("fairall: the current folder has been deleted; change to another one with cd FOLDER")


def shown(text: str, encoding: str) -> str:
    """`text` with the characters replaced that `encoding` lacks."""
    return text.encode(encoding, REPLACE).decode(encoding)


def _replacement(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)  # the handler is of output alone
    lacking = error.object[error.start : error.end]
    return "".join(ASCII.get(character, ascii(character)[1:-1]) for character in lacking), error.end


codecs.register_error(REPLACE, _replacement)
