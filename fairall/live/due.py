"""Whom a version may learn from: people whose outcomes are known and old enough, and who are not held out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import sqlalchemy as sql

from fairall.config.schema import ScheduleConfig
from fairall.live.settings import Settings
from fairall.live.store import APPLICATIONS, LEARNT, OUTCOMES, WITHDRAWN

STANDS = ~sql.exists().where(WITHDRAWN.c.application == APPLICATIONS.c.id)  # was not withdrawn


class Due(NamedTuple):
    """People to learn from.

    Attributes:
        parts: ids of the applications of each update, in the order of the updates.
        outcome: id of the outcome of each accepted one.
        label: by id of the application, 1 or 0.
        first: the first application that is not learnt from then; earlier ones are of no more interest.
        waiting: accepted people, not held out, whose outcome is not known.
        young: people whose outcome is known, or who were rejected, and who have to wait for the horizon, for
            others of their batch, or for more people.
    """

    parts: list[np.ndarray]
    outcome: dict[int, int]
    label: dict[int, int]
    first: int
    waiting: int
    young: int


def latest_outcomes(first: int) -> sql.Subquery:
    """The outcome that counts of each application from the number `first` on that was not withdrawn.

    Its columns are `id`, `application`, `label` and `time`.
    """
    last = (
        sql.select(sql.func.max(OUTCOMES.c.id).label("id"))
        .join(APPLICATIONS)
        .where(OUTCOMES.c.application >= first, STANDS)
        .group_by(OUTCOMES.c.application)
        .subquery()
    )
    columns = (OUTCOMES.c.id, OUTCOMES.c.application, OUTCOMES.c.label, OUTCOMES.c.time)
    return sql.select(*columns).join(last, last.c.id == OUTCOMES.c.id).subquery()


def latest_application(connection: sql.Connection) -> int:
    """The time of the latest application that was not withdrawn; 0 without any."""
    return connection.scalar(sql.select(sql.func.max(APPLICATIONS.c.time)).where(STANDS)) or 0


def clock(connection: sql.Connection) -> int:
    """The latest time of an application or an outcome that counts, which is now for all that is learnt.

    0 without any; what was withdrawn, or replaced by a correction, does not count.
    """
    outcome = connection.scalar(sql.select(sql.func.max(latest_outcomes(1).c.time)))
    return max(latest_application(connection), outcome or 0)


def by_group(connection: sql.Connection, until: int) -> pd.DataFrame:
    """Numbers of `people`, `accepted`, `outcomes` and `good` ones, a row for each of the groups `s`.

    Outcomes are those of people who applied at the time `until` or earlier: with now less the horizon,
    outcomes that came early are left out, which are unlike the others.
    """
    last, s, n = latest_outcomes(1), APPLICATIONS.c.s, sql.func.count()
    accepted, good = sql.func.sum(sql.cast(APPLICATIONS.c.accepted, sql.Integer)), sql.func.sum(last.c.label)
    people = (
        sql.select(s, n.label("people"), accepted.label("accepted")).where(STANDS).group_by(s).order_by(s)
    )
    # Not an outer join of the people, for which SQLite takes time in the square of their number.
    known = sql.select(s, n.label("outcomes"), good.label("good")).group_by(s)
    known = known.join(last, last.c.application == APPLICATIONS.c.id).where(APPLICATIONS.c.time <= until)
    groups = (pd.read_sql(query, connection, index_col="s") for query in (people, known))
    return next(groups).join(next(groups)).fillna(0).astype(int).reset_index()


def due(
    connection: sql.Connection,
    lineage: Sequence[int],
    settings: Settings,
    schedule: ScheduleConfig,
    first: int,
) -> Due:
    """Whom the next version may learn from.

    With a horizon, an accepted person is due whose outcome is known and who applied so long ago; the rejected
    of a batch are due with its first accepted ones, so that a learner sees them in proportion. Without one a
    batch is due when the outcomes of all its accepted people are known.

    The due people of a batch are an update, as those of a time step are in a run. Batches with fewer due
    people than `schedule.applicants` are joined, and what is left over at the end is part of the last
    update, or waits if it is less than a person for each minibatch.

    Args:
        connection: in a transaction.
        lineage: of the version that learns.
        settings: of the ledger.
        schedule: of the run that the ledger was started from.
        first: `Due.first` of the version.
    """
    done = sql.exists().where(LEARNT.c.application == APPLICATIONS.c.id, LEARNT.c.version.in_(lineage))
    last = latest_outcomes(first)
    columns = [APPLICATIONS.c[name] for name in ("id", "batch", "time", "accepted", "held")]
    rows = connection.execute(
        sql.select(*columns, last.c.id.label("outcome"), last.c.label)
        .outerjoin(last, last.c.application == APPLICATIONS.c.id)
        .where(APPLICATIONS.c.id >= first, APPLICATIONS.c.features.is_not(None), ~done, STANDS)
        .order_by(APPLICATIONS.c.id)
    )
    found = pd.DataFrame(rows.all(), columns=list(rows.keys()))
    found = found[~found["held"].astype(bool)]
    accepted, known = found["accepted"].to_numpy(dtype=bool), found["outcome"].notna().to_numpy()
    waits = accepted & ~known
    if settings.horizon is None:
        ready = ~_any(waits, found["batch"])
    else:
        old = clock(connection) - found["time"].to_numpy(dtype=np.int64) >= settings.horizon
        labelled = old & accepted & known
        with_others = _any(labelled, found["batch"]) | ~_any(accepted, found["batch"])
        ready = labelled | (old & ~accepted & with_others)
    parts = joined_parts(
        [part["id"].to_numpy() for _, part in found[ready].groupby("batch")],
        enough=schedule.applicants,
        least=schedule.batches_per_epoch,
    )
    chosen = np.isin(found["id"].to_numpy(), np.concatenate(parts) if parts else [])
    labelled_rows = found[chosen & accepted]
    numbers = labelled_rows["id"].tolist()
    left = found["id"].to_numpy()[~chosen]
    newest = connection.scalar(sql.select(sql.func.max(APPLICATIONS.c.id))) or 0
    return Due(
        parts,
        dict(zip(numbers, labelled_rows["outcome"].astype(int).tolist(), strict=True)),
        dict(zip(numbers, labelled_rows["label"].astype(int).tolist(), strict=True)),
        int(left[0]) if len(left) else newest + 1,
        int(waits.sum()),
        int((~chosen & ~waits).sum()),
    )


def joined_parts(parts: Sequence[np.ndarray], *, enough: int, least: int) -> list[np.ndarray]:
    """Parts of `enough` people or more, made of successive ones; a rest of fewer than `least` is no part.

    Examples:
        >>> batches = np.split(np.arange(6), [3, 5])
        >>> [part.tolist() for part in joined_parts(batches, enough=3, least=2)]
        [[0, 1, 2], [3, 4, 5]]
        >>> joined_parts([np.arange(1)], enough=3, least=2)
        []
    """
    made: list[np.ndarray] = []
    rest: list[np.ndarray] = []
    for part in parts:
        rest.append(part)
        if sum(map(len, rest)) >= enough:
            made.append(np.concatenate(rest))
            rest = []
    n = sum(map(len, rest))
    if n and made and n < least:
        made[-1] = np.concatenate([made[-1], *rest])
    elif n >= least:
        made.append(np.concatenate(rest))
    return made


def _any(marked: np.ndarray, batch: pd.Series) -> np.ndarray:
    """Whether any row of the batch of each row is marked, shape (N,), bool."""
    return pd.Series(marked, index=batch.index).groupby(batch).transform("any").to_numpy(dtype=bool)
