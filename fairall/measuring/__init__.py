"""Measures of a run; their code is part of its identity, that of `fairall.results` is not."""

from fairall.runtime import imported_lazily

__all__, __getattr__ = imported_lazily(
    __name__,
    {
        "diagnostics": "APART OPPOSED READABLE",
        "latent_quality": "label_directions latent",
        "sequences": "ALARM LARGEST_GAP OBSERVATIONS gap_wealth largest_gap",
    },
)
