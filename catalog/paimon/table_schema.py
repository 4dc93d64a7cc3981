"""One schema of a Paimon table (Paimon docs: Spec, Schema), versions 1 to 3."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from icecomb.catalog.paimon.data_type import DataField, DataType, RowType, children, nested_fields
from icecomb.catalog.paimon.type_parser import field_from_json
from icecomb.format.errors import CorruptFileError, SchemaError, UnsupportedError
from icecomb.format.input_limit import bounded_json
from icecomb.format.spec.values.json_object import extra_field, unknown_members

CURRENT_VERSION: Final = 3
VERSIONS: Final = (1, 2, CURRENT_VERSION)

_MEMBERS: Final = frozenset(
    (
        *("version", "id", "fields", "highestFieldId", "partitionKeys", "primaryKeys"),
        *("options", "comment", "timeMillis"),
    )
)


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The contents of a schema file.

    Attributes:
        schema_id: The number in the file's name.
        highest_field_id: No field has or had a higher id, nested ones included.
        partition_keys: The columns that partition the table; they never change.
        primary_keys: The columns of the primary key; none for an append table.
        options: The table's options, with defaults of older versions: `bucket` is 1 in version 1,
            `file.format` is orc in versions 1 and 2.
        time_millis: Time of its creation, in milliseconds since the epoch.
        version: Version of the file's format.
        extra: Members unknown to icecomb, which are written back.
    """

    schema_id: int
    fields: tuple[DataField, ...]
    highest_field_id: int
    partition_keys: tuple[str, ...] = ()
    primary_keys: tuple[str, ...] = ()
    options: Mapping[str, str] = extra_field()
    comment: str | None = None
    time_millis: int = 0
    version: int = CURRENT_VERSION
    extra: Mapping[str, Any] = extra_field()

    def __post_init__(self) -> None:
        if not self.fields:
            raise SchemaError("fields: a table has at least one column")
        _check_names(self.fields, "fields")
        everything = list(self.all_fields())
        for field_id, count in Counter(f.field_id for f in everything).items():
            if count > 1:
                names = ", ".join(f.name for f in everything if f.field_id == field_id)
                raise SchemaError(f"fields: id {field_id} is given {count} times ({names})")
        for field in everything:
            if field.field_id > self.highest_field_id:
                raise SchemaError(
                    f"fields.{field.name}: id {field.field_id} is above highestFieldId "
                    f"{self.highest_field_id}"
                )
        columns = {f.name for f in self.fields}
        keyed = {"partitionKeys": self.partition_keys, "primaryKeys": self.primary_keys}
        for member, keys in keyed.items():
            for key in keys:
                if key not in columns:
                    raise SchemaError(f"{member}: there is no column {key!r}")

    @property
    def is_append_table(self) -> bool:
        """Whether the table has no primary key."""
        return not self.primary_keys

    @property
    def row_type(self) -> RowType:
        """The columns as one type."""
        return RowType(False, self.fields)

    def all_fields(self) -> Iterable[DataField]:
        """Return all fields at all depths."""
        return nested_fields(self.row_type)

    def to_json(self) -> dict[str, Any]:
        """Return the members of the file, in Paimon's order."""
        out: dict[str, Any] = {
            "version": self.version,
            "id": self.schema_id,
            "fields": [f.to_json() for f in self.fields],
            "highestFieldId": self.highest_field_id,
            "partitionKeys": list(self.partition_keys),
            "primaryKeys": list(self.primary_keys),
            "options": dict(self.options),
        }
        if self.comment is not None:
            out["comment"] = self.comment
        return {**out, "timeMillis": self.time_millis, **self.extra}

    def to_text(self) -> str:
        """Return the file's text, laid out like Paimon's."""
        return _laid_out(self.to_json(), 0)


