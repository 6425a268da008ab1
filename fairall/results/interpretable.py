"""Whether the numbers of a configuration may be interpreted, and the mark of those that may not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

QUICK = "quick"  # the preset that makes everything small, to try a command in seconds
CAUTION = "preset=quick: do not interpret its numbers"


def interpretable(config: Mapping[str, Any]) -> bool:
    """Whether the numbers of a run or study may be interpreted, by the `preset` of its configuration."""
    return config.get("preset") != QUICK


def marked(text: str, config: Mapping[str, Any]) -> str:
    """A title or label, with the caution where the numbers may not be interpreted."""
    return text if interpretable(config) else f"{text} ({CAUTION})"


def own_name(name: str, config: Mapping[str, Any]) -> str:
    """Name of a study or folder, with an ending of its own where the numbers may not be interpreted.

    Examples:
        >>> own_name("report", {"preset": None}), own_name("report", {"preset": "quick"})
        ('report', 'report_quick')
    """
    return name if interpretable(config) or name.endswith(f"_{QUICK}") else f"{name}_{QUICK}"
