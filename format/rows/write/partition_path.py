"""Partition values in paths as Hive writes them: `day=2024-01-31/city=New%2FYork`."""

from __future__ import annotations

import re
from typing import Any, Final

from icecomb.format.errors import ExpressionError, ValidationError
from icecomb.format.expressions.literal import convert_literal
from icecomb.format.spec.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
)

HIVE_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
"""The name that Hive writes for null (hive.exec.default.partition.name)."""
_ESCAPED: Final = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_FLOATING: Final = re.compile(rf"NaN|[+-]?Infinity|{_NUMBER.pattern}")
_FORMS: Final[dict[type[IcebergType], re.Pattern[str]]] = {
    IntegerType: _INTEGER,
    LongType: _INTEGER,
    DecimalType: _NUMBER,
    FloatType: _FLOATING,
    DoubleType: _FLOATING,
}


def is_plain(text: str, field_type: IcebergType) -> bool:
    """Return whether all engines parse a partition's text as the same value of this type.

    Python accepts more than Hive and Spark, which read such text as null (`1_0`, `nan`), and Hive
    accepts more than Spark (non-ASCII digits, surrounding blanks).
    """
    if isinstance(field_type, StringType):
        return True
    form = _FORMS.get(type(field_type))
    return text.isascii() and (form is None or form.fullmatch(text) is not None)


def path_values(location: str) -> dict[str, str | None]:
    """Return the names and values in the folders of a path; None is null.

    Hive escapes single characters as `%` and two digits, and nothing else: a `+` is a plus, and a
    `%` without digits is itself (Hive's FileUtils.unescapePathName). Escapes beyond ASCII, which
    Hive does not write, are UTF-8.
    """
    found: dict[str, str | None] = {}
    for folder in location.split("/")[:-1]:
        name, equals, value = folder.partition("=")
        if equals and name:
            text = _unescaped(value, location)
            found[_unescaped(name, location)] = None if text == HIVE_NULL else text
    return found


def value_of_text(text: object, column: NestedField) -> Any:
    """Convert a value in a path, or a Python value, to the internal value of a column."""
    if text is None:
        return None
    if isinstance(text, str) and not is_plain(text, column.field_type):
        raise _misfit(text, column)
    try:
        converted = convert_literal(text, column.field_type)
    except ExpressionError as error:
        raise _misfit(text, column) from error
    if not converted.exact:
        raise _misfit(text, column)
    return converted.floor


def _misfit(text: object, column: NestedField) -> ValidationError:
    return ValidationError(
        f"Partition value {text!r} is not a {column.field_type} (column {column.name})",
        hint="Correct the value, or append the rows instead of adding the file.",
        column=column.name,
    )


def _unescaped(text: str, location: str) -> str:
    try:
        return _ESCAPED.sub(lambda match: bytes.fromhex(match[0].replace("%", "")).decode(), text)
    except UnicodeDecodeError as error:
        raise ValidationError(
            f"Folder {text!r} of {location} has an escape that is not UTF-8",
            hint="Rename the folder, or append the rows instead of adding the file.",
            path=location,
        ) from error
