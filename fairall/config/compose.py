"""Compose configurations from Python, as Hydra has them and as checked dataclasses."""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from hydra import compose, initialize_config_dir
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.object_type import ObjectType
from hydra.core.plugins import Plugins
from hydra.plugins.config_source import ConfigResult, ConfigSource
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from fairall.config.checks import check_values
from fairall.config.choices import (
    configuration_root,
    flattened,
    hyperparameters,
    hyperparameters_without,
    targets,
)
from fairall.config.schema import GROUPS, Config, entry
from fairall.errors import FairAllError
from fairall.runtime.process import import_own

PLACES = ("outputs_dir=", "tracking.", "tracking=")  # overrides that do not change results


class HyperparameterSource(ConfigSource):
    """Makes `hparams/MODEL/DATASET` for Hydra of a key of conf/hparams/MODEL.yaml.

    `hparams/MODEL/without_DATASET` is what the file's other data sets choose. A choice may set any key of a
    configuration.
    """

    @staticmethod
    def scheme() -> str:
        """Of the addresses that Hydra resolves with this class."""
        return "fairall"

    def available(self) -> bool:
        """True: the files are part of the package."""
        return True

    def is_group(self, config_path: str) -> bool:
        """False: the groups are those of conf/."""
        return False

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """No names: those of conf/hparams/ are listed by conf/ itself."""
        return []

    def is_config(self, config_path: str) -> bool:
        """Whether there is such a choice."""
        return bool(_chosen(config_path))

    def load_config(self, config_path: str) -> ConfigResult:
        """The values of a choice."""
        values = OmegaConf.create()
        for key, value in _chosen(config_path).items():
            OmegaConf.update(values, key, value)
        return ConfigResult(self.provider, self.full_path(), values, header={"package": "_global_"})


def _chosen(config_path: str) -> dict[str, Any]:
    """Values of `hparams/MODEL/DATASET` or `hparams/MODEL/without_DATASET`; empty for any other path."""
    choice = re.fullmatch(r"hparams/([^/]+)/(without_)?([^/]+?)(?:\.yaml)?", config_path)
    if choice is None:
        return {}
    model, without, dataset = choice.groups()
    return hyperparameters_without(model, dataset) if without else hyperparameters(model, dataset)


class FairAllSearchPath(SearchPathPlugin):
    """Makes Hydra look for hyperparameters and sweeps/ after conf/ and before a folder given by `-cd`."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Append both to Hydra's search path."""
        search_path.append("fairall", "fairall://")
        search_path.append("fairall", f"file://{configuration_root()}")


@functools.cache
def register() -> None:
    """Make the schema, sweeps/ and conf/hparams/ known to Hydra, once in a process.

    The nodes of `GROUPS` accept any key here, so that entries can be added to their mappings on the command
    line; `typed` refuses the unknown ones after composition.
    """
    schema = OmegaConf.structured(Config)
    for group in GROUPS:
        schema[group] = {}
        OmegaConf.set_struct(schema[group], False)
    ConfigStore.instance().store(name="schema", node=schema)
    # Registered here, since every Hydra program loads a `hydra_plugins` package.
    Plugins.instance().register(HyperparameterSource)
    Plugins.instance().register(FairAllSearchPath)


def searched_folder(folder: Path) -> str:
    """The override that adds `folder` to the search path after conf/, as `-cd FOLDER` does."""
    from fairall.config.words import override

    return override("hydra.searchpath", [f"file://{folder.absolute()}"])


def compose_config(*overrides: str, **values: Any) -> DictConfig:
    """Compose the configuration of `python -m fairall *overrides`, unresolved, untyped and unchecked.

    Args:
        overrides: words as on the command line, one by one.
        values: the same as Python values by key, after them: `model="greedy", seeds=3`, with a mapping for
            the keys below: `schedule={"time_steps": 8}`.

    Raises:
        FairAllError: as `compose_all` and `words_of`.

    Examples:
        >>> compose_config("model=greedy", seeds=3).seeds
        3
    """
    from fairall.config.words import words_of

    return compose_all([[*map(str, overrides), *words_of(values)]])[0]


@contextmanager
def _in_one_line() -> Iterator[None]:
    """Raise the errors of Hydra, OmegaConf and the system as FairAllError with the line of `message`."""
    try:
        yield
    except Exception as error:
        from fairall.config.messages import has_line, message

        if isinstance(error, FairAllError) or not has_line(error):
            raise
        raise FairAllError(message(error)) from error


def compose_all(commands: Iterable[Sequence[str]]) -> list[DictConfig]:
    """Compose the configurations of many command lines, in half the time that single calls take.

    Raises:
        FairAllError: where there is no such key, choice or value, or a file is not valid YAML.
    """
    register()
    GlobalHydra.instance().clear()
    composed = []
    with initialize_config_dir(str(configuration_root() / "conf"), version_base="1.3"):
        for overrides in commands:
            with _in_one_line():
                composed.append(compose("config", overrides=list(overrides)))
    return composed


