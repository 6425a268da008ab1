"""Decisions on new people by a saved policy."""
