"""Mistakes in classes and files of the user's own are told in one line."""

from pathlib import Path

import pytest
import yaml

from fairall.config.messages import report_error
from fairall.errors import FairAllError
from tests.conftest import refused

OWN = """\
from fairall.data.credit import Credit
from fairall.data.dataset import Dataset

class Mine(Credit): pass
class Lacking(Dataset): pass
class Nothing: pass
"""
MISTAKES = yaml.safe_load(Path(__file__).with_name("messages.yaml").read_text())


@pytest.mark.parametrize(("file", "content", "words", "said"), MISTAKES)
def test_a_mistake_in_classes_and_files_of_ones_own_is_one_line(
    file: str, content: str, words: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "wrong.py").write_text("x = (\n")
    (tmp_path / "lacking.py").write_text("import nopandas\n")
    path = tmp_path / "conf" / file
    path.parent.mkdir(parents=True)
    path.write_text(content)
    group = path.parent.name
    chosen = [] if group in ("conf", "experiment") else [f"{group}=mine"]
    assert said in refused("-cd", "conf", *chosen, *words.split(), "tracking.enabled=false", cwd=tmp_path)


def test_ends_of_lines_in_a_key_make_no_second_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_error(FairAllError("a\rb: no such key")) == 1
    assert capsys.readouterr().err == "fairall: a b: no such key\n"
