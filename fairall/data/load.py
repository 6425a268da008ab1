"""Load data sets from Python."""

from __future__ import annotations

from fairall.config.compose import compose_config
from fairall.config.messages import in_one_line
from fairall.config.validation import checked_dataset
from fairall.data.dataset import Dataset, dataset


def load_dataset(name: str, *overrides: str) -> Dataset:
    """Load a data set by name, for instance `load_dataset("compas").table()`.

    Args:
        name: credit, synthetic, fico, compas, meps, adult, law, csv, or a data set of your own.
        overrides: further words as on the command line, for instance `dataset.path=loans.csv`.

    Raises:
        FairAllError: if there is no such data set or key, or a value is missing or invalid.
    """
    words = [f"dataset={name}", *overrides]
    with in_one_line(words):
        return dataset(checked_dataset(compose_config(*words)))
