"""Law school: admissions and bar passage of American law students, by the LSAC study (Wightman 1998)."""

from __future__ import annotations

import pandas as pd

from fairall.data.features import Feature, Kind
from fairall.data.raw.dataset import GroupedTableConfig, RawTableDataset, label_of, of_groups
from fairall.data.table import Table
from fairall.tables.groups import CROSS

WORDS = ["race"]
RAW_COLUMNS = [*WORDS, "sex", "LSAT", "UGPA", "first_pf"]
RACES = ["Amerindian", "Asian", "Black", "Hispanic", "Mexican", "Other", "Puertorican", "White"]
GROUPING = {"race": Feature.discrete("race", RACES), "sex": Feature.discrete("sex", ["1", "2"])}


class Law(RawTableDataset):
    """Up to 21,791 students: LSAT, undergraduate grades, and race or sex; ỹ = bar passed at once.

    An attribute that is not sensitive is a feature. The grade of the first year (ZFYA) is not, since it is
    known after admission only.

    References:
        Wightman, L. (1998). LSAC national longitudinal bar passage study. LSAC research report series.
    """

    config: GroupedTableConfig
    config_type = GroupedTableConfig
    columns = RAW_COLUMNS
    words = WORDS

    def recipe(self, raw: pd.DataFrame) -> Table:
        """Students of the groups."""
        kept, s, sensitive = of_groups(raw, self.config)
        features = [Feature("LSAT", Kind.REAL), Feature("UGPA", Kind.REAL)]
        sensitive_ones = self.config.sensitive.split(CROSS)
        features += [feature for name, feature in GROUPING.items() if name not in sensitive_ones]
        schema = self.config.schema(features)
        return Table.fully_labelled(schema, schema.encode(kept), s, label_of(kept["first_pf"]), sensitive)
