"""German Credit: the Statlog table, included in the package (german.LICENSE.md)."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pandas as pd

from fairall.data.dataset import TableDataset
from fairall.data.features import Feature, Kind, Schema
from fairall.data.table import Table
from fairall.tables.groups import Sensitive

RAW_COLUMNS = """
    status month credit_history purpose credit_amount savings employment investment_as_income_percentage
    personal_status other_debtors residence_since property age installment_plans housing number_of_credits
    skill_level people_liable_for telephone foreign_worker credit
""".split()
REAL = ["month", "credit_amount", "investment_as_income_percentage", "residence_since", "age"]
COUNT = ["number_of_credits", "people_liable_for"]
CATEGORICAL = """
    status credit_history purpose savings employment other_debtors property installment_plans housing
    skill_level telephone foreign_worker
""".split()
MALE = ["A91", "A93", "A94"]  # by the published table of codes, which is wrong
SEX = Sensitive.of("personal_status", [MALE, ["A92"]])


def raw_applicants() -> pd.DataFrame:
    """The published file, 1000 rows of A-codes and numbers."""
    with files("fairall.data").joinpath("german.data").open() as file:
        return pd.read_csv(file, sep=" ", header=None, names=RAW_COLUMNS)


class Credit(TableDataset):
    """1000 applicants: 5 real, 2 count, 10 categorical and 2 binary features; ỹ = good credit risk.

    Categories are coded 1..K in the string order of the raw A-codes. The advantaged group is that of the
    codes which the published table calls male. By the corrected one (Grömping 2019) A94 are single women, and
    A92, the other group, holds single men too (docs/data.md).

    References:
        Grömping: South German credit data: correcting a widely used data set, Reports in Mathematics, Physics
        and Chemistry 4/2019, Beuth University of Applied Sciences Berlin.
    """

    @classmethod
    def location(cls, config: Any) -> str:
        """The data is included in the package."""
        return "in this package"

    def load(self) -> Table:
        """All applicants, in the order of the file."""
        raw = raw_applicants()
        features = [Feature(name, Kind.REAL) for name in REAL]
        features += [Feature(name, Kind.COUNT) for name in COUNT]
        features += [Feature.discrete(name, sorted(raw[name].unique())) for name in CATEGORICAL]
        schema = Schema(features)
        s = raw["personal_status"].map(SEX.meaning).to_numpy(dtype=int)
        label = (raw["credit"] == 1).to_numpy(dtype=int)
        return Table.fully_labelled(schema, schema.encode(raw), s, label, SEX)
