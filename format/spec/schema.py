"""Schemas: the fields of a table, found by id or by name (spec: Schemas and Data Types)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any, Final, overload

from icecomb.format.argument import (
    checked_int,
    checked_members,
    json_of_pyiceberg,
    members_or_named,
    name_of_type,
)
from icecomb.format.errors import SchemaError, UnsupportedError, ValidationError
from icecomb.format.spec.promotion import can_go_on
from icecomb.format.spec.types import (
    V3_TYPES,
    DoubleType,
    FloatType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    TimestampNanoType,
    TimestamptzNanoType,
    UnknownType,
    parse_type,
)
from icecomb.format.spec.values.json_object import extra_field, unknown_members

if TYPE_CHECKING:
    import pyarrow as pa


INITIAL_SCHEMA_ID = 0
MAX_LEVELS = 99
"""How deep columns can be nested: pyarrow refuses Parquet files of 100 levels below the root."""
V3_FORMAT_VERSION = 3
"""The first format version with row lineage, defaults and the types of `V3_TYPES`."""

_OF_VERSION_2: dict[type[IcebergType], str] = {
    TimestampNanoType: "Use timestamp",
    TimestamptzNanoType: "Use timestamptz",
    UnknownType: "Give the column a type: a column of nulls only has none before version 3",
}
_MEMBERS = frozenset(("type", "schema-id", "identifier-field-ids", "fields"))


@dataclass(frozen=True, slots=True)
class _Index:
    by_id: Mapping[int, NestedField]
    id_by_name: Mapping[str, int]
    name_by_id: Mapping[int, str]
    parent_by_id: Mapping[int, int]
    repeated: Mapping[int, str]

    def check(self, field_id: int | None = None) -> None:
        """Check that an id belongs to one field; without an id, that all ids do."""
        if self.repeated and (field_id is None or field_id in self.repeated):
            which = next(iter(self.repeated)) if field_id is None else field_id
            raise SchemaError(
                f"Invalid schema: field id {which} is used by {self.name_by_id[which]!r} and "
                f"{self.repeated[which]!r}",
                hint="Give every field an id of its own; create_table and "
                "assign_fresh_schema_ids do, where nothing else names this id.",
            )


@dataclass(frozen=True, slots=True, init=False)
class Schema:
    """The columns of a table at one time.

    Ids may repeat as long as they are not used: `create_table` assigns new ones, as in PyIceberg.

    Args:
        fields: The top-level columns, in order: as one sequence, or one argument each.
        schema_id: The number of this schema among the table's schemas.
        identifier_field_ids: The fields that identify a row (spec: Identifier Field IDs).
        extra: Members that icecomb does not know; they are written back.

    Raises:
        SchemaError: If a full name occurs twice, an identifier field is not allowed, or an argument
            is of the wrong type; later also if an id is used that occurs twice.
    """

    fields: tuple[NestedField, ...] = ()
    schema_id: int = INITIAL_SCHEMA_ID
    identifier_field_ids: tuple[int, ...] = ()
    extra: Mapping[str, Any] = extra_field()
    _index: _Index = field(init=False, repr=False, compare=False)
    _lowered: dict[str, int] = field(init=False, repr=False, compare=False)

    @overload
    def __init__(
        self,
        *fields: NestedField,
        schema_id: int = INITIAL_SCHEMA_ID,
        identifier_field_ids: Iterable[int] = (),
    ) -> None: ...

    @overload
    def __init__(
        self,
        fields: Iterable[NestedField] = (),
        schema_id: int = INITIAL_SCHEMA_ID,
        identifier_field_ids: Iterable[int] = (),
        extra: Mapping[str, Any] | None = None,
    ) -> None: ...

    def __init__(self, *args: Any, **more: Any) -> None:
        names = ("fields", "schema_id", "identifier_field_ids", "extra")
        given = members_or_named("Schema", names, NestedField, args, more)
        fields = checked_members(
            "fields of a schema", given.get("fields", ()), NestedField, SchemaError
        )
        schema_id = given.get("schema_id", INITIAL_SCHEMA_ID)
        identifiers = checked_members(
            "identifier field ids", given.get("identifier_field_ids", ()), object, SchemaError
        )
        put = object.__setattr__
        put(self, "fields", fields)
        put(self, "schema_id", checked_int("id of a schema", schema_id, error=SchemaError))
        put(
            self,
            "identifier_field_ids",
            tuple(checked_int("identifier field id", i, error=SchemaError) for i in identifiers),
        )
        put(self, "extra", given.get("extra") or {})
        put(self, "_index", _build_index(fields))
        put(self, "_lowered", {})
        for field_id in self.identifier_field_ids:
            self._check_identifier(field_id)

    @property
    def columns(self) -> tuple[NestedField, ...]:
        """The top-level fields."""
        return self.fields

    @property
    def column_names(self) -> list[str]:
        """The full names of all fields, nested ones too."""
        return list(self._index.name_by_id.values())

    @property
    def field_ids(self) -> frozenset[int]:
        """The ids of all fields, nested ones too."""
        self.check_ids()
        return frozenset(self._index.by_id)

    @property
    def highest_field_id(self) -> int:
        """The highest id of any field; 0 for an empty schema."""
        self.check_ids()
        return max(self._index.by_id, default=0)

    def check_ids(self) -> None:
        """Check that no two fields have the same id.

        Raises:
            SchemaError: If two have.
        """
        self._index.check()

    def as_struct(self) -> StructType:
        """Return the columns as a struct type."""
        return StructType(self.fields)

    def as_arrow(self) -> pa.Schema:
        """Return the columns as a pyarrow schema, the one that scans return."""
        from icecomb.format.spec.arrow_schema import schema_to_pyarrow

        return schema_to_pyarrow(self)

    def find_field(self, name_or_id: str | int, case_sensitive: bool = True) -> NestedField:  # noqa: FBT001, FBT002
        """Return the field of this id or dotted name.

        Names inside lists and maps go through `element`, `key` and `value`; structs in lists and
        map values may leave that part out (`points.x` for `points.element.x`).

        Raises:
            ValidationError: If there is none, or a case-insensitive name matches several.
        """
        field_id = (
            name_or_id
            if isinstance(name_or_id, int)
            else self._find_id(name_or_id, case_sensitive=case_sensitive)
        )
        if field_id is not None:
            self._index.check(field_id)
        found = None if field_id is None else self._index.by_id.get(field_id)
        if found is None:
            what = "id" if isinstance(name_or_id, int) else "name"
            raise ValidationError(
                f"Schema has no field of {what} {name_or_id!r}",
                hint=f"Columns are: {', '.join(f.name for f in self.fields)}.",
            )
        return found

    def find_type(self, name_or_id: str | int, case_sensitive: bool = True) -> IcebergType:  # noqa: FBT001, FBT002
        """Return the type of the field of this id or dotted name.

        Raises:
            ValidationError: If there is no such field.
        """
        return self.find_field(name_or_id, case_sensitive).field_type

    def find_column_name(self, field_id: int) -> str | None:
        """Return the full dotted name of a field, or None."""
        self._index.check(field_id)
        return self._index.name_by_id.get(field_id)

    def find_parent_id(self, field_id: int) -> int | None:
        """Return the id of the field that holds this one, or None for a column."""
        self._index.check(field_id)
        return self._index.parent_by_id.get(field_id)

    def contains(self, name_or_id: str | int, *, case_sensitive: bool = True) -> bool:
        """Return whether there is a field of this id or dotted name."""
        if isinstance(name_or_id, int):
            return name_or_id in self._index.by_id
        return self._find_id(name_or_id, case_sensitive=case_sensitive) is not None

    def identifier_field_names(self) -> set[str]:
        """Return the full names of the identifier fields."""
        return {self._index.name_by_id[i] for i in self.identifier_field_ids}

    def select(self, *names: str, case_sensitive: bool = True) -> Schema:
        """Return the schema reduced to some fields, in the order of this schema.

        A struct is selected with all its fields, a nested field with the structs around it; `"*"`
        selects everything.

        Raises:
            ValidationError: If a name is unknown.
        """
        if "*" in names:
            return self
        ids = {self.find_field(name, case_sensitive).field_id for name in names}
        return prune(self, ids)

    def to_json(self) -> dict[str, Any]:
        """Return the schema as in metadata files."""
        out: dict[str, Any] = {"type": "struct", "schema-id": self.schema_id}
        if self.identifier_field_ids:
            out["identifier-field-ids"] = list(self.identifier_field_ids)
        out["fields"] = [f.to_json() for f in self.fields]
        return {**out, **self.extra}

    @classmethod
    def from_json(cls, raw: Any, *, ids_may_repeat: bool = False) -> Schema:
        """Read a schema; a schema of format version 1 has no id and gets 0.

        Args:
            raw: The parsed JSON.
            ids_may_repeat: Whether the schema is for a new table, for which new ids are assigned.

        Raises:
            SchemaError: If it is not a schema, or not a valid one.
            UnsupportedError: If a type belongs to a later format version.
        """
        struct = parse_type(raw)
        if not isinstance(struct, StructType):
            raise SchemaError(f"A schema is a struct, not {struct}", hint="Give a StructType.")
        made = cls(
            struct.fields,
            int(raw.get("schema-id") or INITIAL_SCHEMA_ID),
            tuple(raw.get("identifier-field-ids") or ()),
            unknown_members(raw, _MEMBERS),
        )
        if not ids_may_repeat:
            made.check_ids()
        return made

    def __str__(self) -> str:
        return "table {\n" + "".join(f"  {f}\n" for f in self.fields) + "}"

    def __len__(self) -> int:
        return len(self.fields)

    def _find_id(self, name: str, *, case_sensitive: bool) -> int | None:
        if not isinstance(name, str):
            raise ValidationError(
                f"Not the name or the id of a field: {name!r}",
                hint="Give the full name as text, or the id as a whole number.",
            )
        if case_sensitive:
            return self._index.id_by_name.get(name)
        if not self._lowered:
            for known, field_id in self._index.id_by_name.items():
                previous = self._lowered.setdefault(known.lower(), field_id)
                if previous != field_id:
                    self._lowered[known.lower()] = -1
        found = self._lowered.get(name.lower())
        if found == -1:
            raise ValidationError(
                f"Name {name!r} matches several fields when case is ignored",
                hint="Use case-sensitive names, or rename a column.",
            )
        return found

    def _check_identifier(self, field_id: int) -> None:
        self._index.check(field_id)
        found = self._index.by_id.get(field_id)
        if found is None:
            self._index.check()
            raise SchemaError(
                f"Identifier field {field_id} does not exist",
                hint="Name fields that the schema has.",
            )
        name = self._index.name_by_id[field_id]
        if not found.field_type.is_primitive or not found.required:
            raise SchemaError(
                f"Identifier field {name!r} must be a required primitive field",
                hint="Make it required, or identify rows by other fields.",
            )
        if isinstance(found.field_type, (FloatType, DoubleType)):
            raise SchemaError(
                f"Identifier field {name!r} must not be a floating point number",
                hint="Identify rows by other fields.",
            )
        parent = self._index.parent_by_id.get(field_id)
        while parent is not None:
            holder = self._index.by_id[parent]
            if not isinstance(holder.field_type, StructType) or not holder.required:
                raise SchemaError(
                    f"Identifier field {name!r} lies in {self._index.name_by_id[parent]!r}, "
                    "which is not a required struct",
                    hint="Identify rows by fields outside lists, maps and optional structs.",
                )
            parent = self._index.parent_by_id.get(parent)


def children(field_type: IcebergType) -> tuple[NestedField, ...]:
    """Return the fields directly inside a type: none for a primitive type."""
    if isinstance(field_type, StructType):
        return field_type.fields
    if isinstance(field_type, ListType):
        return (field_type.element_field,)
    if isinstance(field_type, MapType):
        return (field_type.key_field, field_type.value_field)
    return ()


def walk(field_type: IcebergType) -> Iterator[NestedField]:
    """Yield all fields inside a type, a parent before its children."""
    for child in children(field_type):
        yield child
        yield from walk(child.field_type)


def check_depth(kinds: Iterable[IcebergType], known: Schema | None = None) -> None:
    """Check that columns are not nested deeper than readers of Parquet files take.

    They may be as deep as `known`, a schema that another engine may have nested deeper.
    """
    allowed = MAX_LEVELS
    if (found := _levels(kinds)) > allowed and known is not None:
        allowed = max(allowed, _levels(f.field_type for f in known.fields))
    if found > allowed:
        raise too_deep(found)


def too_deep(levels: int) -> SchemaError:
    """Return the error for a column nested too deep; see `MAX_LEVELS`."""
    return SchemaError(
        f"A column is nested {levels} levels deep, where a list or a map counts as two: files with "
        f"more than {MAX_LEVELS} cannot be read",
        hint="Flatten the column, or store it as text or as a variant.",
    )


def _levels(kinds: Iterable[IcebergType]) -> int:
    # not recursive: no schema is too deep for this
    deepest, left = 0, [(kind, 1) for kind in kinds]
    while left:
        kind, level = left.pop()
        deepest = max(deepest, level)
        below = level + (1 if isinstance(kind, StructType) else 2)
        left.extend((child.field_type, below) for child in children(kind))
    return deepest


def with_children(field_type: IcebergType, fields: Iterable[NestedField]) -> IcebergType:
    """Return the same kind of nested type with other fields inside.

    The fields inside lists and maps keep their fixed names.
    """
    if isinstance(field_type, StructType):
        return StructType(tuple(fields), field_type.extra)
    if isinstance(field_type, ListType):
        (element,) = fields
        return ListType(element.field_id, element.field_type, element.required, field_type.extra)
    if isinstance(field_type, MapType):
        key, value = fields
        return MapType(
            key.field_id,
            key.field_type,
            value.field_id,
            value.field_type,
            value.required,
            field_type.extra,
        )
    return field_type


def check_types(schema: Schema, format_version: int) -> None:
    """Check that a format version has the types of all fields; the error names the field."""
    if format_version >= V3_FORMAT_VERSION:
        return
    # the ids of a new table may repeat, so that not every field is known by its id
    index = schema._index  # noqa: SLF001 - of the class above
    for f in walk(schema.as_struct()) if index.repeated else index.by_id.values():
        if type(f.field_type) in V3_TYPES:
            raise UnsupportedError(
                f"Column {f.name!r} is of type {f.field_type}: that "
                f"belongs to format version 3 (v3), and the table has version {format_version}",
                hint=f"{_OF_VERSION_2.get(type(f.field_type), 'Leave the column out')}; or set the "
                "property format-version to 3, which every reader of the table must support.",
            )


def prune(schema: Schema, field_ids: Collection[int]) -> Schema:
    """Return the schema reduced to fields of some ids, with the fields inside and around them."""
    fields = _prune_fields(schema.fields, field_ids)
    kept = frozenset(f.field_id for f in walk(StructType(fields)))
    return Schema(
        fields, schema.schema_id, tuple(i for i in schema.identifier_field_ids if i in kept)
    )


def assign_fresh_schema_ids(
    schema: Schema, base: Schema | None = None, last_column_id: int = 0
) -> Schema:
    """Renumber the fields as in a new table: level by level, each level in order.

    Args:
        schema: The schema, with any ids.
        base: The schema of a table that is replaced: fields of the same full name keep their id,
            and their initial default, if files with their type can be read with the new one and no
            other initial default is given; to existing files, the others are new columns.
        last_column_id: The highest id ever used; new ids follow it.
    """
    fresh = count(last_column_id + 1)
    new_ids: dict[int, int] = {}
    known = () if base is None else base.fields
    fields = _renumber(schema.fields, known, lambda: next(fresh), new_ids)
    return Schema(fields, schema.schema_id, tuple(new_ids[i] for i in schema.identifier_field_ids))


def fresh_field(field: NestedField, next_id: Callable[[], int]) -> NestedField:
    """Return the field with new ids: its own first, then those inside it, level by level."""
    (fresh,) = _renumber((field,), (), next_id, {})
    return fresh


def _renumber(
    fields: Iterable[NestedField],
    known: Iterable[NestedField],
    next_id: Callable[[], int],
    new_ids: dict[int, int],
) -> tuple[NestedField, ...]:
    """Return fields with new ids; those with a compatible namesake get its id."""
    namesakes = {f.name: f for f in known}
    level: list[tuple[NestedField, tuple[NestedField, ...]]] = []
    for old in fields:
        before = namesakes.get(old.name)
        if before is not None and _is_same_column(before, old):
            # files without the column have the default that it was added with
            first = before.initial_default
            new = replace(old, field_id=before.field_id, initial_default=first)
            inside = children(before.field_type)
        else:
            new, inside = replace(old, field_id=next_id()), ()
        new_ids[old.field_id] = new.field_id
        level.append((new, inside))
    return tuple(
        f
        if f.field_type.is_primitive
        else replace(
            f,
            field_type=with_children(
                f.field_type,
                _renumber(children(f.field_type), inside, next_id, new_ids),
            ),
        )
        for f, inside in level
    )


def _is_same_column(before: NestedField, now: NestedField) -> bool:
    """Return whether a field of a replaced table is that of its name, as existing files have it."""
    first = now.initial_default
    return can_go_on(before.field_type, now.field_type) and first in (None, before.initial_default)


def _prune_fields(fields: Iterable[NestedField], ids: Collection[int]) -> tuple[NestedField, ...]:
    kept = []
    for f in fields:
        if f.field_id in ids:
            kept.append(f)
        elif (inner := _prune_type(f.field_type, ids)) is not None:
            kept.append(replace(f, field_type=inner))
    return tuple(kept)


def _prune_type(field_type: IcebergType, ids: Collection[int]) -> IcebergType | None:
    inside = children(field_type)
    kept = _prune_fields(inside, ids)
    if not kept:
        return None
    if isinstance(field_type, MapType):
        by_id = {f.field_id: f for f in kept}
        kept = (field_type.key_field, by_id.get(field_type.value_id, field_type.value_field))
    return with_children(field_type, kept)


def _build_index(fields: tuple[NestedField, ...]) -> _Index:
    by_id: dict[int, NestedField] = {}
    names: dict[str, int] = {}
    short: dict[str, int] = {}
    name_by_id: dict[int, str] = {}
    parents: dict[int, int] = {}
    repeated: dict[int, str] = {}

    def add(
        level: tuple[NestedField, ...], prefix: str, brief: str, parent: NestedField | None
    ) -> None:
        for f in level:
            full = prefix + f.name
            if full in names:
                raise SchemaError(
                    f"Invalid schema: several fields named {full!r}: {names[full]} and "
                    f"{f.field_id}",
                    hint="Give every field a name of its own.",
                )
            names[full] = f.field_id
            if f.field_id in by_id:
                repeated.setdefault(f.field_id, full)
            else:
                by_id[f.field_id] = f
                name_by_id[f.field_id] = full
                if parent is not None:
                    parents[f.field_id] = parent.field_id
            if brief != prefix:
                short.setdefault(brief + f.name, f.field_id)
            if f.field_type.is_primitive:
                continue
            # Structs in lists and map values may be named without "element" and "value".
            hidden = parent is not None and (
                (isinstance(parent.field_type, ListType))
                or (isinstance(parent.field_type, MapType) and f.name == "value")
            )
            is_struct = isinstance(f.field_type, StructType)
            inner = brief if hidden and is_struct else f"{brief}{f.name}."
            add(children(f.field_type), f"{full}.", inner, f)

    add(fields, "", "", None)
    return _Index(by_id, {**short, **names}, name_by_id, parents, repeated)


_OF_FRAMES: Final = {
    "pandas": "Give pa.Schema.from_pandas(frame).",
    "polars": "Give frame.to_arrow().schema.",
}


def as_schema(schema: Schema | pa.Schema, format_version: int) -> Schema:
    """Convert a schema of PyIceberg or Arrow to an Iceberg schema; Arrow fields get ids.

    Arrow's timestamps of nanoseconds become columns of microseconds where the format version has no
    others.
    """
    if isinstance(schema, Schema):
        check_depth(f.field_type for f in schema.fields)
        return schema
    if isinstance(raw := json_of_pyiceberg(schema), dict):
        return Schema.from_json(raw, ids_may_repeat=True)
    import pyarrow as pa

    from icecomb.format.spec.arrow_schema import check_arrow_depth, pyarrow_to_schema

    if not isinstance(schema, pa.Schema):
        of_frame = isinstance(getattr(schema, "schema", None), pa.Schema)
        library = type(schema).__module__.partition(".")[0]
        raise SchemaError(
            f"A schema is Schema(...) or pa.schema(...), not {name_of_type(schema)}",
            hint="Give its .schema." if of_frame else _OF_FRAMES.get(library, "Give one of these."),
        )

    check_arrow_depth(schema)
    return pyarrow_to_schema(schema, nanoseconds=format_version >= V3_FORMAT_VERSION)
