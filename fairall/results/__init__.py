"""Results of runs as numbers, tables, figures and pages; the names of `__all__` are public."""

from fairall.runtime.lazy import imported_lazily

__all__, __getattr__ = imported_lazily(
    __name__,
    {
        "figures": "LEVELS band has_level interval level principal",
        "format": "CAUTION QUICK marked mean_interval mean_std number own_name",
        "page": "PageFigure cautioned rendered write write_page",
        "paper": "paper_metrics",
        "result": "REFERENCES",
        "style": "BLUE COLUMN GREEN GREY ORANGE PALETTE PURPLE STYLE handles_of legend_below",
        "table": """
            Cell Item Lacking PageTable Row
            cell_text escaped frame_of print_table records_of to_csv to_latex to_markdown
        """,
    },
)
