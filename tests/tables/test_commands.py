"""Six commands read one table alike: kinds, groups, refusals and warnings, with the keys of each."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairall.config import compose
from fairall.data import describe
from fairall.data.own_table import PREFIX, OwnTable
from fairall.decide import explain
from fairall.errors import FairAllError
from fairall.evaluate.log import DecisionLog
from fairall.experiment import Job, job
from fairall.policy import Policy
from fairall.tables.groups import display_name
from tests.conftest import Ended, typed

N = 200
KEYS = {
    "label": "repaid",
    "positive": "good",
    "sensitive": "sex",
    "advantaged": "m",
    "decision": "granted",
    "accepted": "yes",
}
KINDS = {"income": "real", "age": "real", "children": "count", "owner": "binary", "job": "categorical"}
OUT, FIX = "left out: ", "to fix: "
ANOTHER, NUMBERS = OUT + "it has another whole number in each row", OUT + "it numbers the rows"
NAMED = OUT + "its name is that of "
draw = np.random.default_rng(0)


def applicants() -> pd.DataFrame:
    """Decisions that depend on nothing, and labels of the accepted."""
    some = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "income": some.normal(2000, 400, N).round(2),
            "age": some.integers(18, 80, N),
            "children": some.integers(0, 5, N),
            "owner": some.choice(["yes", "no"], N),
            "job": some.choice(["clerk", "cook", "nurse"], N),
            "sex": some.choice(["f", "m"], N),
            "granted": some.choice(["yes", "yes", "no"], N),
            "outcome_known_to_nobody": some.choice(["good", "bad"], N),
        }
    )
    return table.rename(columns={"outcome_known_to_nobody": "repaid"}).assign(
        repaid=lambda known: known["repaid"].where(known["granted"] == "yes", None)
    )


PEOPLE = applicants()
ACCEPTED = (PEOPLE["granted"] == "yes").to_numpy()
WOULD_REPAY = np.where(PEOPLE["repaid"].isna(), draw.choice(["good", "bad"], N), PEOPLE["repaid"])


@dataclass(frozen=True)
class Case:
    """A table, and what every command says of it; `~` stands for `dataset.` before the keys of a run.

    Attributes:
        name: of the case.
        columns: in place of those of `applicants`, or before them.
        taken: by column its kind, `OUT` with a reason, or `FIX` with a fault; of others see `KINDS`.
        keys: that differ from `KEYS`, None for one that is not given.
        groups: names, sorted.
        faults: of columns with a role, a line each; those of a run alone in `of_run`, of a log in `of_log`.
        says: by column the parts of the one note or warning that names it.
        parquet: whether the file is one.
    """

    name: str
    columns: Mapping[str, Any] = field(default_factory=dict)
    taken: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, str | None] = field(default_factory=dict)
    groups: tuple[str, ...] = ("f", "m")
    faults: tuple[str, ...] = ()
    of_run: tuple[str, ...] = ()
    of_log: tuple[str, ...] = ()
    says: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    parquet: bool = False

    @property
    def table(self) -> pd.DataFrame:
        table = PEOPLE.assign(**self.columns)
        return table[[*self.columns, *(name for name in PEOPLE if name not in self.columns)]]

    @property
    def kinds(self) -> dict[str, str]:
        """Of all columns but those with a role."""
        return {name: kind for name, kind in (KINDS | dict(self.taken)).items() if kind != "role"}

    @property
    def fixes(self) -> list[str]:
        return [kind.removeprefix(FIX) for kind in self.taken.values() if kind.startswith(FIX)]

    def refuses(self, *, log: bool) -> list[str]:
        """Parts of the lines by which a run, or the evaluation of a log, refuses the table."""
        own = self.of_log if log else self.of_run
        return [line.replace("~", "" if log else "dataset.") for line in (*self.faults, *self.fixes, *own)]


def few(*cells: Any) -> np.ndarray:
    """Cells drawn at random."""
    return draw.choice(np.array(cells, dtype=object), N)


def labels(good: Any, bad: Any) -> pd.Series:
    """The labels of the accepted in other words."""
    return PEOPLE["repaid"].map({"good": good, "bad": bad})


def one_in_ten(cells: Any, other: Any) -> pd.Series:
    return pd.Series(cells, dtype=object).mask(np.arange(N) % 10 == 3, other)


TYPED = {
    "visits": pd.Series(draw.integers(0, 9, N), dtype="Int64").mask(draw.random(N) < 0.1),
    "member": draw.random(N) < 0.5,
    "rate": draw.normal(size=N).astype("float32"),
    "town": pd.Categorical(few("Hull", "Leeds", "York")),
    "price": [Decimal(f"{price:.2f}") for price in draw.normal(50, 9, N)],
    "day": pd.date_range("2024-01-01", periods=N),
}
OF_TYPES = {"visits": "count", "member": "binary", "rate": "real", "town": "categorical", "price": "real"}
NO_DECISION = "a log needs the past decisions: give decision=COLUMN and accepted=VALUE"
FREE_TEXT = "and 199 more values in 200 rows: names, codes and free text are not features"
SCORE = np.where(ACCEPTED, 0.6, 0.4) + draw.normal(0, 0.08, N)
CASES = [
    Case("a plain table"),
    Case("types of Parquet", TYPED, OF_TYPES | {"day": "role"}, {"drop": "[day]"}, parquet=True),
    Case("the same as CSV", TYPED, OF_TYPES | {"day": "role"}, {"drop": "[day]"}),
    # Numbers that identify rows, and numbers that do not.
    Case("ids in order", {"id": range(1, N + 1)}, {"id": NUMBERS}),
    Case("ids in any order", {"id": draw.permutation(N) + 1}, {"id": NUMBERS}),
    Case("ids from 100001", {"number": np.arange(N) + 100001}, {"number": NUMBERS}),
    Case("seven random digits", {"client": draw.integers(10**6, 10**7, N)}, {"client": ANOTHER}),
    Case(
        "times", {"at": draw.integers(1_600_000_000, 1_700_000_000, N)}, {"at": OUT + "it holds Unix times"}
    ),
    Case("an id kept", {"id": range(N)}, {"id": "real"}, {"kinds": "{id: real}"}),
    Case("repeated ids", {"client_id": draw.integers(0, 90, N)}, {"client_id": NAMED + "an identifier"}),
    Case(
        "postal codes",
        {"zip": few(*range(20001, 20031))},
        {"zip": "categorical"},
        says={
            "zip": (
                "is taken for postal codes, not for numbers",
                "'~kinds={zip: real}'",
            )
        },
    ),
    Case(
        "leading zeros",
        {"district": few(*(f"{code:04d}" for code in range(990, 1010)))},
        {"district": "categorical"},
        says={"district": ("has leading zeros, such as 0", "'~kinds={district: real}'")},
    ),
    Case(
        "a postal code each",
        {"plz": draw.integers(10**4, 10**5, N)},
        {"plz": f"{OUT}nearly every row has another code"},
    ),
    Case("an index", {"": draw.permutation(N)}, {"column 1": NUMBERS}),
    Case("a filtered index", {"": draw.permutation(260)[:N]}, {"column 1": ANOTHER}),
    Case("incomes to four decimals", {"income": draw.lognormal(8, 0.5, N).round(4)}),
    Case("whole incomes, all different", {"income": draw.permutation(np.arange(9000, 60000, 7))[:N]}),
    Case("amounts of six digits", {"amount": draw.integers(10**5, 10**6, N)}, {"amount": "real"}),
    Case("text ids", {"id": [f"L{k:04d}" for k in range(N)]}, {"id": FIX + FREE_TEXT}),
    # Cells of features.
    Case(
        "constant and empty",
        {"country": "UK", "fax": [None] * N},
        {"country": OUT + "it is always 'UK'", "fax": OUT + "it is empty"},
    ),
    Case(
        "formatted numbers",
        {"debt": [f"${debt:,.2f}" for debt in draw.normal(5000, 900, N)]},
        {"debt": FIX + "is a formatted number: write it, and all others, as digits"},
    ),
    Case(
        "dates",
        {"since": pd.date_range("2020-01-31", periods=N).strftime("%d.%m.%Y")},
        {"since": FIX + "is a date"},
    ),
    Case("dates of Parquet", {"since": TYPED["day"]}, {"since": FIX + "is a date"}, parquet=True),
    Case(
        "a text among numbers",
        {"age": one_in_ten(PEOPLE["age"], "old")},
        {"age": FIX + "row 4: 'old' is not a finite"},
    ),
    Case(
        "an infinite number",
        {"age": one_in_ten(PEOPLE["age"], np.inf)},
        {"age": FIX + "row 4: 'inf' is not a finite"},
    ),
    Case(
        "a fraction among counts",
        {"children": one_in_ten(PEOPLE["children"], 1.5)},
        {"children": FIX + "row 4: '1.5' is not a count"},
        {"kinds": "{children: count}"},
    ),
    Case(
        "codes of missing values", {"age": one_in_ten(PEOPLE["age"], -99)}, keys={"missing": '["-99","-999"]'}
    ),
    Case(
        "two values and none",
        {"phone_bill": one_in_ten(few("paid", "due"), None)},
        {"phone_bill": "categorical"},
    ),
    # Words of labels.
    Case("labels 1 and 0", {"repaid": labels(1, 0).astype("Int64")}, keys={"positive": "1"}),
    Case("labels 1.0 and 0.0", {"repaid": labels(1.0, 0.0)}, keys={"positive": "1"}),
    Case("labels 1.0 and 0.0 of Parquet", {"repaid": labels(1.0, 0.0)}, keys={"positive": "1"}, parquet=True),
    Case("labels True and False", {"repaid": labels(True, False)}, keys={"positive": "1"}),
    Case(
        "truth values of Parquet", {"repaid": labels(True, False)}, keys={"positive": '"true"'}, parquet=True
    ),
    Case("labels Good and Bad", {"repaid": labels("Good", "Bad")}),
    Case(
        "labels 1 and 0, the good one yes",
        {"repaid": labels("1", "0")},
        keys={"positive": '"yes"'},
        faults=("~positive=yes: column 'repaid' has no such value; it has 0, 1",),
    ),
    Case(
        "labels good and NA",
        {"repaid": labels("good", "NA")},
        faults=("column 'repaid' has 1 value (good) beside 'NA' in",),
    ),
    Case(
        "labels None and late",
        {"repaid": labels("None", "late")},
        keys={"positive": "None", "missing_by_default": "[NA]"},
    ),
    Case(
        "all labels are good",
        {"repaid": labels("good", "good")},
        of_run=("column 'repaid': the training rows all have the same label",),
    ),
    Case(
        "three labels",
        {"repaid": PEOPLE["repaid"].mask(np.arange(N) % 9 == 0, "late")},
        faults=("column 'repaid' has 3 values (bad, good, late); a label must have two",),
    ),
    # Decisions.
    Case(
        "a decision NA",
        {"granted": one_in_ten(PEOPLE["granted"], "NA")},
        faults=("column 'granted', row 4: 'NA', which means no value (",),
    ),
    Case(
        "one decision", {"granted": "yes"}, faults=("column 'granted' is always 'yes': nobody was rejected",)
    ),
    Case(
        "no acceptance", {"granted": "no"}, faults=("column 'granted' is always 'no': nobody was accepted",)
    ),
    Case(
        "three decisions",
        {"granted": one_in_ten(PEOPLE["granted"], "later")},
        faults=("column 'granted' has 3 values (later, no, yes); a decision must have two",),
    ),
    Case("decisions YES and NO", {"granted": PEOPLE["granted"].str.upper()}),
    Case("decisions 1.0 and 0.0", {"granted": ACCEPTED.astype(float)}, keys={"accepted": "1"}),
    Case(
        "an acceptance that is not there",
        keys={"accepted": "approved"},
        faults=("~accepted=approved: column 'granted' has no such value; it has no, yes",),
    ),
    # Groups.
    Case(
        "a group NA",
        {"sex": few("m", "NA")},
        groups=("(missing)", "m"),
        of_run=("'NA', which means no value ('~missing_by_default=[",),
        says={"sex": ("such as 'NA' ('~missing_by_default=[", "taken for a group, (missing)")},
    ),
    Case(
        "a group NA kept",
        {"sex": few("m", "NA")},
        keys={"missing_by_default": '["null"]'},
        groups=("NA", "m"),
    ),
    Case("groups with commas", {"sex": few("m", "Black, other")}, groups=("Black, other", "m")),
    Case("three groups", {"sex": few("a", "b", "c")}, keys={"advantaged": None}, groups=("a", "b", "c")),
    Case(
        "three groups where two are needed",
        {"sex": few("f", "m", "x")},
        groups=("f", "m", "x"),
        of_run=("column 'sex' has 3 values (f, m, x); the sensitive attribute must have two",),
    ),
    # Columns that tell too much.
    Case(
        "rejected people coded as defaulters",
        {"repaid": PEOPLE["repaid"].fillna("bad")},
        says={"repaid": ("all ", "rejected rows have a negative label", "empty their cells")},
    ),
    Case(
        "the same without a decision",
        {"repaid": PEOPLE["repaid"].fillna("bad")},
        {"granted": "binary"},
        {"decision": None},
        of_log=(NO_DECISION,),
        says={"granted": ("with 'no' has a positive label", "(~decision=granted ~accepted=yes)")},
    ),
    Case(
        "a decision among the features",
        taken={"granted": "binary"},
        keys={"decision": None},
        of_log=(NO_DECISION,),
        says={
            "granted": ("reveals who has a label", "(~decision=granted ~accepted=yes)", "'~drop=[granted]'")
        },
    ),
    Case(
        "another decision among the features",
        {"approval": np.where(ACCEPTED, "a", "r")},
        {"approval": "binary"},
        says={"approval": ("reveals who has a label", "leave it out ('~drop=[approval]')")},
    ),
    Case(
        "a recorded propensity among the features",
        {"p": SCORE},
        {"p": "real"},
        says={"p": ("as the decision 'granted' does (AUC 0.9", "declare it (~propensity=p)", "'~drop=[p]'")},
    ),
    Case(
        "a propensity by its name",
        {"propensity": draw.random(N)},
        {"propensity": "real"},
        says={"propensity": ("is named like a decision", "(~propensity=propensity)", "'~drop=[propensity]'")},
    ),
    Case(
        "a score among the features",
        {"credit_score": (700 * SCORE).round(1)},
        {"credit_score": "real"},
        says={"credit_score": ("as the decision 'granted' does (AUC 0.9", "'~drop=[credit_score]'")},
    ),
    Case(
        "a copy of the label",
        {"paid_back": np.where(WOULD_REPAY == "good", "Y", "N")},
        {"paid_back": "binary"},
        faults=(
            "column 'paid_back' encodes the label 'repaid' ('Y' for 'good', else 'N'), unknown before "
            "deciding: leave it out with '~drop=[paid_back]'",
        ),
    ),
    # Keys.
    Case("a column that is not there", keys={"drop": "[agee]"}, faults=("~drop=agee: ",)),
    Case(
        "two roles of one column",
        keys={"decision": "repaid", "accepted": "good"},
        taken={"granted": "binary"},
        faults=("column 'repaid' cannot be both ~label and ~decision",),
    ),
]


class Asked:
    """What the commands say of the table of a case, each asked once."""

    def __init__(self, case: Case, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.case, self.folder = case, folder
        self.name = "people.parquet" if case.parquet else "people.csv"
        self.write(case.table, self.name)

    def write(self, table: pd.DataFrame, name: str) -> None:
        path = self.folder / name
        if path.suffix == ".parquet":
            table.to_parquet(path, index=False)
        else:
            table.to_csv(path, index=False)

    def words(self, prefix: str = "") -> list[str]:
        keys = {key: value for key, value in (KEYS | dict(self.case.keys)).items() if value is not None}
        return [f"{prefix}{key}={value}" for key, value in keys.items()]

    def typed(self, *words: str) -> Ended:
        ended = typed(*words, cwd=self.folder)
        assert "Traceback" not in ended.stderr
        return ended

    @cached_property
    def check(self) -> Ended:
        return self.typed("data", "describe", self.name, *self.words("dataset."))

    @cached_property
    def compared(self) -> Ended:
        return self.typed("data", "compare", self.name, self.name, *self.words("dataset."))

    @cached_property
    def run(self) -> Job | FairAllError:
        """The run before it starts, or why it does not."""
        words = "dataset=csv", "model=fairlog", "preset=quick", "seeds=1"
        config = compose.compose_config(*words, *self.words("dataset."), "dataset.path=people")
        config.dataset.path = str(self.folder / self.name)
        try:
            return job(config)
        except FairAllError as error:
            return error

    @property
    def started(self) -> Job:
        assert isinstance(self.run, Job), self.run
        return self.run

    @cached_property
    def log(self) -> DecisionLog | FairAllError:
        try:
            return DecisionLog.read(self.folder / self.name, self.words())
        except FairAllError as error:
            return error

    @cached_property
    def policy(self) -> Policy:
        """An untrained policy, also in the folder `policy`."""
        policy = Policy.of(self.started.learner, self.started.data)
        policy.save(self.folder / "policy", self.started.config)
        return policy

    def decided(self, people: pd.DataFrame) -> Ended:
        self.write(people, f"new_{self.name}")
        return self.typed("decide", "policy", f"new_{self.name}", "-o", "decided.csv")

    def explained(self, people: pd.DataFrame) -> Ended:
        self.write(people, f"new_{self.name}")
        return self.typed("decide", "policy", f"new_{self.name}", "--explain", "5", "-o", "explained")


def once(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, called once with the same arguments."""
    found: dict[str, Any] = {}

    def known(*given: Any) -> Any:
        key = str(given)
        if key not in found:
            found[key] = function(*given)
        return found[key]

    return known


