"""Load data sets from Python."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict

from fairall.config.choices import flattened
from fairall.config.compose import checked_node, compose_config, require_trusted
from fairall.config.schema import Config, ScalerRows
from fairall.data.dataset import Dataset, dataset
from fairall.data.generated import GeneratedConfig
from fairall.data.prepared import PreparedData
from fairall.errors import FairAllError

MOST_DRAWN = 200_000_000  # numbers of the people of a stored configuration: rows times values of its node


def load_dataset(name: str, *overrides: str) -> Dataset:
    """Load a data set by name, for instance `load_dataset("compas").table()`.

    Args:
        name: credit, synthetic, fico, compas, meps, adult, law, csv, or a data set of your own.
        overrides: further words as on the command line, for instance `dataset.path=loans.csv`.

    Raises:
        FairAllError: if there is no such data set or key, or a value is missing or invalid.
    """
    return dataset(checked_node(compose_config(f"dataset={name}", *overrides), "dataset"))


def people_of_run(
    config: Config, n_seeds: int, splits: int, scaler: ScalerRows, modules: Collection[str] = ()
) -> PreparedData:
    """The people of a stored run, read or drawn again; its configuration may be a stranger's.

    Args:
        config: of the run, as it is stored.
        n_seeds: E.
        splits: K.
        scaler: see `Dataset.replicates`.
        modules: see `require_trusted`.

    Raises:
        FairAllError: where the class of the data set may not be imported, the data cannot be read, nothing
            is downloaded, there would be more than `MOST_DRAWN` numbers to draw, or the configuration is not
            possible.
    """
    require_trusted(config.dataset, "dataset", modules)
    stored, download = config.dataset, config.dataset.get("download")
    if isinstance(download, dict):  # nothing is fetched from an address that a stranger may have written
        stored = stored | {"download": download | {"url": None}}
    node = checked_node({"dataset": stored}, "dataset")
    if isinstance(node, GeneratedConfig):
        rows = sum(vars(node.rows).values())
        if rows * splits * len(flattened(asdict(node))) > MOST_DRAWN:
            raise FairAllError(f"dataset.rows has {rows} people, more than are drawn for a saved policy")
    return dataset(node).replicates(n_seeds, splits, scaler)
