"""Which type a column may change to (Paimon: DataTypeCasts; its implicit and explicit casts)."""

from __future__ import annotations

from typing import Final

from icecomb.format.paimon.data_type import (
    LOCAL_ZONED,
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    RowType,
)

_CHARACTERS: Final = frozenset(("CHAR", "VARCHAR"))
_BYTES: Final = frozenset(("BINARY", "VARBINARY"))
_INTEGERS: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_NUMBERS: Final = frozenset((*_INTEGERS, "FLOAT", "DOUBLE", "DECIMAL"))
_TIMESTAMPS: Final = frozenset(("TIMESTAMP", LOCAL_ZONED))
_DATETIMES: Final = _TIMESTAMPS | {"DATE", "TIME"}
_PREDEFINED: Final = _CHARACTERS | _BYTES | _NUMBERS | _DATETIMES | {"BOOLEAN"}
_TO_NUMBER: Final = _CHARACTERS | _TIMESTAMPS | {"BOOLEAN"}

_IMPLICIT: Final[dict[str, frozenset[str]]] = {
    "VARCHAR": _CHARACTERS,
    "VARBINARY": _BYTES,
    "DECIMAL": _NUMBERS,
    **{name: frozenset(_INTEGERS[: at + 1]) for at, name in enumerate(_INTEGERS)},
    "FLOAT": frozenset((*_INTEGERS, "FLOAT", "DECIMAL")),
    "DOUBLE": _NUMBERS,
    "DATE": frozenset(("DATE", "TIMESTAMP")),
    "TIME": frozenset(("TIME", "TIMESTAMP")),
    "TIMESTAMP": _TIMESTAMPS,
    LOCAL_ZONED: _TIMESTAMPS,
}
_EXPLICIT: Final[dict[str, frozenset[str]]] = {
    "CHAR": _PREDEFINED,
    "VARCHAR": _PREDEFINED,
    "BOOLEAN": _CHARACTERS | frozenset(_INTEGERS),
    "BINARY": _CHARACTERS | {"VARBINARY"},
    "VARBINARY": _CHARACTERS | {"BINARY"},
    "DECIMAL": _TO_NUMBER,
    **dict.fromkeys((*_INTEGERS, "FLOAT"), _NUMBERS | _TO_NUMBER),
    "DOUBLE": _TO_NUMBER,
    "DATE": _TIMESTAMPS | _CHARACTERS,
    "TIME": _TIMESTAMPS | _CHARACTERS,
    "TIMESTAMP": _DATETIMES | _CHARACTERS | _NUMBERS,
    LOCAL_ZONED: _DATETIMES | _CHARACTERS | _NUMBERS,
}


def can_cast(old: DataType, new: DataType, *, explicit: bool) -> bool:
    """Whether a column of one type may become one of another.

    Args:
        old: The type of the rows written so far.
        new: The type wanted.
        explicit: Whether casts that may lose information are allowed
            (`disable-explicit-type-casting` is not set).
    """
    if old.nullable and not new.nullable and not explicit:
        return False
    if old.with_nullable(True) == new.with_nullable(True):
        return True
    if not isinstance(new, AtomicType):
        return False
    if not isinstance(old, AtomicType):
        text = new.root in _CHARACTERS and isinstance(old, ArrayType | MapType | RowType)
        return text and explicit
    if old.root == new.root or old.root in _IMPLICIT.get(new.root, ()):
        return True
    return explicit and old.root in _EXPLICIT.get(new.root, ())
