"""Six commands read one table alike: kinds, groups, refusals and warnings."""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from fairall.config import compose
from fairall.data import describe
from fairall.decide import explain
from fairall.errors import FairAllError
from fairall.evaluate.log import DecisionLog, log_keywords
from fairall.experiment import Job, job
from fairall.policy import Policy
from fairall.tables.features import Kind
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
draw = np.random.default_rng(0)


some = np.random.default_rng(1)
# Decisions that depend on nothing, and labels of the accepted.
PEOPLE = pd.DataFrame(
    {
        "income": some.normal(2000, 400, N).round(2),
        "age": some.integers(18, 80, N),
        "children": some.integers(0, 5, N),
        "owner": some.choice(["yes", "no"], N),
        "job": some.choice(["clerk", "cook", "nurse"], N),
        "sex": some.choice(["f", "m"], N),
        "granted": some.choice(["yes", "yes", "no"], N),
        "repaid": some.choice(["good", "bad"], N),
    }
)
PEOPLE["repaid"] = PEOPLE["repaid"].where(PEOPLE["granted"] == "yes", None)
ACCEPTED = (PEOPLE["granted"] == "yes").to_numpy()
WOULD_REPAY = np.where(PEOPLE["repaid"].isna(), draw.choice(["good", "bad"], N), PEOPLE["repaid"])


class Case(NamedTuple):
    """A table, and what every command says of it.

    Attributes:
        name: of the case.
        columns: in place of those of `PEOPLE`, or before them.
        taken: by column its kind, `OUT` with a reason, or `FIX` with a fault; of others see `KINDS`.
        keys: that differ from `KEYS`, None for one that is not given.
        groups: names, sorted.
        faults: of columns with a role, a line each; those of a run alone in `of_run`, of a log in `of_log`.
        says: by column a part of the one note or warning that names it.
        parquet: whether the file is one.
    """

    name: str
    columns: Mapping[str, Any] = {}
    taken: Mapping[str, str] = {}
    keys: Mapping[str, str | None] = {}
    groups: tuple[str, ...] = ("f", "m")
    faults: tuple[str, ...] = ()
    of_run: tuple[str, ...] = ()
    of_log: tuple[str, ...] = ()
    says: Mapping[str, str] = {}
    parquet: bool = False

    @property
    def table(self) -> pd.DataFrame:
        table = PEOPLE.assign(**self.columns)
        return table[[*self.columns, *(name for name in PEOPLE if name not in self.columns)]]

    @property
    def kinds(self) -> dict[str, str]:
        """Of all columns but those with a role."""
        return {**KINDS, **self.taken}

    @property
    def features(self) -> dict[str, str]:
        """Kinds of the columns that are features."""
        return {name: kind for name, kind in self.kinds.items() if not kind.startswith((OUT, FIX))}

    @property
    def all_faults(self) -> list[str]:
        """Parts of lines, of columns with a role and of others."""
        fixes = (kind.removeprefix(FIX) for kind in self.taken.values() if kind.startswith(FIX))
        return [*self.faults, *fixes]


