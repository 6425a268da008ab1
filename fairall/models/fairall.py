"""FairAll: decisions from a fair latent, learnt from accepted and rejected applicants (section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from fairall.config import FairAllConfig
from fairall.data.people import Decided, take
from fairall.data.prepare import PreparedData
from fairall.models import phase1
from fairall.models.learner import Advance, Learner, PretrainCurves, Setting
from fairall.models.objectives import (
    cost_sensitive_cross_entropy,
    gaussian_kl,
    ips_risk,
    masked_mean,
    mixture_kl,
)
from fairall.models.phase1_cache import cached_phase1, phase1_key
from fairall.models.vae import ConditionalVAE
from fairall.nn.chunks import in_chunks
from fairall.nn.stacked import StackedMLP
from fairall.randomness import SeedStreams


class FairAll(Learner):
    """Semi-supervised conditional VAE, classifier q(ũ | x, s), and the latent policy π^Z_dec.

    With a `phase1` node in its configuration it is FairAll (I+II), without one FairAll (II).
    """

    config: FairAllConfig
    config_type = FairAllConfig

    def __init__(self, config: FairAllConfig, setting: Setting) -> None:
        super().__init__(config, setting)
        self.streams = SeedStreams(setting.seeds, "phase2")
        self.vae = ConditionalVAE(
            setting.schema, config.latent_size, config.vae_arch, self.streams, utility=True
        )
        self.classifier = StackedMLP(
            self.vae.inputs.size + 1, config.clf_arch, 1, self.streams, dropout=config.clf_dropout
        )
        # The policy takes the classifier's architecture (appendix D.4).
        self.policy = StackedMLP(
            config.latent_size, config.clf_arch, 1, self.streams, dropout=config.clf_dropout
        )
        self._start_optimisers()

    def pretrain_units(self) -> int:
        """Phase I epochs, 0 without a Phase I."""
        return 0 if self.config.phase1 is None else self.setting.schedule.phase1_epochs

    def pretrain(self, data: PreparedData, cache: Path, advance: Advance) -> PretrainCurves | None:
        """Phase I, or its cached result, and the transfer of its weights."""
        config = self.config.phase1
        if config is None:
            return None
        streams = SeedStreams(self.setting.seeds, "phase1")
        vae = ConditionalVAE(
            self.setting.schema, self.config.latent_size, self.config.vae_arch, streams, utility=False
        )
        epochs = self.setting.schedule.phase1_epochs
        pool, validation = data.pool, data.validation
        curves = cached_phase1(
            vae,
            lambda: phase1.train_phase1(
                vae, pool, validation, config, epochs=epochs, streams=streams, advance=advance
            ),
            cache=cache,
            key=phase1_key(
                pool,
                validation,
                self.setting.schema,
                list(self.setting.seeds),
                (self.config.latent_size, self.config.vae_arch, config, epochs),
            ),
        )
        self.vae.transfer_from(vae)
        return curves

    def warm_up(self, decided: Decided, advance: Advance) -> None:
        """Trains VAE and classifier for the warm-up's epochs, then the policy for as many."""
        for _ in range(self.setting.schedule.warm_up_epochs):
            advance(loss=self._model_epoch(decided))
        for _ in range(self.setting.schedule.warm_up_epochs):
            self._policy_epoch(decided)
        # An initial policy that accepts good people only leaves next to no gradient at the end. With the tiny
        # second moments of that, the first rejections of Phase II would take Adam far enough to kill ReLUs.
        self._start_optimisers()

    def update(self, decided: Decided) -> None:
        """One epoch of VAE and classifier on J, then one of the policy."""
        self._model_epoch(decided)
        self._policy_epoch(decided)

    @torch.no_grad()
    def propensity(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """E over ũ ~ q(ũ | x, s), exactly, and z ~ q(z | x, s, ũ), by samples, of π(d=1 | z)."""
        return in_chunks(lambda x, s: self._propensity(x, s, streams), x, s)

    def _propensity(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        loc, scale = self._both_posteriors(x, s)
        noise = streams.normal(x.shape[1], 1, self.config.propensity_samples, self.config.latent_size)
        z = loc.unsqueeze(-2) + scale.unsqueeze(-2) * noise
        accepts = torch.sigmoid(self.policy(z.flatten(1, -2))).reshape(z.shape[:-1]).mean(-1)
        good = torch.sigmoid(self._classify(x, s))
        return (1.0 - good) * accepts[..., 0] + good * accepts[..., 1]

    @torch.no_grad()
    def representation(self, x: Tensor, s: Tensor) -> Tensor:
        """E[z | x, s] = Σ_ũ q(ũ | x, s)·E[z | x, s, ũ], shape (E, B, Z)."""
        return in_chunks(self._latent_mean, x, s)

    def _latent_mean(self, x: Tensor, s: Tensor) -> Tensor:
        loc, _ = self._both_posteriors(x, s)
        good = torch.sigmoid(self._classify(x, s)).unsqueeze(-1)
        return (1.0 - good) * loc[..., 0, :] + good * loc[..., 1, :]

    @torch.no_grad()
    def reconstruction(self, x: Tensor, s: Tensor) -> Tensor:
        """X (E, B, D) decoded from its latent mean."""
        likelihood = self.vae.likelihood

        def restored(z: Tensor, s: Tensor) -> Tensor:
            return likelihood.reconstruct(self.vae.decode(z, s)[..., : likelihood.n_outputs])

        return in_chunks(restored, self.representation(x, s), s)

    def loss(self, batch: Decided) -> Tensor:
        """J = α·R − mean_labelled L − mean_unlabelled U (eq. 1), shape (E,)."""
        config = self.config
        labelled, unlabelled = _Pack.of(batch.accepted), _Pack.of(~batch.accepted)
        classified = self._classify(batch.x, batch.s, self.streams)
        risk = ips_risk(
            cost_sensitive_cross_entropy(classified, batch.label, self.setting.cost),
            batch.propensity,
            batch.accepted,
        )
        unlabelled_logit = take(classified, unlabelled.rows)
        if not self.setting.protocol.classifier_in_unlabelled_elbo:
            unlabelled_logit = unlabelled_logit.detach()

        # Rows of one pass through the VAE: the labelled with their ũ, the unlabelled with ũ = 0 and ũ = 1.
        n_labelled, n_unlabelled = labelled.rows.shape[1], unlabelled.rows.shape[1]
        rows = torch.cat([labelled.rows, unlabelled.rows.repeat_interleave(2, dim=1)], dim=1)
        x, s = take(batch.x, rows), take(batch.s, rows)
        label = take(batch.label, labelled.rows)
        branches = torch.tensor([0.0, 1.0]).repeat(n_unlabelled).expand(len(label), -1)
        loc, scale = self.vae.encode(x, s, torch.cat([label, branches], dim=1))

        n_elbo = config.elbo_samples
        labelled_noise = self.streams.normal(n_labelled, n_elbo, config.latent_size, counts=labelled.counts)
        # One set of samples serves both expectations of U; sharing it biases neither.
        unlabelled_noise = self.streams.normal(
            n_unlabelled, 2, max(n_elbo, config.kl_samples), config.latent_size, counts=unlabelled.counts
        )
        noise = torch.cat([labelled_noise, unlabelled_noise.flatten(1, 2)[:, :, :n_elbo]], dim=1)
        outputs = self.vae.decode(loc.unsqueeze(2) + scale.unsqueeze(2) * noise, s)
        log_x = self.vae.log_prob(outputs, x.unsqueeze(2)).mean(-1)
        log_u = -F.binary_cross_entropy_with_logits(
            self.vae.utility_logit(outputs[:, :n_labelled]),
            label.unsqueeze(-1).expand(-1, -1, n_elbo),
            reduction="none",
        ).mean(-1)

        kl = gaussian_kl(loc[:, :n_labelled], scale[:, :n_labelled])
        labelled_elbo = log_x[:, :n_labelled] + log_u - config.beta * kl

        good = torch.sigmoid(unlabelled_logit)
        log_x_bad, log_x_good = log_x[:, n_labelled:].unflatten(1, (-1, 2)).unbind(-1)
        kl = mixture_kl(
            unlabelled_logit,
            loc[:, n_labelled:].unflatten(1, (-1, 2)),
            scale[:, n_labelled:].unflatten(1, (-1, 2)),
            unlabelled_noise[..., : config.kl_samples, :],
        )
        unlabelled_elbo = (1.0 - good) * log_x_bad + good * log_x_good - config.beta * kl

        return (
            config.alpha * risk
            - masked_mean(labelled_elbo, labelled.valid)
            - masked_mean(unlabelled_elbo, unlabelled.valid)
        )

    def _start_optimisers(self) -> None:
        model_parameters = [*self.vae.parameters(), *self.classifier.parameters()]
        self.model_optimiser = torch.optim.Adam(model_parameters, lr=self.config.learning_rate, fused=True)
        self.policy_optimiser = torch.optim.Adam(
            self.policy.parameters(), lr=self.config.learning_rate, fused=True
        )

    def _model_epoch(self, decided: Decided) -> float:
        """One pass over the rows; returns J of the last minibatch, averaged over seeds."""
        for batch in decided.minibatches(self.setting.schedule.batches_per_epoch, self.streams):
            self.model_optimiser.zero_grad(set_to_none=True)
            loss = self.loss(batch)
            loss.sum().backward()
            self.model_optimiser.step()
        return loss.detach().mean().item()

    def _policy_epoch(self, decided: Decided) -> None:
        for batch in decided.minibatches(self.setting.schedule.batches_per_epoch, self.streams):
            z, target = self._policy_examples(batch)
            logit = self.policy(z, self.streams).squeeze(-1)
            if self.setting.protocol.policy_loss == "cost_sensitive":
                loss = cost_sensitive_cross_entropy(logit, target, self.setting.cost)
            else:
                loss = F.binary_cross_entropy_with_logits(logit, target, reduction="none")
            self.policy_optimiser.zero_grad(set_to_none=True)
            loss.mean(-1).sum().backward()
            self.policy_optimiser.step()

    @torch.no_grad()
    def _policy_examples(self, batch: Decided) -> tuple[Tensor, Tensor]:
        """Z (E, B, Z) of every applicant, and the decision (E, B) the decoder's ũ asks for (section 4.2)."""
        estimated = torch.sigmoid(self._classify(batch.x, batch.s))
        guessed = (self.streams.uniform(*estimated.shape[1:]) < estimated).to(batch.label.dtype)
        loc, scale = self.vae.encode(batch.x, batch.s, torch.where(batch.accepted, batch.label, guessed))
        z = loc + scale * self.streams.normal(*loc.shape[1:])
        good = torch.sigmoid(self.vae.utility_logit(self.vae.decode(z, batch.s)))
        if self.setting.protocol.policy_target == "hard":
            return z, (good >= self.setting.cost).to(z.dtype)
        return z, (self.streams.uniform(*good.shape[1:]) < good).to(z.dtype)

    def _classify(self, x: Tensor, s: Tensor, dropout_streams: SeedStreams | None = None) -> Tensor:
        """Logit of q(ũ = 1 | x, s, d = 1), shape (E, B)."""
        given = torch.cat([self.vae.inputs(x), s.unsqueeze(-1)], dim=-1)
        return self.classifier(given, dropout_streams).squeeze(-1)

    def _both_posteriors(self, x: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        """Locations and scales of q(z | x, s, ũ) for ũ = 0 and ũ = 1, each of shape (E, B, 2, Z)."""
        branches = torch.tensor([0.0, 1.0]).repeat(x.shape[1]).expand(len(x), -1)
        loc, scale = self.vae.encode(x.repeat_interleave(2, dim=1), s.repeat_interleave(2, dim=1), branches)
        return loc.unflatten(1, (-1, 2)), scale.unflatten(1, (-1, 2))


@dataclass(frozen=True)
class _Pack:
    """The rows of a mask, moved to the front of each replicate so that nothing is computed for the others.

    Attributes:
        rows: shape (E, n), n the largest count of a replicate; padded with rows outside the mask.
        valid: which of `rows` are in the mask, shape (E, n), bool.
        counts: rows in the mask, per replicate.
    """

    rows: Tensor
    valid: Tensor
    counts: list[int]

    @classmethod
    def of(cls, mask: Tensor) -> _Pack:
        counts = mask.sum(-1)
        rows = torch.argsort(mask.to(torch.uint8), dim=-1, descending=True, stable=True)[
            :, : int(counts.max())
        ]
        return cls(rows, torch.arange(rows.shape[1]) < counts.unsqueeze(-1), counts.tolist())
