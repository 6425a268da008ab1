"""Report: tables and figures of the paper beside ours, and comparisons of runs."""
