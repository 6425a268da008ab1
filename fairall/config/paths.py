"""Where conf/ and sweeps/ are: inside an installed package, or beside it in a checkout."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent


def configuration_root() -> Path:
    """The folder that holds conf/ and sweeps/."""
    return PACKAGE if (PACKAGE / "conf").is_dir() else PACKAGE.parent


def sweeps_folder() -> Path:
    """The folder sweeps/."""
    return configuration_root() / "sweeps"
