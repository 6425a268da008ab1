"""A ledger: decide on people, take in their outcomes, learn from them, and put versions on duty."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sqlalchemy as sql
import torch
from torch import Tensor

import fairall
from fairall.data.people import People
from fairall.errors import FairAllError, count
from fairall.live import people as tables
from fairall.live import versions
from fairall.live.due import due, latest_outcomes
from fairall.live.guard import Log, compared, log_of
from fairall.live.people import Applicants
from fairall.live.settings import PREFIX, Settings
from fairall.live.state import blanked, packed, unpacked
from fairall.live.store import (
    ABOUT,
    APPLICATIONS,
    BATCHES,
    DUTY,
    FORGOTTEN,
    FORMAT,
    LEARNT,
    OUTCOMES,
    VERSIONS,
    Store,
)
from fairall.live.versions import Version
from fairall.randomness import SeedStreams
from fairall.tables.cells import refuse
from fairall.worlds.capacity import ROUNDING, lottery

MOST_AT_ONCE = 100_000  # people of a call of `decide`
MOST_WITH_PLACES = 20_000  # exact propensities take time in the square of the number of people
IN_QUERY = 10_000  # ids that a query names
MOST_OF_REPORT = 10_000  # people whose probabilities before and after learning are compared


class Ledger:
    """A policy on duty, the decisions that its versions took, and what became of them.

    Every method opens the ledger anew, so that several processes can use it: one that writes waits for
    another for half a minute.

    Args:
        place: path of an SQLite file, or the URL of a database.
        modules: that may be imported for a method of one's own, as of `fairall.load_policy`.

    Raises:
        FairAllError: from all methods, where there is no ledger, another version of this package made it, it
            is damaged, or another process writes for longer than that.

    Examples:
        >>> Ledger("nowhere.db").decide(pd.DataFrame())
        Traceback (most recent call last):
        ...
        fairall.errors.FairAllError: nowhere.db: no ledger there; fairall live start nowhere.db RUN makes one
    """

    def __init__(self, place: str | Path, *, modules: Collection[str] = ()) -> None:
        self.store = Store(place)
        self.modules = tuple(modules)
        self._read: dict[int, Version] = {}  # versions that decide

    @classmethod
    def start(
        cls, place: str | Path, run: str | Path = "", *words: str, modules: Collection[str] = ()
    ) -> Ledger:
        """Make a ledger.

        Args:
            place: path of a new file, or the URL of a database without tables of a ledger.
            run: a finished run, whose policy is version 1, as of `fairall.load_policy`; or a word of `words`.
            words: `live.KEY=VALUE` of `Settings`; places (`outputs_dir=FOLDER`); and, without a run, the
                words of one, as of `python -m fairall`: version 1 is its method after the warm-up.
            modules: as of the class.

        Raises:
            FairAllError: where something is there already, or as `versions.first`.
        """
        ledger = cls(place, modules=modules)
        given, found = [*([str(run)] if "=" in str(run) else []), *words], "" if "=" in str(run) else str(run)
        of_live = [word for word in given if word.startswith(PREFIX)]
        if ledger.store.path is not None and ledger.store.path.exists():
            raise ledger.store.there()
        Settings.read(of_live)  # before the work
        version = versions.first(found, [word for word in given if word not in of_live], modules)
        settings = Settings.read(of_live, **versions.outcome_words(versions.config_of(version.policy)))
        kept = {
            "format": str(FORMAT),
            "fairall": fairall.__version__,
            "settings": json.dumps(asdict(settings)),
            **versions.about(version.policy),
        }
        ledger.store.create()
        try:
            with ledger.store.writing() as connection:
                ledger.store.make_tables(connection)
                connection.execute(
                    sql.insert(ABOUT), [{"key": key, "value": text} for key, text in kept.items()]
                )
                report = json.dumps({"made_from": found or " ".join(given), "first": 1})
                ledger._insert_version(connection, version.columns(), parent=None, report=report)
                ledger._promote(connection, 1, "the first version")
        except BaseException:
            ledger.store.delete()
            raise
        return ledger

    @cached_property
    def about(self) -> dict[str, str]:
        """What the ledger was started with: settings, configuration and features, as text."""
        with self.store.reading() as connection:
            there = sql.inspect(connection).has_table(ABOUT.name)
            found = {row.key: row.value for row in connection.execute(sql.select(ABOUT))} if there else {}
        if not found:
            raise FairAllError(f"{self.store.name}: is no ledger of fairall")
        if found.get("format") != str(FORMAT):
            by = f"fairall {found.get('fairall', 'of another kind')}"
            raise FairAllError(
                f"{self.store.name}: a ledger of another version ({by}); this is {fairall.__version__}"
            )
        return found

    @cached_property
    def settings(self) -> Settings:
        """What the ledger was started with."""
        return Settings(**json.loads(self.about["settings"]))

    def decide(self, people: pd.DataFrame, *, capacity: int | float | None = None) -> pd.DataFrame:
        """Decide on people and record the decisions, in one transaction.

        Those who have been decided on get the decision that they have, so that a table may be sent twice. The
        others are decided on together by the version on duty, with the next random numbers: a time step of
        the method.

        Args:
            people: a row for each, N of them: their ids, the features and the sensitive attribute as in the
                raw data, and perhaps times (`Settings`).
            capacity: most of the new people to accept, a number (int) or a share of them (float), by lot
                among those whom the policy accepts; None: no limit.

        Returns:
            N rows with the index of `people`: the id, `decision` (1 or 0), `propensity` with which it was
            positive, `version` that decided, and `new`, whether it did so now. `attrs["notes"]` has doubts
            about values, a sentence each.

        Raises:
            FairAllError: where a value is not possible, or a person is there with other values.
        """
        settings, kept = self.settings, self.about
        with self.store.writing() as connection:
            version = self._on_duty(connection, kept)
            given = tables.applicants(people, version.policy.reader, settings)
            known = self._applications(connection, given.ids)
            new = ~np.isin(np.array(given.ids, dtype=object), known["person"].to_numpy(dtype=object))
            self._refuse_others(people, given, known, version)
            if new.any():
                latest = connection.scalar(sql.select(sql.func.max(APPLICATIONS.c.time)))
                tables.require_order(people, given.time, new, latest or 0, settings.time)
                self._decide(connection, version, given, np.flatnonzero(new), capacity)
                known = self._applications(connection, given.ids)
        found = known.set_index("person").loc[given.ids]
        columns = {
            settings.id: given.ids,
            "decision": found["accepted"].to_numpy(dtype=int),
            "propensity": found["propensity"].to_numpy(dtype=float),
            "version": found["version"].to_numpy(dtype=int),
            "new": new,
        }
        decided = pd.DataFrame(columns, index=people.index)
        decided.attrs["notes"] = given.notes
        return decided

    def _decide(
        self,
        connection: sql.Connection,
        version: Version,
        given: Applicants,
        rows: np.ndarray,
        capacity: int | float | None,
    ) -> None:
        """Decide on the people at `rows` (N,), and insert them as a batch."""
        settings, process, n = self.settings, version.process, len(rows)
        if n > MOST_AT_ONCE:
            raise FairAllError(f"{n} people are too many at once: give tables of {MOST_AT_ONCE} at most")
        last = sql.select(BATCHES.c.id, BATCHES.c.state).order_by(BATCHES.c.id.desc()).limit(1)
        before = connection.execute(last).one_or_none()
        batch = 1 if before is None else before.id + 1
        if before is not None:
            state = unpacked(before.state)
            process.decisions.load_state_dict(state["decisions"])
            process.taken.load_state_dict(state["taken"])
        shape = len(version.policy.seeds), n
        x, s = given.x[rows].expand(*shape, -1), given.s[rows].expand(shape)
        wanted = process.decide(People(x, s, torch.zeros(shape)))
        propensity = self._combined(version, wanted.propensity.detach())
        propensity = propensity + (1.0 - propensity) * settings.explore
        assert wanted.uniform is not None
        uniform, places = wanted.uniform[0], None
        accepted = uniform < propensity
        if capacity is not None:
            places = _places(capacity, n)
            lot = SeedStreams(version.policy.seeds[:1], f"places of batch {batch}").uniform(n)[0]
            accepted &= torch.where(accepted, lot, -1.0) >= _least(lot, accepted, places)
            propensity = lottery(propensity.unsqueeze(0), places)[0]
        process.taken.add(accepted.expand(shape))
        words = {
            "explore": settings.explore,
            "exploration": process.exploration.config.rule.name,
            "places": places,
            "people": n,
        }
        state = {"decisions": process.decisions.state_dict(), "taken": process.taken.state_dict()}
        number = self._duty(connection)
        connection.execute(
            sql.insert(BATCHES).values(
                id=batch, version=number, at=_now(), words=json.dumps(words), state=packed(state)
            )
        )
        newest = connection.scalar(sql.select(sql.func.max(APPLICATIONS.c.id))) or 0
        seed, ids = version.policy.seeds[0], [given.ids[row] for row in rows]
        columns = {
            "id": range(newest + 1, newest + n + 1),
            "person": ids,
            "batch": [batch] * n,
            "time": given.time[rows].tolist(),
            "features": [given.features[row] for row in rows],
            "s": given.s[rows].int().tolist(),
            "propensity": propensity.tolist(),
            "uniform": uniform.tolist(),
            "accepted": accepted.tolist(),
            "held": [_share(f"{seed} held out {person}") < settings.held_out for person in ids],
        }
        values = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        connection.execute(sql.insert(APPLICATIONS), values)

    def _combined(self, version: Version, propensity: Tensor) -> Tensor:
        """Acceptance probabilities (N,) of those of all seeds (E, N): of one they are as they are."""
        if len(propensity) > 1:
            return torch.tensor(version.policy.combined(propensity.numpy()), dtype=torch.float32)
        if not propensity.isfinite().all():
            raise FairAllError("the version on duty has diverged: promote an older one")
        return propensity[0]

    def _refuse_others(
        self, people: pd.DataFrame, given: Applicants, known: pd.DataFrame, version: Version
    ) -> None:
        """Raise FairAllError where somebody is there with other values, or has been forgotten."""
        rows = {person: row for row, person in enumerate(given.ids)}
        at = np.array([rows[person] for person in known["person"]], dtype=int)
        if not len(at):
            return
        column, wrong = people[self.settings.id], np.zeros(len(people), dtype=bool)
        forgotten = known["features"].isna().to_numpy()
        wrong[at[forgotten]] = True
        refuse(column, wrong, "has been decided on, and was forgotten")
        x = tables.encoded(known["features"].tolist(), version.policy.reader)
        other = (x != given.x[at]).any(1) | (torch.tensor(known["s"].to_numpy()) != given.s[at])
        wrong[at[other.numpy()]] = True
        refuse(column, wrong, "has been decided on with other features; an id stands for one application")
        if self.settings.time in people:
            wrong[at[known["time"].to_numpy(dtype=int) != given.time[at]]] = True
            refuse(column, wrong, "has been decided on at another time; an id stands for one application")

    def outcomes(self, table: pd.DataFrame) -> dict[str, int]:
        """Record outcomes of accepted people, in one transaction.

        An outcome that is there already changes nothing; another one of the same person is a correction,
        which counts from then on.

        Args:
            table: ids, outcomes, and perhaps the times at which they became known (`Settings`).

        Returns:
            Numbers of `new` outcomes, `corrected` ones, and those that were `known`.

        Raises:
            FairAllError: where a value is not possible, or is of somebody who was not accepted.
        """
        settings = self.settings
        given = tables.outcomes(table, settings)
        with self.store.writing() as connection:
            known = self._applications(connection, given.ids).set_index("person").reindex(given.ids)
            column, nobody = table[settings.id], known["id"].isna().to_numpy()
            refuse(column, nobody, "has not been decided on: an outcome needs a decision")
            refused = ~known["accepted"].to_numpy(dtype=bool)
            refuse(column, refused, "was rejected: an outcome needs an acceptance")
            refuse(column, known["features"].isna().to_numpy(), "was forgotten")
            early = given.time < known["time"].to_numpy(dtype=np.int64)
            if settings.time in table:
                refuse(table[settings.time], early, "is before the application of that person")
            refuse(column, early, f"applied later than now: give a column {settings.time!r}")
            numbers = known["id"].to_numpy(dtype=np.int64)
            before = self._outcomes(connection, numbers.tolist())
            label, times = (before[name].reindex(numbers).to_numpy(dtype=float) for name in ("label", "time"))
            same = (label == given.label) & ((times == given.time) | (settings.time not in table))
            rows = [
                {"application": int(number), "label": int(one), "time": int(at), "at": _now()}
                for number, one, at in zip(numbers[~same], given.label[~same], given.time[~same], strict=True)
            ]
            if rows:
                connection.execute(sql.insert(OUTCOMES), rows)
        corrected = int((~same & ~np.isnan(label)).sum())
        return {"new": len(rows) - corrected, "corrected": corrected, "known": int(same.sum())}

    def learn(self, *, dry_run: bool = False) -> dict[str, Any]:
        """Make a version that has learnt from all that is new, by the updates of a time step.

        It goes on from the newest version since the last promotion, or from the one on duty. The same ledger
        gives the same version, to the byte.

        Args:
            dry_run: whether to write nothing.

        Returns:
            What has changed: `version` (None where nothing is new, or nothing was written), `parent`,
            `people` learnt from and `labels` of them, `updates`, `waiting` and `young` (`Due`); `changed`,
            the mean change of the acceptance probability of these people, and `acceptance` by group, before
            and after; `guard`, how it compares with the policy on duty (`guard.compared`), and `promoted`.

        Raises:
            FairAllError: where learning diverges, or another process has learnt meanwhile.
        """
        kept, settings = self.about, self.settings
        with self.store.reading() as connection:
            parent, newest = self._parent(connection)
            before = versions.read(connection, kept, parent, modules=self.modules, whole=True)
            report = connection.execute(
                sql.select(VERSIONS.c.report).where(VERSIONS.c.id == parent)
            ).scalar_one()
            config = before.policy.config
            assert config is not None
            numbers = versions.lineage(connection, parent)
            found = due(connection, numbers, settings, config.schedule, json.loads(report)["first"])
            held = log_of(connection, before.policy, settings, held=True)
            duty = versions.read(connection, kept, self._duty(connection), modules=self.modules)
            rows = pd.concat(
                [self._people(connection, part.tolist()) for part in found.parts] or [pd.DataFrame()]
            )
        counts = {"waiting": found.waiting, "young": found.young}
        if not found.parts:
            return {"version": None, "parent": parent, "people": 0, **counts}
        rows["label"] = rows.index.map(found.label)
        updates = [versions.update(rows.loc[part].reset_index(), before.policy) for part in found.parts]
        told: dict[str, Any] = {
            "parent": parent,
            "people": len(rows),
            "labels": len(found.label),
            "updates": len(updates),
        } | counts
        some = rows.iloc[-MOST_OF_REPORT:]
        probability = self._probability(before, some)
        after = before.learnt(updates)
        told |= self._changes(after, some, probability)
        told["guard"] = self._compared(held, duty, after)
        if dry_run:
            return {"version": None, **told}
        columns = after.columns(before.state, updates)
        learnt = [
            {"version": newest + 1, "application": number, "outcome": found.outcome.get(number), "part": k}
            for k, part in enumerate(found.parts)
            for number in part.tolist()
        ]
        with self.store.writing() as connection:
            if self._parent(connection) != (parent, newest):
                raise FairAllError(
                    f"{self.store.name}: another process has learnt or promoted meanwhile; learn again"
                )
            text = json.dumps(told | {"first": found.first})
            self._insert_version(connection, columns, parent=parent, report=text)
            connection.execute(sql.insert(LEARNT), learnt)
            told["promoted"] = settings.promote == "if_better" and told["guard"]["better"]
            if told["promoted"]:
                self._promote(connection, newest + 1, told["guard"]["why"])
        return {"version": newest + 1, **told}

    def log(self) -> Log:
        """The decisions so far, with their exact propensities, as a log for `fairall evaluate`."""
        kept = self.about
        with self.store.reading() as connection:
            version = versions.read(connection, kept, self._duty(connection), modules=self.modules)
            return log_of(connection, version.policy, self.settings)

    def promote(self, version: int, *, why: str = "by hand") -> bool:
        """Put a version on duty, or back on duty; return whether it was not.

        Raises:
            FairAllError: where there is no such version.
        """
        self.about  # noqa: B018  refuses what is no ledger
        with self.store.writing() as connection:
            versions.lineage(connection, version)
            if self._duty(connection) == version:
                return False
            self._promote(connection, version, why)
        return True

    def forget(self, person: str) -> dict[str, Any]:
        """Erase the features of a person from the ledger and from the memory of all versions.

        The decision, the group and the outcome stay, so that counts do. What a version has learnt stays in
        its weights; a version that has learnt from the person cannot be made again.

        Returns:
            `versions` that have learnt from the person.

        Raises:
            FairAllError: where the person is not there, or was forgotten already.
        """
        kept = self.about
        with self.store.writing() as connection:
            known = self._applications(connection, [person])
            if known.empty:
                raise FairAllError(f"{person}: has not been decided on; nothing is known")
            row = known.iloc[0]
            if row["features"] is None:
                raise FairAllError(f"{person}: was forgotten already")
            number = int(row["id"])
            policy = self._on_duty(connection, kept).policy
            x = tables.encoded([row["features"]], policy.reader)[0]
            connection.execute(
                sql.update(APPLICATIONS).where(APPLICATIONS.c.id == number).values(features=None)
            )
            connection.execute(sql.insert(FORGOTTEN).values(application=number, at=_now()))
            of = sql.select(LEARNT.c.version).where(LEARNT.c.application == number)
            learnt = sorted(connection.scalars(of))
            for stored in connection.execute(sql.select(VERSIONS)).mappings().all() if learnt else ():
                parts = {name: unpacked(stored[name]) for name in ("state", "memory")}
                if sum(blanked(one, x) for one in parts.values()):
                    columns = {name: packed(one) for name, one in parts.items()} | {
                        "weights": stored["weights"]
                    }
                    columns["sum"] = versions.checksum(columns)
                    changed = {name: columns[name] for name in ("state", "memory", "sum")}
                    connection.execute(
                        sql.update(VERSIONS).where(VERSIONS.c.id == stored["id"]).values(**changed)
                    )
        self._read = {}
        return {"versions": learnt}

    def _on_duty(self, connection: sql.Connection, kept: dict[str, str]) -> Version:
        """The version on duty, as decisions need it."""
        number = self._duty(connection)
        if number not in self._read:
            self._read = {number: versions.read(connection, kept, number, modules=self.modules)}
        return self._read[number]

    def _duty(self, connection: sql.Connection) -> int:
        """The number of the version on duty."""
        last = sql.select(DUTY.c.version).order_by(DUTY.c.id.desc()).limit(1)
        return connection.execute(last).scalar_one()

    def _parent(self, connection: sql.Connection) -> tuple[int, int]:
        """The version that learning goes on from, and the newest one."""
        duty = connection.execute(sql.select(DUTY).order_by(DUTY.c.id.desc()).limit(1)).one()
        newest = connection.scalar(sql.select(sql.func.max(VERSIONS.c.id)))
        assert newest is not None
        return (newest if newest > duty.newest else duty.version), newest

    def _insert_version(
        self, connection: sql.Connection, columns: dict[str, Any], *, parent: int | None, report: str
    ) -> None:
        number = (connection.scalar(sql.select(sql.func.max(VERSIONS.c.id))) or 0) + 1
        values = {"id": number, "parent": parent, "made": _now(), "report": report} | columns
        connection.execute(sql.insert(VERSIONS).values(**values))

    def _promote(self, connection: sql.Connection, version: int, why: str) -> None:
        newest = connection.scalar(sql.select(sql.func.max(VERSIONS.c.id)))
        connection.execute(sql.insert(DUTY).values(version=version, newest=newest, at=_now(), why=why))

    def _applications(self, connection: sql.Connection, ids: Sequence[str]) -> pd.DataFrame:
        """The people of these ids who have been decided on, with the version that did."""
        query = sql.select(APPLICATIONS, BATCHES.c.version).join(BATCHES)
        return _found(connection, query, APPLICATIONS.c.person, ids)

    def _people(self, connection: sql.Connection, numbers: Sequence[int]) -> pd.DataFrame:
        """Columns of `versions.OF_PEOPLE` by the number of the application, in the order of numbers."""
        found = _found(connection, sql.select(*versions.OF_PEOPLE), APPLICATIONS.c.id, numbers)
        return found.set_index("id").sort_index()

    def _outcomes(self, connection: sql.Connection, numbers: Sequence[int]) -> pd.DataFrame:
        """The outcomes that count, by the number of the application."""
        last = latest_outcomes(min(numbers))
        return _found(connection, sql.select(last), last.c.application, numbers).set_index("application")

    def _probability(self, version: Version, rows: pd.DataFrame) -> np.ndarray:
        """Acceptance probabilities of people (N,) by a version, without exploration."""
        if rows.empty:
            return np.zeros(0)
        x = tables.encoded(rows["features"].tolist(), version.policy.reader)
        s = torch.tensor(rows["s"].to_numpy(dtype=float), dtype=torch.float32)
        return version.policy.combined(version.policy.encoded_propensity(x, s))

    def _compared(self, log: Log, duty: Version, challenger: Version) -> dict[str, Any]:
        """`guard.compared` of two versions as they decide, with the share for exploration."""
        own = [self._probability(one, log.rows) for one in (duty, challenger)]
        both = [one + (1.0 - one) * self.settings.explore for one in own]
        return compared(log, both[0], both[1], self.settings.gap)

    def _changes(self, after: Version, rows: pd.DataFrame, before: np.ndarray) -> dict[str, Any]:
        """Changes of the acceptance probabilities `before` (N,) of people."""
        try:
            probability = self._probability(after, rows)
        except FairAllError as error:
            raise FairAllError(f"learning has diverged, and no version was made: {error}") from error
        groups = {}
        for s in sorted(rows["s"].unique()):
            own = (rows["s"] == s).to_numpy()
            name = after.policy.reader.group_name(float(s))
            groups[name] = [float(before[own].mean()), float(probability[own].mean())]
        return {"changed": float(np.abs(probability - before).mean()), "acceptance": groups}


def _found(
    connection: sql.Connection, query: sql.Select[Any], column: sql.ColumnElement[Any], values: Sequence[Any]
) -> pd.DataFrame:
    """Rows of a query whose column has one of some values."""
    found: list[Any] = []
    for start in range(0, len(values), IN_QUERY):
        found += connection.execute(query.where(column.in_(values[start : start + IN_QUERY]))).all()
    return pd.DataFrame(found, columns=[one.name for one in query.selected_columns])


def _places(capacity: int | float, n: int) -> int:
    """Places for n people; raises FairAllError where there is none, or n is too large."""
    places = capacity if isinstance(capacity, int) else int(capacity * n + ROUNDING)
    if places < 1:
        raise FairAllError(f"--capacity {capacity}: not one place for {count(n, 'person', 'people')}")
    if n > MOST_WITH_PLACES:
        raise FairAllError(
            f"--capacity: exact propensities take too long for {n} people; give tables of {MOST_WITH_PLACES}"
        )
    return places


def _least(lot: Tensor, accepted: Tensor, places: int) -> float:
    """The least lot of those who find one of the places."""
    drawn = lot[accepted].sort(descending=True).values
    return float(drawn[min(places, len(drawn)) - 1]) if len(drawn) else 1.0


def _share(text: str) -> float:
    """A number in [0, 1) that a text determines, as if it were drawn."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big") / 2**56


def _now() -> int:
    return int(time.time())
