"""User and password of addresses."""

import os
from pathlib import Path

import pytest
import yaml

from fairall.runtime.credentials import KEPT, complete, hidden, user_and_password, withheld
from tests.conftest import own_process

KNOWN = yaml.safe_load(Path(__file__).with_name("credentials.yaml").read_text())


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEPT, "")


@pytest.mark.parametrize(
    ("whole", "address", "user", "password"), [(whole, *parts) for whole, parts in KNOWN["addresses"].items()]
)
@pytest.mark.parametrize(
    "word", ["{}", "tracking.uri={}", "tracking.uri='{}'", "a={{uri: {}, b: 1}}", '[{},"x"]']
)
def test_an_address_and_its_credentials_part(
    word: str, whole: str, address: str, user: str | None, password: str | None
) -> None:
    assert withheld(word.format(whole)) == word.format(address)
    assert complete(address) == whole
    assert user_and_password(address) == (user, password)


@pytest.mark.parametrize(("text", "shown"), KNOWN["texts"].items())
def test_credentials_are_hidden_in_any_text(text: str, shown: str) -> None:
    assert hidden(text) == shown
    assert os.environ[KEPT] == ""  # by `withheld` alone
    assert withheld(text) == shown


@pytest.mark.parametrize(
    "password", ["p w", "o'n", "a,b", "a]b}", 'a"b', "a?b", "a=b", "a@b", "a\\b", "a#b", ""]
)
def test_whatever_a_password_of_a_query_has_it_is_hidden(password: str) -> None:
    whole, address = f"pg://host/name?password={password}&port=1", "pg://host/name?port=1"
    assert withheld(whole) == address
    assert complete(address) == whole


def test_child_processes_can_connect_too() -> None:
    withheld("[http://a:b@h1,http://c:d@h2]")
    withheld("http://c:new@h2")
    ask = "from fairall.runtime.credentials import complete; print(complete('http://h1'), complete('http://h2'))"
    assert own_process("-c", ask, check=True).stdout == "http://a:b@h1 http://c:new@h2\n"