def places(overrides: Iterable[str]) -> Config:
    """A configuration with values of `outputs_dir`, `preset` and `tracking` alone, by the words about them.

    Raises:
        FairAllError: as `compose_all`.
    """
    composed = compose_config(*(word for word in overrides if word.startswith((*PLACES, "preset="))))
    tracking: Any = OmegaConf.to_object(composed.tracking)
    return Config(outputs_dir=composed.outputs_dir, preset=composed.preset, tracking=tracking)


def typed_config(*overrides: str) -> Config:
    """Compose a configuration as dataclasses, ranges unchecked; raises as `compose_config` and `typed`."""
    return typed(compose_config(*overrides))


def stored_config(composed: DictConfig) -> Config:
    """A composed configuration as results have theirs (`Config.stored`), with types checked as in `typed`."""
    return typed(composed).stored()


def checked(composed: DictConfig) -> Config:
    """The composed configuration with checked types and values.

    Raises:
        FairAllError: as `typed`, and where a value is not possible.
    """
    config = typed(composed)
    check_values(config)
    return config


def checked_node(composed: Mapping[str, Any], group: str) -> Any:
    """A node of a configuration, composed or stored, of which others may be missing; raises as `checked`."""
    with _in_one_line():  # initial policies refer to values of the data set
        node = OmegaConf.to_object(structured(composed, group, *({"dataset"} & {*composed}))[group])
    check_values(node, group)
    return node


def typed(composed: DictConfig) -> Config:
    """The configuration as dataclasses, each node of a class of the type that the class declares.

    Raises:
        FairAllError: naming the key, where a class is not there or not of the group, a key is unknown, or a
            value is missing, refers to another that is not there or is of another type.
    """
    parts = (f"world.{name}" for name in composed.get("world") or ())
    with _in_one_line():
        whole = structured(composed, "model", "dataset", "initial_policy", *parts)
        return cast(Config, OmegaConf.to_object(whole))


def structured(composed: Mapping[str, Any], *places: str) -> DictConfig:
    """The configuration with the types of `Config`, and of their classes in the nodes at `places`.

    Raises:
        FairAllError: as `typed`.
    """
    values: Any = OmegaConf.to_container(composed) if isinstance(composed, DictConfig) else composed
    whole = _declared(Config).copy()
    whole.world = {}
    for place in places:
        named = target_class(functools.reduce(entry, place.split("."), values), place)
        OmegaConf.update(whole, place, _declared(named.config_type), merge=False, force_add=True)
    try:
        return cast(DictConfig, OmegaConf.unsafe_merge(whole, values))
    except OmegaConfBaseException as error:
        from fairall.config.messages import of_key

        raise FairAllError(of_key(error, flattened(OmegaConf.to_container(whole)))) from error


# The structured node of a class, which takes OmegaConf several times as long to make as to copy.
_declared = functools.lru_cache(maxsize=64)(OmegaConf.structured)


def target_class(node: Any, place: str) -> Any:
    """The class that `node._target_` names, whose `config_type` derives from that of its group.

    Args:
        node: a mapping, or a dataclass of the configuration.
        place: key of the node, which begins with one of `schema.GROUPS`.

    Raises:
        FairAllError: where there is no such class, or it is not of the group.
    """
    target = str(entry(node, "_target_"))
    module, _, name = target.rpartition(".")
    key = f"{place}._target_={target}"
    try:
        named = getattr(import_own(module), name)
    except Exception as error:
        raise FairAllError(
            f"{place}: no such key, or {key} names no class as module.Class "
            f"({type(error).__name__}: {error}); the module must be in the current folder, or installed"
        ) from error
    base, config_type = GROUPS[place.partition(".")[0]], getattr(named, "config_type", None)
    if not (inspect.isclass(config_type) and issubclass(config_type, base)):
        raise FairAllError(
            f"{key}: its config_type is not a dataclass derived from {base.__module__}.{base.__name__}: "
            "derive the class from one of the same group"
        )
    if inspect.isabstract(named):
        raise FairAllError(f"{key}: it lacks {', '.join(sorted(named.__abstractmethods__))}")
    return named


def require_trusted(node: Any, group: str, modules: Collection[str]) -> None:
    """Raise FairAllError unless the classes that `node` names may be imported, which runs their code.

    Somebody else may have written the node. These may be imported: modules of scikit-learn and of this
    package whose names do not begin with `_`, those in `modules` or in packages there, and those that this
    process has imported already.
    """
    trusted = tuple(f"{name}." for name in modules)
    for target in targets(node):
        module = target.rpartition(".")[0]
        known = not module or f"{module}.".startswith(trusted) or module in sys.modules  # none is no class
        if not (known or re.match(r"(fairall|sklearn)\.(?!.*\b_)", f"{module}.")):
            package = module.partition(".")[0]
            raise FairAllError(
                f"{group}._target_={target}: would run code of the module {module}, not of fairall; if you "
                f"trust who wrote {package}, name it: --trust {package}, or load_policy(..., "
                f"modules=[{package!r}])"
            )