@pytest.fixture(scope="module", autouse=True)
def _quick() -> Iterator[None]:
    """What is not looked at is neither computed nor drawn."""

    def no_contributions(
        probabilities: Callable[[np.ndarray], np.ndarray], own: np.ndarray, _: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        mean = probabilities(own[np.newaxis])[0]
        return np.zeros((len(own), len(mean))), np.zeros((len(own), len(mean))), mean

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(describe, "checked", once(describe.checked))
        patch.setattr(describe, "_acceptance", lambda *_: "")
        patch.setattr(explain, "_shapley", no_contributions)
        patch.setattr(explain, "save_figure", lambda *_: None)
        yield


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case.name)
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Asked:
    return Asked(request.param, tmp_path_factory.mktemp("case"))


def grid(output: str) -> list[list[str]]:
    """Cells of the rows of all tables in an output."""
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in output.splitlines() if "│" in line]


def lines(output: str, about: str | tuple[str, ...]) -> list[str]:
    return [line for line in output.splitlines() if line.startswith(about)]


def kinds(schema: Any) -> dict[str, str]:
    return {feature.name: feature.kind.value for feature in schema}


def features(case: Case) -> dict[str, str]:
    """Kinds of the columns that are features."""
    return {name: kind for name, kind in case.kinds.items() if not kind.startswith((OUT, FIX))}


