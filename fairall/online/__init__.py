"""The online decision process: loop, history, evaluation, initial policies."""
