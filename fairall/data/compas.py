"""COMPAS: ProPublica's two-year recidivism file, filtered as in the paper (appendix B.2)."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from fairall.config.checks import groups
from fairall.data.features import Feature, Kind, Schema
from fairall.data.raw.dataset import RaceConfig, RawTableDataset, label_of, of_lists
from fairall.data.table import Table
from fairall.tables.groups import crossed, join

FEATURES = [
    Feature.discrete("age_cat", ["Less than 25", "25 - 45", "Greater than 45"], first_code=0),
    Feature("priors_count", Kind.COUNT),
    Feature.discrete("c_charge_degree", ["M", "F"], first_code=0),
]
TWO_RACES = ["Caucasian", "African-American"]  # S = +1 and S = −1
FOUR_GROUPS = [f"{race}+{sex}" for race in TWO_RACES for sex in ("Male", "Female")]
WORDS = ["age_cat", "c_charge_degree", "race", "score_text"]
NUMBERS = ["priors_count", "days_b_screening_arrest", "is_recid", "two_year_recid"]


@dataclass
class CompasConfig(RaceConfig):
    """Keys of the data set; `groups`: races, or races and sexes, in place of `TWO_RACES`."""

    groups: list[str] | None = groups()

    def __post_init__(self) -> None:
        """Expect no number of rows of other groups."""
        if self.groups is not None:
            self.rows = None


class Compas(RawTableDataset):
    """5278 defendants: age (3 categories), prior counts, degree of the charge; ỹ = no recidivism.

    Restricted to African-American and Caucasian defendants, or to the chosen groups, whose charge is within
    30 days of the screening and no ordinary traffic offence, and whose score and recidivism are known.
    """

    config: CompasConfig
    config_type = CompasConfig
    columns = WORDS + NUMBERS
    words = WORDS

    def recipe(self, raw: pd.DataFrame) -> Table:
        """Defendants of the groups, with a recent charge and known recidivism."""
        kept = raw[
            raw["days_b_screening_arrest"].between(-30, 30)
            & (raw["is_recid"] != -1)
            & (raw["c_charge_degree"] != "O")
            & raw["score_text"].notna()  # "N/A" reads as missing
        ]
        column = join(kept, self.config.sensitive or "race")
        words = self.config.groups or (FOUR_GROUPS if self.config.sensitive else TWO_RACES)
        of_groups, s = of_lists(column, [("dataset.groups", [word]) for word in words])
        kept = kept[of_groups]
        schema = Schema(FEATURES, n_groups=len(words), crossed=crossed(str(column.name), words))
        label = 1 - label_of(kept["two_year_recid"])
        return Table.fully_labelled(schema, schema.encode(kept), s, label, column[of_groups])
