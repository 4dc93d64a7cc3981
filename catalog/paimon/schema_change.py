"""Changes of a Paimon schema, with the rules of Paimon's SchemaManager."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from icecomb.catalog.paimon.cast_rule import can_cast
from icecomb.catalog.paimon.data_type import (
    ArrayType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
    nested_fields,
)
from icecomb.catalog.paimon.default_value import check_default
from icecomb.catalog.paimon.schema_rule import check_rules, named_by_options
from icecomb.catalog.paimon.table_option import check_option, renamed_in_options, switched_on
from icecomb.catalog.paimon.table_schema import TableSchema
from icecomb.format.errors import SchemaError

Path = tuple[str, ...]
"""Names from a column inward; `element` leads into an array, `value` into a map."""

FIRST: Final = "FIRST"
LAST: Final = "LAST"
AFTER: Final = "AFTER"
BEFORE: Final = "BEFORE"


@dataclass(frozen=True, slots=True)
class Position:
    """A position among siblings: `FIRST`, `LAST`, or `AFTER` or `BEFORE` another field."""

    kind: str
    reference: str | None = None


class SchemaChange:
    """The base of all changes."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class AddColumn(SchemaChange):
    """Add a nullable column, or a field of a ROW; fields inside it get new ids, too."""

    path: Path
    field_type: DataType
    description: str | None = None
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class DropColumn(SchemaChange):
    """Drop a column or field; its id is never reused."""

    path: Path


@dataclass(frozen=True, slots=True)
class RenameColumn(SchemaChange):
    """Rename a column or field; options that name a column follow."""

    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class MoveColumn(SchemaChange):
    """Move a column or field to another position among its siblings."""

    path: Path
    position: Position


@dataclass(frozen=True, slots=True)
class UpdateType(SchemaChange):
    """Change the type of a column, field, array element or map value; its nullability stays."""

    path: Path
    field_type: DataType


@dataclass(frozen=True, slots=True)
class UpdateNullability(SchemaChange):
    """Make a column, field, array element or map value nullable or NOT NULL."""

    path: Path
    nullable: bool


@dataclass(frozen=True, slots=True)
class UpdateDescription(SchemaChange):
    """Replace or, with None, remove the comment of a column or field."""

    path: Path
    description: str | None


@dataclass(frozen=True, slots=True)
class UpdateDefault(SchemaChange):
    """Replace or, with None, remove the default value of a column or field, for new rows only."""

    path: Path
    default_value: str | None


@dataclass(frozen=True, slots=True)
class SetOption(SchemaChange):
    """Set an option."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class RemoveOption(SchemaChange):
    """Reset an option to its default."""

    key: str


@dataclass(frozen=True, slots=True)
class UpdateComment(SchemaChange):
    """Replace or, with None, remove the table's comment."""

    comment: str | None


def changed(
    base: TableSchema, changes: Sequence[SchemaChange], *, has_snapshots: bool
) -> TableSchema:
    """Return a schema with changes applied one after the other, and the same id and time.

    Args:
        has_snapshots: Whether the table has data, which makes some options fixed.
    """
    schema = base
    for change in changes:
        if isinstance(change, SetOption | RemoveOption):
            schema = _with_option(schema, change, has_snapshots=has_snapshots)
        elif isinstance(change, UpdateComment):
            schema = replace(schema, comment=change.comment)
        elif isinstance(change, AddColumn):
            schema = _with_column(schema, change)
        elif isinstance(change, DropColumn):
            schema = _without_column(schema, change.path)
        elif isinstance(change, RenameColumn):
            schema = _with_name(schema, change)
        elif isinstance(change, MoveColumn):
            schema = _edited(schema, change.path, _move(change))
        elif isinstance(change, UpdateDescription):
            _refuse_directive(change.path, change.description)
            schema = _edited(schema, change.path, _describe(change))
        elif isinstance(change, UpdateDefault):
            schema = _edited(schema, change.path, _default(change))
        elif isinstance(change, UpdateNullability):
            schema = _with_nullability(schema, change)
        elif isinstance(change, UpdateType):
            schema = _with_type(schema, change)
        else:
            raise SchemaError(
                f"This is not a change of a schema: {change!r}",
                hint="Use one of the classes of this module, such as AddColumn.",
            )
    check_rules(base, schema)
    return schema