def read_table_schema(
    data: bytes | str, location: str, schema_id: int | None = None
) -> TableSchema:
    """Read a schema file, whose content must state `schema_id`, the number in the file's name."""
    try:
        raw = bounded_json(data)
    except ValueError as error:
        raise CorruptFileError(
            f"{location} is truncated or not JSON: {error}",
            hint="Restore this schema file from a backup; files written with it need it.",
            path=location,
        ) from error
    try:
        return _from_json(raw, location, schema_id)
    except SchemaError as error:
        raise CorruptFileError(
            f"{location}: {error.message}",
            hint="Nothing was changed. Compare the file with its neighbors or a backup.",
            path=location,
        ) from error


def _from_json(raw: Any, location: str, named: int | None) -> TableSchema:
    if not isinstance(raw, dict):
        raise SchemaError(f"not an object: {raw!r:.80}")
    version = raw.get("version", VERSIONS[0])
    if type(version) is not int or version not in VERSIONS:
        raise UnsupportedError(
            f"{location}: version {version!r} is unknown; known are 1, 2 and 3",
            hint="A newer Paimon wrote this table: use a newer icecomb.",
            path=location,
        )
    schema_id = _member(raw, "id", int)
    if named not in {None, schema_id}:
        raise SchemaError(f"id: {schema_id}, but the file is named schema-{named}")
    fields = _member(raw, "fields", list)
    options = dict(_member(raw, "options", dict))
    for key, value in options.items():
        if not isinstance(value, str):
            raise SchemaError(f"options.{key}: not text: {value!r}")
    if version == 1:
        options.setdefault("bucket", "1")
    if version < CURRENT_VERSION:
        options.setdefault("file.format", "orc")
    comment = raw.get("comment")
    if comment is not None and not isinstance(comment, str):
        raise SchemaError(f"comment: not text: {comment!r}")
    return TableSchema(
        schema_id=schema_id,
        fields=tuple(field_from_json(one) for one in fields),
        highest_field_id=_member(raw, "highestFieldId", int),
        partition_keys=_names(raw, "partitionKeys"),
        primary_keys=_names(raw, "primaryKeys"),
        options=options,
        comment=comment,
        time_millis=_member(raw, "timeMillis", int) if "timeMillis" in raw else 0,
        version=version,
        extra=unknown_members(raw, _MEMBERS),
    )


def _member(raw: Mapping[str, Any], key: str, kind: type) -> Any:
    value = raw.get(key)
    if type(value) is not kind:
        found = "it is missing" if key not in raw else f"found {value!r:.80}"
        raise SchemaError(f"{key}: expected {kind.__name__}, {found}")
    return value


def _names(raw: Mapping[str, Any], key: str) -> tuple[str, ...]:
    names = _member(raw, key, list)
    if not all(isinstance(name, str) for name in names):
        raise SchemaError(f"{key}: not all names are text: {names!r:.80}")
    return tuple(names)


def _check_names(fields: Iterable[DataField], place: str) -> None:
    seen: set[str] = set()
    for field in fields:
        if field.name in seen:
            raise SchemaError(f"{place}: the name {field.name!r} is given twice")
        seen.add(field.name)
        _check_inside(field.field_type, f"{place}.{field.name}")


def _check_inside(kind: DataType, place: str) -> None:
    if isinstance(kind, RowType):
        _check_names(kind.fields, place)
    for child in children(kind):
        _check_inside(child, place)


def _laid_out(value: Any, depth: int) -> str:
    """Format JSON as Jackson's default pretty printer does, like Paimon's files."""
    if isinstance(value, Mapping):
        if not value:
            return "{ }"
        indent = "  " * (depth + 1)
        members = (
            f"{indent}{json.dumps(key, ensure_ascii=False)} : {_laid_out(inner, depth + 1)}"
            for key, inner in value.items()
        )
        return "{\n" + ",\n".join(members) + "\n" + "  " * depth + "}"
    if isinstance(value, list):
        inside = ", ".join(_laid_out(inner, depth) for inner in value)
        return f"[ {inside} ]" if value else "[ ]"
    return json.dumps(value, ensure_ascii=False)
