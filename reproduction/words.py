"""Content of the YAML files beside the modules: words of pages, printed values, and studies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def words_of(name: str) -> dict[str, Any]:
    """Content of a file, by its name without `.yaml`."""
    found: dict[str, Any] = yaml.safe_load(Path(__file__).with_name(f"{name}.yaml").read_text())
    return found
