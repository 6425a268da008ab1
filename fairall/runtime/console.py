"""Rich's console for terminals of any encoding."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from fairall.runtime.terminal import shown


class AnyConsole(Console):
    """A console that replaces characters its encoding lacks before it computes column widths.

    In a notebook it prints plain text, of which long lines wrap; rich's own HTML cuts them off.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(force_jupyter=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """See `Console.render_str`."""
        return super().render_str(shown(text, self.encoding), **options)