def _with_option(
    schema: TableSchema, change: SetOption | RemoveOption, *, has_snapshots: bool
) -> TableSchema:
    value = change.value if isinstance(change, SetOption) else None
    check_option(schema.options, change.key, value, has_snapshots=has_snapshots)
    options = {key: old for key, old in schema.options.items() if key != change.key}
    if value is not None:
        options = {**schema.options, change.key: value}
    return replace(schema, options=options)


def _with_column(schema: TableSchema, change: AddColumn) -> TableSchema:
    if not change.field_type.nullable:
        raise SchemaError(
            f"Cannot add {_shown(change.path)}: a new column must be nullable, as older rows "
            "have no value",
            hint="Add it without NOT NULL.",
        )
    _refuse_directive(change.path, change.description)
    ids = _Ids(schema.highest_field_id)
    field = DataField(ids.next(), change.path[-1], ids.given(change.field_type), change.description)
    position = change.position
    if position is None and len(change.path) == 1 and schema.partition_keys:
        first = next(f.name for f in schema.fields if f.name in schema.partition_keys)
        if switched_on(schema.options, "add-column-before-partition"):
            position = Position(BEFORE, first)

    def add(fields: list[DataField], name: str) -> list[DataField]:
        if any(f.name == name for f in fields):
            raise SchemaError(
                f"Cannot add {_shown(change.path)}: there is such a column already",
                hint="Choose another name.",
            )
        return _inserted(fields, field, position or Position(LAST))

    edited = _edited_fields(schema.fields, change.path, add)
    return replace(schema, fields=tuple(edited), highest_field_id=ids.highest)


def _without_column(schema: TableSchema, path: Path) -> TableSchema:
    _refuse_keys(schema, path, "drop", primary=True)
    user = named_by_options(schema).get(path[0]) if len(path) == 1 else None
    if user is not None:
        raise SchemaError(
            f"Cannot drop {path[0]}: option {user} names it", hint="Change that option first."
        )

    def drop(fields: list[DataField], name: str) -> list[DataField]:
        at = _index(fields, name, path)
        if len(fields) == 1:
            raise SchemaError(
                f"Cannot drop {_shown(path)}: it is the last one", hint="Add another column first."
            )
        return [*fields[:at], *fields[at + 1 :]]

    return _edited(schema, path, drop)


def _with_name(schema: TableSchema, change: RenameColumn) -> TableSchema:
    path, name = change.path, change.name
    _refuse_keys(schema, path, "rename", primary=False)

    def rename(fields: list[DataField], old: str) -> list[DataField]:
        at = _index(fields, old, path)
        if any(f.name == name for f in fields):
            raise SchemaError(
                f"Cannot rename {_shown(path)}: there is a column {name} already",
                hint="Choose another name.",
            )
        if not name:
            raise SchemaError(
                f"Cannot rename {_shown(path)}: the new name is empty", hint="Give the new name."
            )
        if str(fields[at].field_type.with_nullable(True)) == "BLOB":
            raise SchemaError(
                f"Cannot rename {_shown(path)}: it is a BLOB, whose name is fixed",
                hint="Add a column of the other name instead.",
            )
        return [*fields[:at], replace(fields[at], name=name), *fields[at + 1 :]]

    fields = _edited_fields(schema.fields, path, rename)
    if len(path) > 1:
        return replace(schema, fields=tuple(fields))
    return replace(
        schema,
        fields=tuple(fields),
        primary_keys=tuple(name if key == path[0] else key for key in schema.primary_keys),
        options=renamed_in_options(schema.options, path[0], name),
    )


def _with_nullability(schema: TableSchema, change: UpdateNullability) -> TableSchema:
    path = change.path
    if change.nullable:
        _refuse_keys(schema, path, "make nullable", primary=True, partition=False)

    def update(kind: DataType) -> DataType:
        if kind.nullable and not change.nullable:
            _check_not_null(schema, path)
        return kind.with_nullable(change.nullable)

    return _retyped(schema, path, update)


