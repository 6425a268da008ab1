"""Terminal output: characters that its encoding lacks, logs and warnings of libraries."""

from __future__ import annotations

import logging
import os
import sys
import sysconfig
import warnings
from io import TextIOWrapper

# Loggers that report every step of their own: migrations, the font cache of the first figure.
LOG_LEVELS = {"alembic": logging.WARNING, "matplotlib.font_manager": logging.ERROR}
# Libraries of which warnings are not shown, as a regular expression.
QUIET = r"(?:aif360|hydra|matplotlib|mlflow|numba|numpy|optuna|pandas|scipy|shap|sklearn|sqlalchemy|torch)\b"
# Folders of code that is not the user's: this package, installed ones, Python's own, their commands.
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
KINDS = ("stdlib", "platstdlib", "purelib", "platlib", "scripts")
INSTALLED = tuple(f"{folder}{os.sep}" for folder in (PACKAGE, *map(sysconfig.get_path, KINDS)))


def prepare() -> None:
    """Write characters that the encoding of the output lacks as escapes; silence other libraries.

    Their log levels are set, and warnings of their code, in which a user can mend nothing, are ignored. With
    Python's option -W, or PYTHONWARNINGS, all are shown that it says.

    Raises:
        SystemExit: with one line, if the current folder has been deleted.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    for name, level in LOG_LEVELS.items():
        logging.getLogger(name).setLevel(level)
    if not sys.warnoptions:
        warnings.filterwarnings("ignore", module=QUIET)
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"fairall\.")  # of numpy
    try:
        os.getcwd()  # noqa: PTH109 (avoids importing pathlib)
    except FileNotFoundError:
        sys.exit("fairall: the current folder has been deleted; change to another one with cd FOLDER")
