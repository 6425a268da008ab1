"""A ledger: decide on people, take in their outcomes, learn from them, and put versions on duty."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import sqlalchemy as sql
import torch

import fairall
from fairall.config.checks import require, whole_number
from fairall.data.people import People, float32
from fairall.decide.reasons import BY_GROUP, LAWFUL, LEAST, elsewhere, reasons
from fairall.decide.refer import Refer
from fairall.display.viewed import Viewed
from fairall.errors import FairAllError
from fairall.live import chain, versions
from fairall.live import people as tables
from fairall.live.due import due
from fairall.live.guard import Log, compared, lacking, log_of, unexpected
from fairall.live.people import Applicants
from fairall.live.record import (
    FORGOTTEN,
    WITHDRAWN,
    applications,
    latest_times,
    lineage,
    record,
    with_descendants,
)
from fairall.live.settings import PREFIX, Settings
from fairall.live.state import blanked, packed, unpacked
from fairall.live.store import (
    ABOUT,
    APPLICATIONS,
    BATCHES,
    DUTY,
    FORMAT,
    LEARNT,
    OUTCOMES,
    OVERRIDES,
    REMOVED,
    STATES,
    VERSIONS,
    Store,
    newest,
)
from fairall.live.versions import Version
from fairall.runtime.randomness import SeedStreams
from fairall.storage.stored import why_no_file
from fairall.tables.cells import RowsError, identifiers, refuse
from fairall.worlds.capacity import lottery, n_places

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_AT_ONCE = 100_000  # people of a call of `decide`
MOST_WITH_PLACES = 20_000  # exact propensities take time in the square of the number of people
GROUPS = "people", "acceptance", "outcomes", "value"  # what `summary` shows of them
GONE = "was forgotten or withdrawn"
MOST_OF_REPORT = 10_000  # people whose probabilities before and after learning are compared


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

    panels = ("acceptance", "value")

    def __init__(self, place: str | Path, *, modules: Collection[str] = ()) -> None:
        if not isinstance(place, str | Path):
            raise FairAllError(f"{place!r}: give the path of an SQLite file, or the URL of a database")
        self.store = Store(place)
        wrong = self.store.path and why_no_file(self.store.path)
        if wrong and wrong.startswith("cannot be read"):
            raise FairAllError(f"{self.store.name}: {wrong}")
        self.modules = modules
        self._deciding: Version | None = None

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
        columns, outcomes = version.policy.reader.columns, versions.outcome_words(version.config)
        settings = Settings.read(of_live, columns, **outcomes)
        kept = version.about | {"settings": json.dumps(asdict(settings))}
        kept |= {"format": str(FORMAT), "fairall": fairall.__version__}
        report = {"words": words, "good": version.good}
        with ledger.store.making() as connection:
            chain.append(connection, ABOUT, [{"key": key, "value": text} for key, text in kept.items()])
            chain.append(connection, VERSIONS, [{"report": json.dumps(report)}])
            chain.append(connection, STATES, [{"version": 1, "state": version.packed()}])
            chain.append(connection, BATCHES, [{"state": version.luck}])
            chain.append(connection, DUTY, [{"version": 1, "why": "the first version", "by": ""}])
        return ledger

    @property
    def opened(self) -> Store:
        """The store, which is that of a ledger."""
        _ = self.about
        return self.store

    @cached_property
    def about(self) -> dict[str, str]:
        """What the ledger was started with: settings, configuration and features, as text."""
        with self.store.reading(own=False) as connection:
            there = sql.inspect(connection).has_table(ABOUT.name)
            rows = connection.execute(sql.select(ABOUT.c.key, ABOUT.c.value)) if there else ()
            found = {row.key: row.value for row in rows}
            if "format" not in found:
                raise FairAllError(f"{self.store.name}: is no ledger of fairall")
            if found["format"] != str(FORMAT):
                raise FairAllError(
                    f"{self.store.name}: a ledger of format {found['format']}, and this version of fairall "
                    f"reads format {FORMAT}: go on with fairall {found.get('fairall')}, which made it"
                )
            return {row.key: row.value for row in chain.read(connection, ABOUT)}

    @cached_property
    def settings(self) -> Settings:
        """What the ledger was started with."""
        return Settings(**json.loads(self.about["settings"]))

    def decide(
        self,
        people: pd.DataFrame,
        *,
        capacity: int | float | None = None,
        most_reasons: int | None = None,
        wording: Mapping[str, str] = MappingProxyType({}),
        refer: Refer | None = None,
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
            refer: which of the new people are left to a person, who decides with `override`; they take no
                place. None: nobody.
            skip: whether to leave out rows that cannot be decided on, instead of refusing the table.
            confirm_times: whether times may be more than 31 days after all others.

        Returns:
            A row for each who is not left out, with the index of `people`: the id, `decision` (1 or 0) that
            stands, `propensity` with which it was positive, `version` that was on duty, `new`, whether it was
            now, and `referred`. The propensity of a person's decision is missing, and so are both where
            nobody has decided yet.
            `attrs["notes"]` has doubts about values, a sentence each, and `attrs["left_out"]` the reasons by
            the position of a row from 0.

        Raises:
            FairAllError: where a value is not possible, a person is there with other values, or nobody is
                left.
        """
        settings, left_out = self.settings, dict[int, str]()
        with self.opened.writing() as connection:
            version, batch, given = self._on_duty(connection), chain.last(connection, BATCHES), None
            left = people.reset_index(drop=True) if isinstance(people, pd.DataFrame) else people
            while given is None:
                try:
                    given, found = self._applicants(connection, version, batch, left, confirm_times)
                except RowsError as error:
                    if len(error.reasons) == len(left):
                        raise
                    if not skip and error.why != GONE:
                        raise FairAllError(f"{error}; --skip (skip=True) decides on the others") from error
                    rows = left.index[[*error.reasons]]
                    left_out |= dict(zip(rows.tolist(), error.reasons.values(), strict=True))
                    left = left.drop(index=rows)
            new = np.isnan(found[:, 2])
            if new.any():
                rows = np.flatnonzero(new)
                found[new] = self._decide(connection, version, batch, given, rows, capacity, refer)
            stands, propensity, numbers, by_policy = found.T
            columns = {
                settings.id: given.ids,
                "decision": pd.array(stands, dtype="Int64"),
                "propensity": propensity,
                "version": numbers.astype(int),
                "new": new,
                "referred": np.isnan(by_policy),
            }
            decided = pd.DataFrame(columns, index=people.index[left.index])
            if most_reasons is not None:
                decided["reasons"], more = self._reasons(connection, decided, most_reasons, wording)
                given.notes.extend(more)
        decided.attrs |= {"notes": given.notes, "left_out": left_out}
        return decided

    def _decide(
        self,
        connection: sql.Connection,
        version: Version,
        batch: Any,
        given: Applicants,
        rows: np.ndarray,
        capacity: int | float | None,
        refer: Refer | None,
    ) -> np.ndarray:
        """Decide on the people at `rows` (N,), and insert them as a batch after the last one, `batch`.

        Returns:
            As of `_applicants`, shape (N, 4); NaN but for the version of those who are referred.
        """
        settings, process, seeds, n = self.settings, version.process, version.policy.seeds, len(rows)
        if n > MOST_AT_ONCE:
            raise FairAllError(f"{n} people are too many at once: give tables of {MOST_AT_ONCE} at most")
        version.draw_on(batch.state)
        x, s = given.x[rows].expand(len(seeds), n, -1), given.s[rows].expand(len(seeds), n)
        wanted = process.decide(People(x, s, torch.zeros_like(s)))
        assert wanted.uniform is not None
        uniform, propensity = wanted.uniform[0], wanted.propensity.detach()
        combined = version.policy.combined(propensity.numpy())  # raises where the version has diverged
        propensity = propensity[0] if len(seeds) == 1 else float32(combined)
        referred = np.zeros(n, dtype=bool)
        if refer is not None:
            referred = refer.people(version.policy, x[0], s[0], propensity.double().numpy())
        propensity = self._explored(propensity)
        propensity[referred] = 0.0
        accepted, places = uniform < propensity, None
        if capacity is not None:
            places = n_places(capacity, n, "capacity")
            if n > MOST_WITH_PLACES:
                raise FairAllError(
                    f"capacity: exact propensities are for {MOST_WITH_PLACES} people at most, not {n}"
                )
            lot = SeedStreams(seeds[:1], f"places of batch {batch.id}").uniform(n)[0]
            rank = lot.where(accepted, -1.0).argsort(descending=True).argsort()
            accepted = accepted & (rank < places)
            propensity = lottery(propensity.unsqueeze(0), places)[0]
        process.taken.add(accepted.expand(len(seeds), n))
        row = {"timed": int(given.timed), "places": places, "state": version.luck}
        chain.erase(connection, BATCHES, [batch])  # the state before
        chain.append(connection, BATCHES, [row])
        ids, decided, unknown = [given.ids[row] for row in rows], propensity.double().numpy(), np.array(None)
        columns = {
            "person": ids,
            "time": given.time[rows].tolist(),
            "features": [given.features[row] for row in rows],
            "s": given.s[rows].int().tolist(),
            "propensity": np.where(referred, unknown, decided).tolist(),
            "uniform": uniform.double().tolist(),
            "accepted": np.where(referred, unknown, accepted.int().numpy()).tolist(),
            "held": [int(_drawn(f"{seeds[0]} held out {person}") < settings.held_out) for person in ids],
            "batch": [batch.id + 1] * n,
            "version": [version.number] * n,
        }
        people = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        chain.append(connection, APPLICATIONS, people)
        made, known = np.where(referred, np.nan, [accepted.numpy(), decided])
        return np.column_stack([made, known, columns["version"], made])

    def _reasons(
        self, connection: sql.Connection, decided: pd.DataFrame, most: int, wording: Mapping[str, str]
    ) -> tuple[np.ndarray, list[str]]:
        """`decide.reasons` of those whom a policy rejected, shape (N,), "" for the others; and notes."""
        texts = pd.Series("", index=decided[self.settings.id])
        by_policy = decided["decision"].eq(0) & decided["propensity"].notna()
        there, more = chain.read(connection, APPLICATIONS, "person", texts.index[by_policy].tolist()), 0
        for number, rows in applications(connection, there).groupby("version"):
            version = self.version(connection, int(number))
            accepted, people = self.acceptance(version, rows), version.encoded(rows)
            crowded = rows["uniform"].to_numpy() < accepted
            texts[rows["person"]] = reasons(version.policy, *people, crowded, most, wording, "mean")
            in_any = self._explored(elsewhere(version.policy, *people, "mean"))
            more += int((in_any > accepted + LEAST).sum())
        notes = [BY_GROUP.format(more, len(there), "likelier to be "), LAWFUL] if more else []
        return texts.to_numpy(), notes

    def _applicants(
        self,
        connection: sql.Connection,
        version: Version,
        batch: Any,
        people: pd.DataFrame,
        confirm_times: bool,
    ) -> tuple[Applicants, np.ndarray]:
        """A table of N people after the last `batch`, and what stands of those who have been decided on.

        Returns:
            The people; decision, propensity, version, and the policy's own decision, shape (N, 4), of new
            people NaN.

        Raises:
            FairAllError: as `decide`, where anybody cannot be decided on.
        """
        settings = self.settings
        ids = tables.ids_of(people, settings)
        column = people[settings.id]
        there = chain.read(connection, APPLICATIONS, "person", ids)
        found, new, known = np.full((len(ids), 4), np.nan), np.ones(len(ids), dtype=bool), None
        if there:
            known = _by_person(connection, there, ids)
            refuse(column, known[[FORGOTTEN, WITHDRAWN]].eq(True).any(axis=1), GONE)
        given = tables.applicants(people, ids, version.policy.reader, version.scaler, settings)
        if known is not None:
            new, (x, s) = known["id"].isna().to_numpy(), version.encoded(known)
            other = ((x != given.x).any(1) | (s != given.s)).numpy()
            late = (known["time"] != given.time) & given.timed
            for wrong, how in ((other, "with other features"), (late, "at another time")):
                refuse(column, wrong & ~new, f"has been decided on {how}; an id stands for one application")
            stands = known["accepted"].where(known["undecided"].eq(False))
            propensity = known["propensity"].where(known["override"].isna())
            found = np.column_stack([stands, propensity, known["version"], known["decision"]]).astype(float)
        if new.any() and batch.timed not in (None, given.timed):
            why = "this table is unlike those before; either all tables of a ledger have times or none"
            raise FairAllError(f"column {settings.time!r}: {why}")
        last, now = latest_times(connection)
        if given.timed:
            early = new & (given.time < last - tables.LATE)
            why = f"is before the last application, of {tables.told(last)}: times may not run backwards"
            how = "fairall live withdraw leaves that one out if it is wrong"
            refuse(people[settings.time], early, f"{why}; {how}")
        if not confirm_times:
            tables.require_near(people, given.time, now, settings)
        return given, found

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
        with self.opened.writing() as connection:
            ids = tables.ids_of(table, settings)
            known = _by_person(connection, chain.read(connection, APPLICATIONS, "person", ids), ids)
            column, timed, now = settings.id, settings.time in table, latest_times(connection)[1]
            refuse(table[column], known["id"].isna(), "has not been decided on: an outcome needs a decision")
            gone = (known[FORGOTTEN] | known[WITHDRAWN]).to_numpy()
            table, known = table[~gone], known[~gone]
            by_default = now if chain.last(connection, BATCHES).timed else int(time.time())
            label, times = tables.outcomes(table, settings, by_default)
            waits = "waits for the decision of a person: fairall live override"
            refuse(table[column], known["undecided"], waits)
            refuse(table[column], ~known["accepted"], "was rejected: an outcome needs an acceptance")
            # A time at midnight may be all that is known of the day.
            early = times + (tables.DAY - 1) * (times % tables.DAY == 0) < known["time"]
            refuse(table[settings.time if timed else column], early, "is before the application")
            if not confirm_times:
                tables.require_near(table, times, now, settings)
            before, changed = known["label"].notna(), known["label"] != label
            if timed:
                changed |= known["known_at"] != times
            rows = pd.DataFrame({"application": known["id"], "label": label, "time": times})[changed]
            chain.append(connection, OUTCOMES, rows.to_dict("records"))
        told = {"new": ~before, "corrected": before & changed, "known": ~changed, "left_out": gone}
        return {name: int(some.sum()) for name, some in told.items()}

    def learn(self, *, dry_run: bool = False) -> dict[str, Any]:
        """Make a version that has learnt from all that is new, by the updates of a time step.

        It goes on from the newest version since the last promotion, or from the one on duty. The same ledger
        gives the same version, to the byte.

        Args:
            dry_run: whether to write nothing.

        Returns:
            `version` (None where nothing is new, or nothing was written), its `parent`, `people` learnt from,
            `labels` of them, the share of `good` ones, `updates`; `waiting`, `young` and `undecided` (`Due`);
            `changed`, the mean change of the acceptance probability of these people, and `acceptance` by
            group, before and after; `guard`, how it compares with the policy on duty (`guard.compared`), with
            `doubt`, why its outcomes are doubtful (`guard.unexpected`), and `promoted`.

        Raises:
            FairAllError: where learning diverges, or another process has learnt meanwhile.
        """
        settings = self.settings
        with self.opened.reading() as connection:
            rows = record(connection)
            began = newest(connection, VERSIONS, DUTY, REMOVED)
            parent, last = self._learns_from(connection), began[0]
            before = self.version(connection, parent, whole=True)
            duty, ancestors = self._on_duty(connection), lineage(connection, parent)
        people, *others = due(rows, ancestors, settings, before.config.schedule)
        told: dict[str, Any] = {"version": None, "parent": parent, "people": len(people)}
        told |= dict(zip(("waiting", "young", "undecided"), others, strict=True))
        if people.empty:
            return told
        updates = [before.update(part) for _, part in people.groupby("part")]
        some, label = people.iloc[-MOST_OF_REPORT:], people["label"].dropna()
        probability = before.probability(some)
        after = before.learnt(updates)
        told |= {"labels": len(label), "good": float(label.mean()) if len(label) else None}
        told |= {"updates": len(updates)} | self._changes(after, some, probability)
        held = log_of(rows, before, settings, held=True)
        first, second = (self.acceptance(version, held.rows) for version in (duty, after))
        guard = compared(held, first, second, settings.gap, last)
        good = json.loads(rows.versions["report"].iloc[parent - 1])["good"]
        guard["doubt"] = self._doubt(duty, some[some["label"].notna()], good)
        if guard["better"] and guard["doubt"]:
            guard |= {"better": False, "why": guard["doubt"]}
        told |= {"guard": guard, "promoted": False}
        if dry_run:
            return told
        state, number = after.packed(), last + 1
        learnt = people[["outcome", "override", "part"]].astype("Int64").astype(object)
        learnt = learnt.where(learnt.notna(), None).assign(application=people.index, version=number)
        with self.store.writing() as connection:
            if newest(connection, VERSIONS, DUTY, REMOVED) != began:
                raise FairAllError(f"{self.store.name}: another process has changed it meanwhile: try again")
            report = json.dumps(told | {"clock": rows.clock})
            chain.append(connection, VERSIONS, [{"parent": parent, "report": report}])
            chain.append(connection, STATES, [{"version": number, "state": state}])
            chain.append(connection, LEARNT, learnt.to_dict("records"))
            if settings.promote == "if_better" and guard["better"]:
                chain.append(connection, DUTY, [{"version": number, "why": guard["why"], "by": ""}])
                told["promoted"] = True
        return told | {"version": number}

    def log(self) -> Log:
        """The decisions so far, with their exact propensities, as a log for `fairall evaluate`."""
        with self.opened.reading() as connection:
            return log_of(record(connection), self._on_duty(connection), self.settings)

    @property
    def title(self) -> str:
        """Where it is, and the version on duty."""
        with self.opened.reading() as connection:
            return f"{self.store.name}, version {chain.last(connection, DUTY).version} on duty"

    def to_frame(self) -> pd.DataFrame:
        """The decisions so far, a row per person who was not forgotten or withdrawn: the frame of `log`."""
        return self.log().frame

    def summary(self) -> pd.DataFrame:
        """A row per group: `people`, share `accepted`, `outcomes` as old as the horizon, and their `value`.

        The value is of an accepted person: the share of good outcomes less the cost, or in money with
        amounts; NaN without outcomes.
        `status` adds intervals, versions, drift and alarms.
        """
        groups = pd.DataFrame(self.status()["groups"], columns=["group", *GROUPS]).set_index("group")
        for name in ("acceptance", "value"):
            groups[name] = groups[name].str[0].astype(float)  # without its interval
        return groups.rename(columns={"acceptance": "accepted"}).rename_axis(None)

    def status(self, head: str | None = None) -> dict[str, Any]:
        """Where the ledger stands, as `fairall live status --json` shows it; see `live.status.status`.

        Args:
            head: `head` of an earlier status, which the ledger must go on from.

        Raises:
            FairAllError: where the chain of hashes does not go on from `head`.
        """
        from fairall.live.status import status

        with self.opened.reading() as connection:
            rows, duty = record(connection), self._on_duty(connection)
        if head is not None and head.lower() not in rows.links:
            raise FairAllError(
                f"{self.store.name}: does not go on from the head {head:.64}: rows were removed or changed "
                "since then, or the head is not whole; compare with a copy"
            )
        held = log_of(rows, duty, self.settings, held=True)
        return status(rows, duty, self.settings, lacking(held, self.acceptance(duty, held.rows)))

    def waiting(self) -> pd.DataFrame:
        """Who is waited for, without those who were forgotten or withdrawn.

        First come those who wait for a decision, then the longest overdue.

        Returns:
            A row for each person: the id, `applied` and `due`, when the outcome is as old as the horizon
            (missing without one), `overdue`, whole days since then by the latest time in the ledger (missing
            where it is not), and `waits_for`, the `outcome`, or of somebody who was referred the `decision`.
        """
        from fairall.live.status import waiting

        with self.opened.reading() as connection:
            return waiting(record(connection), self.settings)

    def _draw(self, what: str, axes: Axes) -> None:
        """Draw the acceptance of the groups by batch, or the differences in value of versions."""
        from fairall.live import page  # imports matplotlib

        (page.draw_value if what == "value" else page.draw_acceptance)(self.status(), axes)

    def override(self, person: str, accepted: bool, *, by: str, why: str) -> bool:
        """Record that a person decides on somebody, instead of the policy or after it.

        The last decision stands; the policy's own and its propensity stay beside it. One that agrees with
        what stands is recorded, too. Versions learn from the outcome of whoever was accepted, without a
        propensity.

        Args:
            person: id.
            accepted: the decision.
            by: who decided.
            why: the reason; it is erased where the person is forgotten.

        Returns:
            Whether anything was recorded; nothing is where it is the last decision again.

        Raises:
            FairAllError: where the person is not there, the outcome is known already, or a name or reason is
                lacking or no text.
        """
        require(isinstance(accepted, bool), "accepted", accepted, "True or False")
        row = {"accepted": int(accepted), "by": tables.text("by", by), "why": tables.text("why", why)}
        if not by.strip() or not why.strip():
            raise FairAllError("say who has decided, and why: --by NAME --why TEXT (by= and why=)")
        with self.opened.writing() as connection:
            known = self._known(connection, person)
            for how in (FORGOTTEN, WITHDRAWN):
                if known[how]:
                    raise FairAllError(f"{person}: was {how}; nothing is decided any more")
            before = chain.read(connection, OVERRIDES, "application", [known["id"]])
            if before and row.items() <= before[-1]._asdict().items():
                return False
            if pd.notna(known["label"]):
                raise FairAllError(f"{person}: the outcome is known; a decision is taken before it")
            chain.append(connection, OVERRIDES, [row | {"application": known["id"]}])
        return True

    def promote(self, version: int, *, by: str = "") -> bool:
        """Put a version on duty, or back on duty; return whether anything has changed.

        Learning goes on from it: of versions made since the last promotion nothing is kept.

        Args:
            version: its number.
            by: who does it, for the record; likewise in `withdraw` and `forget`.

        Raises:
            FairAllError: where there is no such version.
        """
        version, by = whole_number("version", version), tables.text("by", by)
        with self.opened.writing() as connection:
            lineage(connection, version)
            if chain.last(connection, DUTY).version == version == self._learns_from(connection):
                return False
            chain.append(connection, DUTY, [{"version": version, "why": "by hand", "by": by}])
        return True

    def withdraw(self, person: str, *, by: str = "") -> list[int]:
        """Leave out an application that was entered by mistake, for instance with a wrong time.

        Its rows stay, but nothing counts them any more: neither the latest time, nor learning, comparisons of
        versions, logs and counts. What versions have learnt stays in their weights. The id cannot be used
        again: the application, if there is one, needs a new id.

        Returns:
            The versions that have learnt from the person.

        Raises:
            FairAllError: where the person is not there, or the application was withdrawn already.
        """
        with self.opened.writing() as connection:
            return self._remove(connection, person, WITHDRAWN, by)[1]

    def forget(self, person: str, *, by: str = "") -> list[int]:
        """Erase the features of a person from the ledger and from the memory of all versions.

        With them go the reasons of decisions that people took on the person. The id, the decision, the group
        and the outcome stay, so that counts do. What a version has learnt stays in its weights, in those of
        trees as a bound that is a value of the person; a version that has learnt from the person cannot be
        made again.

        Returns:
            The versions that have learnt from the person or were made from such, which may hold values.

        Raises:
            FairAllError: where the person is not there, or was forgotten already.
        """
        with self.opened.writing() as connection:
            duty = self._on_duty(connection)  # which may remember the person
            known, learnt = self._remove(connection, person, FORGOTTEN, by)
            x = duty.encoded(known.to_frame().T)[0][0]
            for table, name in ((APPLICATIONS, "id"), (OVERRIDES, "application")):
                chain.erase(connection, table, chain.read(connection, table, name, [known["id"]]))
            for row in chain.read(connection, VERSIONS) if learnt else ():
                old = chain.last(connection, STATES, "version", row.id)
                whole = row.id in learnt  # others have no scores of the person
                memories = self.version(connection, row.id, whole=True).memories if whole else {}
                state = packed(blanked(unpacked(old.state), x, memories))
                if state != old.state:
                    chain.append(connection, STATES, [{"version": row.id, "state": state}])
                    chain.erase(connection, STATES, [old])
        self._deciding = None
        return learnt

    def version(self, connection: sql.Connection, number: int, *, whole: bool = False) -> Version:
        """A version, as of `versions.read`."""
        return versions.read(connection, self.about, number, modules=self.modules, whole=whole)

    def _on_duty(self, connection: sql.Connection) -> Version:
        """The version on duty, as decisions need it."""
        number = chain.last(connection, DUTY).version
        if self._deciding is None or self._deciding.number != number:
            self._deciding = self.version(connection, number)
        return self._deciding

    def _learns_from(self, connection: sql.Connection) -> int:
        """The version that learning goes on from."""
        duty, version = chain.last(connection, DUTY), chain.last(connection, VERSIONS)
        return version.id if version.entry > duty.entry else duty.version

    def _known(self, connection: sql.Connection, person: str) -> pd.Series:
        """The row of `_by_person` of a person; raises FairAllError where the id is not there."""
        ids = identifiers(pd.Series([person])).tolist()
        rows = chain.read(connection, APPLICATIONS, "person", ids)
        if not rows:
            raise FairAllError(f"{person}: has not been decided on; nothing is known")
        return _by_person(connection, rows, ids).astype(object).iloc[0]

    def _remove(
        self, connection: sql.Connection, person: str, how: str, by: str
    ) -> tuple[pd.Series, list[int]]:
        """Record that an application was withdrawn, or a person forgotten.

        Returns:
            The row of `_known` before, and the versions that may hold values of the person:
            these have learnt from the person, or were made from such.

        Raises:
            FairAllError: where the id is not there, or that was done already.
        """
        known = self._known(connection, person)
        if known[how]:
            raise FairAllError(f"{person}: was {how} already")
        row = {"application": known["id"], "how": how, "by": tables.text("by", by)}
        chain.append(connection, REMOVED, [row])
        learnt = chain.read(connection, LEARNT, "application", [known["id"]])
        versions = chain.read(connection, VERSIONS)
        return known, with_descendants(versions, [row.version for row in learnt])

    def _doubt(self, duty: Version, rows: pd.DataFrame, before: float | None) -> str | None:
        """`guard.unexpected` of the outcomes of people, of which `before` were good in the last learning."""
        if rows.empty:
            return None
        policy, expected = duty.policy, None
        if policy.estimates_label:
            expected = policy.combined(policy.encoded_label_probability(*duty.encoded(rows)))
        return unexpected(rows["label"].to_numpy(dtype=float), before, expected)

    def acceptance(self, version: Version, rows: pd.DataFrame) -> np.ndarray:
        """Acceptance probabilities (N,) of people of a `Log` by a version, with the share for exploration."""
        return self._explored(version.probability(rows))

    def _explored(self, probability: Any) -> Any:
        """Acceptance probabilities with the share for exploration, an array or a tensor as given."""
        return probability + (1.0 - probability) * self.settings.explore

    def _changes(self, after: Version, rows: pd.DataFrame, before: np.ndarray) -> dict[str, Any]:
        """Changes of the acceptance probabilities `before` (N,) of people."""
        try:
            probability = after.probability(rows)
        except FairAllError as error:
            raise FairAllError(f"learning has diverged, and no version was made: {error}") from error
        both = pd.DataFrame({"before": before, "after": probability}).groupby(rows["s"].to_numpy()).mean()
        name = after.policy.reader.group_name
        groups = {name(float(s)): shares for s, shares in both.T.to_dict("list").items()}
        return {"changed": float(np.abs(probability - before).mean()), "acceptance": groups}


def _by_person(connection: sql.Connection, rows: Sequence[Any], ids: Sequence[str]) -> pd.DataFrame:
    """`record.applications`, a row for each of N ids of people, whose values are missing without one."""
    return applications(connection, rows).reset_index().set_index("person").reindex(ids)


def _drawn(text: str) -> float:
    """A number in [0, 1) that a text determines, as if it were drawn."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:14], 16) / 2**56
