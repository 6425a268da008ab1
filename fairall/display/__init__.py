"""Tables, figures, pages and progress, as terminals, notebooks and files show them; `__all__` is public."""

from fairall.runtime import imported_lazily

__all__, __getattr__ = imported_lazily(
    __name__,
    {
        "format": "CAUTION QUICK marked mean_interval mean_std number own_name",
        "page": "PageFigure cautioned write write_page rendered",
        "style": "BLUE COLUMN GREEN GREY ORANGE PALETTE PURPLE STYLE handles_of legend_below",
        "table": """
            Cell Item PageTable Row
            escaped frame_of print_table records_of to_csv to_latex to_markdown
        """,
    },
)