def _with_type(schema: TableSchema, change: UpdateType) -> TableSchema:
    _refuse_keys(schema, change.path, "change the type of", primary=True)
    index = named_by_options(schema).get(change.path[0], "") if len(change.path) == 1 else ""
    if index.startswith("pk-") and index.endswith(".index.columns"):
        raise SchemaError(
            f"Cannot change the type of {change.path[0]}: option {index} names it",
            hint="Change that option first.",
        )
    explicit = not switched_on(schema.options, "disable-explicit-type-casting")

    def update(kind: DataType) -> DataType:
        wanted = change.field_type.with_nullable(kind.nullable)
        if not can_cast(kind, wanted, explicit=explicit):
            raise SchemaError(
                f"Cannot change the type of {_shown(change.path)} from {kind} to {wanted}: Paimon "
                "does not cast the values written so far",
                hint="Add a column of the new type instead.",
            )
        return wanted

    retyped = _retyped(schema, change.path, update)
    return _edited(retyped, change.path[:1], _defaults_fit)


def _check_not_null(schema: TableSchema, path: Path) -> None:
    key = "alter-column-null-to-not-null.disabled"
    if switched_on(schema.options, key, default=True):
        raise SchemaError(
            f"Cannot make {_shown(path)} NOT NULL: rows may hold null",
            hint=f"If none does, set the option {key}=false first.",
        )


def _refuse_keys(
    schema: TableSchema, path: Path, verb: str, *, primary: bool, partition: bool = True
) -> None:
    if len(path) > 1:
        return
    for what, keys, refused in (
        ("a partition key", schema.partition_keys, partition),
        ("a primary key", schema.primary_keys, primary),
    ):
        if refused and path[0] in keys:
            raise SchemaError(
                f"Cannot {verb} {path[0]}: it is {what}, which never changes",
                hint="Create a new table and copy the rows.",
            )


Edit = Callable[[list[DataField], str], list[DataField]]


def _edited(schema: TableSchema, path: Path, edit: Edit) -> TableSchema:
    return replace(schema, fields=tuple(_edited_fields(schema.fields, path, edit)))


def _edited_fields(fields: Sequence[DataField], path: Path, edit: Edit) -> list[DataField]:
    """Return the fields after an edit of the siblings of the last name of a path."""
    if len(path) == 1:
        return edit(list(fields), path[0])
    at = _index(fields, path[0], path)
    kind = _edited_type(fields[at].field_type, path[1:], edit)
    return [*fields[:at], replace(fields[at], field_type=kind), *fields[at + 1 :]]


def _edited_type(kind: DataType, path: Path, edit: Edit) -> DataType:
    if isinstance(kind, RowType):
        return replace(kind, fields=tuple(_edited_fields(kind.fields, path, edit)))
    if len(path) > 1 and isinstance(kind, ArrayType) and path[0] == "element":
        return replace(kind, element=_edited_type(kind.element, path[1:], edit))
    if len(path) > 1 and isinstance(kind, MapType) and path[0] == "value":
        return replace(kind, value=_edited_type(kind.value, path[1:], edit))
    raise SchemaError(
        f"{kind} has no field {_shown(path)}",
        hint="Name a field of a row, the element of an array or the value of a map.",
    )


def _retyped(
    schema: TableSchema, path: Path, update: Callable[[DataType], DataType]
) -> TableSchema:
    """Return the schema with the type at a path updated, which may be an element or value."""
    fields = list(schema.fields)
    at = _index(fields, path[0], path)
    kind = _type_at(fields[at].field_type, path[1:], update)
    fields[at] = replace(fields[at], field_type=kind)
    return replace(schema, fields=tuple(fields))


def _type_at(kind: DataType, path: Path, update: Callable[[DataType], DataType]) -> DataType:
    if not path:
        return update(kind)
    if isinstance(kind, RowType):
        at = _index(kind.fields, path[0], path)
        inner = _type_at(kind.fields[at].field_type, path[1:], update)
        new = replace(kind.fields[at], field_type=inner)
        return replace(kind, fields=(*kind.fields[:at], new, *kind.fields[at + 1 :]))
    if isinstance(kind, ArrayType) and path[0] == "element":
        return replace(kind, element=_type_at(kind.element, path[1:], update))
    if isinstance(kind, MapType) and path[0] == "value":
        return replace(kind, value=_type_at(kind.value, path[1:], update))
    raise SchemaError(
        f"{kind} has no field {_shown(path)}",
        hint="Name a field of a row, the element of an array or the value of a map.",
    )


