"""MEPS: panel 20 of the 2015 Medical Expenditure Panel Survey, by AIF360's preprocessing (appendix B.2)."""

from __future__ import annotations

from typing import ClassVar

import pandas as pd

from fairall.data.aif360 import quietly
from fairall.data.features import Feature, Kind
from fairall.data.raw.dataset import Pairs, RawTableDataset
from fairall.errors import needing

REAL = ["AGE", "PCS42", "MCS42", "K6SUM42"]
# Raw codes of categories, ascending; −1: not applicable.
CODES = {
    "REGION": range(1, 5),
    "MARRY": range(1, 11),
    "FTSTU": [-1, *range(1, 4)],
    "ACTDTY": range(1, 5),
    "HONRDC": range(1, 5),
    "RTHLTH": [-1, *range(1, 6)],
    "MNHLTH": [-1, *range(1, 6)],
    "ARTHTYPE": [-1, *range(1, 4)],
    "ASTHDX": range(1, 3),
    "PHQ242": range(-1, 7),
    "EMPST": [-1, *range(1, 5)],
    "POVCAT": range(1, 6),
    "INSCOV": range(1, 4),
}
OTHER_CODES = [-1, 1, 2]
CATEGORICAL = """
    REGION MARRY FTSTU ACTDTY HONRDC RTHLTH MNHLTH HIBPDX CHDDX ANGIDX MIDX OHRTDX STRKDX EMPHDX CHBRON
    CHOLDX CANCERDX DIABDX JTPAIN ARTHDX ARTHTYPE ASTHDX ADHDADDX PREGNT WLKLIM ACTLIM SOCLIM COGLIM
    DFHEAR42 DFSEE42 ADSMOK42 PHQ242 EMPST POVCAT INSCOV
""".split()
# Columns that the preprocessing reads, as named in the agency's file.
RAW_COLUMNS = [
    *"PANEL SEX RACEV2X HISPANX EDUCYR HIDEG AGE53X".split(),
    *REAL[1:],
    *"""
    REGION53 MARRY53X FTSTU53X ACTDTY53 HONRDC53 RTHLTH53 MNHLTH53 HIBPDX CHDDX ANGIDX MIDX OHRTDX STRKDX
    EMPHDX CHBRON53 CHOLDX CANCERDX DIABDX JTPAIN53 ARTHDX ARTHTYPE ASTHDX ADHDADDX PREGNT53 WLKLIM53
    ACTLIM53 SOCLIM53 COGLIM53 DFHEAR42 DFSEE42 ADSMOK42 PHQ242 EMPST53 POVCAT15 INSCOV15 OBTOTV15
    OPTOTV15 ERTOT15 HHTOTD15 IPNGTD15
    """.split(),
]
RACES = {"advantaged": ["White"], "disadvantaged": ["Non-White"]}


class Meps(RawTableDataset):
    """17570 people: 4 real, 1 binary and 34 categorical features; ỹ = ten or more visits.

    Categories are coded 1..K in ascending order of the raw codes.
    """

    # Men are 1, women 2.
    pairs: ClassVar[Pairs] = {
        "RACE": RACES,
        "race": RACES,
        "sex": {"advantaged": ["1"], "disadvantaged": ["2"]},
    }
    words = ()
    numbers = RAW_COLUMNS
    label = "UTILIZATION"

    def recipe(self, raw: pd.DataFrame) -> tuple[pd.DataFrame, list[Feature]]:
        """People of panel 20 after AIF360's preprocessing; raises FairAllError where it is not installed."""
        with quietly(), needing("aif360", "dataset=meps"):
            from aif360.datasets.meps_dataset_panel20_fy2015 import default_preprocessing

            people = default_preprocessing(raw.copy())
        features = [Feature(name, Kind.REAL) for name in REAL]
        features += [
            Feature.discrete(name, [*map(str, CODES.get(name, OTHER_CODES))]) for name in CATEGORICAL
        ]
        return people.assign(race=people["RACE"], sex=people["SEX"].map("{:g}".format)), features
