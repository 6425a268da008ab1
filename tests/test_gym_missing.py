"""Without gymnasium the environment says what to install."""

from tests.conftest import own_process


def test_without_gymnasium_one_line_says_what_to_install() -> None:
    code = "import sys; sys.modules['gymnasium'] = None\nimport fairall.gym"
    said = own_process("-c", code)
    last = said.stderr.strip().splitlines()[-1]
    assert last == (
        "fairall.errors.FairAllError: fairall.gym: needs gymnasium; install it with: pip install gymnasium"
    )
