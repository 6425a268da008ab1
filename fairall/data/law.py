"""Law school: admissions and bar passage of American law students, by the LSAC study (Wightman 1998)."""

from __future__ import annotations

import pandas as pd

from fairall.data.features import Feature, Kind
from fairall.data.raw.dataset import RawTableDataset

RACES = ["Amerindian", "Asian", "Black", "Hispanic", "Mexican", "Other", "Puertorican", "White"]
FEATURES = [
    Feature("LSAT", Kind.REAL),
    Feature("UGPA", Kind.REAL),
    Feature.discrete("race", RACES),
    Feature.discrete("sex", ["1", "2"]),
]


class Law(RawTableDataset):
    """Up to 21,791 students: LSAT, undergraduate grades, and race or sex; ỹ = bar passed at once.

    The grade of the first year (ZFYA) is no feature, since it is known after admission only.

    References:
        Wightman, L. (1998). LSAC national longitudinal bar passage study. LSAC research report series.
    """

    words = ("race",)
    numbers = ("sex", "LSAT", "UGPA", "first_pf")
    label = "first_pf"

    def recipe(self, raw: pd.DataFrame) -> tuple[pd.DataFrame, list[Feature]]:
        """All students."""
        return raw, FEATURES
