"""Paimon's rules for changes of a column's type.

Paimon checks two things, and both must hold: the cast is allowed (DataTypeCasts: implicit casts
always, explicit ones unless an option forbids them), and Paimon can carry it out (CastExecutors). A
change that passed only the first would leave a table whose older files Paimon cannot read.
"""

from __future__ import annotations

from typing import Final

from icecomb.catalog.paimon.data_type import (
    LOCAL_ZONED,
    MAX_LENGTH,
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
_SECONDS: Final = frozenset(("INT", "BIGINT"))
"""The types that may stand for seconds since the epoch."""
_TIMESTAMPS: Final = frozenset(("TIMESTAMP", LOCAL_ZONED))
_DATETIMES: Final = _TIMESTAMPS | {"DATE", "TIME"}
_TO_NUMBER: Final = _NUMBERS | _CHARACTERS | {"BOOLEAN"}
_TO_TEXT: Final = _CHARACTERS | _BYTES | _NUMBERS | _DATETIMES | {"BOOLEAN"}

_IMPLICIT: Final[dict[str, frozenset[str]]] = {
    "CHAR": frozenset(("CHAR",)),
    "VARCHAR": _CHARACTERS,
    "BINARY": frozenset(("BINARY",)),
    "VARBINARY": _BYTES,
    "DECIMAL": _NUMBERS,
    **{name: frozenset(_INTEGERS[: at + 1]) for at, name in enumerate(_INTEGERS)},
    "FLOAT": frozenset((*_INTEGERS, "FLOAT", "DECIMAL")),
    "DOUBLE": _NUMBERS,
    "DATE": frozenset(("TIMESTAMP",)),
    "TIME": frozenset(("TIMESTAMP",)),
    "TIMESTAMP": _TIMESTAMPS,
    LOCAL_ZONED: _TIMESTAMPS,
}
_EXPLICIT: Final[dict[str, frozenset[str]]] = {
    "CHAR": _TO_TEXT,
    "VARCHAR": _TO_TEXT,
    "BOOLEAN": _CHARACTERS | frozenset(_INTEGERS),
    "BINARY": _CHARACTERS | {"VARBINARY"},
    "VARBINARY": _CHARACTERS,
    "DECIMAL": _CHARACTERS | {"BOOLEAN"},
    **dict.fromkeys(("TINYINT", "SMALLINT", "FLOAT"), _TO_NUMBER),
    **dict.fromkeys(_SECONDS, _TO_NUMBER | _TIMESTAMPS),
    "DOUBLE": _CHARACTERS | {"BOOLEAN"},
    "DATE": _TIMESTAMPS | _CHARACTERS,
    "TIME": _TIMESTAMPS | _CHARACTERS,
    "TIMESTAMP": _DATETIMES | _CHARACTERS | _SECONDS,
    LOCAL_ZONED: _DATETIMES | _CHARACTERS | _SECONDS,
}


def can_cast(old: DataType, new: DataType, *, explicit: bool) -> bool:
    """Return whether a column may change from one type to another.

    Args:
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
    if old.root in _DATETIMES and new.root in _CHARACTERS and not _is_nullable_string(new):
        return False
    if old.root in _IMPLICIT.get(new.root, ()):
        return True
    return explicit and old.root in _EXPLICIT.get(new.root, ())


def _is_nullable_string(kind: AtomicType) -> bool:
    """Return whether a type is nullable STRING, the only text type for dates and times."""
    return kind.nullable and kind.root == "VARCHAR" and kind.parameters == (MAX_LENGTH,)
