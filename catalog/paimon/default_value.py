"""Default values of columns, which Paimon stores as text and casts when rows are written."""

from __future__ import annotations

from typing import Final

from icecomb.catalog.paimon.data_type import AtomicType, DataType
from icecomb.catalog.paimon.iceberg import iceberg_type
from icecomb.format.errors import ExpressionError, SchemaError, UnsupportedError
from icecomb.format.expressions.literal import convert_literal

_TRUTH: Final = frozenset(("t", "true", "y", "yes", "1", "f", "false", "n", "no", "0"))
_BITS: Final = {"TINYINT": 8, "SMALLINT": 16}
_FREE: Final = frozenset(("CHAR", "VARCHAR", "BINARY", "VARBINARY"))


def check_default(name: str, kind: DataType, text: str | None) -> None:
    """Check that a default value, with or without quotes, is a value of the column's type."""
    if text is None:
        return
    plain = text[1:-1] if len(text) > 1 and text[0] == text[-1] == "'" else text
    try:
        fits = isinstance(kind, AtomicType) and _fits(kind, plain)
    except (ExpressionError, UnsupportedError):
        fits = False
    if not fits:
        raise SchemaError(
            f"{plain!r} is not a default value for {name}, which is {kind}",
            hint="Give a value that Paimon can cast to the type of the column.",
        )


def _fits(kind: AtomicType, text: str) -> bool:
    if kind.root in _FREE:
        return True
    if kind.root == "BOOLEAN":
        return text.lower() in _TRUTH
    found = convert_literal(text, iceberg_type(kind))
    half = 1 << (_BITS[kind.root] - 1) if kind.root in _BITS else None
    return found.exact and (half is None or -half <= found.floor < half)