def few(*cells: Any) -> np.ndarray:
    """Cells drawn at random."""
    return draw.choice(np.array(cells, dtype=object), N)


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
CASES = [
    Case("a plain table"),
    Case("types of Parquet", TYPED, OF_TYPES | {"day": FIX + "is a date"}, parquet=True),
    Case(
        "numbers that identify rows",
        {
            "": draw.permutation(260)[:N],
            "id": range(1, N + 1),
            "number": 100001 + draw.permutation(N),
            "client": draw.integers(10**6, 10**7, N),
            "client_id": draw.integers(0, 90, N),
            "at": draw.integers(1_600_000_000, 1_700_000_000, N),
            "plz": draw.integers(10**4, 10**5, N),
        },
        {
            **dict.fromkeys(["column 1", "id", "number"], OUT + "it numbers the rows"),
            "client": OUT + "it has another whole number in each row",
            "client_id": OUT + "its name is that of an identifier",
            "at": OUT + "it holds Unix times",
            "plz": OUT + "nearly every row has another code",
        },
    ),
    Case(
        "numbers that do not",
        {
            "income": draw.permutation(np.arange(9000, 60000, 7))[:N],
            "amount": draw.integers(10**5, 10**6, N),
            "id": range(N),
            "zip": few(*range(20001, 20031)),
            "district": few(*(f"{code:04d}" for code in range(990, 1010))),
        },
        {"amount": "real", "id": "real", "zip": "categorical", "district": "categorical"},
        {"kinds": "{id: real}"},
        says={
            name: f"holds codes; kinds={{{name}: real}} takes them for numbers"
            for name in ("zip", "district")
        },
    ),
    Case(
        "other columns",
        {
            "country": "UK",
            "fax": [None] * N,
            "phone_bill": one_in_ten(few("paid", "due"), None),
            "age": one_in_ten(PEOPLE["age"], -99),
        },
        {
            "country": OUT + "it is always 'UK'",
            "fax": OUT + "it is empty",
            "phone_bill": "categorical",
        },
        {"missing": '["-99","-999"]'},
    ),
    Case(
        "columns to correct",
        {
            "id": [f"L{k:04d}" for k in range(N)],
            "debt": [f"${debt:,.2f}" for debt in draw.normal(5000, 900, N)],
            "since": pd.date_range("2020-01-31", periods=N).strftime("%d.%m.%Y"),
            "age": one_in_ten(PEOPLE["age"], "old"),
            "income": one_in_ten(PEOPLE["income"], np.inf),
            "children": one_in_ten(PEOPLE["children"], 1.5),
        },
        {
            "id": FIX + "and 199 more values in 200 rows: names, codes and free text are no features",
            "debt": FIX + "is a formatted number: write all as digits",
            "since": FIX + "is a date",
            "age": FIX + "row 4: 'old' is not a finite",
            "income": FIX + "row 4: 'inf' is not a finite",
            "children": FIX + "row 4: '1.5' is not a count",
        },
        {"kinds": "{children: count}"},
    ),
    Case(
        "more faults than are told",
        {
            "granted": one_in_ten(PEOPLE["granted"], "NA"),
            "age": one_in_ten(PEOPLE["age"], "old"),
            **{f"id_{k}": [f"L{row:04d}" for row in range(N)] for k in range(10)},
        },
        {"age": FIX + "'age', row 4: 'old'"},
        faults=(
            "'granted', row 4: an empty cell",
            *(f"'id_{k}', row 1" for k in range(8)),
            "2 more",
        ),
    ),
    Case(
        "no label is good",
        {"repaid": PEOPLE["repaid"].replace("good", "bad")},
        of_run=("column 'repaid': the training rows all have the same label",),
        says={"repaid": "is always 'bad': no label is positive=good"},
    ),
    # Groups.
    Case(
        "a group NA",
        {"sex": np.resize(np.array(["m", None, "NA", "m"], dtype=object), N)},
        groups=("(missing)", "m"),
        of_run=("is no sensitive attribute: complete or remove the row; 'NA' in ",),
        says={
            "sex": "100 rows without a value, taken for a group, (missing); 'NA' in 50 rows means no value"
        },
    ),
    Case(
        "a group NA kept",
        {"sex": few("m", "NA")},
        keys={"missing_by_default": '["null"]'},
        groups=("NA", "m"),
    ),
    Case(
        "three groups where two are needed",
        {"sex": few("f", "m", "x")},
        groups=("f", "m", "x"),
        of_run=("column 'sex' has 3 values (f, m, x): give the one of two",),
    ),
    # Columns that tell too much.
    Case(
        "rejected people coded as defaulters",
        {"repaid": PEOPLE["repaid"].fillna("bad")},
        says={"repaid": "rejected rows have a negative label"},
    ),
    Case(
        "the same without a decision",
        {"repaid": PEOPLE["repaid"].fillna("bad")},
        {"granted": "binary"},
        {"decision": None},
        of_log=(NO_DECISION,),
        says={"granted": "has values with which nobody has a positive label"},
    ),
    Case(
        "a copy of the label",
        {"paid_back": np.where(WOULD_REPAY == "good", "Y", "N")},
        {"paid_back": "binary"},
        faults=("column 'paid_back' is the label in other words: drop=paid_back leaves it out",),
    ),
]


def answer(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except FairAllError as error:
        return error


class Asked:
    """What the commands say of the table of a case, each asked once, without the prefix of a run's keys."""

    def __init__(self, case: Case, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.case, self.folder = case, folder
        self.name = "people.parquet" if case.parquet else "people.csv"
        self.write(case.table, self.name)
        keys = {key: value for key, value in {**KEYS, **case.keys}.items() if value is not None}
        self.words = [f"{key}={value}" for key, value in keys.items()]
        self.of_run = [f"dataset.{word}" for word in self.words]

    def write(self, table: pd.DataFrame, name: str) -> None:
        if self.case.parquet:
            table.to_parquet(self.folder / name, index=False)
        else:
            table.to_csv(self.folder / name, index=False)

    def typed(self, *words: str) -> Ended:
        ended = typed(*words, cwd=self.folder)
        assert "Traceback" not in ended.stderr
        return ended

    @cached_property
    def check(self) -> Ended:
        return self.typed("data", "describe", self.name, *self.of_run)

    @cached_property
    def compared(self) -> Ended:
        return self.typed("data", "compare", self.name, self.name, *self.of_run)

    @cached_property
    def run(self) -> Any:
        """The run before it starts, or why it does not."""
        words = "dataset=csv", "model=fairlog", "preset=quick", "seeds=1"
        path = f"dataset.path={self.folder / self.name}"
        return answer(lambda: job(compose.compose_config(*words, *self.of_run, path)))

    @cached_property
    def log(self) -> Any:
        return answer(lambda: DecisionLog.of(self.folder / self.name, **log_keywords(self.words)))

    @cached_property
    def policy(self) -> Policy:
        """An untrained policy, also in the folder `policy`."""
        policy = Policy.of(self.run.learner, self.run.data)
        policy.save(self.folder / "policy", self.run.config)
        return policy

    def decided(self, people: pd.DataFrame, *words: str) -> Ended:
        self.write(people, f"new_{self.name}")
        return self.typed("decide", "policy", f"new_{self.name}", "-o", "decided.csv", *words)


@pytest.fixture(scope="module", autouse=True)
def _quick() -> Iterator[None]:
    """What is not looked at is neither computed nor drawn."""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(describe, "_acceptance", lambda *_: "")
        patch.setattr(explain, "save_figure", lambda *_: None)
        yield


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case.name)
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Asked:
    return Asked(request.param, tmp_path_factory.mktemp("case"))


def grid(output: str) -> list[list[str]]:
    """Cells of the rows of all tables in an output."""
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in output.splitlines() if "│" in line]


