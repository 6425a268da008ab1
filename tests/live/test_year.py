"""The year of docs/live.md as it is typed: what the page says is said, and estimates are near the truth."""

import re
import runpy
import shlex
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from fairall import Ledger
from tests.conftest import CHECKOUT, succeeded

PAGE = (CHECKOUT / "docs" / "live.md").read_text()
# The sections of the year, without blocks between fences, whose lines may be indented.
YEAR = re.sub("^```.*?^```", "", PAGE[: PAGE.index("\n## 7. ")], flags=re.DOTALL | re.MULTILINE)
# A shell in which programs are not started, but written down.
NOTED = "".join(f"{name}() {{ printf '%q ' {name} \"$@\"; echo; }}; " for name in ("python", "cp", "sh"))


def typed_year(folder: Path) -> str:
    """What is said in a year, whose loops are those of the page."""
    script = "\n".join(re.findall("^    (.*)", YEAR, re.MULTILINE))
    noted = subprocess.run(["bash", "-c", NOTED + script], capture_output=True, text=True, check=True)
    example = runpy.run_path(str(CHECKOUT / "examples" / "loans.py"))["main"]
    lines, said = noted.stdout.splitlines()[::-1], ""
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        while lines:
            program, *words = shlex.split(lines.pop())
            if program == "cp":
                shutil.copy(*words)
            elif program == "sh":
                lines += Path(words[0]).read_text().splitlines()[::-1]
            elif words[0] == "examples/loans.py":
                patched.setattr("sys.argv", words)
                example()
            else:
                said += succeeded(*words[2:], cwd=folder).stdout
    return said


@pytest.mark.whole
def test_the_year_of_the_page(tmp_path: Path) -> None:
    said = typed_year(tmp_path)
    quoted = [text for text in re.findall(r"\*([^*]+)\*", YEAR) if re.search("per 100|doubtful", text)]
    assert len(quoted) == 4
    for text in quoted:  # the last digits may be those of another machine
        assert re.search(re.sub(r"-?\d+(\\\.\d)?", r"-?[\\d.]+", re.escape(text)), said), text
    found = Ledger(tmp_path / "loans.db").status()
    counts = [
        found[name] for name in ("people", "withdrawn", "corrected", "undecided", "referred", "waiting")
    ]
    assert counts[:2] + counts[3:] == [11_999, 1, 0, 40, 0]
    assert counts[2] > 800
    assert [one["can_be_made_again"] for one in found["versions"]] == [True] + [False] * 9

    year = pd.concat(map(pd.read_csv, (tmp_path / "year").glob("*_decided.csv"))).set_index("application")
    assert year["decision"].notna().all()
    by_person, referred = year["propensity"].isna(), year["referred"] == 1
    assert by_person.sum() == 60
    truth = pd.read_csv(tmp_path / "year" / "truth.csv").set_index("application")
    gain = (truth["would_repay"] - 0.6)[year.index]
    policy = (gain * year["decision"])[~by_person].sum() / (~referred).sum()
    low, high = map(float, re.findall(r"Utility per 100 people: \S+ \[(\S+), (\S+)\]", said)[0])
    assert low < 100 * policy < high
    for row in found["overrides"]:
        if row["group"] == "all":
            changed = (
                by_person
                & (referred == (row["of"] == "referred"))
                & (year["decision"] == (row["to"] == "accept"))
            )
            assert row["people"] == changed.sum()
            low, high = row["bounds"] or row["value"][1:]
            assert low < gain[changed].mean() * (1 if row["to"] == "accept" else -1) < high
