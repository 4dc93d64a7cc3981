"""Hive's reading of a table's Avro files: by a reader's schema and Avro's schema resolution.

That schema is in `avro.schema.literal` or behind `avro.schema.url` (Hive, AvroSerdeUtils); without
one Hive derives it from the table's columns, in lower case. Iceberg has neither the defaults of
columns that a file lacks nor their aliases, and Avro distinguishes names by case: a file for which
that matters shows other values in Hive than in Iceberg.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from icecomb.catalog.hive.thrift.entity import HivePartition, HiveTable
from icecomb.catalog.migrate.source.source import provider_of, said_of
from icecomb.format.avro.container import parsed_schema
from icecomb.format.errors import IcecombError, SchemaError, ValidationError
from icecomb.format.input_limit import one_level
from icecomb.format.storage.file_io import FileIO

LITERAL: Final = "avro.schema.literal"
URL: Final = "avro.schema.url"
NONE: Final = "none"
"""The value that Hive takes for no schema (AvroSerdeUtils.SCHEMA_NONE)."""
_SERDE: Final = "avro"


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """The schema that Hive reads Avro files by: the record's fields as JSON values."""

    fields: tuple[Mapping[str, Any], ...]

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [field["name"] for field in self.fields]

    def differences(self, written: Any) -> Iterator[tuple[str, str]]:
        """Yield the columns whose values Iceberg would not read as Hive does, and why.

        Args:
            written: The schema stored in a file, as JSON values.
        """
        if isinstance(written, Mapping):
            yield from _differences(list(self.fields), written.get("fields", ()), "")


def declared_schema(io: FileIO, table: HiveTable) -> AvroSchema | None:
    """Return the declared schema by which Hive reads a table's Avro files, or None."""
    declared = avro_declaration(table)
    if declared is None:
        return None
    where, said = declared
    if where == URL:
        url = said
        if url.lower().startswith(("http:", "https:")):
            raise ValidationError(f"{URL} is {url}", hint=f"Put the schema into {LITERAL}.")
        try:
            return _parsed(io.read(url).decode(), URL)
        except (IcecombError, OSError, UnicodeDecodeError) as error:
            raise ValidationError(
                f"{URL} cannot be read: {str(error).splitlines()[0]}",
                hint=f"Put the schema into {LITERAL}.",
            ) from error
    return _parsed(said, where)


def avro_declaration(entry: HiveTable | HivePartition) -> tuple[str, str] | None:
    """Return key and value of an entry's schema, `LITERAL` before `URL`; None if it has none."""
    said = said_of(entry)
    found = ((key, said.get(key, "")) for key in (LITERAL, URL))
    return next(((key, text) for key, text in found if text and text != NONE), None)


def reading_schema(declared: AvroSchema | None, table: HiveTable) -> AvroSchema | None:
    """Return Hive's schema; None where case is ignored in names, as by Spark's source."""
    if declared is not None:
        return declared
    if _SERDE not in (table.storage.serde or "").lower():
        return None
    if provider_of(table) == _SERDE:
        return None
    fields = ({"name": c.name.lower(), "default": None} for c in table.storage.columns)
    return AvroSchema(tuple(fields))


def _parsed(text: str, where: str) -> AvroSchema:
    try:
        raw, _ = parsed_schema(text.encode())
        fields = tuple(raw["fields"])
        _check(fields)
        return AvroSchema(fields)
    except (
        SchemaError, ValueError, KeyError, TypeError, AttributeError, RecursionError,
    ):  # fmt: skip
        pass
    raise ValidationError(f"{where} is not an Avro record", hint=f"Correct {where} in Hive.")


def _check(fields: Any) -> None:
    """Check what `_differences` asks of fields; one of several errors if they have not got it."""
    for field in fields:
        names = (field["name"], *field.get("aliases", ()))
        if not all(isinstance(name, str) for name in names):
            raise TypeError(names)
        inner = _record(field.get("type"))
        if inner is not None:
            with one_level():
                _check(inner)


def _differences(read: Any, written: Any, path: str) -> Iterator[tuple[str, str]]:
    there = {field["name"]: field for field in written}
    lower = {name.lower(): name for name in there}
    for field in read:
        name, default = field["name"], field.get("default")
        column = f"{path}{name}"
        if name in there:
            inner, found = _record(field.get("type")), _record(there[name].get("type"))
            if inner is not None and found is not None:
                yield from _differences(inner, found, f"{column}.")
            continue
        alias = next((a for a in field.get("aliases", ()) if a in there), None)
        if alias is not None:
            yield column, f"it has the column under its alias {alias!r}"
        elif name.lower() in lower:
            yield (
                column,
                (f"it spells the column {lower[name.lower()]!r}, which Hive does not recognize"),
            )
        elif default is not None:
            yield column, f"it lacks the column, for which Hive reads {json.dumps(default)}"


def _record(kind: Any) -> Any:
    """Return the fields of a record, also in a union, a list or a map; None for other types."""
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), None)
    if not isinstance(kind, Mapping):
        return None
    if kind.get("type") == "record":
        return kind["fields"]
    return _record(kind.get("items", kind.get("values")))