def test_every_command_takes_columns_alike(asked: Asked) -> None:
    case = asked.case
    shown = {row[0]: row[1] for row in reversed(grid(asked.check.stdout)) if len(row) > 1}
    compared = {row[0] for row in grid(asked.compared.stdout)}
    notes = lines(asked.compared.stdout, "Note: ")
    if case.name == "a column that is not there":
        assert "dataset.drop=agee: people.csv has no such column" in asked.compared.stderr
        return
    for name, kind in case.kinds.items():
        if kind.startswith(OUT):
            assert shown[name].startswith(kind)
            # What never changed may have changed now.
            always = kind.startswith((f"{OUT}it is always", f"{OUT}it is empty"))
            assert (name in compared) == always
            told = f"Note: column {name!r} is not compared: {kind.removeprefix(OUT)}"
            assert always or sum(note.startswith(told) for note in notes) == 1
        elif kind.startswith(FIX):
            assert shown[name] == "to fix"
            assert name not in compared
            assert f"Note: column {name!r} is not compared: no feature can hold it." in notes
        else:
            assert shown[name] == kind
            assert name in compared
    if isinstance(asked.run, Job):
        assert kinds(asked.started.data.schema) == features(case)
    if isinstance(asked.log, DecisionLog):
        assert kinds(asked.log.features) == features(case)


