"""Files that `python -m fairall decide` reads and writes, and what it refuses."""

import os
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml

from tests.conftest import succeeded, typed
from tests.decide.conftest import Policies, decided

MISTAKES = yaml.safe_load(Path(__file__).with_name("mistakes.yaml").read_text())


def test_files_of_all_kinds_give_the_same_decisions(
    policies: Policies, people: pd.DataFrame, tmp_path: Path
) -> None:
    saved, _ = policies("model=fairlog")
    first, _ = decided(tmp_path, saved, "--refer 3")
    added = first.columns[len(people.columns) :]
    people.to_parquet(tmp_path / "people.parquet")
    for source, out in (("csv", "parquet"), ("parquet", "csv"), ("parquet", "parquet")):
        place = f"from_{source}.{out}"
        table, _ = decided(tmp_path, saved, "--refer 3", people=f"people.{source}", out=place)
        pd.testing.assert_frame_equal(table[added], first[added], check_dtype=False)
    written = pq.read_table(tmp_path / "from_parquet.parquet")
    assert written.select([*people]).to_pandas().equals(people)
    assert [str(written.field(name).type) for name in ("decision", "propensity")] == ["int8", "double"]
    people.assign(id="Müller; O.").to_csv(tmp_path / "people.csv", index=False, sep=";", encoding="latin-1")
    (tmp_path / "link.csv").symlink_to(tmp_path / "out.csv")
    words = "separator=';'", "dataset.text_encoding=latin-1"
    succeeded("decide", str(saved), "people.csv", "-o", "link.csv", *words, cwd=tmp_path)
    assert (tmp_path / "link.csv").is_symlink(), "what is at the place of the output stays"
    text = (tmp_path / "out.csv").read_text(encoding="latin-1")
    assert text.startswith("id;income;")
    assert text.count('\n"Müller; O.";') == 30


@pytest.mark.parametrize(("given", "words", "told"), MISTAKES)
def test_mistakes_are_told_in_one_line_and_nothing_is_written(
    given: dict[str, Any], words: str, told: str, policies: Policies, people: pd.DataFrame, tmp_path: Path
) -> None:
    method = given.get("method", "fairlog").split()
    people.assign(**given).to_csv(tmp_path / "people.csv", index=False)  # other columns are passed on
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder").mkdir()
    (tmp_path / "out.csv").write_text("from before")
    before = {path: path.lstat()[:7] for path in tmp_path.iterdir()}
    folder, _ = policies(f"model={method[0]}", *method[1:])
    said = typed("decide", str(folder), "people.csv", "-o", "out.csv", *words.split(), cwd=tmp_path)
    assert (said.returncode in (1, 2), said.stdout, said.stderr.count("\n")) == (True, "", 1)
    assert told in said.stderr
    assert {path: path.lstat()[:7] for path in tmp_path.iterdir()} == before
