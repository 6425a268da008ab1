"""Six commands read one table alike: kinds, groups, refusals and warnings."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
import yaml

from fairall.config import compose
from fairall.data import describe
from fairall.decide import explain
from fairall.errors import FairAllError
from fairall.evaluate.log import DecisionLog, log_keywords
from fairall.experiment import Job, job
from fairall.policy import Policy
from fairall.tables.features import Kind
from fairall.tables.groups import display_name
from tests.conftest import typed

HERE = Path(__file__).parent
OUT, FIX = "left out: ", "to fix: "
CASES = yaml.safe_load((HERE / "cases.yaml").read_text())
USUAL = CASES.pop("usual")


def answer(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except FairAllError as error:
        return error


@pytest.fixture(scope="module", autouse=True)
def _quick() -> Iterator[None]:
    """What is not looked at is neither computed nor drawn."""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(describe, "_acceptance", lambda *_: "")
        patch.setattr(explain, "save_figure", lambda *_: None)
        yield


@pytest.fixture(scope="module", params=CASES)
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """A case, and what the commands say of its table; of an untrained policy, too, where a run begins."""
    case = SimpleNamespace(**USUAL | CASES[request.param])
    folder = tmp_path_factory.mktemp("case")
    everything = pd.read_csv(HERE / "people.csv", dtype=case.types, keep_default_na=False, na_values=[""])
    others = [*case.kinds, "sex", "granted", "repaid"]
    columns = {**case.columns, **{name: name for name in others if name not in case.columns}}
    case.table = everything[[*columns.values()]].set_axis([*columns], axis=1)
    case.name = "people.csv" if case.types == "str" else "people.parquet"
    case.kinds = case.kinds | case.taken

    def write(table: pd.DataFrame, name: str) -> None:
        to = table.to_csv if case.types == "str" else table.to_parquet
        to(folder / name, index=False)

    def says(*words: str) -> Any:
        ended = typed(*words, cwd=folder)
        assert "Traceback" not in ended.stderr
        return ended

    def decided(people: pd.DataFrame, *words: str) -> Any:
        write(people, f"new_{case.name}")
        return says("decide", "policy", f"new_{case.name}", "-o", "decided.csv", *words)

    write(case.table, case.name)
    keys = {key: value for key, value in (USUAL["keys"] | case.keys).items() if value is not None}
    case.words, case.says_of, case.decided = [f"{key}={value}" for key, value in keys.items()], says, decided
    of_run = [f"dataset.{word}" for word in case.words]
    case.check = says("data", "describe", case.name, *of_run)
    case.compared = says("data", "compare", case.name, case.name, *of_run).stdout
    usual = "dataset=csv", "model=fairlog", "preset=quick", "seeds=1", f"dataset.path={folder / case.name}"
    case.run = answer(lambda: job(compose.compose_config(*usual, *of_run)))
    case.log = answer(lambda: DecisionLog.of(folder / case.name, **log_keywords(case.words)))
    case.features = {name: kind for name, kind in case.kinds.items() if kind in {*Kind}}
    if isinstance(case.run, Job):
        case.policy = Policy.of(case.run.learner, case.run.data)
        case.policy.save(folder / "policy", case.run.config)
    return case


def grid(output: str) -> list[list[str]]:
    """Cells of the rows of all tables in an output."""
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in output.splitlines() if "│" in line]


def lines(output: object, *about: str) -> list[str]:
    """Those that begin with such a word, without it and the prefix of keys of a run; all of an error."""
    text = str(output).replace("dataset.", "").splitlines()
    return [line.removeprefix(word) for line in text for word in about or [""] if line.startswith(word)]


def kinds(schema: Any) -> dict[str, str]:
    return {feature.name: feature.kind.value for feature in schema}


def test_every_command_takes_columns_and_groups_alike(asked: SimpleNamespace) -> None:
    shown = {row[0]: row[1] for row in reversed(grid(asked.check.stdout)) if len(row) > 1}
    compared = {row[0] for row in grid(asked.compared)}
    for name, kind in asked.kinds.items():
        assert shown[name].startswith("to fix" if kind.startswith(FIX) else kind)
        # What never changed may have changed now.
        assert (name in compared) == kind.startswith((*Kind, f"{OUT}it is always", f"{OUT}it is empty"))
        notes = lines(asked.compared, f"Note: column {name!r} is not compared: ")
        assert len(notes) == (name not in compared)
    assert {row[1] for row in grid(asked.compared)} == {"everybody", *asked.groups}
    if isinstance(asked.log, DecisionLog):
        assert kinds(asked.log.features) == asked.features
        assert [*asked.log.groups] == asked.groups
    if isinstance(asked.run, Job):
        assert kinds(asked.run.data.schema) == asked.features
        source = asked.run.config.dataset.build()
        assert sorted(map(display_name, source.applicants.groups)) == asked.groups
        assert sorted(asked.policy.reader.sensitive.meaning) == asked.groups


def test_faults_are_told_by_every_command_that_meets_them(asked: SimpleNamespace) -> None:
    fixes = [kind.removeprefix(FIX) for kind in asked.taken.values() if kind.startswith(FIX)]
    check, told = lines(asked.check.stdout, "To fix: "), [*asked.faults, *fixes, *asked.of_run]
    log = []
    if isinstance(asked.log, FairAllError):
        log = lines(asked.says_of("evaluate", asked.name, *asked.words).stderr, "fairall: ")
    for faults, parts in (
        (lines(asked.run) if isinstance(asked.run, FairAllError) else [], told),
        (check, told),
        (log, [*asked.faults, *fixes, *asked.of_log]),
    ):
        assert bool(faults) == bool(parts), faults
        assert len(faults) - len(parts) in (0, 1)  # one on the keys of a run
        assert [sum(part in line for line in faults) for part in parts] == [1] * len(parts), faults
    assert asked.check.returncode == bool(told)


def test_notes_and_warnings_are_those_of_every_command(asked: SimpleNamespace) -> None:
    told = []
    if isinstance(asked.run, Job):
        told.append([*asked.run.data.notes, *asked.run.data.warnings])
        check = asked.check.stdout.splitlines()
        about = [line.partition(": ")[2] for line in check if line.startswith(("Note: ", "Warning: "))]
        assert [line.removesuffix(".") for line in about] == told[0]
    if isinstance(asked.log, DecisionLog):
        told.append([*asked.log.notes])
    assert told or not asked.says
    out = {name: kind for name, kind in asked.taken.items() if kind.startswith(OUT)}
    for name, part in {**out, **asked.says}.items():
        for notes in told:
            (note,) = [line for line in notes if f"column {name!r}" in line]
            assert part in note
            constant = name in ("country", "fax")
            assert (f"kinds={{{name}: real}} keeps it" in note) == (name in out and not constant)


def test_decide_and_explain_need_the_features_and_nothing_else(asked: SimpleNamespace) -> None:
    if not isinstance(asked.run, Job):
        return
    table = asked.table.rename(columns={"": "column 1"})
    assert asked.policy.reader.names == [name for name in table if name in asked.features]
    people = table[[*asked.policy.reader.names, "sex"]]
    for options in ([], ["--explain", "5", "-o", "explained"]):
        ended = asked.decided(people, *options)
        assert (ended.returncode, ended.stderr) == (0, "")
    needed = next((name for name in asked.taken if name in asked.features), "age")
    with pytest.raises(FairAllError, match=rf"\b{needed}\b"):
        asked.policy.propensity(people.drop(columns=needed))
