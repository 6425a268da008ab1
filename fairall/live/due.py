"""Whom a version may learn from: people whose outcomes are known and old enough, and who are not held out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from fairall.config.schema import ScheduleConfig
from fairall.live.record import Record
from fairall.live.settings import Settings


class Due(NamedTuple):
    """People to learn from.

    Attributes:
        people: rows of `Record.applications`, with the `part`, from 0, in which update they are.
        waiting: accepted people, not held out, whose outcome is not known.
        young: people whose outcome is known, or who were rejected, and who have to wait for the horizon, for
            others of their batch, or for more people.
        undecided: people who were referred, and on whom nobody has decided.
    """

    people: pd.DataFrame
    waiting: int
    young: int
    undecided: int


def due(record: Record, lineage: Sequence[int], settings: Settings, schedule: ScheduleConfig) -> Due:
    """Whom the next version may learn from.

    With a horizon, an accepted person is due whose outcome is known and who applied so long ago; the rejected
    of a batch are due with its first accepted ones, so that a learner sees them in proportion. Without one a
    batch is due when the outcomes of all its accepted people are known, and nobody waits for a decision. Who
    was learnt from as rejected, and has been accepted by a person since, is due again.

    The due people of a batch are an update, as those of a time step are in a run. Batches with fewer due
    people than `schedule.applicants` are joined, and what is left over at the end is part of the last
    update, or waits if it is less than a person for each minibatch.

    Args:
        record: of the ledger.
        lineage: of the version that learns.
        settings: of the ledger.
        schedule: of the run that the ledger was started from.
    """
    learnt, people = record.learnt[record.learnt["version"].isin(lineage)], record.applications
    done = people.index.isin(learnt.loc[learnt["outcome"].notna(), "application"])
    done |= people.index.isin(learnt["application"]) & ~people["accepted"]
    people = people[~people["held"] & ~people["forgotten"] & ~done]
    accepted, known, batch = people["accepted"], people["label"].notna(), people["batch"]
    waits = accepted & ~known
    if settings.horizon is None:
        ready = ~(waits | people["undecided"]).groupby(batch).transform("any")
    else:
        old = people["time"] <= record.clock - settings.horizon
        labelled = old & accepted & known
        with_others = labelled | ~accepted.groupby(batch).transform("any")
        rejected = old & ~accepted & ~people["undecided"]
        ready = labelled | (rejected & with_others.groupby(batch).transform("any"))
    batches = batch[ready].value_counts(sort=False).sort_index()
    part = parts(batches.tolist(), enough=schedule.applicants, least=schedule.batches_per_epoch)
    people = people.assign(part=batch.where(ready).map(dict(zip(batches.index, part, strict=True))))
    chosen = people["part"] >= 0
    young = ~chosen & ~waits & ~people["undecided"]
    return Due(people[chosen], *(int(some.sum()) for some in (waits, young, people["undecided"])))


def parts(sizes: Sequence[int], *, enough: int, least: int) -> np.ndarray:
    """The part of each of some batches: parts have `enough` people or more, of successive batches.

    A rest of fewer than `least` people belongs to the last part, or without one is of no part, −1.

    Examples:
        >>> parts([3, 2, 1], enough=3, least=2).tolist()
        [0, 1, 1]
        >>> parts([3, 1], enough=3, least=2).tolist(), parts([1], enough=3, least=2).tolist()
        ([0, 0], [-1])
    """
    part, n, found = 0, 0, list[int]()
    for size in sizes:
        found.append(part)
        n += size
        if n >= enough:
            part, n = part + 1, 0
    return np.minimum(found, part - (n < least))