def test_left_out_columns_are_told_with_the_word_that_keeps_them(asked: Asked) -> None:
    for name, kind in asked.case.taken.items():
        if not kind.startswith(OUT):
            continue
        start = f"column {name!r} is left out: {kind.removeprefix(OUT)}"
        assert isinstance(asked.log, DecisionLog)
        for notes, prefix in ((asked.started.data.notes, "dataset."), (asked.log.notes, "")):
            (note,) = (note for note in notes if note.startswith(start))
            if kind not in (f"{OUT}it is always 'UK'", f"{OUT}it is empty"):
                assert re.search(rf"; '?{re.escape(prefix)}kinds=.*{name}.*: real.* keeps it$", note)


def test_every_command_names_the_same_groups(asked: Asked) -> None:
    groups = asked.case.groups
    if asked.case.name == "a column that is not there":
        return
    assert {row[1] for row in grid(asked.compared.stdout)} == {"everybody", *groups}
    if isinstance(asked.log, DecisionLog):
        assert asked.log.groups == groups
    if not isinstance(asked.run, Job):
        return
    source = asked.started.config.dataset.build()
    assert isinstance(source, OwnTable)
    assert sorted(map(display_name, source.applicants.groups)) == list(groups)
    names = {
        name: re.sub(r"S = [+−]1 \((.*)\)", r"\1", name)
        for row in grid(asked.check.stdout)
        for name in row[:1]
    }
    assert set(groups) <= set(names.values())
    reader = asked.policy.reader
    assert reader.sensitive is not None
    assert sorted(reader.sensitive.meaning) == list(groups)


