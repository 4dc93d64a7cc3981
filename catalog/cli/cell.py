r"""Values as they are printed: on one line, and told apart whatever they hold.

A text that a line of output could not hold is written as Python would write it: ``\n``, ``\x1b``,
``\u202e``, and ``\\`` for a backslash of its own. What is nested is a JSON document.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from icecomb.catalog.cli.terminal import printable, printable_json

_SPACES: Final = re.compile("(?<= ) ")
_FORMULA: Final = re.compile(r"[=+\-@\uff1d\uff0b\uff0d\uff20].")
_NUMBER: Final = re.compile(r"[+-]\d+(\.\d+)?([eE][+-]?\d+)?")


def text_cell(value: Any) -> str:
    """A value for people."""
    if value is None:
        return "null"
    return _plain(value, str)


def column_cell(value: Any) -> str:
    r"""The same between columns, which two spaces separate: of several spaces one is itself."""
    return _SPACES.sub(lambda _: "\\x20", text_cell(value))


def csv_cell(value: Any) -> str:
    r"""A value of a CSV file; nothing for null.

    A spreadsheet takes a text that begins with ``=``, ``+``, ``-`` or ``@`` for a formula, and runs
    it. The first character of one that is no number is written as an escape: ``\x3d`` is ``=``.
    """
    if value is None:
        return ""
    text = _plain(value, _iso)
    if isinstance(value, str) and _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        code = ord(text[0])
        return (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}") + text[1:]
    return text


def jsonable(value: Any) -> Any:
    """A value as JSON has it; numbers that JSON has not are text."""
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
    # A backslash of the value's own is told from one that was put before an escaped character.
    return printable(otherwise(value).replace("\\", "\\\\"))


def _iso(value: Any) -> str:
    return value.isoformat() if isinstance(value, dt.date | dt.time) else str(value)
