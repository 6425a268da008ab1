"""Results of runs as numbers, tables, figures and pages; the names of `__all__` are public."""

from fairall.runtime.lazy import imported_lazily

__all__, __getattr__ = imported_lazily(
    __name__,
    {
        "figures": """
            BLUE COLUMN GREEN GREY LEVELS ORANGE PALETTE PURPLE STYLE
            band handles_of has_level interval legend_below level principal
        """,
        "format": "mean_interval mean_std number signed",
        "interpretable": "CAUTION QUICK marked own_name",
        "page": "PageFigure cautioned save write write_page",
        "paper": "HALF_DIGIT acceptance_rates paper_metrics paper_seeds synthetic_readings",
        "result": "REFERENCES",
        "table": """
            Cell Item Lacking Row Table
            cell_text escaped frame_of print_table records_of to_csv to_latex to_markdown
        """,
        "time_left": "in_words",
    },
)