def test_faults_are_told_by_every_command_that_meets_them(asked: Asked) -> None:
    expected = asked.case.refuses(log=False)
    told = str(asked.run).split("\n") if isinstance(asked.run, FairAllError) else []
    check = lines(asked.check.stdout, "To fix: ")
    of_log = str(asked.log).split("\n") if isinstance(asked.log, FairAllError) else []
    for found, parts in ((told, expected), (check, expected), (of_log, asked.case.refuses(log=True))):
        found = [line for line in found if line != PREFIX]
        assert len(found) == len(parts), found
        for part in parts:
            assert sum(part in line for line in found) == 1, (part, found)
    assert not any("dataset." in line for line in of_log)
    assert asked.check.returncode == bool(expected)


def test_notes_and_warnings_are_those_of_every_command(asked: Asked) -> None:
    told = {}
    if isinstance(asked.run, Job):
        told["run"] = [*asked.run.data.notes, *asked.run.data.warnings]
        told["check"] = lines(asked.check.stdout, ("Note: ", "Warning: "))
        assert [line.partition(": ")[2].removesuffix(".") for line in told["check"]] == told["run"]
    if isinstance(asked.log, DecisionLog):
        told["evaluate"] = list(asked.log.notes)
    assert told or not asked.case.says
    for name, parts in asked.case.says.items():
        for command, notes in told.items():
            about = [line for line in notes if f"column {name!r}" in line]
            assert len(about) == 1, (command, notes)
            for part in parts:
                assert part.replace("~", "" if command == "evaluate" else "dataset.") in about[0], command


