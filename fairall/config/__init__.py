"""Configuration: from the words of a command to checked dataclasses."""
