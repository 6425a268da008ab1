"""`python -m benchmarks` as a user types it."""

from pathlib import Path

import pytest

from benchmarks.__main__ import main

pytestmark = pytest.mark.whole


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "the following arguments are required: COMMAND; see python -m benchmarks --help"),
        (["rnu"], "invalid choice: 'rnu'"),
        (["run", "model=fairlog,fairlgo"], "no such model, did you mean fairlog?"),
        (["run", "schedule.time_stesp=3"], "did you mean schedule.time_steps?"),
        (["run", "--repeats", "0"], "argument --repeats: it must be a whole number of at least 1, not 0"),
        (["run", "--axes", "seeds,luck"], "no axis 'luck'; there are seeds, people, "),
        (["run", "model=fairlog", "--out", "/dev/null/x"], "--out /dev/null/x: "),
        (["compare", "nope", ".", "model=fairlog"], "nope: no such revision"),
        (["compare", "."], "the following arguments are required: B"),
        (["probe", "seeds=-1"], "seeds=-1 is not possible"),
        (["soak", "--only", "overrides"], "it must be KIND:NUMBER, KIND one of kills, verbs, overrides, "),
        (["soak", "--only", "nope:1"], "it must be KIND:NUMBER"),
        (["soak", "--only", "kills:x"], "it must be KIND:NUMBER"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_line(
    words: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 1
    error = capsys.readouterr().err
    assert error.startswith("benchmarks: ")
    assert error.count("\n") == 1
    assert told in error
    assert not [*tmp_path.iterdir()]