def test_decide_and_explain_need_the_features_and_nothing_else(asked: Asked) -> None:
    if not isinstance(asked.run, Job):
        return
    case = asked.case
    assert asked.policy.reader.names == [
        name for name in case.table.rename(columns={"": "column 1"}) if name in features(case)
    ]
    if case.name != "a plain table" and not case.taken and {*case.columns} <= {"repaid", "granted"}:
        return  # other words of labels and decisions, which new people lack
    people = case.table[[*asked.policy.reader.names, "sex"]]
    for command in (asked.decided, asked.explained):
        ended = command(people)
        assert (ended.returncode, ended.stderr) == (0, "")
    needed = next((name for name in case.taken if name in features(case)), "age")
    with pytest.raises(FairAllError, match=f"the table lacks the column '{needed}' and needs it"):
        asked.policy.propensity(people.drop(columns=needed))


@pytest.mark.parametrize("parquet", [False, True], ids=["CSV", "Parquet"])
def test_codes_of_missing_values_are_missing(parquet: bool, tmp_path: Path) -> None:
    ages = PEOPLE["age"].mask(np.arange(N) % 10 == 3, -99).mask(np.arange(N) % 10 == 7, -999)
    asked = Asked(Case("", {"age": ages}, keys={"missing": '["-99","-999"]'}, parquet=parquet), tmp_path)
    known, n_missing = ages[ages > 0], 40
    rows = [row for row in grid(asked.check.stdout) if row[0] == "age"]
    assert [(row[1], row[3]) for row in rows] == [("real", "40")]
    source = asked.started.config.dataset.build()
    assert source.table().missing["age"] == n_missing
    assert source.table().x["age"].min() == known.min()
    assert isinstance(asked.log, DecisionLog)
    assert asked.log.x["age"].isna().sum() == n_missing
    assert asked.log.x["age"].dropna().tolist() == known.tolist()
    (bin_of_missing,) = {row[4] for row in grid(asked.compared.stdout) if row[:2] == ["age", "everybody"]}
    assert "-99" not in bin_of_missing
    assert asked.policy.reader.lowest[asked.policy.reader.names.index("age")] == pytest.approx(known.min())
    people = asked.case.table.drop(columns="repaid")
    with_codes, with_none = (asked.decided(one) for one in (people, people.assign(age=ages.where(ages > 0))))
    assert with_codes.stdout == with_none.stdout
    assert "far outside the training range" not in with_codes.stdout


