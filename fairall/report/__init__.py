"""Comparison of runs: comparable ones side by side, with paired tests; the names of `__all__` are public."""

from fairall.runtime import imported_lazily

__all__, __getattr__ = imported_lazily(
    __name__,
    {
        "comparison": "STYLES chosen_runs compare draw_over_time made",
        "groups": "UNTESTED WITH_ROW first_reference group_rows with_references",
        "labels": "dataset_label look_of measures method_label",
        "statistics": "LEVEL holm paired_difference paired_p pairwise_p simultaneous_p standings",
    },
)
