r"""Values as printed: on one line, and distinguishable.

Text that does not fit on a line of output is escaped as in Python: ``\n``, ``\x1b``, ``\u202e``,
and ``\\`` for a literal backslash. Nested values are JSON documents.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from icecomb.catalog.cli.output.terminal import printable_json
from icecomb.format.printable_text import printable

_SPACES: Final = re.compile("(?<= ) ")
_FORMULA: Final = re.compile(r"[=+\-@\uff1d\uff0b\uff0d\uff20].")
_NUMBER: Final = re.compile(r"[+-]\d+(\.\d+)?([eE][+-]?\d+)?")


def text_cell(value: Any) -> str:
    """Format a value for people."""
    if value is None:
        return "null"
    return _plain(value, str)


def column_cell(value: Any) -> str:
    r"""Format a value for a column; columns are separated by two spaces, so these are escaped."""
    return _SPACES.sub(lambda _: "\\x20", text_cell(value))


def csv_cell(value: Any) -> str:
    r"""Format a value for a CSV file; null is empty.

    A spreadsheet runs text that begins with ``=``, ``+``, ``-`` or ``@`` as a formula. The first
    character of such text, unless it is a number, is escaped: ``\x3d`` is ``=``.
    """
    if value is None:
        return ""
    text = _plain(value, _iso)
    if isinstance(value, str) and _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        code = ord(text[0])
        return (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}") + text[1:]
    return text


def jsonable(value: Any) -> Any:
    """Convert a value to JSON's types; numbers that JSON does not have become text."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(inner) for inner in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _plain(value: Any, otherwise: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, Mapping | list | tuple):
        return printable_json(json.dumps(jsonable(value), ensure_ascii=False, default=str))
    # Doubled, a backslash of the value differs from that of an escaped character.
    return printable(otherwise(value).replace("\\", "\\\\"))


def _iso(value: Any) -> str:
    return value.isoformat() if isinstance(value, dt.date | dt.time) else str(value)
