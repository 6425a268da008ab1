"""Numbers of results as text, with the mark of those that may not be interpreted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairall.metrics import Spread  # imports torch, which a list of runs does not need

QUICK = "quick"  # the preset that makes everything small, to try a command in seconds
CAUTION = "preset=quick: do not interpret its numbers"


def number(value: float | None, scale: float = 100, digits: int = 1) -> str:
    """A number ×`scale`, with a typographic minus; empty for None and NaN.

    Examples:
        >>> number(-0.203), number(-0.0001), number(None)
        ('−20.3', '0.0', '')
    """
    if value is None or value != value:
        return ""
    shown = f"{scale * value:.{digits}f}"
    return shown.removeprefix("-") if float(shown) == 0 else shown.replace("-", "−")


def mean_std(mean: float | None, std: float | None = None, **look: Any) -> str:
    """A mean and its standard deviation, if there is one; `look` is `scale` and `digits` of `number`.

    Examples:
        >>> mean_std(0.203, 0.005), mean_std(0.203)
        ('20.3 ± 0.5', '20.3')
    """
    return " ± ".join(filter(None, (number(mean, **look), number(std, **look))))


def interval(low: float | None, high: float | None, **look: Any) -> str:
    """The two ends of an interval; empty where there is none; `look` is `scale` and `digits` of `number`.

    Examples:
        >>> interval(0.19, 0.21)
        '[19.0, 21.0]'
    """
    ends = number(low, **look), number(high, **look)
    return f"[{', '.join(ends)}]" if all(ends) else ""


def mean_interval(spread: Spread | None, **look: Any) -> str:
    """A mean and its 95 % interval, if there is one; empty for None; `look` as of `number`."""
    if spread is None:
        return ""
    return f"{number(spread.mean, **look)} {interval(*(spread.interval or (None, None)), **look)}".rstrip()


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
