"""Adult: income of people in the United States' census of 1994 (UCI data set 2, CC BY 4.0)."""

from __future__ import annotations

import hashlib
import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from omegaconf import MISSING

from fairall.data.features import Feature, Kind
from fairall.data.raw.dataset import GroupedTableConfig, RawTableDataset, of_groups
from fairall.data.table import Table
from fairall.errors import FairAllError
from fairall.tables.groups import CROSS

RAW_COLUMNS = """
    age workclass fnlwgt education education_num marital_status occupation relationship race sex
    capital_gain capital_loss hours_per_week native_country income
""".split()
REAL = ["age", "education_num", "capital_gain", "capital_loss", "hours_per_week"]
# Without `education`, which names the levels of `education_num`.
CATEGORICAL = "workclass marital_status occupation relationship race sex native_country".split()
WORDS = [*CATEGORICAL, "income"]
INCOME = {"<=50K": 0, ">50K": 1}


@dataclass
class AdultConfig(GroupedTableConfig):
    """Keys of the data set; `members`: sha256 of the file adult.KEY of the archive."""

    members: dict[str, str | None] = MISSING


class Adult(RawTableDataset):
    """Up to 45,222 people without missing values: 5 real and 6 categorical features; ỹ = over $50,000.

    The training file is followed by the test file; both are split anew. The sensitive attribute is no
    feature. Categories are coded 1..K in the order of their names.
    """

    config: AdultConfig
    config_type = AdultConfig
    columns = REAL + WORDS
    words = WORDS

    def read(self, path: Path) -> pd.DataFrame:
        """The rows of both files, of the archive or of the folder that `path` is in.

        Raises:
            FairAllError: if a file is missing, or not the published one.
        """
        parts = []
        for member, expected in self.config.members.items():
            name = f"adult.{member}"
            content = _member(path, name)
            if expected is not None and hashlib.sha256(content).hexdigest() != expected.lower():
                raise FairAllError(
                    f"{path}: {name} is not the published file: truncated or edited; delete it to fetch it "
                    f"again, or accept it with dataset.members.{member}=null"
                )
            lines = io.BytesIO(content)
            # The test file begins with a comment.
            parts.append(pd.read_csv(lines, names=RAW_COLUMNS, skipinitialspace=True, comment="|"))
        return pd.concat(parts, ignore_index=True)

    def recipe(self, raw: pd.DataFrame) -> Table:
        """People of the groups without missing values.

        Raises:
            FairAllError: where the income has other than the two published words.
        """
        complete = raw[(raw[self.words] != "?").all(axis=1)]
        features = [Feature(name, Kind.REAL) for name in REAL]
        features += [
            Feature.discrete(name, sorted(complete[name].unique()))
            for name in CATEGORICAL
            if name not in self.config.sensitive.split(CROSS)
        ]
        kept, s, sensitive = of_groups(complete, self.config)
        schema = self.config.schema(features)
        # Labels of the test file end in a full stop.
        income = kept["income"].str.rstrip(".").map(INCOME)
        if income.isna().any():
            raise FairAllError(f"column 'income' must hold {' or '.join(INCOME)}")
        return Table.fully_labelled(schema, schema.encode(kept), s, income.to_numpy(dtype=int), sensitive)


def _member(path: Path, name: str) -> bytes:
    """Content of one of the files."""
    try:
        if path.suffix.lower() != ".zip":
            return path.with_name(name).read_bytes()
        with zipfile.ZipFile(path) as archive:
            return archive.read(name)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise FairAllError(f"{path}: {name} cannot be read from it ({error}): get the file again") from error
