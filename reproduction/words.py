"""Words of the studies' pages: headings, titles and notes, of reproduction/studies/."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def words_of(study: str) -> dict[str, Any]:
    """Content of the file of a study."""
    path = Path(__file__).parent / "studies" / f"{study}.yaml"
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found
