"""Changes of a Paimon schema, with the rules of Paimon's SchemaManager."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from icecomb.catalog.paimon.data_type import (
    LOCAL_ZONED,
    MAX_LENGTH,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
    nested_fields,
)
from icecomb.catalog.paimon.iceberg import iceberg_type
from icecomb.catalog.paimon.table_option import check_option, renamed_in_options, switched_on
from icecomb.catalog.paimon.table_schema import TableSchema
from icecomb.format.errors import ExpressionError, SchemaError, UnsupportedError
from icecomb.format.expressions.literal import convert_literal

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
Update = Callable[[DataType], DataType]


def _edited(schema: TableSchema, path: Path, edit: Edit) -> TableSchema:
    return replace(schema, fields=tuple(_edited_fields(schema.fields, path, edit)))


def _edited_fields(fields: Sequence[DataField], path: Path, edit: Edit) -> list[DataField]:
    """Return the fields after an edit of the siblings of the last name of a path."""
    *row, name = path
    if not row:
        return edit(list(fields), name)

    def edited(kind: DataType) -> DataType:
        if not isinstance(kind, RowType):
            raise _no_field(kind, (name,))
        return replace(kind, fields=tuple(edit(list(kind.fields), name)))

    return _updated_fields(fields, tuple(row), edited)


def _retyped(schema: TableSchema, path: Path, update: Update) -> TableSchema:
    """Return the schema with the type at a path updated, which may be an element or value."""
    return replace(schema, fields=tuple(_updated_fields(schema.fields, path, update)))


def _updated_fields(fields: Sequence[DataField], path: Path, update: Update) -> list[DataField]:
    at = _index(fields, path[0], path)
    kind = _updated(fields[at].field_type, path[1:], update)
    return [*fields[:at], replace(fields[at], field_type=kind), *fields[at + 1 :]]


def _updated(kind: DataType, path: Path, update: Update) -> DataType:
    if not path:
        return update(kind)
    if isinstance(kind, RowType):
        return replace(kind, fields=tuple(_updated_fields(kind.fields, path, update)))
    if isinstance(kind, ArrayType) and path[0] == "element":
        return replace(kind, element=_updated(kind.element, path[1:], update))
    if isinstance(kind, MapType) and path[0] == "value":
        return replace(kind, value=_updated(kind.value, path[1:], update))
    raise _no_field(kind, path)


def _no_field(kind: DataType, path: Path) -> SchemaError:
    return SchemaError(
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
        raise SchemaError(f"There is no column {_shown(path)}", hint=f"There are: {known}.")
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


_TRUTH: Final = frozenset(("t", "true", "y", "yes", "1", "f", "false", "n", "no", "0"))
_BITS: Final = {"TINYINT": 8, "SMALLINT": 16}
_FREE: Final = frozenset(("CHAR", "VARCHAR", "BINARY", "VARBINARY"))


def check_default(name: str, kind: DataType, text: str | None) -> None:
    """Check that a default value, with or without quotes, is a value of the column's type."""
    if text is None:
        return
    plain = text[1:-1] if len(text) > 1 and text[0] == text[-1] == "'" else text
    try:
        fits = isinstance(kind, AtomicType) and _fits(kind, plain)
    except (ExpressionError, UnsupportedError):
        fits = False
    if not fits:
        raise SchemaError(
            f"{plain!r} is not a default value for {name}, which is {kind}",
            hint="Give a value that Paimon can cast to the type of the column.",
        )


def _fits(kind: AtomicType, text: str) -> bool:
    if kind.root in _FREE:
        return True
    if kind.root == "BOOLEAN":
        return text.lower() in _TRUTH
    found = convert_literal(text, iceberg_type(kind))
    half = 1 << (_BITS[kind.root] - 1) if kind.root in _BITS else None
    return found.exact and (half is None or -half <= found.floor < half)


_RESERVED: Final = frozenset(("_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "rowkind", "_ROW_ID"))
_RESERVED_PREFIX: Final = "_KEY_"
_OF_ALL_COLUMNS: Final = "default-aggregate-function"
_NAMING: Final = frozenset(
    (
        *("bucket-key", "sequence.field", "rowkind.field", "record-level.time-field"),
        *("clustering.columns", "vector-field", "blob-field", "blob-descriptor-field"),
        *("blob-view-field", "pk-vector.index.columns", "pk-btree.index.columns"),
        *("pk-bitmap.index.columns", "pk-multivalue.index.columns", "pk-full-text.index.columns"),
    )
)
"""Options whose values are names of columns."""
_DYNAMIC, _POSTPONED = "-1", "-2"


def check_rules(base: TableSchema, new: TableSchema) -> None:
    """Check that changes break no rule of Paimon, unless the old schema violates it already."""
    known = set(_broken(base))
    for problem in _broken(new):
        if problem not in known:
            raise SchemaError(
                f"Paimon would refuse the new schema: {problem}",
                hint="Make another change, or change what the message names in the same step.",
            )


def named_by_options(schema: TableSchema) -> dict[str, str]:
    """Return the columns named by options' values or names, with one such option each."""
    found: dict[str, str] = {}
    for key, value in schema.options.items():
        names = value.split(",") if key in _NAMING else []
        if key.startswith("file-index.") and key.endswith(".columns"):
            names = [name.partition("[")[0] for name in value.split(",")]
        elif key.startswith("fields.") and key != f"fields.{_OF_ALL_COLUMNS}":
            names = key.split(".")[1].split(",")
        for name in names:
            found.setdefault(name.strip(), key)
    return found


def _broken(schema: TableSchema) -> Iterator[str]:
    columns = {field.name for field in schema.fields}
    for name in columns:
        if name in _RESERVED or name.startswith(_RESERVED_PREFIX):
            yield f"the name {name} is one of Paimon's own columns"
    for name, option in named_by_options(schema).items():
        if name not in columns:
            yield f"option {option} names the column {name}, which does not exist"
    yield from _broken_buckets(schema)
    if schema.is_append_table and schema.options.get("changelog-producer", "none") != "none":
        yield "option changelog-producer needs a primary key"


def _broken_buckets(schema: TableSchema) -> Iterator[str]:
    bucket, key = schema.options.get("bucket", _DYNAMIC), schema.options.get("bucket-key")
    if bucket == _DYNAMIC:
        if key is not None:
            yield "option bucket-key needs a number of buckets (bucket)"
    elif bucket == _POSTPONED and not schema.is_append_table:
        return
    elif not (bucket.isascii() and bucket.isdigit() and int(bucket) > 0):
        yield f"option bucket is {bucket!r}, not a number of buckets"
    elif key is None and schema.is_append_table:
        yield "option bucket of an append table needs the option bucket-key"
    elif key is not None and not schema.is_append_table:
        for name in map(str.strip, key.split(",")):
            if name not in schema.primary_keys:
                yield f"option bucket-key names {name}, which is not in the primary key"


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
