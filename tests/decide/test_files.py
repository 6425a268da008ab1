"""Files that `python -m fairall decide` reads and writes, and what it refuses."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch
import yaml

from fairall.policy import Policy
from tests.conftest import refused, typed
from tests.decide.conftest import Policies, decided, made

MISTAKES = yaml.safe_load(Path(__file__).with_name("mistakes.yaml").read_text())


@pytest.fixture
def saved(policies: Policies) -> Path:
    """Folder of a policy that draws decisions."""
    return policies("model=fairlog")[0]


def test_names_that_the_table_has_are_kept(saved: Path, people: pd.DataFrame, tmp_path: Path) -> None:
    people.assign(decision="granted").to_csv(tmp_path / "people.csv", index=False)
    first, said = decided(tmp_path, saved)
    added = "probability spread label_probability new_decision propensity".split()
    assert [*first] == [*people, "decision", *added]
    assert "Note: out.csv has the new decision in 'new_decision'; 'decision' is a column of" in said
    assert (first["decision"] == "granted").all()
    again, _ = decided(tmp_path, saved, people="out.csv", out="again.csv")
    assert [*again] == [*first, *(f"new_{name}" for name in added)]


def test_files_of_all_kinds_give_the_same_decisions(
    saved: Path, people: pd.DataFrame, tmp_path: Path
) -> None:
    first, _ = decided(tmp_path, saved, "--refer 3")
    people.to_parquet(tmp_path / "people.parquet")
    for source, out in (("csv", "parquet"), ("parquet", "csv"), ("parquet", "parquet")):
        place = f"from_{source}.{out}"
        table, _ = decided(tmp_path, saved, "--refer 3", people=f"people.{source}", out=place)
        pd.testing.assert_frame_equal(table[[*first][1:]], first[[*first][1:]], check_dtype=False)
    written = pq.read_table(tmp_path / "from_parquet.parquet")
    assert written.select([*people]).to_pandas().equals(people)
    assert [str(written.field(name).type) for name in ("decision", "propensity")] == ["int8", "double"]
    half = people.assign(income=people["income"].astype(np.float16), day=pd.Timestamp("2020-01-01"))
    half.to_parquet(tmp_path / "people.parquet")
    decided(tmp_path, saved, people="people.parquet", out="half.parquet")
    assert pq.read_schema(tmp_path / "half.parquet").field("income").type == "halffloat"
    people.assign(id="Müller; O.").to_csv(tmp_path / "people.csv", index=False, sep=";", encoding="latin-1")
    decided(tmp_path, saved, "separator=';' dataset.text_encoding=latin-1", out="half.parquet")
    assert (pd.read_parquet(tmp_path / "half.parquet")["id"] == "Müller; O.").all()
    (tmp_path / "link.csv").symlink_to(tmp_path / "out.csv")
    assert (
        typed(
            "decide",
            str(saved),
            "people.csv",
            "-o",
            "link.csv",
            "separator=';'",
            "text_encoding=latin-1",
            cwd=tmp_path,
        ).stderr
        == ""
    )
    assert (tmp_path / "link.csv").is_symlink(), "what is at the place of the output stays"
    text = (tmp_path / "out.csv").read_text(encoding="latin-1")
    assert text.startswith("id;income;")
    assert text.count('\n"Müller; O.";') == 30


def test_values_are_judged_by_the_whole_table(
    policies: Policies, people: pd.DataFrame, tmp_path: Path
) -> None:
    people["rooms"] = [9] * 10 + [1] * 20
    people["children"] = [None] * 10 + [1] * 20
    people.loc[[3, 29], "income"] = [9000.0, 8000.0]
    people.to_csv(tmp_path / "people.csv", index=False)
    folder, policy = policies("model=fairlog")
    with pytest.warns(UserWarning, match=r"rows hold '8000\.0', '9000\.0'") as caught:
        expected = policy.decision_proba(people)[:, 1]
    out, said = decided(tmp_path, folder)
    warned = [line.removeprefix("Warning: ") for line in said.splitlines() if "Warning" in line]
    assert "; ".join(warned) == str(caught[0].message)
    assert len(warned) == 2
    np.testing.assert_allclose(out["probability"], expected, atol=1.1e-6)


@pytest.mark.parametrize(("given", "words", "told"), MISTAKES)
def test_mistakes_are_told_in_one_line_and_nothing_is_written(
    given: dict[str, Any], words: str, told: str, policies: Policies, people: pd.DataFrame, tmp_path: Path
) -> None:
    method = given.get("method", "fairlog").split()
    people.assign(**given).drop(columns="method", errors="ignore").to_csv(
        tmp_path / "people.csv", index=False
    )
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder").mkdir()
    (tmp_path / "out.csv").write_text("from before")
    before = {path: path.lstat() for path in tmp_path.iterdir()}
    folder, _ = policies(f"model={method[0]}", *method[1:])
    said = typed("decide", str(folder), "people.csv", "-o", "out.csv", *words.split(), cwd=tmp_path)
    assert (said.returncode, said.stdout, said.stderr.count("\n")) == (1, "", 1)
    assert told in said.stderr
    assert {path: path.lstat() for path in tmp_path.iterdir()} == before


def test_an_interruption_leaves_nothing(
    saved: Path, people: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed = Policy.encoded_label_probability

    def interrupted(self: Policy, *people: torch.Tensor) -> np.ndarray:
        os.kill(os.getpid(), signal.SIGINT)
        return computed(self, *people)

    monkeypatch.setattr(Policy, "encoded_label_probability", interrupted)
    monkeypatch.setattr("fairall.runtime.signals._State.requested", None)
    said = typed("decide", str(saved), "people.csv", "-o", "out.csv", cwd=tmp_path)
    assert (said.returncode, said.stderr.partition(";")[0]) == (130, "fairall: interrupted")
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


def test_a_method_of_ones_own_is_imported_where_it_is_trusted(
    people: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trusted_method.py").write_text(
        "from fairall.models.fairlog import FairLog\n\n\nclass Own(FairLog):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    made(tmp_path, "model=fairlog", "model._target_=trusted_method.Own")
    del sys.modules["trusted_method"]
    said = refused("decide", "policy", "people.csv", "-o", "out.csv", cwd=tmp_path)
    assert "--trust trusted_method, or load_policy(..., modules=['trusted_method'])" in said
    assert "trusted_method" not in sys.modules
    decided(tmp_path, "policy", "--trust other --trust trusted_method")
