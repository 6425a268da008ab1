"""User and password of addresses, kept apart from everything that is written, logged or shown.

Where `http://user:password@host` or `postgresql://host/name?password=...` enters a process, in its command
line, environment or configuration, `withheld` makes `http://host` or `postgresql://host/name` of it.
`complete` gives the whole address back to those who connect.
"""

from __future__ import annotations

import os
import re
from urllib.parse import unquote, urlsplit

# Environment variable with the whole of each address in a line: child processes need them too.
KEPT = "FAIRALL_CREDENTIALS"
# What follows `://` where there is neither user nor password: a host with or without a port, or nothing.
PLAIN = r"(?:[\w.-]*|\[[\da-fA-F:.]+\])(?::\d*)?(?:[/?#\s'\",;)\]}]|$)"
# Names of secret values of a query, as libpq and the drivers of databases have them.
NAME = r"(?i:\w*(?:user|username|passw(?:or)?d|passphrase|pass|pwd|secret|token)|uid|odbc_connect)="
# A user and a password reach to the last @, since not everybody writes %40, %2F and %3F in a password: to the
# last one before a secret of the query, if there is one. One without spaces, slashes, ? and # reaches there
# whatever it begins with.
USERINFO = rf"(?:(?!{PLAIN})(?:(?:(?!://|[?&]{NAME}).)*@|(?:(?!://).)*@)|[^\s/?#]*@)"
REST = r"(?P<rest>(?:\[[\da-fA-F:.]+\])?[^\s'\",\[\]{}\\]*)"
ADDRESS = re.compile(rf"(?P<scheme>[\w+.-]+://)(?:{USERINFO})?{REST}", re.DOTALL)
# A text that is one address. In longer texts a secret of a query ends at a space or a quotation mark, and
# before the brackets and commas there.
ALONE = re.compile(r"[\w+.-]+://(?:(?!://).)*", re.DOTALL)
IN_TEXT = r"[^&\s'\"]*?(?=[,;:)\]}]*(?:[&\s'\"]|$)|,[\w+.-]+://)"


def hidden(text: str) -> str:
    """The text without user and password of the addresses in it."""
    if "://" not in text:
        return text
    secret = rf"(?>{NAME}{'[^&]*' if ALONE.fullmatch(text) else IN_TEXT})"
    # All of a query; or the first values, with the & after them; or another, with that before it. The atomic
    # group would be a possessive repetition, `*+`, but for a fault of that in Python 3.11.2.
    secrets = rf"\?{secret}(?>(?:&{secret})*)(?!&)|(?<=\?)(?:{secret}&)+|&{secret}"
    return re.sub(secrets, "", ADDRESS.sub(r"\g<scheme>\g<rest>", text), flags=re.DOTALL)


def withheld(text: str) -> str:
    """The text as `hidden` gives it; this process and its children keep its addresses for `complete`."""
    whole = [text] if ALONE.fullmatch(text) else [match[0] for match in ADDRESS.finditer(text)]
    for address in whole:
        if hidden(address) != address:
            os.environ[KEPT] = "\n".join(dict.fromkeys([address, *_kept()]))
    return hidden(text)


def complete(address: str) -> str:
    """The address with its user and password, where they have been withheld; the latest ones."""
    return next((whole for whole in _kept() if hidden(whole) == address), address)


def user_and_password(address: str) -> tuple[str | None, str | None]:
    """User and password that have been withheld from the address, decoded; None where there is none."""
    parts = urlsplit(complete(address))
    return unquote(parts.username or "") or None, parts.password and unquote(parts.password)


def _kept() -> list[str]:
    return os.environ.get(KEPT, "").splitlines()
