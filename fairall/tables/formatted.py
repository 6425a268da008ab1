"""Recognition of numbers formatted for readers, such as `$2,546.20`."""

from __future__ import annotations

import re
from collections.abc import Sequence

LONGEST = 40  # characters of such a number
CODES = (
    "AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HKD|HUF|INR|JPY|KRW|MXN|NOK|NZD|PLN|RON|SEK|SGD|TRY|USD|ZAR|"
    r"Fr\.?|kr\.?|Rs\.?|zł"
)
CURRENCY = rf"(?:[A-Za-z]{{0,3}}[$¢£¤¥฿\u20a0-\u20cf]|{CODES})"
PLAIN = r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+"
COMMA = "[0-9]*,[0-9]+"
GROUPED = (
    r"[1-9][0-9]{0,2}(?P<group>[,.'’_\s])[0-9]{3}(?:(?P=group)[0-9]{3})*(?:(?!(?P=group))[.,][0-9]+)?"
    r"|[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}(?:\.[0-9]+)?"
)
SIGN = "[-+−–]"
# Parentheses come in pairs, and at most one sign or pair of parentheses says that a number is negative.
ONE_SIGN = rf"(?=\(.*\)$|[^()]*$)(?!(?:.*(?:\(|{SIGN})){{2}})"
FORMATTED = re.compile(
    rf"{ONE_SIGN}\(?\s*{SIGN}?\s*(?:{CURRENCY})?\s*{SIGN}?\s*(?:{GROUPED}|{COMMA}|{PLAIN})"
    rf"\s*(?:{CURRENCY})?\s*[%‰]?{SIGN}?\s*\)?"
)
NUMBER = re.compile(rf"[-+]?(?:{PLAIN})")
# At most three digits, or three after a point: a decimal number or, where a point groups thousands, 1250.
SHORT_OR_POINTED = re.compile(r"[-+]?(?:[0-9]{1,3}|[1-9][0-9]{0,2}\.[0-9]{3})")


def is_formatted(cell: str) -> bool:
    """Whether a cell is a number with a currency, grouped thousands, a decimal comma and the like.

    Examples:
        >>> [is_formatted(cell) for cell in ("1.234,56 €", "12 %", "(5)", "12", "1,2,3")]
        [True, True, True, False, False]
    """
    return len(cell) <= LONGEST and not NUMBER.fullmatch(cell) and FORMATTED.fullmatch(cell) is not None


def point_groups_thousands(cells: Sequence[str]) -> bool:
    """Whether distinct plain numbers seem to have thousands grouped by a point, as `1.250` and `900`.

    Decimals are not written so: with a fixed number of them 900 would be 900.000, otherwise 1.250 would
    be 1.25.
    """
    if not all(map(SHORT_OR_POINTED.fullmatch, cells)):
        return False
    pointed = [cell for cell in cells if "." in cell]
    return len(pointed) < len(cells) and any(cell.endswith("0") for cell in pointed)
