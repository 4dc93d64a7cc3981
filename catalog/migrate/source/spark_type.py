"""Conversion of Spark's JSON schemas in the metastore to Iceberg types.

Hive lowercases column names; Spark keeps the true spelling in the table parameters
``spark.sql.sources.schema`` or ``spark.sql.sources.schema.numParts`` with ``...part.N``
(HiveExternalCatalog).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, cast

from icecomb.catalog.migrate.source.hive_type import Converted, parse_hive_type
from icecomb.format.errors import IcecombError, UnsupportedError, ValidationError
from icecomb.format.input_limit import bounded_json, one_level, whole_number
from icecomb.format.spec.types import (
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    TimestampType,
)

_KEY: Final = "spark.sql.sources.schema"
_HIVE_NAMES: Final = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_CHAR_VARCHAR: Final = "__CHAR_VARCHAR_TYPE_STRING"
_COLLATIONS: Final = "__COLLATIONS"
_DECIMAL: Final = re.compile(r"decimal\(\d+,\s*-?\d+\)")


def spark_schema(parameters: Mapping[str, str]) -> dict[str, Any] | None:
    """Return Spark's schema of a table, decoded from its parameters; None if there is none."""
    text = parameters.get(_KEY)
    if text is None and (count := parameters.get(f"{_KEY}.numParts")):
        wanted = whole_number(count)
        found: list[str] = []
        # it may be a number without end: the first part that is missing ends it
        while (part := parameters.get(f"{_KEY}.part.{len(found)}")) is not None:
            found.append(part)
        if wanted is None or len(found) < wanted:
            raise ValidationError(
                "a part of the table parameter spark.sql.sources.schema is missing"
            )
        text = "".join(found[:wanted])
    if not text:
        return None
    try:
        raw = bounded_json(text)
    except ValueError as error:
        raise ValidationError("the table parameter spark.sql.sources.schema is not JSON") from error
    if not _is_struct(raw):
        raise ValidationError("the table parameter spark.sql.sources.schema is not a schema")
    return cast("dict[str, Any]", raw)


def _is_struct(raw: Any) -> bool:
    return (
        isinstance(raw, dict)
        and raw.get("type") == "struct"
        and isinstance(raw.get("fields"), list)
        and all(
            isinstance(field, dict)
            and isinstance(field.get("name"), str)
            and isinstance(field.get("metadata") or {}, dict)
            for field in raw["fields"]
        )
    )


def collations(parameters: Mapping[str, str]) -> list[str]:
    """Return the columns by whose collation Spark compares texts, such as "name UTF8_LCASE".

    The metastore has them as `string`; Spark keeps the collations in the metadata of top-level
    columns, by the path of the text (DataType.COLLATIONS_METADATA_KEY).
    """
    raw = None
    with suppress(IcecombError):
        raw = spark_schema(parameters)
    found = []
    for field in raw["fields"] if raw is not None else ():
        told = (field.get("metadata") or {}).get(_COLLATIONS)
        for path, name in told.items() if isinstance(told, Mapping) else ():
            found.append(f"{path} {str(name).rpartition('.')[2]}")
    return found


def parse_spark_field(
    raw: Mapping[str, Any], *, timestamp: str
) -> tuple[NestedField, tuple[str, ...]]:
    """Return the optional Iceberg field of a Spark field, and notes on the conversion."""
    metadata = raw.get("metadata") or {}
    declared = metadata.get(_CHAR_VARCHAR)
    converted = (
        parse_hive_type(declared, timestamp=timestamp)
        if isinstance(declared, str)
        else parse_spark_type(raw.get("type"), timestamp=timestamp)
    )
    doc = metadata.get("comment")
    return NestedField(0, raw["name"], converted.type, doc=doc), converted.notes


def parse_spark_type(raw: Any, *, timestamp: str) -> Converted:
    """Return the Iceberg type of a Spark type in JSON; ``timestamp`` as in `parse_hive_type`."""
    if isinstance(raw, str):
        if raw == "timestamp_ntz":
            return Converted(TimestampType())
        if raw in _HIVE_NAMES or _DECIMAL.fullmatch(raw) or raw.isidentifier():
            return parse_hive_type(_HIVE_NAMES.get(raw, raw), timestamp=timestamp)
        if raw.startswith(("char(", "varchar(")):
            return parse_hive_type(raw, timestamp=timestamp)
        raise UnsupportedError(f"Spark type {raw} has no equal in Iceberg")
    notes: list[str] = []

    def inner(part: Any) -> IcebergType:
        with one_level():
            converted = parse_spark_type(part, timestamp=timestamp)
        notes.extend(converted.notes)
        return converted.type

    kind = raw.get("type") if isinstance(raw, dict) else raw
    result: IcebergType
    if kind == "array":
        result = ListType(0, inner(raw.get("elementType")))
    elif kind == "map":
        result = MapType(0, inner(raw.get("keyType")), 0, inner(raw.get("valueType")))
    elif _is_struct(raw):
        with one_level():
            pairs = [parse_spark_field(part, timestamp=timestamp) for part in raw["fields"]]
        notes.extend(note for _, some in pairs for note in some)
        result = StructType(tuple(nested for nested, _ in pairs))
    else:
        told = f"type {kind}" if isinstance(kind, str) else "a type of an unknown form"
        raise UnsupportedError(f"Spark has {told}, which has no equal in Iceberg")
    return Converted(result, tuple(dict.fromkeys(notes)))
