"""Recognition of formatted numbers such as `$2,546.20`, and of their value where it is unambiguous."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

LONGEST = 40  # characters of such a number
CODES = (
    "AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HKD|HUF|INR|JPY|KRW|MXN|NOK|NZD|PLN|RON|SEK|SGD|TRY|USD|ZAR|"
    r"Fr\.?|kr\.?|Rs\.?|zł"
)
CURRENCY = rf"(?:[A-Za-z]{{0,3}}[$¢£¤¥฿\u20a0-\u20cf]|{CODES})"
SIGN = r"[-+−–]?"
FORMATTED = re.compile(
    rf"(?P<open>\()?\s*(?P<sign>{SIGN})\s*(?P<before>{CURRENCY})?\s*(?P<inner>{SIGN})\s*"
    rf"(?P<digits>[0-9.,][0-9.,'’_\s]*?)\s*"
    rf"(?P<after>{CURRENCY})?\s*(?P<percent>[%‰])?(?P<trailing>{SIGN})\s*(?P<close>\))?",
)
PLAIN = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+")
GROUPED = re.compile(
    r"[1-9][0-9]{0,2}(?P<group>[,.'’_\s])[0-9]{3}(?:(?P=group)[0-9]{3})*(?P<decimals>(?!(?P=group))[.,][0-9]+)?"
    r"|[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}(?P<indian>\.[0-9]+)?"
)
COMMA = re.compile(r"[0-9]*,[0-9]+")
# 1.250 is a decimal number or, where a point groups thousands, 1250.
SHORT_OR_POINTED = re.compile(r"[-+]?(?:(?P<short>[0-9]{1,3})|[1-9][0-9]{0,2}\.[0-9]{3})")


class Formatted(NamedTuple):
    """Formatting of a number.

    Attributes:
        marks: description of the formatting.
        plain: the number as a Python literal; None if ambiguous.
    """

    marks: str
    plain: str | None


def formatted(cell: str) -> Formatted | None:
    """The formatting of a cell; None for a plain number or other text."""
    match = FORMATTED.fullmatch(cell) if len(cell) <= LONGEST else None
    if match is None or bool(match["open"]) != bool(match["close"]):
        return None
    signs = match["sign"] + match["inner"] + match["trailing"]
    digits = _digits(match["digits"])
    if digits is None or len(signs) > 1 or (signs and match["open"]):
        return None
    marks = []
    if match["before"] or match["after"]:
        marks.append("a currency sign")
    if digits.marks:
        marks.append(digits.marks)
    if match["percent"]:
        marks.append(f"a {'percent' if match['percent'] == '%' else 'per mille'} sign")
    if match["open"]:
        marks.append("parentheses for a minus sign")
    if signs and signs in "−–":
        marks.append("a dash for a minus sign")
    elif match["trailing"]:
        marks.append("its sign at the end")
    if not marks:
        return None
    minus = "-" if match["open"] or (signs and signs in "-−–") else ""
    return Formatted(" and ".join(marks), None if digits.plain is None else minus + digits.plain)


def point_groups_thousands(cells: Iterable[str]) -> bool:
    """Whether distinct plain numbers seem to have thousands grouped by a point, as `1.250` and `900`.

    Decimals are not written so: with a fixed number of them 900 would be 900.000, otherwise 1.250 would
    be 1.25.
    """
    short = filled = False
    for cell in cells:
        match = SHORT_OR_POINTED.fullmatch(cell)
        if match is None:
            return False
        short |= match["short"] is not None
        filled |= match["short"] is None and cell.endswith("0")
    return short and filled


def _digits(text: str) -> Formatted | None:
    if PLAIN.fullmatch(text):
        ambiguous = GROUPED.fullmatch(text) is not None
        return Formatted("", None if ambiguous else text)
    grouped = GROUPED.fullmatch(text)
    if grouped is None:
        return Formatted("a decimal comma", text.replace(",", ".")) if COMMA.fullmatch(text) else None
    decimals = grouped["decimals"] or grouped["indian"] or ""
    if re.fullmatch("[0-9]+,[0-9]+", text):
        return Formatted("a thousands separator or a decimal comma", None)
    whole = text.removesuffix(decimals)
    return Formatted("thousands separators", re.sub("[^0-9]", "", whole) + decimals.replace(",", "."))