@pytest.mark.parametrize("parquet", [False, True], ids=["CSV", "Parquet"])
def test_a_column_of_days_is_a_time_where_one_is_declared(parquet: bool, tmp_path: Path) -> None:
    asked = Asked(Case("", {"day": TYPED["day"]}, parquet=parquet), tmp_path)
    log = DecisionLog.read(tmp_path / asked.name, asked.words(), time="day")
    assert log.time is not None
    np.testing.assert_array_equal(log.time, TYPED["day"].to_numpy())
    assert kinds(log.features) == KINDS
    assert isinstance(asked.log, FairAllError)
    assert "column 'day', row 1: '2024-01-01" in str(asked.log)


@pytest.mark.parametrize(
    ("trained", "given"),
    [
        (("yes", "no"), [("Yes", "No"), (" yes ", "NO"), ("YES", " no")]),
        ((1, 0), [(1.0, 0.0), (True, False), ("1", "0"), ("true", "FALSE"), (" 1.0", "0.0 ")]),
        ((1.0, 0.0), [(1, 0), (True, False), ("True", "False")]),
        ((True, False), [(1, 0), (1.0, 0.0), ("true", "false"), ("1", "0.0")]),
        (("1", "0"), [(1, 0), (True, False), (1.0, 0.0)]),
    ],
    ids=str,
)
@pytest.mark.parametrize("parquet", [False, True], ids=["CSV", "Parquet"])
def test_new_people_may_spell_values_otherwise(
    trained: tuple[Any, Any], given: list[tuple[Any, Any]], parquet: bool, tmp_path: Path
) -> None:
    def people(yes: Any, no: Any) -> pd.DataFrame:
        return PEOPLE.assign(owner=PEOPLE["owner"].map({"yes": yes, "no": no}))

    asked = Asked(Case("", {"owner": people(*trained)["owner"]}, parquet=parquet), tmp_path)
    expected = asked.policy.propensity(people(*trained))
    other_way = asked.policy.propensity(people(*reversed(trained)))
    assert np.abs(expected - other_way).min() > 1e-4
    for words in given:
        new = people(*words).assign(job=" " + PEOPLE["job"].str.upper(), sex=PEOPLE["sex"].str.upper() + " ")
        assert asked.decided(new).returncode == 0
        decided = pd.read_csv(tmp_path / "decided.csv")
        np.testing.assert_allclose(decided["probability"], expected[0], atol=1e-6)
    assert f"Probability of acceptance: {expected[0][4]:.3f}" in asked.explained(new).stdout


