"""Whether the numbers of a configuration may be interpreted, and the mark of those that may not."""

from __future__ import annotations

QUICK = "quick"  # the preset that makes everything small, to try a command in seconds
CAUTION = "preset=quick: do not interpret its numbers"


def interpretable(preset: str | None) -> bool:
    """Whether the numbers of a run or study of this preset may be interpreted."""
    return preset != QUICK


def marked(text: str, preset: str | None) -> str:
    """A title or label, with the caution where the numbers may not be interpreted."""
    return text if interpretable(preset) else f"{text} ({CAUTION})"


def own_name(name: str, preset: str | None) -> str:
    """Name of a study or folder, with an ending of its own where the numbers may not be interpreted.

    Examples:
        >>> own_name("report", None), own_name("report", "quick")
        ('report', 'report_quick')
    """
    return name if interpretable(preset) or name.endswith(f"_{QUICK}") else f"{name}_{QUICK}"
