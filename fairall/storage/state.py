"""State of objects as checkpoints hold it."""

from __future__ import annotations

import copy
from typing import Any, ClassVar


class Stateful:
    """An object whose state is that of its attributes.

    Attributes that have a `state_dict`, such as generators, are part of it without being named.

    Attributes:
        kept: names of the other attributes that are, tensors or plain containers.
    """

    kept: ClassVar[tuple[str, ...]] = ()

    def state_dict(self) -> dict[str, Any]:
        """All that later steps depend on, as plain containers of tensors."""
        stateful = {name: own.state_dict() for name, own in vars(self).items() if hasattr(own, "state_dict")}
        return stateful | {name: getattr(self, name) for name in self.kept}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        for name, saved in state.items():
            if name in self.kept:
                setattr(self, name, copy.deepcopy(saved))  # what is saved may be that of another object
            else:
                getattr(self, name).load_state_dict(saved)
