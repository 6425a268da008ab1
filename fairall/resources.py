"""Where conf/ and sweeps/ are: inside an installed package, or beside it in a checkout."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def configuration_root() -> Path:
    """The folder that holds conf/."""
    return PACKAGE if _is_installed() else PACKAGE.parent


def sweeps_folder() -> Path:
    """The folder of the sweep files: sweeps/, in a package beside the code of that name."""
    return PACKAGE / "sweep_files" if _is_installed() else PACKAGE.parent / "sweeps"


def _is_installed() -> bool:
    return (PACKAGE / "conf").is_dir()
