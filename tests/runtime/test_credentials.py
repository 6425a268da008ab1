"""User and password of addresses."""

import os

import pytest

from fairall.runtime.credentials import KEPT, complete, hidden, user_and_password, withheld
from tests.conftest import own_process


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEPT, "")


@pytest.mark.parametrize(
    ("whole", "address", "user", "password"),
    [
        ("http://user:pass@host:5000/path", "http://host:5000/path", "user", "pass"),
        ("http://token@host", "http://host", "token", None),
        ("http://:pass@host", "http://host", None, "pass"),
        ("https://us%40er:p%3Aa%2Fss@host", "https://host", "us@er", "p:a/ss"),
        ("http://user:p@ss@host", "http://host", "user", "p@ss"),
        ("http://user:p/a?s#s@host", "http://host", None, None),  # hidden, though not as %2F, %3F and %23
        ("http://user:1234@[::1]:5000", "http://[::1]:5000", "user", "1234"),
        ("postgresql+pg://user:pass@host/name?x=1", "postgresql+pg://host/name?x=1", "user", "pass"),
        ("postgresql://user:pass@/name", "postgresql:///name", "user", "pass"),
        ("postgresql://user@host/name?password=p@ss", "postgresql://host/name", "user", None),
        ("postgresql://host/name?password=pa:s&port=1", "postgresql://host/name?port=1", None, None),
        ("pg://user:p@ss@/n?x=1&PASSWORD=a&y=2&sslpassword=b", "pg:///n?x=1&y=2", "user", "p@ss"),
        ("pg:///n?user=me&password=a&host=/tmp", "pg:///n?host=/tmp", None, None),
    ],
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


PLAIN = """
    http://host http://host:5000/a@b http://[::1]:5000/a@b sqlite:////home/a@b/mlflow.db file:///a@b
    a@b outputs_dir=a@b
""".split()
USERINFO = ("user:7,pw", "user:)pw", "user:1;x", "o'neil:pw", "user:'pw", "user:7]a", "user:p w")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *((text, text) for text in (*PLAIN, "cannot reach http://host: ask admin@host")),
        *(
            (f"cannot use http://{userinfo}@host:5000/a", "cannot use http://host:5000/a")
            for userinfo in USERINFO
        ),
        ("cannot use pg://host/a?password=b: gone", "cannot use pg://host/a: gone"),
        ("cannot use pg://host/a?x=1&user=b (gone)", "cannot use pg://host/a?x=1 (gone)"),
        ("[pg://a?password=b,pg://c?pwd=d]", "[pg://a,pg://c]"),
        ("which column?user=b, or password=c", "which column?user=b, or password=c"),
        ("[http://a:b@h1,http://c:d@h2,http://h3]", "[http://h1,http://h2,http://h3]"),
    ],
)
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