def _describe(change: UpdateDescription) -> Edit:
    def edit(fields: list[DataField], name: str) -> list[DataField]:
        at = _index(fields, name, change.path)
        return [
            *fields[:at],
            replace(fields[at], description=change.description),
            *fields[at + 1 :],
        ]

    return edit


def _default(change: UpdateDefault) -> Edit:
    def edit(fields: list[DataField], name: str) -> list[DataField]:
        at = _index(fields, name, change.path)
        check_default(_shown(change.path), fields[at].field_type, change.default_value)
        new = replace(fields[at], default_value=change.default_value)
        return [*fields[:at], new, *fields[at + 1 :]]

    return edit


def _defaults_fit(fields: list[DataField], name: str) -> list[DataField]:
    """Return the fields after checking the default values of one and of those inside it."""
    field = fields[_index(fields, name, (name,))]
    for one in (field, *nested_fields(field.field_type)):
        check_default(one.name, one.field_type, one.default_value)
    return fields


def _refuse_directive(path: Path, description: str | None) -> None:
    """Refuse comments that Paimon takes for commands to make the column a BLOB or a VECTOR."""
    if description is not None and description.strip().startswith(("__BLOB", "__VECTOR")):
        raise SchemaError(
            f"The comment of {_shown(path)} begins with {description.strip().split(';')[0]}, which "
            "Paimon takes for a command",
            hint="Begin it with another word.",
        )


def _move(change: MoveColumn) -> Edit:
    def edit(fields: list[DataField], name: str) -> list[DataField]:
        at = _index(fields, name, change.path)
        if change.position.reference == name:
            raise SchemaError(
                f"Cannot move {_shown(change.path)} beside itself", hint="Name another column."
            )
        return _inserted([*fields[:at], *fields[at + 1 :]], fields[at], change.position)

    return edit


def _inserted(fields: list[DataField], field: DataField, position: Position) -> list[DataField]:
    if position.kind == FIRST:
        return [field, *fields]
    if position.kind == LAST:
        return [*fields, field]
    reference = position.reference or ""
    at = _index(fields, reference, (reference,)) + (position.kind == AFTER)
    return [*fields[:at], field, *fields[at:]]


def _index(fields: Sequence[DataField], name: str, path: Path) -> int:
    found = next((at for at, f in enumerate(fields) if f.name == name), None)
    if found is None:
        known = ", ".join(f.name for f in fields)
        raise SchemaError(f"There is no column {_shown(path)}", hint=f"There are: {known}")
    return found


def _shown(path: Path) -> str:
    return ".".join(path)


class _Ids:
    """A source of field ids above all that were ever assigned."""

    def __init__(self, highest: int) -> None:
        self.highest = highest

    def next(self) -> int:
        self.highest += 1
        return self.highest

    def given(self, kind: DataType) -> DataType:
        """Return a type with new ids for its fields, inner fields first."""
        if isinstance(kind, RowType):
            fields = tuple(self._field(f) for f in kind.fields)
            return replace(kind, fields=fields)
        if isinstance(kind, ArrayType | MultisetType | VectorType):
            return replace(kind, element=self.given(kind.element))
        if isinstance(kind, MapType):
            return replace(kind, key=self.given(kind.key), value=self.given(kind.value))
        return kind

    def _field(self, field: DataField) -> DataField:
        kind = self.given(field.field_type)
        return replace(field, field_id=self.next(), field_type=kind)


__all__ = [
    "AFTER",
    "BEFORE",
    "FIRST",
    "LAST",
    "AddColumn",
    "DropColumn",
    "MoveColumn",
    "Position",
    "RemoveOption",
    "RenameColumn",
    "SchemaChange",
    "SetOption",
    "UpdateComment",
    "UpdateDefault",
    "UpdateDescription",
    "UpdateNullability",
    "UpdateType",
    "changed",
]
