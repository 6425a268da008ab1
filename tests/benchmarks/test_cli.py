"""`python -m benchmarks` as a user types it."""

from pathlib import Path

import pytest

from benchmarks.__main__ import main
from tests.conftest import imported

ONE = ["phases", "--models", "fairlog", "--datasets", "credit", "--seeds", "1"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "the following arguments are required: COMMAND; see python -m benchmarks --help"),
        (["phase"], "invalid choice: 'phase'"),
        (["phases", "--models", "fairlgo"], "no such model, did you mean fairlog?"),
        (["phases", "--datasets", "credt"], "no such dataset, did you mean credit?"),
        (["phases", "--seeds", "0"], "argument --seeds: it must be a whole number of at least 1, not 0"),
        (
            ["phases", "--repeats", "few"],
            "argument --repeats: it must be a whole number of at least 1, not few",
        ),
        (["phases", "--", "schedule.time_stesp=3"], "did you mean schedule.time_steps?"),
        ([*ONE, "--out", "/dev/null/x"], "--out /dev/null/x: "),
        (["compare", ".", ".", "--", "model=fairlog"], "model=fairlog: it is chosen before --, by --models"),
        (["phases", "--", "seeds=2"], "seeds=2: it is chosen before --, by --seeds"),
        (["scaling", "--axes", "luck"], "invalid choice: 'luck'"),
        (["compare", "nope", "."], "nope: no such revision"),
        (["compare", ".", ".", "--models", "fairlgo"], "no such model, did you mean fairlog?"),
        (["compare", "."], "the following arguments are required: B"),
        (["render", "nowhere"], "nowhere: no benchmark has written there"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_line(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 1
    told = capsys.readouterr().err
    assert told.startswith("benchmarks: ")
    assert told.count("\n") == 1
    assert said in told
    assert not [*tmp_path.iterdir()], "nothing half-written is left behind"


def test_help_is_one_page_without_heavy_imports() -> None:
    code = "from benchmarks.__main__ import main\ntry: main(['--help'])\nexcept SystemExit: pass"
    said, heavy = imported(code, "torch", "pandas", "matplotlib", "hydra")
    assert heavy == []
    for command in ("phases", "scaling", "compare", "render"):
        assert f"  {command} " in said
