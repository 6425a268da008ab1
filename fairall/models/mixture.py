"""Classifiers that are mixed by how well they have foretold labels, and people who come back.

References:
    Dawid: Present position and potential developments: some personal views, statistical theory, the
    prequential approach, Journal of the Royal Statistical Society A 147, 1984.
    Genest, Zidek: Combining probability distributions: a critique and an annotated bibliography, Statistical
    Science 1, 1986 (the logarithmic opinion pool).
    Kish: Survey sampling, Wiley 1965 (the effective number of observations in a cluster).
    Stone: Cross-validatory choice and assessment of statistical predictions, Journal of the Royal Statistical
    Society B 36, 1974.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from typing_extensions import override

from fairall.config.checks import limited, not_negative, positive
from fairall.config.schema import NetInputs
from fairall.data.features import FeatureInputs
from fairall.data.people import Decided
from fairall.models.estimators import boosted_trees, log_odds, logistic
from fairall.models.known import Known, hashes
from fairall.models.learner import LEAST, Setting
from fairall.models.refitted import Labelled, Refitted, RefittedConfig
from fairall.runtime.randomness import SeedStreams

FOLDS = 4
FEW = 1500  # people, of whom classifiers that were fitted to them have too extreme estimates
RARE = 0.01  # share of people who came back, from which on those known need classifiers fitted to others
# Candidates for a, from labels of a person that say nothing of the next one to such that say nearly all.
WORTHS = torch.tensor([1e9, 20.0, 2.0, 0.3, 0.02], dtype=torch.float64)
APART = 1.0  # largest a at which people who come back differ from new ones in what is known of them


@dataclass
class MixtureConfig(RefittedConfig):
    """Inverse penalties of the linear models, how classifiers are weighed, and the optimism.

    `evidence`: labels after which one counts 1/e of a new one in the weights. `optimism`: standard deviations
    between the classifiers' log odds that are added to their mean.
    """

    linear_c: list[float] = limited(
        "a list of one or more positive numbers", lambda values: len(values) > 0 and min(values) > 0
    )
    evidence: float = positive()
    optimism: float = not_negative()


class Mixture(Refitted):
    """Mixture of classifiers of all accepted people, each of whom counts once.

    The classifiers are logistic regressions, each with another penalty, and boosted trees. All are fitted
    anew when the number of people seen has grown by a share. The label of an accepted person who was not met
    before tells how well each classifier foretells: classifiers have weights proportional to
    exp(−Σ cross-entropy), in which earlier labels count exponentially less. The log odds of the mixture are
    the weighted mean of those of the classifiers, and `optimism` times their weighted standard deviation
    more.

    People with equal x and s are one person who comes back, as far as their labels agree. A person with n
    labels of mean ȳ has the probability (a·p + n·ȳ)/(a + n), with p by classifiers that were fitted to
    others, and weighs n/(1 + (n − 1)·ρ) in fits, with ρ = 1/(1 + a), the correlation of a person's labels
    (Kish 1965). Of the candidates for a the one is taken that has best foretold the labels of people who came
    back.

    That a person comes back is known of applicants (`explore`). The policy that is measured and saved decides
    on everybody as new; it remembers nobody.

    Attributes:
        counts_once: whether a person weighs less than the number of labels, as above.
        evidence: Σ log p(label) by each classifier, shape (E, K), float64.
        share: weights of the classifiers since the last fit, shape (E, K), float64.
        own_evidence: Σ log p(label) of people who came back, by each of `WORTHS`, shape (E, A), float64.
        met: people at the last fit, by hash, to which the number of the replicate is added: log odds by each
            classifier fitted to others, n and ȳ.
    """

    counts_once = True
    config: MixtureConfig
    config_type = MixtureConfig
    evidence: Tensor
    share: Tensor
    own_evidence: Tensor

    def __init__(self, config: MixtureConfig, setting: Setting) -> None:
        models = [*(logistic(c, standardises=True) for c in config.linear_c), boosted_trees()]
        super().__init__(config, setting, models)
        self.codes = FeatureInputs(self.schema.seen_as(NetInputs.standardised))
        self.met = Known(len(models) + 2)
        for name, columns in (("evidence", len(models)), ("own_evidence", len(WORTHS))):
            self.register_buffer(name, torch.zeros(len(setting.seeds), columns, dtype=torch.float64))
        self.register_buffer("share", self.evidence.softmax(-1))

    @property
    def worth(self) -> Tensor:
        """The a of each replicate, shape (E, 1)."""
        return WORTHS[self.own_evidence.argmax(-1, keepdim=True)]

    @override
    def update(self, decided: Decided) -> None:
        """Judge the classifiers, and the worth of own labels, by the labels of applicants; learn these."""
        logit, n, mean = self._met(decided.x, decided.s)
        label = decided.label.double().unsqueeze(-1)
        back = decided.accepted & (n > 0)
        # Where people who are alike are others, their labels are new ones.
        judging = decided.accepted & ~(back & (self.worth <= APART))
        own = with_own(WORTHS, *(of.unsqueeze(-1) for of in (self._mixed(logit), n, mean)))
        loss, own_loss = (
            F.binary_cross_entropy_with_logits(
                odds, label.expand_as(odds), who.double().unsqueeze(-1), reduction="none"
            ).sum(1)
            for odds, who in ((logit, judging), (own, back))
        )
        n_judging = judging.double().sum(-1, keepdim=True)
        self.evidence.mul_(torch.exp(-n_judging / self.config.evidence)).sub_(loss)
        self.own_evidence.sub_(own_loss)
        super().update(decided)
        if not self.unchanged:
            self.share.copy_(self.evidence.softmax(-1))

    @override
    def table(self, e: int, seen: Decided, seed: int) -> Labelled:
        """The accepted, as all classifiers see them."""
        weight = seen.weighted(torch.ones_like(seen.label))
        return self.given(e, seen.x, seen.s), seen.label.numpy(), weight.numpy()

    @override
    def given(self, e: int, x: Tensor, s: Tensor) -> list[np.ndarray]:
        """An indicator per category for linear models, and standardised codes for the trees, (B, F) each."""
        linear = self.inputs.with_s(x, s).double().numpy()
        return [linear] * len(self.config.linear_c) + [self.codes.with_s(x, s).numpy()]

    @override
    def fit(self, e: int, seen: Decided, seed: int) -> list[Any]:
        """The classifiers of replicate e, fitted to each person once, who are known from now on.

        Where more than 1 % have come back, or people are few, the log odds of each are of classifiers that
        were fitted to other people.
        """
        if e == 0:
            self.met = Known(len(self.models) + 2)
        known = _rows(seen, seen.accepted & (seen.weighted(torch.ones_like(seen.s)) > 0))
        own = known.x[:, : len(self.setting.schema)]  # without a latent
        hashed, first, person, n = map(
            torch.from_numpy,
            np.unique(hashes(own, known.s), return_index=True, return_inverse=True, return_counts=True),
        )
        weight, good = (
            torch.bincount(person, known.weighted(of), minlength=len(n)).double()
            for of in (torch.ones_like(known.label), known.label)
        )
        effective = weight / (1.0 + (n - 1.0) * self.counts_once / (1.0 + self.worth[e]))
        people = replace(_rows(known, first), label=good / weight, weight=effective)
        models = super().fit(e, people, seed)
        apart = len(n) < FEW or (n > 1).double().mean() > RARE
        fold = (hashed >> 32) % FOLDS * apart  # lower digits are equal in many people
        logit = torch.empty(len(n), len(models), dtype=torch.float64)
        for out in (fold == number for number in fold.unique()):
            others = models if out.all() else super().fit(e, _rows(people, ~out), seed)
            logit[out] = self._by(others, e, _rows(people, out))
        self.met.add(hashed + e, torch.column_stack([logit, n, people.label]))
        return models

    def _by(self, models: list[Any], e: int, people: Decided) -> Tensor:
        """Log odds of n people of replicate e by each classifier, shape (n, K), float64."""
        given = self.given(e, people.x, people.s)
        return torch.from_numpy(np.column_stack([*map(log_odds, models, given)]))

    def _met(self, x: Tensor, s: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Log odds (E, B, K) of people, of known ones by classifiers fitted to others, and n and ȳ (E, B)."""
        found = self.met.of(hashes(x, s) + torch.arange(len(s)).unsqueeze(-1))
        n, mean = found[..., -2:].nan_to_num().unbind(-1)
        return torch.where(n.unsqueeze(-1) > 0, found[..., :-2], self.of_classifiers(x, s)), n, mean

    def _mixed(self, logit: Tensor) -> Tensor:
        """Log odds of the mixture, shape (E, B), of those of the classifiers (E, B, K)."""
        share = self.share.unsqueeze(1)
        mean = (share * logit).sum(-1)
        variance = (share * (logit - mean.unsqueeze(-1)) ** 2).sum(-1)
        return mean + self.config.optimism * variance.sqrt()

    @override
    def log_odds(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """Those of the mixture, everybody as new, shape (E, B), float64; draws nothing."""
        return self._mixed(self.of_classifiers(x, s))

    def of_known(self, x: Tensor, s: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Log odds of people as applicants, of whom some are known, float64; draws nothing.

        Returns:
            Those that they would have as new people, those with own labels, and who has some, shapes (E, B).
        """
        logit, n, mean = self._met(x, s)
        mixed = self._mixed(logit)
        # Where people who are alike are others, new people are as alike to those that classifiers know.
        others = (self.worth > APART) & self.own_evidence.any(-1, keepdim=True)
        new = torch.where(others, self._mixed(self.of_classifiers(x, s)), mixed)
        return new, with_own(self.worth, mixed, n, mean), n > 0

    @override
    @torch.no_grad()
    def explore(self, x: Tensor, s: Tensor, propensity: Tensor, uniform: Tensor) -> Tensor:
        """Decide on known people by own labels too, shape (E, N)."""
        _, own, known = self.of_known(x, s)
        return torch.where(known, self.rule.propensity(own.sigmoid().to(x.dtype), x), propensity)


def with_own(worth: Tensor, odds: Tensor, n: Tensor, mean: Tensor) -> Tensor:
    """Log odds of people of whom `n` labels of mean `mean` are known beside an estimate worth `worth` labels.

    >>> odds = torch.tensor([0.0, 0.0], dtype=torch.float64)
    >>> with_own(torch.tensor(2.0), odds, torch.tensor([0.0, 2.0]), torch.tensor([0.0, 1.0])).sigmoid()
    tensor([0.5000, 0.7500], dtype=torch.float64)
    """
    p = (worth * odds.sigmoid() + n * mean) / (worth + n)
    return torch.where(n > 0, p.logit(eps=LEAST), odds)


def _rows(decided: Decided, which: Tensor) -> Decided:
    """People of one replicate, fields (n, ...), at these places or of this mask."""
    return Decided(**{name: of[which] for name, of in vars(decided).items()})
