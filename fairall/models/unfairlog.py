"""UnfairLog: the IPS-weighted classifier as it is (appendix D.5)."""

from __future__ import annotations

from torch import Tensor

from fairall.data.people import Decided
from fairall.models.ips_classifier import IPSClassifier
from fairall.models.training import classification_risk


class UnfairLog(IPSClassifier):
    """Learns what is useful and asks for nothing else."""

    def loss(self, batch: Decided) -> Tensor:
        """R, shape (E,)."""
        return classification_risk(self.classify(batch.x, batch.s, self.streams), batch, self.setting)
