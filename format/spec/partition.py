"""Partition specs: the assignment of rows to partitions (spec: Partitioning)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload
from urllib.parse import quote_plus

from icecomb.format.argument import any_text, checked_int, checked_members, members_or_named
from icecomb.format.errors import ValidationError
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import (
    IdentityTransform,
    TimeTransform,
    Transform,
    UnknownTransform,
    VoidTransform,
    as_transform,
    hint_of_transform,
    parse_transform,
)
from icecomb.format.spec.types import (
    OPAQUE_TYPES,
    IcebergType,
    NestedField,
    StringType,
    StructType,
)
from icecomb.format.spec.values.json_object import extra_field, required, unknown_members

if TYPE_CHECKING:
    from icecomb.format.spec.sort import SortField

PARTITION_FIELD_ID_START = 1000
INITIAL_PARTITION_SPEC_ID = 0
_FIELD = frozenset(("name", "transform", "source-id", "field-id"))
_SOURCES = "source-ids"
_SPEC = frozenset(("spec-id", "fields"))


@dataclass(frozen=True, slots=True)
class PartitionField:
    """A field of the partition tuple.

    Args:
        source_id: The id of the source column, the first one if `extra` has several `source-ids`.
        field_id: The id of the partition field, 1000 or higher.
        transform: The transform of the column's values, or its text, for example ``"day"``.
        name: The name in partition paths and manifests.
        extra: Members that icecomb does not know; they are written back.

    Raises:
        ValidationError: If a member is of the wrong type.
    """

    source_id: int
    field_id: int
    transform: Transform
    name: str
    extra: Mapping[str, Any] = extra_field()

    if TYPE_CHECKING:  # a transform may also be given by its text

        def __init__(
            self,
            source_id: int,
            field_id: int,
            transform: Transform | str,
            name: str,
            extra: Mapping[str, Any] = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "name", any_text("name of a partition field", self.name))
        for name in ("source_id", "field_id"):
            what = f"{name} of partition field {self.name!r}"
            put(self, name, checked_int(what, getattr(self, name)))
        put(self, "transform", as_transform(self.transform))

    def __str__(self) -> str:
        return f"{self.field_id}: {self.name}: {self.transform}({self.source_id})"

    def to_json(self) -> dict[str, Any]:
        """Return the field as in metadata files."""
        return {
            "name": self.name,
            "transform": self.transform.to_json(),
            **source_members(self),
            "field-id": self.field_id,
            **self.extra,
        }

    @classmethod
    def from_json(cls, raw: Any, default_field_id: int | None = None) -> PartitionField:
        """Read a field.

        Args:
            raw: The parsed JSON.
            default_field_id: The id for a field that has none, as in early v1 tables.

        Raises:
            ValidationError: If a member is missing or has the wrong shape.
        """
        name = required(raw, "name", str, "partition field")
        transform = required(raw, "transform", str, "partition field")
        if default_field_id is not None:
            raw = {"field-id": default_field_id, **raw}
        field_id = required(raw, "field-id", int, "partition field")
        return cls(
            source_id(raw, "partition field"),
            field_id,
            transform_of(raw, transform),
            name,
            unknown_members(raw, _FIELD),
        )


@dataclass(frozen=True, slots=True, init=False)
class PartitionSpec:
    """The assignment of a table's rows to partitions.

    The fields can also be given one by one: `PartitionSpec(first, second, spec_id=1)`.

    Args:
        spec_id: The number of this spec among the table's specs.
        fields: The partition fields; a partition is a tuple of their values in this order.
        extra: Members that icecomb does not know; they are written back.

    Raises:
        ValidationError: If an argument is of the wrong type.
    """

    spec_id: int = INITIAL_PARTITION_SPEC_ID
    fields: tuple[PartitionField, ...] = ()
    extra: Mapping[str, Any] = extra_field()

    @overload
    def __init__(
        self, *fields: PartitionField, spec_id: int = INITIAL_PARTITION_SPEC_ID
    ) -> None: ...

    @overload
    def __init__(
        self,
        spec_id: int = INITIAL_PARTITION_SPEC_ID,
        fields: Iterable[PartitionField] = (),
        extra: Mapping[str, Any] | None = None,
    ) -> None: ...

    def __init__(self, *args: Any, **more: Any) -> None:
        names = ("spec_id", "fields", "extra")
        given = members_or_named("PartitionSpec", names, PartitionField, args, more)
        spec_id, fields = given.get("spec_id", INITIAL_PARTITION_SPEC_ID), given.get("fields", ())
        put = object.__setattr__
        put(self, "spec_id", checked_int("id of a partition spec", spec_id))
        put(self, "fields", checked_members("fields of a partition spec", fields, PartitionField))
        put(self, "extra", given.get("extra") or {})

    def __str__(self) -> str:
        return "[" + "".join(f"\n  {f}" for f in self.fields) + ("\n]" if self.fields else "]")

    @property
    def is_unpartitioned(self) -> bool:
        """True if all fields are void, or there are none."""
        return all(isinstance(f.transform, VoidTransform) for f in self.fields)

    @property
    def has_unknown_transform(self) -> bool:
        """True if any transform is unknown: files are read, and none are added."""
        return any(isinstance(f.transform, UnknownTransform) for f in self.fields)

    def is_partitioned(self) -> bool:
        """Return whether any field is not void."""
        return not self.is_unpartitioned

    @property
    def last_assigned_field_id(self) -> int:
        """The highest field id; 999 for an empty spec."""
        return max((f.field_id for f in self.fields), default=PARTITION_FIELD_ID_START - 1)

    def fields_by_source_id(self, field_id: int) -> list[PartitionField]:
        """Return the partition fields of a source column."""
        return [f for f in self.fields if f.source_id == field_id]

    def partition_type(self, schema: Schema) -> StructType:
        """Return the type of partition tuples.

        A field whose column was dropped is a string where nothing better is known.
        """
        return StructType(
            tuple(
                NestedField(f.field_id, f.name, f.transform.result_type(_source_type(schema, f)))
                for f in self.fields
            )
        )

    def partition_to_path(self, values: Sequence[Any], schema: Schema) -> str:
        """Return the folders of a partition, for example `day=2024-01-31/city=New+York`.

        Names and values are URL-encoded as in the reference implementation.

        Args:
            values: The partition tuple, in internal values.
            schema: A schema that has the source columns.
        """
        if len(values) != len(self.fields):
            raise ValidationError(
                f"Partition {tuple(values)!r} has {len(values)} values, "
                f"spec {self.spec_id} has {len(self.fields)} fields",
                hint="Give one value per field, None for null.",
            )
        return "/".join(
            f"{_encode(f.name)}="
            f"{_encode(f.transform.to_human_string(_source_type(schema, f), value))}"
            for f, value in zip(self.fields, values, strict=True)
        )

    def compatible_with(self, other: PartitionSpec) -> bool:
        """Return whether both have the same sources, transforms and names in the same order."""
        return [(f.source_id, f.transform, f.name) for f in self.fields] == [
            (f.source_id, f.transform, f.name) for f in other.fields
        ]

    def has_sequential_ids(self) -> bool:
        """Return whether the field ids are 1000, 1001, ..., as format version 1 requires."""
        return all(f.field_id == PARTITION_FIELD_ID_START + i for i, f in enumerate(self.fields))

    def check(self, schema: Schema) -> None:
        """Validate the spec for new data of a schema.

        Raises:
            ValidationError: If a source is missing or not primitive, a transform does not fit, or a
                name clashes.
        """
        names: set[str] = set()
        for f in self.fields:
            if not f.name or f.name in names:
                raise ValidationError(
                    f"Partition field name {f.name!r} is empty or used twice",
                    hint="Give every field a name of its own.",
                )
            names.add(f.name)
            if isinstance(f.transform, VoidTransform):
                continue
            source_name(schema, f.source_id, f"Partition field {f.name!r}")
            _check_source(f, schema)

    def to_json(self) -> dict[str, Any]:
        """Return the spec as in metadata files."""
        fields = [f.to_json() for f in self.fields]
        return {"spec-id": self.spec_id, "fields": fields, **self.extra}

    @classmethod
    def from_json(cls, raw: Any) -> PartitionSpec:
        """Read a spec; fields without ids, as in early v1 tables, get 1000, 1001, ...

        Raises:
            ValidationError: If a member is missing or has the wrong shape.
        """
        spec_id = required(raw, "spec-id", int, "partition spec")
        fields = required(raw, "fields", list, "partition spec")
        return cls(spec_id, fields_from_json(fields), unknown_members(raw, _SPEC))


UNPARTITIONED_PARTITION_SPEC = PartitionSpec()


def identity_spec(columns: Iterable[NestedField]) -> PartitionSpec:
    """Return the spec that partitions by the values of columns, under their own names."""
    fields = (
        PartitionField(one.field_id, number, IdentityTransform(), one.name)
        for number, one in enumerate(columns, PARTITION_FIELD_ID_START)
    )
    return PartitionSpec(0, tuple(fields))


def fields_from_json(raw: list[Any]) -> tuple[PartitionField, ...]:
    """Read the fields of a spec; those without ids get 1000, 1001, ... if none has one."""
    with_ids = sum(isinstance(f, dict) and "field-id" in f for f in raw)
    if with_ids not in (0, len(raw)):
        raise ValidationError(
            "Invalid partition spec: some fields have a field-id, others do not",
            hint="Give all fields a field-id, or none.",
        )
    return tuple(
        PartitionField.from_json(f, PARTITION_FIELD_ID_START + i) for i, f in enumerate(raw)
    )


def source_name(schema: Schema, field_id: int, what: str) -> str:
    """Return the full name of the source column of a partition or sort field."""
    name = schema.find_column_name(field_id)
    if name is None:
        raise ValidationError(
            f"{what}: there is no column with id {field_id}",
            hint="Choose a column that the schema has.",
        )
    return name


def source_id(raw: dict[str, Any], what: str) -> int:
    """Return the id of the source of a partition or sort field, the first one of several."""
    found = raw.get("source-id")
    several = raw.get(_SOURCES)
    if isinstance(several, list) and several and all(type(one) is int for one in several):
        found = several[0]
    elif several is not None:
        found = None
    if type(found) is not int:
        raise ValidationError(
            f"Invalid {what} {raw.get('name', '')!r}: source-id is missing",
            hint="Name the source column by its id.",
        )
    return found


def has_several_sources(extra: Mapping[str, Any]) -> bool:
    """Return whether the unknown members of a partition or sort field name several columns."""
    return len(extra.get(_SOURCES) or ()) > 1


def transform_of(raw: Mapping[str, Any], text: str) -> Transform:
    """Return the transform of a partition or sort field; unknown if it has several sources.

    The specification defines no transform of several columns.
    """
    return UnknownTransform(text) if has_several_sources(raw) else parse_transform(text)


def source_members(field: PartitionField | SortField) -> dict[str, int]:
    """Return the member `source-id` of a field; there is none beside several `source-ids`."""
    return {} if has_several_sources(field.extra) else {"source-id": field.source_id}


def assign_fresh_partition_spec_ids(
    spec: PartitionSpec, old_schema: Schema, fresh_schema: Schema
) -> PartitionSpec:
    """Return the spec for a new table: sources by name in the new schema, ids from 1000."""
    fields = []
    for i, f in enumerate(spec.fields):
        name = source_name(old_schema, f.source_id, f"Partition field {f.name!r}")
        source = fresh_schema.find_field(name).field_id
        fields.append(replace(f, source_id=source, field_id=PARTITION_FIELD_ID_START + i))
    return PartitionSpec(INITIAL_PARTITION_SPEC_ID, tuple(fields))


def _check_source(f: PartitionField, schema: Schema) -> None:
    column = schema.find_field(f.source_id)
    if isinstance(column.field_type, OPAQUE_TYPES):
        f.transform.check(column.field_type, schema.find_column_name(f.source_id))
    if isinstance(f.transform, UnknownTransform) or not f.transform.can_transform(
        column.field_type
    ):
        raise ValidationError(
            f"Partition field {f.name!r}: cannot apply transform {f.transform} to column "
            f"{schema.find_column_name(f.source_id)!r} of type {column.field_type}",
            hint=hint_of_transform(f.transform),
        )
    parent = schema.find_parent_id(f.source_id)
    while parent is not None:
        if not schema.find_field(parent).field_type.is_struct:
            raise ValidationError(
                f"Partition field {f.name!r}: column {schema.find_column_name(f.source_id)!r} "
                "lies in a list or map",
                hint="Partition by a column outside lists and maps.",
            )
        parent = schema.find_parent_id(parent)
    if schema.contains(f.name):
        same = schema.find_field(f.name).field_id == f.source_id
        if not (same and isinstance(f.transform, IdentityTransform)):
            raise ValidationError(
                f"Partition field {f.name!r} has the name of a column it is not the identity of",
                hint="Give the partition field another name.",
            )


def check_redundant(fields: Iterable[PartitionField]) -> None:
    """Check that no field is redundant beside another of its column, as days beside hours.

    Iceberg Java rejects that only where a spec is built for a new table: a table by days may be
    evolved to hours beside them.
    """
    seen: dict[object, PartitionField] = {}
    for f in fields:
        if isinstance(f.transform, VoidTransform):
            continue
        kind = "time" if isinstance(f.transform, TimeTransform) else str(f.transform)
        if (first := seen.setdefault((f.source_id, kind), f)) is not f:
            raise ValidationError(
                f"Partition field {f} is redundant beside {first}", hint="Keep one of both."
            )


def _source_type(schema: Schema, f: PartitionField) -> IcebergType:
    return schema.find_type(f.source_id) if schema.contains(f.source_id) else StringType()


def _encode(text: str) -> str:
    # Java's URLEncoder keeps "*" and encodes "~"; Python's does the opposite.
    return quote_plus(text, safe="*").replace("~", "%7E")


def partition_key(values: Iterable[Any]) -> tuple[Any, ...]:
    """Return partition values that compare as stored: NaN equals NaN, and -0.0 is not 0.0."""
    return tuple(value.hex() if isinstance(value, float) else value for value in values)
