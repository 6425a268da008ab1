"""What went wrong with seeds of a run, in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairall.config.schema import ProtocolConfig
from fairall.data.people import Decided
from fairall.errors import count
from fairall.results.title import REHEARSAL

COLLAPSED = 0.01  # acceptance rate, or distance of it from 1, of a policy that no longer tells people apart
STUCK = 10  # steps without an acceptance, 640 rejected applicants at the paper's 64
HEAVY = 1000.0  # a labelled row that stands for so many applicants
APART = 0.7  # `latent_variance_gap`; in trials below 0.25 where groups share their axes, else above 1.2
OPPOSED = 0.0  # `latent_label_agreement`
READABLE = 0.6  # `latent_label_auc`


def preset_warnings(preset: str | None) -> list[str]:
    """A line where the preset of a run leaves its numbers without meaning."""
    return ["preset=quick is a rehearsal: its numbers mean nothing"] if preset == REHEARSAL else []


def warm_up_warnings(decided: Decided) -> list[str]:
    """A line where the initial policy accepted nobody, so that the warm-up had no label."""
    if decided.accepted.any():
        return []
    n = count(decided.accepted.shape[1], "person", "people")
    return [f"the initial policy accepted nobody of the {n} of the warm-up: no label was learnt from in it"]


def warnings_of(per_seed: list[dict[str, Any]], protocol: ProtocolConfig, *, learns: bool) -> list[str]:
    """A line for every kind of trouble, naming its seeds.

    Args:
        per_seed: of `summary.summarise`.
        protocol: of the run, for what it did about it.
        learns: whether the method learns (`Learner.learns`); of another, constant decisions are no trouble.
    """
    sound = [figures for figures in per_seed if figures["effective_utility"] is not None]
    readable = [figures for figures in sound if (figures.get("latent_label_auc") or 0.0) > READABLE]

    def seeds(
        name: str, troubled: Callable[[float], bool], among: list[dict[str, Any]] = sound
    ) -> str | None:
        return _named([f for f in among if f.get(name) is not None and troubled(f[name])])

    told = []
    diverged = [figures for figures in per_seed if figures not in sound]
    in_phase1 = [figures for figures in diverged if figures.get("phase1_best_epoch") == 0]
    later = [figures for figures in diverged if figures not in in_phase1]
    for who, key in ((_named(in_phase1), "phase1.learning_rate"), (_named(later), "learning_rate")):
        if who:
            told.append(
                f"{who} diverged: propensities are no numbers; not in means over seeds; lower model.{key}"
            )
    if learns:
        for whom, collapsed in (
            ("everybody", lambda acceptance: acceptance >= 1.0 - COLLAPSED),
            ("nobody", lambda acceptance: acceptance <= COLLAPSED),
        ):
            if who := seeds("mean_acceptance", collapsed):
                told.append(
                    f"{who} collapsed to accepting {whom} over the time steps of evaluation.window "
                    "(mean_acceptance)"
                )
    if learns and (who := seeds("longest_rejection", lambda steps: steps >= STUCK)):
        after = protocol.exploration.after
        then = "without exploration" if after is None else f"with exploration after {after}"
        told.append(f"{who} accepted nobody for {STUCK} or more steps in a row, {then}")
    if who := seeds("largest_ips_weight", lambda weight: weight > HEAVY):
        bound = "null" if protocol.max_ips_weight is None else f"{protocol.max_ips_weight:g}"
        told.append(f"{who} met an IPS weight above {HEAVY:g} (protocol.max_ips_weight={bound})")
    if who := seeds("latent_variance_gap", lambda gap: gap > APART):
        told.append(f"{who} use other latent axes for one group than for the other (latent_variance_gap)")
    # Where next to nothing of the label can be read from z, the sign is noise.
    if who := seeds("latent_label_agreement", lambda cosine: cosine < OPPOSED, readable):
        told.append(f"{who} read the label from z with opposite signs in the groups (latent_label_agreement)")
    return told


def _named(seeds: list[dict[str, Any]]) -> str | None:
    """How many seeds and which, or None for none."""
    return f"{count(len(seeds), 'seed')} ({', '.join(str(f['seed']) for f in seeds)})" if seeds else None
