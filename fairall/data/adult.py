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
from fairall.data.raw.dataset import RawTableConfig, RawTableDataset
from fairall.data.raw.fetch import require_published
from fairall.errors import FairAllError

RAW_COLUMNS = """
    age workclass fnlwgt education education_num marital_status occupation relationship race sex
    capital_gain capital_loss hours_per_week native_country income
""".split()
REAL = ["age", "education_num", "capital_gain", "capital_loss", "hours_per_week"]
# Without `education`, which names the levels of `education_num`.
CATEGORICAL = "workclass marital_status occupation relationship race sex native_country".split()
INCOME = {"<=50K": 0, ">50K": 1}


@dataclass
class AdultConfig(RawTableConfig):
    """Keys of the data set; `members`: sha256 of the file adult.KEY of the archive."""

    members: dict[str, str | None] = MISSING


class Adult(RawTableDataset):
    """Up to 45,222 people without missing values: 5 real and 6 categorical features; ỹ = over $50,000.

    The training file is followed by the test file; both are split anew. The sensitive attribute is no
    feature. Categories are coded 1..K in the order of their names.
    """

    config: AdultConfig
    config_type = AdultConfig
    words = (*CATEGORICAL, "income")
    numbers = (*REAL,)
    label = "income"

    def read(self, path: Path) -> pd.DataFrame:
        """The rows of both files, of the archive or of the folder that `path` is in.

        Raises:
            FairAllError: if a file is missing, or not the published one.
        """
        parts = []
        for member, expected in self.config.members.items():
            name = f"adult.{member}"
            try:
                folder = zipfile.Path(path) if path.suffix.lower() == ".zip" else path.parent
                content = (folder / name).read_bytes()
            except (OSError, KeyError, zipfile.BadZipFile) as error:
                raise FairAllError(f"{path}: {name} cannot be read ({error}): get the file again") from error
            if expected is not None:
                checksum = hashlib.sha256(content).hexdigest()
                require_published(f"{path}: {name}", checksum, expected, f"dataset.members.{member}")
            # The test file begins with a comment.
            lines = io.BytesIO(content)
            parts.append(pd.read_csv(lines, names=RAW_COLUMNS, skipinitialspace=True, comment="|"))
        return pd.concat(parts, ignore_index=True)

    def recipe(self, raw: pd.DataFrame) -> tuple[pd.DataFrame, list[Feature]]:
        """People without missing values."""
        people = raw[(raw[[*self.words]] != "?").all(axis=1)]
        features = [Feature(name, Kind.REAL) for name in REAL]
        features += [Feature.discrete(name, sorted(people[name].unique())) for name in CATEGORICAL]
        # Labels of the test file end in a full stop.
        return people.assign(income=people["income"].str.rstrip(".").map(INCOME)), features
