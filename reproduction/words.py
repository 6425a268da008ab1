"""Words of pages: headings, titles and notes of report.yaml and leaderboard.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def words_of(page: str) -> dict[str, Any]:
    """Content of the file of a page."""
    found: dict[str, Any] = yaml.safe_load(Path(__file__).with_name(f"{page}.yaml").read_text())
    return found
