"""COMPAS: ProPublica's two-year recidivism file, filtered as in the paper (appendix B.2)."""

from __future__ import annotations

from typing import ClassVar

import pandas as pd

from fairall.data.features import Feature, Kind
from fairall.data.raw.dataset import Pairs, RawTableDataset

FEATURES = [
    Feature.discrete("age_cat", ["Less than 25", "25 - 45", "Greater than 45"], first_code=0),
    Feature("priors_count", Kind.COUNT),
    Feature.discrete("c_charge_degree", ["M", "F"], first_code=0),
]


class Compas(RawTableDataset):
    """5278 defendants: age (3 categories), prior counts, degree of the charge; ỹ = no recidivism.

    Restricted to African-American and Caucasian defendants, or to the chosen groups, whose charge is within
    30 days of the screening and no ordinary traffic offence, and whose score and recidivism are known.
    """

    pairs: ClassVar[Pairs] = {
        "race": {"advantaged": ["Caucasian"], "disadvantaged": ["African-American"]},
        "sex": {"advantaged": ["Male"], "disadvantaged": ["Female"]},
    }
    words = ("age_cat", "c_charge_degree", "race", "sex", "score_text")
    numbers = ("priors_count", "days_b_screening_arrest", "is_recid", "two_year_recid")
    label, good = "two_year_recid", 0

    def recipe(self, raw: pd.DataFrame) -> tuple[pd.DataFrame, list[Feature]]:
        """Defendants with a recent charge and known recidivism."""
        recent = raw["days_b_screening_arrest"].between(-30, 30) & (raw["c_charge_degree"] != "O")
        # "N/A" reads as missing.
        known = (raw["is_recid"] != -1) & raw["score_text"].notna()
        return raw[recent & known], FEATURES
