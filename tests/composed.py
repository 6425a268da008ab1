"""A stand-in for Hydra's composition: choices are composed once in a session, values are set in a copy."""

import contextlib
import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.hydra import Hydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig

CONF = Path(__file__).resolve().parents[1] / "conf"
CHOICES = ("sweeps", *(path.name for path in CONF.iterdir() if path.is_dir()))
VALUE = re.compile(rf"(?!hydra\.|(?:{'|'.join(CHOICES)})=)[a-z][\w.]*=.*", re.DOTALL)


@contextlib.contextmanager
def composed_once() -> Iterator[None]:
    """Let Hydra compose the choices of a command once, in 0.25 s; to copy them and set values takes 0.03 s.

    Hydra does the same: it sets values of the command line after it has composed what was chosen. What is
    searched in folders of a test, and sweeps, are composed as ever. Hydra also composes every command a first
    time for `hydra.mode`, which is null where no word sets it.
    """
    load, get_mode = ConfigLoaderImpl.load_configuration, Hydra.get_mode
    known: dict[str, DictConfig] = {}

    def composed(self: ConfigLoaderImpl, *, overrides: list[str], **how: Any) -> DictConfig:
        path, values = str(self.config_search_path), [word for word in overrides if VALUE.fullmatch(word)]
        parsed = OverridesParser.create(self).parse_overrides(values)
        own = str(CONF) not in path or "command-line" in path or "searchpath" in str(overrides)
        if own or any(one.is_sweep_override() for one in parsed):
            return load(self, overrides=overrides, **how)
        chosen = [word for word in overrides if word not in values]
        key = f"{chosen} {how}"
        if key not in known:
            known[key] = load(self, overrides=chosen, **how)
        config = copy.deepcopy(known[key])
        self._apply_overrides_to_config(parsed, config)
        config.hydra.runtime.cwd = str(Path.cwd())
        config.hydra.overrides.task = [word for word in overrides if not word.startswith("hydra")]
        return config

    def mode(self: Hydra, config_name: str, overrides: list[str]) -> Any:
        return get_mode(self, config_name, overrides) if "hydra.mode" in str(overrides) else None

    with (
        mock.patch.object(ConfigLoaderImpl, "load_configuration", composed),
        mock.patch.object(Hydra, "get_mode", mode),
    ):
        yield
