"""User and password of addresses, kept apart from everything that is written, logged or shown.

Where `http://user:password@host` enters a process, in its command line, environment or configuration,
`withheld` makes `http://host` of it. `complete` gives the whole address back to those who connect.
"""

from __future__ import annotations

import json
import os
import re
from urllib.parse import unquote

# Environment variable with user and password by address as JSON: child processes need them too.
KEPT = "FAIRALL_CREDENTIALS"
# What follows `://` where there is neither user nor password: a host with or without a port, or nothing.
PLAIN = r"(?:[\w.-]*|\[[\da-fA-F:.]+\])(?::\d*)?(?:[/?#\s'\",;)\]}]|$)"
# A user and a password reach to the last @, since not everybody writes %40, %2F and %3F in a password.
# One without spaces, slashes, ? and # reaches there whatever it begins with.
USERINFO = rf"(?P<userinfo>(?!{PLAIN})(?:(?!://).)*|[^\s/?#]*)@"
REST = r"(?P<rest>(?:\[[\da-fA-F:.]+\])?[^\s'\",\[\]{}\\]*)"
ADDRESS = re.compile(rf"(?P<scheme>[\w+.-]+://){USERINFO}{REST}", re.DOTALL)


def hidden(text: str) -> str:
    """The text without user and password of the addresses in it."""
    return ADDRESS.sub(r"\g<scheme>\g<rest>", text)


def withheld(text: str) -> str:
    """The same, with user and password kept for `complete` in this process and its children."""
    found = {one["scheme"] + one["rest"]: one["userinfo"] for one in ADDRESS.finditer(text)}
    if found:
        os.environ[KEPT] = json.dumps(_kept() | found)
    return hidden(text)


def complete(address: str) -> str:
    """The address with its user and password, where they have been withheld."""
    userinfo = _kept().get(address)
    return address if userinfo is None else address.replace("://", f"://{userinfo}@", 1)


def user_and_password(address: str) -> tuple[str | None, str | None]:
    """User and password that have been withheld from the address, decoded; None where there is none."""
    user, colon, password = _kept().get(address, "").partition(":")
    return unquote(user) or None, unquote(password) if colon else None


def _kept() -> dict[str, str]:
    return json.loads(os.environ.get(KEPT, "{}"))
