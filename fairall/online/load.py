"""Load initial policies from Python."""

from __future__ import annotations

from fairall.config.compose import typed_config
from fairall.online.initial_policy import InitialPolicy


def load_initial_policy(name: str, dataset: str, *overrides: str) -> InitialPolicy:
    """The initial policy of a data set by name, for instance `load_initial_policy("harsh", "credit")`.

    `overrides` are further words as on the command line, for instance `initial_policy.hidden=2`.

    Raises:
        FairAllError: where there is no such policy or data set.
    """
    config = typed_config(f"dataset={dataset}", f"initial_policy={name}", *overrides)
    policy: InitialPolicy = config.initial_policy.build()
    return policy
