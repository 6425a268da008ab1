"""UnfairLog: the IPS-weighted classifier as it is (appendix D.5)."""

from __future__ import annotations

from torch import Tensor

from fairall.data.people import Decided
from fairall.models.ips_classifier import IPSClassifier


class UnfairLog(IPSClassifier):
    """Learns what is useful and asks for nothing else."""

    def loss(self, batch: Decided) -> Tensor:
        """R, shape (E,)."""
        return self.risk(self.classify(batch.x, batch.s, self.streams), batch)
