"""Hydra's source for choices outside conf/: sweeps, and selected hyperparameters."""

from __future__ import annotations

from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.object_type import ObjectType
from hydra.core.plugins import Plugins
from hydra.plugins.config_source import ConfigResult, ConfigSource
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import OmegaConf

from fairall.config.choices import hyperparameters, hyperparameters_of, hyperparameters_without, sweeps_folder

WITHOUT = "without_"  # how the choice begins that the other data sets make


class FairAllSource(ConfigSource):
    """`sweeps/NAME` is sweeps/NAME.yaml, `hparams/MODEL/DATASET` a key of conf/hparams/MODEL.yaml.

    `hparams/MODEL/without_DATASET` is what the file's other data sets choose.

    Both may set any value. A file is read when it is chosen. With a search path to the parent of sweeps/,
    Hydra would offer every other file there as a choice.
    """

    @staticmethod
    def scheme() -> str:
        """Of the addresses that Hydra resolves with this class."""
        return "fairall"

    def available(self) -> bool:
        """True: the files are part of the package."""
        return True

    def is_group(self, config_path: str) -> bool:
        """Whether there are choices below `sweeps` or `hparams/MODEL`."""
        return bool(self.list(config_path, None))

    def is_config(self, config_path: str) -> bool:
        """Whether there is such a choice."""
        group, _, name = config_path.removesuffix(".yaml").rpartition("/")
        return name in self.list(group, None)

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """Names of the choices of a group."""
        match config_path.strip("/").split("/"):
            case ["sweeps"]:
                return sorted(path.stem for path in sweeps_folder().glob("*.yaml"))
            case ["hparams", model]:
                names = hyperparameters_of(model)
                return sorted([*names, *(WITHOUT + name for name in names)])
        return []

    def load_config(self, config_path: str) -> ConfigResult:
        """The values of a choice."""
        group, _, name = config_path.removesuffix(".yaml").rpartition("/")
        if group == "sweeps":
            values = OmegaConf.load(sweeps_folder() / f"{name}.yaml")
        else:
            chosen = hyperparameters_without if name.startswith(WITHOUT) else hyperparameters
            values = OmegaConf.create()
            for key, value in chosen(group.removeprefix("hparams/"), name.removeprefix(WITHOUT)).items():
                OmegaConf.update(values, key, value)
        return ConfigResult(self.provider, self.full_path(), values, header={"package": "_global_"})


class FairAllSearchPath(SearchPathPlugin):
    """Makes Hydra look in `FairAllSource` after conf/ and before a folder of the user's (`-cd`)."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Append the source to Hydra's search path."""
        search_path.append("fairall", "fairall://")


def register_sources() -> None:
    """Register both with Hydra, without a `hydra_plugins` package, which every Hydra program loads."""
    Plugins.instance().register(FairAllSource)
    Plugins.instance().register(FairAllSearchPath)