def lines(output: object, *about: str) -> list[str]:
    """Those that begin with such a word, without it and the prefix of keys of a run; all of an error."""
    text = str(output).replace("dataset.", "").splitlines()
    return [line.removeprefix(word) for line in text for word in about or [""] if line.startswith(word)]


def kinds(schema: Any) -> dict[str, str]:
    return {feature.name: feature.kind.value for feature in schema}


def test_every_command_takes_columns_and_groups_alike(asked: Asked) -> None:
    case = asked.case
    shown = {row[0]: row[1] for row in reversed(grid(asked.check.stdout)) if len(row) > 1}
    compared = {row[0] for row in grid(asked.compared.stdout)}
    for name, kind in case.kinds.items():
        assert shown[name].startswith("to fix" if kind.startswith(FIX) else kind)
        # What never changed may have changed now.
        assert (name in compared) == kind.startswith((*Kind, f"{OUT}it is always", f"{OUT}it is empty"))
        notes = lines(asked.compared.stdout, f"Note: column {name!r} is not compared: ")
        assert len(notes) == (name not in compared)
    assert {row[1] for row in grid(asked.compared.stdout)} == {"everybody", *case.groups}
    if isinstance(asked.log, DecisionLog):
        assert kinds(asked.log.features) == case.features
        assert asked.log.groups == case.groups
    if isinstance(asked.run, Job):
        assert kinds(asked.run.data.schema) == case.features
        source, sensitive = asked.run.config.dataset.build(), asked.policy.reader.sensitive
        assert sorted(map(display_name, source.applicants.groups)) == list(case.groups)
        assert sensitive is not None
        assert sorted(sensitive.meaning) == list(case.groups)


def test_faults_are_told_by_every_command_that_meets_them(asked: Asked) -> None:
    case = asked.case
    check, told = lines(asked.check.stdout, "To fix: "), [*case.all_faults, *case.of_run]
    log = []
    if isinstance(asked.log, FairAllError):
        log = lines(asked.typed("evaluate", asked.name, *asked.words).stderr, "fairall: ")
    for faults, parts in (
        (lines(asked.run) if isinstance(asked.run, FairAllError) else [], told),
        (check, told),
        (log, [*case.all_faults, *case.of_log]),
    ):
        assert bool(faults) == bool(parts), faults
        assert len(faults) - len(parts) in (0, 1)  # one on the keys of a run
        assert [sum(part in line for line in faults) for part in parts] == [1] * len(parts), faults
    assert asked.check.returncode == bool(told)


def test_notes_and_warnings_are_those_of_every_command(asked: Asked) -> None:
    told = []
    if isinstance(asked.run, Job):
        told.append([*asked.run.data.notes, *asked.run.data.warnings])
        check = asked.check.stdout.splitlines()
        about = [line.partition(": ")[2] for line in check if line.startswith(("Note: ", "Warning: "))]
        assert [line.removesuffix(".") for line in about] == told[0]
    if isinstance(asked.log, DecisionLog):
        told.append([*asked.log.notes])
    assert told or not asked.case.says
    out = {name: kind for name, kind in asked.case.taken.items() if kind.startswith(OUT)}
    for name, part in {**out, **asked.case.says}.items():
        for notes in told:
            (note,) = [line for line in notes if f"column {name!r}" in line]
            assert part in note
            constant = name in ("country", "fax")
            assert (f"kinds={{{name}: real}} keeps it" in note) == (name in out and not constant)


def test_decide_and_explain_need_the_features_and_nothing_else(asked: Asked) -> None:
    case = asked.case
    if not isinstance(asked.run, Job):
        return
    table = case.table.rename(columns={"": "column 1"})
    assert asked.policy.reader.names == [name for name in table if name in case.features]
    people = table[[*asked.policy.reader.names, "sex"]]
    for options in ([], ["--explain", "5", "-o", "explained"]):
        ended = asked.decided(people, *options)
        assert (ended.returncode, ended.stderr) == (0, "")
    needed = next((name for name in case.taken if name in case.features), "age")
    with pytest.raises(FairAllError, match=rf"\b{needed}\b"):
        asked.policy.propensity(people.drop(columns=needed))