def test_several_faults_are_told_at_once_but_at_most_ten(tmp_path: Path) -> None:
    wrong = {
        "granted": one_in_ten(PEOPLE["granted"], "NA"),
        "repaid": PEOPLE["repaid"].mask(np.arange(N) % 9 == 0, "late"),
        "id": [f"L{k:04d}" for k in range(N)],
        "age": one_in_ten(PEOPLE["age"], "old"),
    }
    asked = Asked(Case("", wrong, keys={"drop": "[agee]"}), tmp_path)
    said = [
        "{}drop=agee: ",
        "column 'granted', row 4: 'NA'",
        "column 'repaid' has 3 values",
        "column 'id', row 1: 'L0000' and 199 more",
        "column 'age', row 4: 'old' is not a finite number",
    ]
    more = wrong | {f"id_{k}": wrong["id"] for k in range(7)}
    many = Asked(Case("", more, keys={"drop": "[agee]"}), tmp_path / "many")
    for every, prefix in ((asked.run, "dataset."), (asked.log, "")):
        assert isinstance(every, FairAllError)
        found = str(every).removesuffix(f"\n{PREFIX}").split("\n")
        assert len(found) == len(said)
        for line in said:
            assert (
                sum(one.startswith(line.format(prefix)) or line.format(prefix) in one for one in found) == 1
            )
    for first in (many.run, many.log):
        found = str(first).removesuffix(f"\n{PREFIX}").split("\n")
        assert (len(found), found[-1]) == (11, "2 more faults: correct these first")
    assert len(lines(many.check.stdout, "To fix: ")) == 11
    assert "To fix: 2 more faults: correct these first" in many.check.stdout


def test_a_refusal_as_it_is_typed(tmp_path: Path) -> None:
    asked = Asked(
        Case("", {"granted": one_in_ten(PEOPLE["granted"], "later"), "repaid": few("a", "b", "c")}), tmp_path
    )
    run = asked.typed("dataset=csv", "dataset.path=people.csv", *asked.words("dataset."))
    evaluated = asked.typed("evaluate", "people.csv", *asked.words())
    for ended, found in ((run, asked.run), (evaluated, asked.log)):
        assert (ended.returncode, ended.stdout) == (1, "")
        assert [line.removeprefix("fairall: ") for line in ended.stderr.splitlines()] == str(
            found
        ).splitlines()
        assert sum(PREFIX not in line for line in ended.stderr.splitlines()) == 2
