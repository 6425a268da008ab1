"""Results of a run: summary, warnings, figures, tables, and the files written."""
