"""What is asked for: from the words of a command to checked dataclasses."""
