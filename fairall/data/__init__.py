"""Data sets: tables with features and splits, and people as tensors."""

from typing import TYPE_CHECKING

from fairall.runtime.lazy import imported_lazily

if TYPE_CHECKING:
    from fairall.data.drift import Stability, drift_by_column

__all__ = ["Stability", "drift_by_column"]

_, __getattr__ = imported_lazily(__name__, {"drift": "Stability drift_by_column"})
