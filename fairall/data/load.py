"""Load data sets from Python."""

from __future__ import annotations

from fairall.config.compose import compose_config
from fairall.config.validation import checked_dataset
from fairall.data.dataset import Dataset, dataset


def load_dataset(name: str, *overrides: str) -> Dataset:
    """Load a data set by name, for instance `load_dataset("compas").table()`.

    Args:
        name: credit, synthetic, fico, compas, meps, adult, law, csv, or a data set of your own.
        overrides: further words as on the command line, for instance `dataset.path=loans.csv`.

    Raises:
        FairAllError: if a key is unknown or a value invalid.
    """
    return dataset(checked_dataset(compose_config(f"dataset={name}", *overrides)))
