"""Results of runs as numbers and figures; the names of `__all__` are public."""

from fairall.runtime import imported_lazily

__all__, __getattr__ = imported_lazily(
    __name__,
    {
        "figures": "LEVELS band interval level principal",
        "paper": "REFERENCES paper_metrics",
    },
)
