"""A policy that goes on learning from its own decisions: ledger, versions, guard."""

from fairall.runtime import imported_lazily

__all__, __getattr__ = imported_lazily(__name__, {"guard": "Log compared"})
