"""Parser of Paimon types: SQL such as `DECIMAL(10, 2) NOT NULL` or `ROW<a INT>`, and JSON.

Schema files hold atomic types as SQL and the others as JSON; users write all of them as SQL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from icecomb.catalog.paimon.data_type import (
    LOCAL_ZONED,
    MAX_LENGTH,
    PLAIN,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
)
from icecomb.format.errors import SchemaError
from icecomb.format.input_limit import one_level
from icecomb.format.spec.values.json_object import unknown_members

NO_ID: Final = -1
"""The id of fields in a parsed ROW: ids are assigned when the type is added to a schema."""

_TOKEN: Final = re.compile(r"\s*(`(?:[^`]|``)+`|'(?:[^']|'')*'|\d+|\w+|[<>(),:])")
_FIELD: Final = frozenset(("id", "name", "type", "description", "defaultValue"))
_NESTED: Final = frozenset(("type", "element", "key", "value", "fields", "length"))
_ALIASES: Final = {"INTEGER": "INT", "NUMERIC": "DECIMAL", "DEC": "DECIMAL"}
_WHOLE: Final = {"STRING": "VARCHAR", "BYTES": "VARBINARY"}
_DEFAULTS: Final[dict[str, tuple[int, ...]]] = {
    **dict.fromkeys(("CHAR", "VARCHAR", "BINARY", "VARBINARY"), (1,)),
    "DECIMAL": (10, 0),
    "TIME": (0,),
    "TIMESTAMP": (6,),
    LOCAL_ZONED: (6,),
}

_DIGITS: Final = 18
"""The most digits of a number in a type."""


def parse_type(text: str) -> DataType:
    """Read a type; `SchemaError` if it is not one."""
    parser = _Parser(text)
    found = parser.kind()
    if parser.peek():
        raise parser.error(f"{parser.peek()!r} is not expected")
    return found


def field_from_json(raw: Any, place: str = "fields") -> DataField:
    """Parse a field; `place` is the path to it, for errors."""
    if not isinstance(raw, dict):
        raise SchemaError(f"{place}: not an object: {raw!r}")
    name = raw.get("name")
    if not isinstance(name, str) or not name:
        raise SchemaError(f"{place}: a field has no name: {raw!r}")
    place = f"{place}.{name}"
    field_id = raw.get("id")
    if type(field_id) is not int or field_id < 0:
        raise SchemaError(f"{place}: id is not a number from 0 on: {field_id!r}")
    description, default = raw.get("description"), raw.get("defaultValue")
    if not all(text is None or isinstance(text, str) for text in (description, default)):
        raise SchemaError(f"{place}: description and defaultValue must be text")
    kind = type_from_json(raw.get("type"), place)
    return DataField(field_id, name, kind, description, default, unknown_members(raw, _FIELD))


def type_from_json(raw: Any, place: str) -> DataType:
    """Parse a type from its JSON form; `place` begins the message of an error."""
    if isinstance(raw, str):
        try:
            return parse_type(raw)
        except SchemaError as error:
            raise SchemaError(f"{place}: {error.message}", hint=error.hint) from error
    if not isinstance(raw, dict) or not isinstance(raw.get("type"), str):
        raise SchemaError(f"{place}: type is missing or invalid: {raw!r}")
    with one_level():
        return _nested_from_json(raw, place)


def _nested_from_json(raw: Mapping[str, Any], place: str) -> DataType:
    words = raw["type"].split()
    kind, nullable = words[0] if words else "", words[1:] != ["NOT", "NULL"]
    extra = unknown_members(raw, _NESTED)
    if words[1:] not in ([], ["NOT", "NULL"], ["NULL"]):
        raise SchemaError(f"{place}: unknown type {raw['type']!r}")
    if kind == "ROW":
        fields = raw.get("fields")
        if not isinstance(fields, list):
            raise SchemaError(f"{place}: ROW without fields")
        inner = tuple(field_from_json(one, place) for one in fields)
        return RowType(nullable, inner, extra)
    if kind == "MAP":
        key = type_from_json(raw.get("key"), f"{place}.key")
        return MapType(nullable, key, type_from_json(raw.get("value"), f"{place}.value"), extra)
    if kind not in {"ARRAY", "MULTISET", "VECTOR"}:
        raise SchemaError(f"{place}: unknown type {raw['type']!r}")
    element = type_from_json(raw.get("element"), f"{place}.element")
    if kind == "ARRAY":
        return ArrayType(nullable, element, extra)
    if kind == "MULTISET":
        return MultisetType(nullable, element, extra)
    length = raw.get("length")
    if type(length) is not int or length < 1:
        raise SchemaError(f"{place}: VECTOR without a length: {length!r}")
    return VectorType(nullable, element, length, extra)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        self._at = 0
        position = 0
        stripped = text.rstrip()
        while position < len(stripped):
            match = _TOKEN.match(stripped, position)
            if match is None:
                raise self.error(f"{stripped[position:]!r} is not expected")
            self._tokens.append(match[1])
            position = match.end()

    def error(self, reason: str) -> SchemaError:
        return SchemaError(
            f"unknown type {self._text!r}: {reason}",
            hint="Write a type as in Paimon's SQL, such as DECIMAL(10, 2) or ARRAY<INT NOT NULL>.",
        )

    def peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def next(self) -> str:
        if self._at >= len(self._tokens):
            raise self.error("it ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def kind(self) -> DataType:
        """Parse a type with its nullability."""
        found = self._without_nullability()
        if self._taken("NOT"):
            self._expect("NULL")
            return found.with_nullable(False)
        self._taken("NULL")
        return found

    def _without_nullability(self) -> DataType:
        word = self.next().upper()
        root = _ALIASES.get(word, word)
        if root in PLAIN:
            if root == "DOUBLE":
                self._taken("PRECISION")
            return AtomicType(True, root)
        if root in _WHOLE:
            return AtomicType(True, _WHOLE[root], (MAX_LENGTH,))
        if root in _DEFAULTS:
            return self._parameterised(root)
        if root in {"ARRAY", "MULTISET", "MAP", "ROW", "VECTOR"}:
            self._expect("<")
            with one_level():
                nested = self._nested(root)
            self._expect(">")
            return nested
        raise self.error(f"Paimon has no type {word}")

    def _parameterised(self, root: str) -> DataType:
        given: list[int] = []
        if self._taken("("):
            given.append(self._number())
            if root == "DECIMAL" and self._taken(","):
                given.append(self._number())
            self._expect(")")
        if root == "TIMESTAMP" and self._taken("WITH"):
            self._expect("LOCAL", "TIME", "ZONE")
            root = LOCAL_ZONED
        elif root in {"TIME", "TIMESTAMP"} and self._taken("WITHOUT"):
            self._expect("TIME", "ZONE")
        defaults = _DEFAULTS[root]
        return AtomicType(True, root, (*given, *defaults[len(given) :]))

    def _nested(self, root: str) -> DataType:
        if root == "ROW":
            fields = [self._field()]
            while self._taken(","):
                fields.append(self._field())
            return RowType(True, tuple(fields))
        first = self.kind()
        if root == "MAP":
            self._expect(",")
            return MapType(True, first, self.kind())
        if root == "VECTOR":
            self._expect(",")
            return VectorType(True, first, self._number())
        return ArrayType(True, first) if root == "ARRAY" else MultisetType(True, first)

    def _field(self) -> DataField:
        word = self.next()
        name = word[1:-1].replace("``", "`") if word.startswith("`") else word
        if not name or name[0] in "<>(),:'":
            raise self.error(f"a field name is expected, not {word!r}")
        self._taken(":")
        kind = self.kind()
        self._taken("COMMENT")
        doc = self.next()[1:-1].replace("''", "'") if self.peek().startswith("'") else None
        return DataField(NO_ID, name, kind, doc)

    def _number(self) -> int:
        word = self.next()
        if not (word.isascii() and word.isdigit() and len(word) <= _DIGITS):
            raise self.error(f"a number is expected, not {word!r}")
        return int(word)

    def _taken(self, word: str) -> bool:
        if self.peek().upper() != word:
            return False
        self._at += 1
        return True

    def _expect(self, *words: str) -> None:
        for word in words:
            found = self.next()
            if found.upper() != word:
                raise self.error(f"{word} is expected, not {found!r}")
