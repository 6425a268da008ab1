"""A ledger: decide on people, take in their outcomes, learn from them, and put versions on duty."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import sqlalchemy as sql
import torch
from torch import Tensor

import fairall
from fairall.config.checks import whole_number
from fairall.data.people import People
from fairall.decide.reasons import reasons
from fairall.display.viewed import Viewed
from fairall.errors import FairAllError
from fairall.live import chain, versions
from fairall.live import people as tables
from fairall.live.due import by_group, clock, due, latest_application
from fairall.live.guard import Log, compared, log_of, unexpected
from fairall.live.people import Applicants
from fairall.live.settings import PREFIX, Settings
from fairall.live.state import blanked, packed, unpacked
from fairall.live.store import (
    ABOUT,
    APPLICATIONS,
    BATCHES,
    CHAIN,
    DUTY,
    ERASED,
    FORGOTTEN,
    FORMAT,
    GENERATOR,
    LEARNT,
    OUTCOMES,
    VERSIONS,
    WITHDRAWN,
    DamagedError,
    Store,
    stored,
)
from fairall.live.versions import Version
from fairall.policy import CONFIG, FEATURES
from fairall.runtime.randomness import SeedStreams
from fairall.runtime.reading import why_no_file
from fairall.tables.cells import RowsError, identifiers, refuse
from fairall.worlds.capacity import lottery, n_places

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_AT_ONCE = 100_000  # people of a call of `decide`
MOST_WITH_PLACES = 20_000  # exact propensities take time in the square of the number of people
GONE = "was forgotten or withdrawn"
GONE_SO_FAR = sql.select(
    *(sql.select(sql.func.count()).select_from(table).scalar_subquery() for table in (FORGOTTEN, WITHDRAWN))
)
MOST_OF_REPORT = 10_000  # people whose probabilities before and after learning are compared


@dataclass(frozen=True)
class Words:
    """What is read again of the words of a batch."""

    timed: bool | None


class Ledger(Viewed):
    """A policy on duty, the decisions that its versions took, and what became of them.

    `plot` draws `acceptance` of the groups by batch, or the `value` of versions less that of the policy then
    on duty. Several processes can use a ledger: one that writes waits for another for half a minute.

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
        fairall.errors.FairAllError: nowhere.db: no ledger there; fairall live start LEDGER RUN makes a ledger
    """

    panels = ("acceptance",)

    def __init__(self, place: str | Path, *, modules: Collection[str] = ()) -> None:
        if not isinstance(place, str | Path):
            raise FairAllError(f"{place!r}: give the path of an SQLite file, or the URL of a database")
        self.store = Store(place)
        wrong = self.store.path and why_no_file(self.store.path)
        if wrong and wrong.startswith("cannot be read"):
            raise FairAllError(f"{self.store.name}: {wrong}")
        self.modules = modules
        self._read: dict[int, Version] = {}  # the version that decides

    @classmethod
    def start(cls, place: str | Path, *words: str, modules: Collection[str] = ()) -> Ledger:
        """Make a ledger.

        Args:
            place: path of a new file, or the URL of a database without a ledger.
            words: a finished run, whose policy is version 1, as of `fairall.load_policy`; or the words of a
                run, as of `python -m fairall`, whose method after the warm-up is version 1. Besides,
                `live.KEY=VALUE` of `Settings`.
            modules: as of the class.

        Raises:
            FairAllError: where something is there already, or as `versions.first`.
        """
        ledger = cls(place, modules=modules)
        ledger.store.require_free()  # before the work
        words = tuple(map(str, words))
        of_live = [word for word in words if word.startswith(PREFIX)]
        Settings.read(of_live)
        version = versions.first([word for word in words if word not in of_live], modules)
        settings = Settings.read(of_live, **versions.outcome_words(versions.config_of(version.policy)))
        settings.require_no_feature(version.policy.reader.columns)
        kept = versions.about(version.policy) | {"settings": json.dumps(asdict(settings))}
        kept |= {"format": str(FORMAT), "fairall": fairall.__version__}
        report = json.dumps({"words": words, "first": 1, "good": version.good})
        ledger.store.create()
        try:
            with ledger.store.writing(new=True) as connection:
                ledger.store.make_tables(connection)
                chain.append(connection, ABOUT, [{"key": key, "value": text} for key, text in kept.items()])
                row = version.columns() | {"parent": None, "at": _now(), "report": report}
                chain.append(connection, VERSIONS, [row | {"learnt": chain.learnt_hash([])}])
                connection.execute(sql.insert(GENERATOR).values(id=1, state=b""))
                ledger._append_batch(connection, version, 1, {"people": 0, "timed": None})
                ledger._promote(connection, 1, "the first version")
        except BaseException:
            if ledger.store.path is not None:
                ledger.store.path.unlink(missing_ok=True)
            raise
        return ledger

    @cached_property
    def about(self) -> dict[str, str]:
        """What the ledger was started with: settings, configuration and features, as text."""
        with self.store.reading(foreign=True) as connection:
            there = sql.inspect(connection).has_table(ABOUT.name)
            columns = ABOUT.c.key, ABOUT.c.value
            found = {row.key: row.value for row in connection.execute(sql.select(*columns))} if there else {}
        if "format" not in found:
            raise FairAllError(f"{self.store.name}: is no ledger of fairall")
        if found["format"] != str(FORMAT):
            raise FairAllError(
                f"{self.store.name}: a ledger of format {found['format']}, and this version of fairall "
                f"reads format {FORMAT}: go on with fairall {found.get('fairall')}, which made it"
            )
        with self.store.reading() as connection:
            found = {row.key: row.value for row in chain.read(connection, ABOUT)}
            if lacking := {"settings", CONFIG, FEATURES} - found.keys():
                raise DamagedError(f"the table {ABOUT.name} lacks {min(lacking)}")
            stored(Settings, found["settings"])
        return found

    @cached_property
    def settings(self) -> Settings:
        """What the ledger was started with."""
        return stored(Settings, self.about["settings"])

    def decide(
        self,
        people: pd.DataFrame,
        *,
        capacity: int | float | None = None,
        most_reasons: int | None = None,
        wording: Mapping[str, str] = MappingProxyType({}),
        skip: bool = False,
        confirm_times: bool = False,
    ) -> pd.DataFrame:
        """Decide on people and record the decisions, in one transaction.

        Those who have been decided on get the decision that they have, so that a table may be sent twice. The
        others are decided on together by the version on duty, with the next random numbers: a time step of
        the method. Rows of people who were forgotten, or whose application was withdrawn, are left out.

        Args:
            people: a row for each, N of them: their ids, the features and the sensitive attribute as in the
                raw data, and perhaps times (`Settings`).
            capacity: most of the new people to accept, a number, or a share of them as a float of at most
                1 (1 is one place, 1.0 everybody), by lot among those whom the policy accepts; None: no limit.
            most_reasons: as of `decide.reasons`, of the version that decided; None for none.
            wording: likewise.
            skip: whether to leave out rows that cannot be decided on, instead of refusing the table.
            confirm_times: whether times may be more than 31 days after all others.

        Returns:
            A row for each who is not left out, with the index of `people`: the id, `decision` (1 or 0),
            `propensity` with which it was positive, `version` that decided, and `new`, whether it did so now.
            `attrs["notes"]` has doubts about values, a sentence each, and `attrs["left_out"]` the reasons by
            the position of a row from 0.

        Raises:
            FairAllError: where a value is not possible, a person is there with other values, or nobody is
                left.
        """
        settings, kept, left_out = self.settings, self.about, dict[int, str]()
        with self.store.writing() as connection:
            version, given = self._on_duty(connection, kept), None
            left = people.reset_index(drop=True) if isinstance(people, pd.DataFrame) else people
            while given is None:
                try:
                    given, known = self._applicants(connection, version, left, confirm_times)
                except RowsError as error:
                    if len(error.reasons) == len(left):
                        raise
                    if not skip and error.why != GONE:
                        raise FairAllError(f"{error}; --skip (skip=True) decides on the others") from error
                    rows = left.index[[*error.reasons]]
                    left_out |= dict(zip(rows.tolist(), error.reasons.values(), strict=True))
                    left = left.drop(index=rows)
            new = known["id"].isna().to_numpy()
            found = known[["accepted", "propensity", "version"]].to_numpy(dtype=float)
            if new.any():
                found[new] = self._decide(connection, version, given, np.flatnonzero(new), capacity)
            numbers = {"decision": found[:, 0].astype(int), "propensity": found[:, 1]}
            numbers |= {"version": found[:, 2].astype(int), "new": new}
            decided = pd.DataFrame({settings.id: given.ids} | numbers, index=people.index[left.index])
            if most_reasons is not None:
                decided["reasons"] = self._reasons(connection, kept, decided, most_reasons, wording)
        decided.attrs |= {"notes": given.notes, "left_out": left_out}
        return decided

    def _decide(
        self,
        connection: sql.Connection,
        version: Version,
        given: Applicants,
        rows: np.ndarray,
        capacity: int | float | None,
    ) -> np.ndarray:
        """Decide on the people at `rows` (N,), and insert them as a batch.

        Returns:
            Decision, propensity and version, shape (N, 3).
        """
        settings, process, policy, n = self.settings, version.process, version.policy, len(rows)
        if n > MOST_AT_ONCE:
            raise FairAllError(f"{n} people are too many at once: give tables of {MOST_AT_ONCE} at most")
        batch = 1 + connection.scalar(sql.select(sql.func.max(BATCHES.c.id)))
        state = unpacked(chain.generator(connection))
        process.decisions.load_state_dict(state["decisions"])
        process.taken.load_state_dict(state["taken"])
        shape = len(policy.seeds), n
        x, s = given.x[rows].expand(*shape, -1), given.s[rows].expand(shape)
        wanted = process.decide(People(x, s, torch.zeros(shape)))
        assert wanted.uniform is not None
        uniform, propensity = wanted.uniform[0], self._combined(version, wanted.propensity.detach())
        propensity = propensity + (1.0 - propensity) * settings.explore
        accepted, places = uniform < propensity, None
        if capacity is not None:
            places = n_places(capacity, n, "capacity")
            if n > MOST_WITH_PLACES:
                raise FairAllError(
                    f"capacity: exact propensities are for {MOST_WITH_PLACES} people at most, not {n}"
                )
            lot = SeedStreams(policy.seeds[:1], f"places of batch {batch}").uniform(n)[0]
            drawn = lot[accepted].sort(descending=True).values[:places]
            accepted = accepted & (lot >= drawn[-1]) if len(drawn) else accepted
            propensity = lottery(propensity.unsqueeze(0), places)[0]
        process.taken.add(accepted.expand(shape))
        rule = process.exploration.rule.name
        words = {"people": n, "places": places, "explore": settings.explore, "exploration": rule}
        # Later batches have times where this one has them.
        words |= {"timed": given.timed}
        number = self._duty(connection)
        self._append_batch(connection, version, number, words)
        ids = [given.ids[row] for row in rows]
        columns = {
            "person": ids,
            "batch": batch,
            "time": given.time[rows],
            "features": [given.features[row] for row in rows],
            "s": given.s[rows].int(),
            "propensity": propensity.double(),
            "uniform": uniform.double(),
            "accepted": accepted,
            "held": [_drawn(f"{policy.seeds[0]} held out {person}") < settings.held_out for person in ids],
        }
        chain.append(connection, APPLICATIONS, pd.DataFrame(columns).to_dict("records"))
        return np.stack([accepted.numpy(), propensity.double().numpy(), np.full(n, number)], axis=1)

    def _append_batch(
        self, connection: sql.Connection, version: Version, number: int, words: Mapping[str, Any]
    ) -> None:
        """Record a batch of people, and the state of the random numbers after it."""
        state = version.luck
        connection.execute(sql.update(GENERATOR).values(state=state))
        row = {"version": number, "at": _now(), "words": json.dumps(words)}
        row |= {"state": hashlib.sha256(state).hexdigest()}
        chain.append(connection, BATCHES, [row])

    def _reasons(
        self,
        connection: sql.Connection,
        kept: dict[str, str],
        decided: pd.DataFrame,
        most: int,
        wording: Mapping[str, str],
    ) -> np.ndarray:
        """`decide.reasons` of the rejected people, shape (N,); "" for the others."""
        texts = pd.Series("", index=decided[self.settings.id])
        rejected = self._applications(connection, texts.index[decided["decision"] == 0].tolist())
        for number, rows in rejected.groupby("version"):
            version = self._read.get(number) or versions.read(connection, kept, number, modules=self.modules)
            crowded = rows["uniform"].to_numpy() < self.acceptance(version, rows)
            people = self._encoded(version, rows)
            texts[rows.index] = reasons(version.policy, *people, crowded, most, wording, "mean")
        return texts.to_numpy()

    def _combined(self, version: Version, propensity: Tensor) -> Tensor:
        """Acceptance probabilities (N,) of those of all seeds (E, N): of one they are as they are."""
        if len(propensity) > 1:
            return torch.tensor(version.policy.combined(propensity.numpy()), dtype=torch.float32)
        if not propensity.isfinite().all():
            raise FairAllError("the version on duty has diverged: promote an older one")
        return propensity[0]

    def _applicants(
        self, connection: sql.Connection, version: Version, people: pd.DataFrame, confirm_times: bool
    ) -> tuple[Applicants, pd.DataFrame]:
        """A table of N people, and what is known of them (`_applications`).

        Raises:
            FairAllError: as `decide`, where anybody cannot be decided on.
        """
        settings = self.settings
        ids = tables.ids_of(people, settings)
        known = self._applications(connection, ids)
        new, column, timed = known["id"].isna().to_numpy(), people[settings.id], settings.time in people
        refuse(column, known["gone"], GONE)
        given = tables.applicants(people, ids, version.policy.reader, settings)
        x = tables.encoded(known["features"].fillna("").tolist(), version.policy.reader)
        other = (x != given.x).any(1) | (torch.tensor(known["s"].to_numpy(dtype=float)) != given.s)
        late = (known["time"].to_numpy() != given.time) & timed
        for wrong, how in ((other.numpy(), "with other features"), (late, "at another time")):
            refuse(column, wrong & ~new, f"has been decided on {how}; an id stands for one application")
        if new.any() and self._timed(connection) not in (None, timed):
            why = "this table is unlike those before; either all tables of a ledger have times or none"
            raise FairAllError(f"column {settings.time!r}: {why}")
        if timed:
            latest = latest_application(connection)
            early = new & (given.time < latest - tables.LATE)
            why = f"is before the last application, of {tables.told(latest)}: times may not run backwards"
            how = "fairall live withdraw leaves that one out if it is wrong"
            refuse(people[settings.time], early, f"{why}; {how}")
        if not confirm_times:
            tables.require_near(people, given.time, connection, settings)
        return given, known

    def outcomes(self, table: pd.DataFrame, *, confirm_times: bool = False) -> dict[str, int]:
        """Record outcomes of accepted people, in one transaction.

        An outcome that is there already changes nothing; another label or another time of the same person is
        a correction, which counts from then on. Outcomes of people who were forgotten, or whose application
        was withdrawn, are left out.

        Args:
            table: ids, outcomes, and perhaps the times at which they became known (`Settings`), by default
                now; where the people have times, the latest time in the ledger. A time at midnight stands
                for the day.
            confirm_times: whether times may be more than 31 days after all others.

        Returns:
            Numbers of `new` outcomes, `corrected` ones, those that were `known`, and those `left_out`.

        Raises:
            FairAllError: where a value is not possible, or is of somebody who was not accepted.
        """
        settings = self.settings
        with self.store.writing() as connection:
            known, column = self._applications(connection, tables.ids_of(table, settings)), settings.id
            refuse(table[column], known["id"].isna(), "has not been decided on: an outcome needs a decision")
            gone = known["gone"].to_numpy()
            table, known = table[~gone], known[~gone]
            timed = settings.time in table
            by_default = clock(connection) if self._timed(connection) else _now()
            label, times = tables.outcomes(table, settings, by_default)
            refused = ~known["accepted"].to_numpy(dtype=bool)
            refuse(table[column], refused, "was rejected: an outcome needs an acceptance")
            # A time at midnight may be all that is known of the day.
            early = times + (tables.DAY - 1) * (times % tables.DAY == 0) < known["time"].to_numpy()
            refuse(table[settings.time if timed else column], early, "is before the application")
            if not confirm_times:
                tables.require_near(table, times, connection, settings)
            numbers = known["id"].to_numpy(dtype=np.int64)
            before = chain.frame(connection, OUTCOMES, OUTCOMES.c.application, numbers.tolist())
            before = before.sort_values("id").drop_duplicates("application", keep="last")
            before = before.set_index("application").reindex(numbers)
            same = (before["label"].to_numpy() == label) & (
                (before["time"].to_numpy() == times) | (not timed)
            )
            columns = {"application": numbers, "label": label, "time": times, "at": _now()}
            rows = pd.DataFrame(columns)[~same].to_dict("records")
            chain.append(connection, OUTCOMES, rows)
        new = int(before["id"].isna().sum())
        told = {"new": new, "corrected": len(rows) - new, "known": int(same.sum())}
        return told | {"left_out": int(gone.sum())}

    def learn(self, *, dry_run: bool = False) -> dict[str, Any]:
        """Make a version that has learnt from all that is new, by the updates of a time step.

        It goes on from the newest version since the last promotion, or from the one on duty. The same ledger
        gives the same version, to the byte.

        Args:
            dry_run: whether to write nothing.

        Returns:
            `version` (None where nothing is new, or nothing was written), its `parent`, `people` learnt from,
            `labels` of them, the share of `good` ones, `updates`, `waiting` and `young` (`Due`); `changed`,
            the mean change of the acceptance probability of these people, and `acceptance` by group, before
            and after; `guard`, how it compares with the policy on duty (`guard.compared`), with `doubt`, why
            its outcomes are doubtful (`guard.unexpected`), and `promoted`.

        Raises:
            FairAllError: where learning diverges, or another process has learnt meanwhile.
        """
        kept, settings = self.about, self.settings
        with self.store.reading() as connection:
            chain.verify(connection)
            parent, newest = self._parent(connection)
            before = versions.read(connection, kept, parent, modules=self.modules, whole=True)
            report = stored(versions.Report, chain.version(connection, parent)["report"])
            schedule = versions.config_of(before.policy).schedule
            found = due(connection, versions.lineage(connection, parent), settings, schedule, report.first)
            told: dict[str, Any] = {"version": None, "parent": parent, "people": sum(map(len, found.parts))}
            told |= {"waiting": found.waiting, "young": found.young}
            if not found.parts:
                return told
            held = log_of(connection, before.policy, settings, held=True)
            duty = versions.read(connection, kept, self._duty(connection), modules=self.modules)
            rows = versions.people(connection, np.concatenate(found.parts).tolist())
            gone = connection.execute(GONE_SO_FAR).one()
            until = clock(connection)
        rows["label"] = rows.index.map(found.label)
        updates = [versions.update(rows.loc[part], before.policy) for part in found.parts]
        some = rows.iloc[-MOST_OF_REPORT:]
        probability = self._probability(before, some)
        after = before.learnt(updates)
        good = float(np.mean([*found.label.values()])) if found.label else None
        told |= {"labels": len(found.label), "good": good, "updates": len(updates)}
        told |= self._changes(after, some, probability)
        first, second = (self.acceptance(version, held.rows) for version in (duty, after))
        guard = compared(held, first, second, settings.gap, newest)
        guard["doubt"] = self._doubt(duty, some, report.good)
        if guard["better"] and guard["doubt"]:
            guard |= {"better": False, "why": guard["doubt"]}
        told |= {"guard": guard, "promoted": False}
        if dry_run:
            return told
        row = after.columns(before.state, updates) | {"parent": parent, "at": _now()}
        learnt = [
            {"version": newest + 1, "application": number, "outcome": found.outcome.get(number), "part": k}
            for k, part in enumerate(found.parts)
            for number in part.tolist()
        ]
        with self.store.writing() as connection:
            now = *self._parent(connection), connection.execute(GONE_SO_FAR).one()
            if now != (parent, newest, gone):
                raise FairAllError(f"{self.store.name}: another process has changed it meanwhile: try again")
            told_later = {"first": found.first, "clock": until}
            row |= {"report": json.dumps(told | told_later), "learnt": chain.learnt_hash(learnt)}
            chain.append(connection, VERSIONS, [row])
            connection.execute(sql.insert(LEARNT), learnt)
            if settings.promote == "if_better" and guard["better"]:
                self._promote(connection, newest + 1, guard["why"])
                told["promoted"] = True
        return told | {"version": newest + 1}

    def log(self) -> Log:
        """The decisions so far, with their exact propensities, as a log for `fairall evaluate`."""
        kept = self.about
        with self.store.reading() as connection:
            chain.verify(connection)
            version = versions.read(connection, kept, self._duty(connection), modules=self.modules)
            return log_of(connection, version.policy, self.settings)

    @property
    def title(self) -> str:
        """Where it is, and the version on duty."""
        self.about  # noqa: B018  refuses what is no ledger
        with self.store.reading() as connection:
            return f"{self.store.name}, version {self._duty(connection)} on duty"

    def to_frame(self) -> pd.DataFrame:
        """The decisions so far, a row per person who was not forgotten or withdrawn: the frame of `log`."""
        return self.log().frame

    def summary(self) -> pd.DataFrame:
        """A row per group: `people`, share `accepted`, `outcomes` as old as the horizon, and their `value`.

        The value is of an accepted person: the share of good outcomes less the cost; NaN without outcomes.
        `status` adds intervals, versions, drift and alarms.
        """
        kept = self.about
        with self.store.reading() as connection:
            chain.verify(connection)
            policy = self._on_duty(connection, kept).policy
            groups = by_group(connection, clock(connection) - (self.settings.horizon or 0))
        groups.index = pd.Index([policy.reader.group_name(s) for s in groups["s"].astype(float)])
        groups["accepted"] /= groups["people"]
        groups["value"] = groups["good"] / groups["outcomes"] - versions.config_of(policy).cost.value
        return groups[["people", "accepted", "outcomes", "value"]]

    def status(self, head: str | None = None) -> dict[str, Any]:
        """Where the ledger stands, as `fairall live status --json` shows it; see `live.status.status`.

        Args:
            head: `head` of an earlier status, which the ledger must go on from.
        """
        from fairall.live.status import status

        of_ledger = self.store, self.about, self.settings, self.acceptance
        return status(*of_ledger, modules=self.modules, head=head)

    @property
    def figures(self) -> tuple[str, ...]:
        """Names of the figures."""
        return "acceptance", "value"

    def _draw(self, what: str, axes: Axes) -> None:
        """Draw the acceptance of the groups by batch, or the differences in value of versions."""
        from fairall.live import page  # imports matplotlib

        (page.draw_value if what == "value" else page.draw_acceptance)(self.status(), axes)

    def promote(self, version: int) -> bool:
        """Put a version on duty, or back on duty; return whether anything has changed.

        Learning goes on from it: of versions made since the last promotion nothing is kept.

        Raises:
            FairAllError: where there is no such version.
        """
        version = whole_number("version", version)
        self.about  # noqa: B018  refuses what is no ledger
        with self.store.writing() as connection:
            versions.lineage(connection, version)
            if self._duty(connection) == version == self._parent(connection)[0]:
                return False
            self._promote(connection, version, "by hand")
        return True

    def withdraw(self, person: str) -> list[int]:
        """Leave out an application that was entered by mistake, for instance with a wrong time.

        Its rows stay, but nothing counts them any more: neither the latest time, nor learning, comparisons of
        versions, logs and counts. What versions have learnt stays in their weights. The id cannot be used
        again: the application, if there is one, needs a new id.

        Returns:
            The versions that have learnt from the person.

        Raises:
            FairAllError: where the person is not there, or the application was withdrawn already.
        """
        self.about  # noqa: B018  refuses what is no ledger
        with self.store.writing() as connection:
            known, learnt = self._application(connection, person)
            if known["withdrawn"]:
                raise FairAllError(f"{person}: was withdrawn already")
            chain.append(connection, WITHDRAWN, [{"application": int(known["id"]), "at": _now()}])
        return learnt

    def forget(self, person: str) -> list[int]:
        """Erase the features of a person from the ledger and from the memory of all versions.

        The id, the decision, the group and the outcome stay, so that counts do. What a version has learnt
        stays in its weights, in those of trees as a bound that is a value of the person; a version that has
        learnt from the person cannot be made again.

        Returns:
            The versions that have learnt from the person or were made from such, which may hold values.

        Raises:
            FairAllError: where the person is not there, or was forgotten already.
        """
        kept = self.about
        with self.store.writing() as connection:
            known, learnt = self._application(connection, person)
            if pd.isna(known["features"]):
                raise FairAllError(f"{person}: was forgotten already")
            number, entry = int(known["id"]), int(known["entry"])
            x = tables.encoded([known["features"]], self._on_duty(connection, kept).policy.reader)[0]
            salt = connection.execute(sql.select(CHAIN.c.salt).where(CHAIN.c.id == entry)).scalar_one()
            hashed = chain.features_hash(salt, known["features"])
            chain.append(connection, FORGOTTEN, [{"application": number, "at": _now(), "features": hashed}])
            own = sql.update(APPLICATIONS).where(APPLICATIONS.c.id == number)
            connection.execute(own.values(features=None))
            connection.execute(sql.update(CHAIN).where(CHAIN.c.id == entry).values(salt=None))
            for version in connection.scalars(sql.select(VERSIONS.c.id)).all() if learnt else []:
                row = chain.version(connection, version)
                parts = {name: unpacked(row[name]) for name in ("state", "memory")}
                if blanked(parts, x):
                    columns: dict[str, Any] = {name: packed(one) for name, one in parts.items()}
                    checksum = chain.checksum(row | columns)
                    chain.append(connection, ERASED, [{"version": version, "sum": checksum}])
                    connection.execute(sql.update(VERSIONS).where(VERSIONS.c.id == version).values(**columns))
        self._read = {}
        return learnt

    def _on_duty(self, connection: sql.Connection, kept: dict[str, str]) -> Version:
        """The version on duty, as decisions need it."""
        number = self._duty(connection)
        if number not in self._read:
            self._read = {number: versions.read(connection, kept, number, modules=self.modules)}
        return self._read[number]

    def _timed(self, connection: sql.Connection) -> bool | None:
        """Whether the people of the last batch had times; None where there is none."""
        (last,) = chain.read(connection, BATCHES, newest=True)
        return stored(Words, last.words).timed

    def _duty(self, connection: sql.Connection) -> int:
        """The number of the version on duty."""
        (last,) = chain.read(connection, DUTY, newest=True)
        number: int = last.version
        return number

    def _parent(self, connection: sql.Connection) -> tuple[int, int]:
        """The version that learning goes on from, and the newest one."""
        (duty,) = chain.read(connection, DUTY, newest=True)
        newest = connection.execute(sql.select(sql.func.max(VERSIONS.c.id))).scalar_one()
        return (newest if newest > duty.newest else duty.version), newest

    def _promote(self, connection: sql.Connection, version: int, why: str) -> None:
        newest = connection.scalar(sql.select(sql.func.max(VERSIONS.c.id)))
        row = {"version": version, "newest": newest, "at": _now(), "why": why}
        chain.append(connection, DUTY, [row])

    def _applications(self, connection: sql.Connection, ids: Sequence[str]) -> pd.DataFrame:
        """What is known of N ids, which are the index: columns of `APPLICATIONS`, missing where nothing is.

        Besides, `version` decided, `withdrawn` says whether the application was, and `gone` whether it was or
        the person was forgotten.
        """
        known = chain.frame(connection, APPLICATIONS, APPLICATIONS.c.person, ids)
        batches = chain.read(connection, BATCHES, BATCHES.c.id, known["batch"].unique().tolist())
        known["version"] = known["batch"].map({row.id: row.version for row in batches})
        withdrawn = chain.read(connection, WITHDRAWN, WITHDRAWN.c.application, known["id"].tolist())
        known["withdrawn"] = known["id"].isin([row.application for row in withdrawn])
        known["gone"] = known["features"].isna() | known["withdrawn"]
        known = known.set_index("person").reindex(ids)
        return known.assign(gone=known["gone"].eq(True))

    def _application(self, connection: sql.Connection, person: str) -> tuple[pd.Series, list[int]]:
        """The row of `_applications` of an id, and the versions that may hold values of the person.

        These have learnt from the person, or were made from such.

        Raises:
            FairAllError: where the id is not there.
        """
        known = self._applications(connection, identifiers(pd.Series([person])).tolist()).iloc[0]
        if pd.isna(known["id"]):
            raise FairAllError(f"{person}: has not been decided on; nothing is known")
        learnt = sql.select(LEARNT.c.version).where(LEARNT.c.application == int(known["id"]))
        return known, versions.with_descendants(connection, connection.scalars(learnt).all())

    def _doubt(self, duty: Version, rows: pd.DataFrame, before: float | None) -> str | None:
        """`guard.unexpected` of the outcomes of people, of which `before` were good in the last learning."""
        own, policy, expected = rows[rows["label"].notna()], duty.policy, None
        if own.empty:
            return None
        if policy.estimates_label:
            expected = policy.combined(policy.encoded_label_probability(*self._encoded(duty, own)))
        return unexpected(own["label"].to_numpy(dtype=float), before, expected)

    def _encoded(self, version: Version, rows: pd.DataFrame) -> tuple[Tensor, Tensor]:
        """X (N, D) and s (N,) of people."""
        s = torch.tensor(rows["s"].to_numpy(dtype=float), dtype=torch.float32)
        return tables.encoded(rows["features"].tolist(), version.policy.reader), s

    def _probability(self, version: Version, rows: pd.DataFrame) -> np.ndarray:
        """Acceptance probabilities of people (N,) by a version, without exploration."""
        if rows.empty:
            return np.zeros(0)
        return version.policy.combined(version.policy.encoded_propensity(*self._encoded(version, rows)))

    def acceptance(self, version: Version, rows: pd.DataFrame) -> np.ndarray:
        """Acceptance probabilities (N,) of people of a `Log` by a version, with the share for exploration."""
        probability = self._probability(version, rows)
        return probability + (1.0 - probability) * self.settings.explore

    def _changes(self, after: Version, rows: pd.DataFrame, before: np.ndarray) -> dict[str, Any]:
        """Changes of the acceptance probabilities `before` (N,) of people."""
        try:
            probability = self._probability(after, rows)
        except FairAllError as error:
            raise FairAllError(f"learning has diverged, and no version was made: {error}") from error
        both = pd.DataFrame({"before": before, "after": probability}).groupby(rows["s"].to_numpy()).mean()
        name = after.policy.reader.group_name
        groups = {name(float(s)): [float(b), float(a)] for s, b, a in both.itertuples()}
        return {"changed": float(np.abs(probability - before).mean()), "acceptance": groups}


def _drawn(text: str) -> float:
    """A number in [0, 1) that a text determines, as if it were drawn."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big") / 2**56


def _now() -> int:
    return int(time.time())
