"""Constants of `DEFAULT` clauses in Spark's SQL."""

from __future__ import annotations

import re
from typing import Any, Final

from icecomb.format.errors import ExpressionError, UnsupportedError
from icecomb.format.expressions.expression import EqualTo
from icecomb.format.expressions.sql.parser import parse

_COLUMN: Final = "c"
_NULL: Final = re.compile(r"|NULL|CAST\(\s*NULL\s+AS\s[^']+\)", re.IGNORECASE)
_TYPED_NUMBER: Final = re.compile(r"([+-]?[0-9.]+(?:E[+-]?[0-9]+)?)(?:[LSYDF]|BD)", re.IGNORECASE)


def constant_of(sql: str, path: str) -> Any:
    """Return the value of a DEFAULT clause; None for NULL, and without a clause."""
    if _NULL.fullmatch(sql.strip()):
        return None
    typed = _TYPED_NUMBER.fullmatch(sql.strip())
    try:
        found = parse(f"{_COLUMN} = ({typed[1] if typed else sql})", of_spark=True)
    except ExpressionError as error:
        raise _no_constant(sql, path) from error
    if not isinstance(found, EqualTo):
        raise _no_constant(sql, path)
    return found.literal


def _no_constant(sql: str, path: str) -> UnsupportedError:
    return UnsupportedError(
        f"Column {path} cannot have the default {sql}: an Iceberg table has constants as defaults",
        hint="Write a constant of the column's type, such as 5, 'x', DATE '2024-01-31' or X'cafe'",
        column=path,
    )
