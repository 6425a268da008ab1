"""COMPAS: ProPublica's two-year recidivism file, filtered as the paper's authors did (appendix B.2)."""

from __future__ import annotations

import pandas as pd

from fairall.data.features import Feature, Kind, Schema
from fairall.data.raw_table import RawTableDataset
from fairall.data.table import Table

AGE = {"Less than 25": 0.0, "25 - 45": 1.0, "Greater than 45": 2.0}
CHARGE_DEGREE = {"M": 0.0, "F": 1.0}
RACE = {"Caucasian": 1, "African-American": -1}
COLUMNS = [
    "age_cat", "priors_count", "c_charge_degree", "race",
    "days_b_screening_arrest", "is_recid", "score_text", "two_year_recid",
]  # fmt: skip


class Compas(RawTableDataset):
    """5278 defendants: age (3 categories), prior counts, degree of the charge; ỹ = no recidivism.

    Kept are the African-American and Caucasian among those whose charge is near the screening, not an
    ordinary traffic offence, and whose score and recidivism are known.
    """

    columns = COLUMNS

    def recipe(self, raw: pd.DataFrame) -> Table:
        """See `RawTableDataset.recipe`."""
        kept = raw[
            raw["days_b_screening_arrest"].between(-30, 30)
            & (raw["is_recid"] != -1)
            & (raw["c_charge_degree"] != "O")
            & raw["score_text"].notna()  # "N/A" reads as missing
            & raw["race"].isin(RACE)
        ]
        features = [
            Feature("age_cat", Kind.CATEGORICAL, tuple(AGE.values())),
            Feature("priors_count", Kind.COUNT),
            Feature("c_charge_degree", Kind.BINARY, tuple(CHARGE_DEGREE.values())),
        ]
        x = pd.DataFrame(
            {
                "age_cat": kept["age_cat"].map(AGE),
                "priors_count": kept["priors_count"].astype(float),
                "c_charge_degree": kept["c_charge_degree"].map(CHARGE_DEGREE),
            }
        ).reset_index(drop=True)
        return Table.fully_labelled(
            Schema(features, self.config.encoding),
            x,
            s=kept["race"].map(RACE).to_numpy(),
            label=1 - kept["two_year_recid"].to_numpy(dtype=int),
        )
