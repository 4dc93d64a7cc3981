"""Edits of a schema: fields added, changed, dropped and moved, and the result.

The rules are those of the specification (Schema Evolution) and, where it leaves them open, of the
reference implementation: a field is looked up by its name before the edit, types only widen, new
fields get ids that were never used. Names that differ only in case are rejected: Hive and Spark
could not distinguish them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from icecomb.format.argument import checked_members, checked_text
from icecomb.format.errors import SchemaError, UnsupportedError, ValidationError, reason_of
from icecomb.format.expressions.literal import convert_literal, python_value
from icecomb.format.spec.column_history import schema_of
from icecomb.format.spec.default_value import checked_default, no_defaults
from icecomb.format.spec.promotion import can_promote, is_date_promotion, promoted_date
from icecomb.format.spec.schema import (
    V3_FORMAT_VERSION,
    Schema,
    check_depth,
    children,
    fresh_field,
    walk,
    with_children,
)
from icecomb.format.spec.types import (
    OPAQUE_TYPES,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    UnknownType,
    as_type,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from icecomb.format.spec.metadata import TableMetadata


Path: TypeAlias = "str | tuple[str, ...]"
"""A column as ``"a"``, or a field inside it as ``"a.b"`` or ``("a", "b")``."""

ROOT: Final = -1
_OF_NANOS: Final[Mapping[type[IcebergType], type[IcebergType]]] = {
    TimestampNanoType: TimestampType,
    TimestamptzNanoType: TimestamptzType,
}


@dataclass(frozen=True, slots=True)
class Move:
    """A field's new position among its siblings: first, or beside another one."""

    field_id: int
    where: Literal["first", "before", "after"]
    other_id: int | None = None


class SchemaEdit:
    """A schema being edited.

    Args:
        allow_incompatible: Whether changes are allowed that existing rows may contradict.
        deleted: A function that finds the field of a struct (None: the columns) of a name.
    """

    def __init__(
        self,
        schema: Schema,
        last_column_id: int,
        format_version: int,
        *,
        case_sensitive: bool = True,
        allow_incompatible: bool = False,
        deleted: Callable[[int | None, str], DeletedColumn] | None = None,
    ) -> None:
        self.schema = schema
        self._deleted = deleted
        self.format_version = format_version
        self.case_sensitive = case_sensitive
        self.allow_incompatible = allow_incompatible
        self.adds: dict[int, list[NestedField]] = {}
        self.updates: dict[int, NestedField] = {}
        self.deletes: set[int] = set()
        self.found: dict[str, int] = {}
        self._moves: dict[int, list[Move]] = {}
        self._ids = count(last_column_id + 1)
        self._added: dict[str, int] = {}
        self._parents: dict[int, int] = {}
        self._identifiers = set(schema.identifier_field_ids)
        self._coarser: Mapping[type[IcebergType], type[IcebergType]] = {}

    def add(
        self,
        path: Path,
        field_type: IcebergType | str,
        doc: str | None = None,
        *,
        required: bool = False,
        default: Any = None,
        write_default: Any = None,
    ) -> None:
        """Add a field after its siblings; `write_default` is that of new rows if it is another."""
        parent, name = self._split(path)
        full = ".".join((*parent, name))
        if not name:
            raise SchemaError("Cannot add a column without a name", hint="Give it a name.")
        check_depth([as_type(field_type)])
        default = self._default(as_type(field_type), default, full)
        if required and default is None and not self.allow_incompatible:
            raise SchemaError(
                f"Cannot add required column {full!r}: existing rows have no value for it",
                hint="Add it as an optional column, or with a default value (format version 3).",
            )
        parent_id = ROOT if not parent else self._struct_id(parent, full)
        self._check_free(parent_id, name, full)
        later = default
        if write_default is not None:
            later = self._default(as_type(field_type), write_default, full)
        given = NestedField(0, name, as_type(field_type), required, doc, default, later)
        prefix = full.removesuffix(name)
        added = fresh_field(field_with_given_defaults(given, prefix), lambda: next(self._ids))
        _check_names_inside(added.field_type, full)
        self.adds.setdefault(parent_id, []).append(added)
        self._added[full] = added.field_id
        self._parents[added.field_id] = parent_id

    def delete(self, path: Path) -> None:
        """Drop a field and all fields inside it."""
        field, full = self._find(path)
        self._check_in_struct(field.field_id, "drop", full)
        if any(self._is_inside(parent, field.field_id) for parent in self.adds):
            raise SchemaError(
                f"Cannot drop column {full!r}: a field is added to it",
                hint="Drop it in an update of its own.",
            )
        if any(self._is_inside(changed, field.field_id) for changed in self.updates):
            raise SchemaError(
                f"Cannot drop column {full!r}: it is changed in the same update",
                hint="Drop it in an update of its own.",
            )
        if any(move.other_id == field.field_id for moves in self._moves.values() for move in moves):
            raise SchemaError(
                f"Cannot drop column {full!r}: another one is moved beside it",
                hint="Drop it in an update of its own.",
            )
        self.deletes.add(field.field_id)

    def undelete(self, path: Path, *, required: bool | None = None) -> None:
        """Add a column again that was dropped, after its siblings, under its old ids."""
        assert self._deleted is not None  # noqa: S101 - of every edit of a table
        parent, name = self._split(path)
        full = ".".join((*parent, name))
        parent_id = ROOT if not parent else self._struct_id(parent, full)
        self._check_free(parent_id, name, full)
        found = self._deleted(None if parent_id == ROOT else parent_id, name)
        field = found.field
        for each in (field, *walk(field.field_type)):
            if self.schema.contains(each.field_id) and not self._is_deleted(each.field_id):
                raise SchemaError(
                    f"Cannot undelete column {full!r}: its field id {each.field_id} is in use, by "
                    f"{self.schema.find_column_name(each.field_id)!r}",
                    hint="Rename that column.",
                )
        if required is False:
            field = replace(field, required=False)
        if (
            field.required
            and field.initial_default is None
            and found.written_since
            and not self.allow_incompatible
        ):
            raise SchemaError(
                f"Cannot undelete required column {full!r}: rows may have been written without it",
                hint="Undelete it as an optional one: `required` of Python's undelete_column.",
            )
        self.adds.setdefault(parent_id, []).append(field)
        self._added[full] = field.field_id
        self._parents[field.field_id] = parent_id

    def rename(self, path: Path, new_name: str) -> None:
        """Rename a field; its id stays."""
        field, full = self._kept(path)
        self._check_in_struct(field.field_id, "rename", full)
        if not checked_text("name of a column", new_name, SchemaError):
            raise SchemaError(
                f"Cannot rename column {full!r} to nothing", hint="Give the new name."
            )
        self._update(field, name=new_name)

    def update(
        self,
        path: Path,
        field_type: IcebergType | str | None = None,
        doc: str | None = None,
        *,
        required: bool | None = None,
    ) -> None:
        """Widen the type, replace the comment, or change whether null is allowed."""
        field, full = self._kept(path)
        self._check_no_map_key(field.field_id, full)
        changed: dict[str, Any] = {}
        field_type = None if field_type is None else as_type(field_type)
        current = self._present(field.field_id)
        if field_type is not None and field_type != current.field_type:
            self._check_type(current.field_type, field_type, full)
            # the fields of a nested type are new, as it was unknown
            ids = chain((field.field_id,), self._ids)
            whole = fresh_field(NestedField(0, field.name, field_type), lambda: next(ids))
            changed["field_type"] = whole.field_type
            if is_date_promotion(current.field_type, field_type):
                changed["initial_default"] = _midnight(current.initial_default, field_type)
                changed["write_default"] = _midnight(current.write_default, field_type)
        if doc is not None:
            changed["doc"] = doc
        if required is not None and required is not current.required:
            if required and not self.allow_incompatible:
                raise SchemaError(
                    f"Cannot make column {full!r} required: existing rows may hold nulls",
                    hint="Leave it optional, or check the rows and set allow_incompatible_changes.",
                )
            changed["required"] = required
        if changed:
            self._update(field, **changed)

    def set_default(self, path: Path, default: Any) -> None:
        """Replace the write default; None removes it. The initial default stays."""
        field_id, full = self._find_with_added(path)
        self._check_in_struct(field_id, "set a default of", full)
        siblings = self.adds.get(self._parent(field_id), [])
        added = next((n for n, each in enumerate(siblings) if each.field_id == field_id), None)
        current = self._present(field_id) if added is None else siblings[added]
        default = self._default(current.field_type, default, full)
        if default == current.write_default:
            return
        if default is None and current.required and not self.allow_incompatible:
            raise SchemaError(
                f"Cannot remove the default of required column {full!r}: writers that leave the "
                "column out rely on it",
                hint="Make the column optional, or set allow_incompatible_changes.",
            )
        if added is None:
            self._update(current, write_default=default)
        else:
            siblings[added] = replace(current, write_default=default)

    def move(
        self, path: Path, where: Literal["first", "before", "after"], other: Path | None = None
    ) -> None:
        """Move a field among its siblings."""
        field_id, full = self._find_with_added(path)
        parent_id = self._parent(field_id)
        if parent_id != ROOT and not self._type_of(parent_id).is_struct:
            raise SchemaError(
                f"Cannot move {full!r}: it is not a field of a struct",
                hint="Move a top-level column or a field of a struct.",
            )
        other_id = None
        if where != "first":
            other_id, other_full = self._find_with_added(() if other is None else other)
            if other_id == field_id:
                raise SchemaError(
                    f"Cannot move {full!r} {where} itself", hint="Name another column."
                )
            if self._parent(other_id) != parent_id:
                raise SchemaError(
                    f"Cannot move {full!r} {where} {other_full!r}: it is in another struct",
                    hint="Name a field of the same struct.",
                )
        self._moves.setdefault(parent_id, []).append(Move(field_id, where, other_id))

    def set_identifiers(self, names: Iterable[str]) -> None:
        """Set the fields that identify a row, by their names after the edit."""
        edited = Schema(self._fields(self.schema.fields, ROOT))
        found = [edited.find_field(name, self.case_sensitive) for name in names]
        for field in found:
            if isinstance(field.field_type, OPAQUE_TYPES):
                raise UnsupportedError(
                    f"Column {field.name!r} of type {field.field_type} cannot identify rows: such "
                    "values cannot be compared",
                    hint="Identify rows by other columns.",
                    column=field.name,
                )
        self._identifiers = {field.field_id for field in found}

    def union(self, new: StructType, *, of_frame: bool = False) -> None:
        """Add the extra fields of another schema, by name; widen types that are wider there.

        With `of_frame`, columns of microseconds stay: the frame's nanoseconds fit if they end in
        zeros.
        """
        self._coarser = _OF_NANOS if of_frame else {}
        self._union(self.schema.as_struct(), new, ())

    def result(self) -> Schema:
        """Return the schema after the edit, with the id of the one before."""
        fields = self._fields(self.schema.fields, ROOT)
        self._check_clashes(fields)
        kept = {field.field_id for field in walk(StructType(fields))}
        for field_id in sorted(self._identifiers - kept):
            name = self.schema.find_column_name(field_id)
            raise SchemaError(
                f"Cannot drop identifier field {name!r}",
                hint="Choose other identifier fields first: set_identifier_fields(...).",
            )
        return Schema(fields, self.schema.schema_id, tuple(sorted(self._identifiers)))

    def _split(self, path: Path) -> tuple[tuple[str, ...], str]:
        path = _checked_path(path)
        if isinstance(path, tuple):
            return path[:-1], path[-1]
        parent, dot, name = path.rpartition(".")
        if not dot:
            return (), path
        if not self.schema.contains(parent, case_sensitive=self.case_sensitive):
            raise SchemaError(
                f"Cannot add column {path!r}: there is no column {parent!r} to add {name!r} to",
                hint=f"For a column whose name has a dot give a tuple: ({path!r},).",
            )
        return (parent,), name

    def _find(self, path: Path) -> tuple[NestedField, str]:
        path = _checked_path(path)
        name = path if isinstance(path, str) else ".".join(path)
        field = self.schema.find_field(name, self.case_sensitive)
        self.found[name] = field.field_id
        return field, self.schema.find_column_name(field.field_id) or name

    def _kept(self, path: Path) -> tuple[NestedField, str]:
        field, full = self._find(path)
        if self._is_deleted(field.field_id):
            raise SchemaError(
                f"Cannot change column {full!r}: it is dropped in the same update",
                hint="Change it or drop it, not both.",
            )
        return field, full

    def _find_with_added(self, path: Path) -> tuple[int, str]:
        path = _checked_path(path)
        name = path if isinstance(path, str) else ".".join(path)
        if (added := self._added.get(name)) is not None:
            return added, name
        field, full = self._kept(path)
        return field.field_id, full

    def _struct_id(self, parent: tuple[str, ...], full: str) -> int:
        field, name = self._kept(parent)
        if isinstance(field.field_type, MapType):
            field = field.field_type.value_field
        elif isinstance(field.field_type, ListType):
            field = field.field_type.element_field
        if not field.field_type.is_struct:
            raise SchemaError(
                f"Cannot add column {full!r}: {name!r} is of type {field.field_type}, not a struct",
                hint="Add fields to structs only, also inside lists and maps.",
            )
        self._check_no_map_key(field.field_id, full)
        return field.field_id

    def _default(self, field_type: IcebergType, value: Any, full: str) -> Any:
        """Return the internal value of a new default, which the table must allow."""
        found = given_default(field_type, value, full)
        if found is not None and self.format_version < V3_FORMAT_VERSION:
            raise no_defaults(full, self.format_version)
        return found

    def _update(self, field: NestedField, **changed: Any) -> None:
        self.updates[field.field_id] = replace(self._present(field.field_id), **changed)

    def _present(self, field_id: int) -> NestedField:
        return self.updates.get(field_id) or self.schema.find_field(field_id)

    def _parent(self, field_id: int) -> int:
        added = self._parents.get(field_id)
        if added is not None:
            return added
        parent = self.schema.find_parent_id(field_id)
        return ROOT if parent is None else parent

    def _type_of(self, field_id: int) -> IcebergType:
        return self.schema.find_field(field_id).field_type

    def _is_deleted(self, field_id: int) -> bool:
        return any(self._is_inside(field_id, deleted) for deleted in self.deletes)

    def _is_inside(self, field_id: int, holder_id: int) -> bool:
        at = field_id
        while at not in (ROOT, holder_id):
            at = self._parent(at)
        return at == holder_id

    def _check_in_struct(self, field_id: int, verb: str, full: str) -> None:
        parent = self._parent(field_id)
        if parent != ROOT and not self._type_of(parent).is_struct:
            raise SchemaError(
                f"Cannot {verb} {full!r}: it is not a field of a struct",
                hint=(
                    "The element of a list and the key and value of a map are fixed parts of "
                    "their type."
                ),
            )
        self._check_no_map_key(field_id, full)

    def _check_no_map_key(self, field_id: int, full: str) -> None:
        at = field_id
        while (parent := self._parent(at)) != ROOT:
            held = self._type_of(parent)
            if isinstance(held, MapType) and held.key_id == at:
                raise SchemaError(
                    f"Cannot change {full!r}: it is in the keys of a map",
                    hint="Keys of maps never change: add a column with another map.",
                )
            at = parent

    def _check_free(self, parent_id: int, name: str, full: str) -> None:
        siblings: Sequence[NestedField] = (
            self.schema.fields if parent_id == ROOT else children(self._type_of(parent_id))
        )
        lowered = name.lower()
        for field in (*siblings, *self.adds.get(parent_id, ())):
            if field.field_id in self.deletes:
                continue
            present = self.updates.get(field.field_id, field).name
            if lowered in (field.name.lower(), present.lower()):
                raise SchemaError(
                    f"Cannot add column {full!r}: there is a column {present!r} already",
                    hint="Names must differ in more than upper and lower case.",
                )

    def _check_type(self, old: IcebergType, new: IcebergType, full: str) -> None:
        if isinstance(old, UnknownType):
            return
        if not old.is_primitive or not new.is_primitive:
            raise SchemaError(
                f"Cannot change the type of column {full!r} from {old} to {new}",
                hint="Add a column of the new type, or change the fields inside one by one.",
            )
        if is_date_promotion(old, new) and self.format_version < V3_FORMAT_VERSION:
            raise UnsupportedError(
                f"Column {full!r} cannot change from {old} to {new}: that belongs to format "
                f"version 3 (v3), and the table has version {self.format_version}",
                hint="Set the property format-version to 3, which every reader of the table must "
                "support; or add a column of the new type.",
            )
        if not self.allow_incompatible and not can_promote(old, new):
            raise SchemaError(
                f"Cannot change the type of column {full!r} from {old} to {new}",
                hint="int may become long, float double, unknown any type, in format version 3 "
                "date timestamp or timestamp_ns, and decimals may get more digits.",
            )

    def _check_clashes(self, fields: tuple[NestedField, ...]) -> None:
        """Check that no new name differs from a sibling's only in case; old clashes may stay."""
        changed = {f.field_id for added in self.adds.values() for f in added}
        changed |= {i for i, f in self.updates.items() if f.name != self._name_before(i)}
        groups = [fields, *(children(f.field_type) for f in walk(StructType(fields)))]
        for group in groups:
            seen: dict[str, NestedField] = {}
            for field in group:
                other = seen.setdefault(field.name.lower(), field)
                if other is not field and changed & {field.field_id, other.field_id}:
                    raise SchemaError(
                        f"Columns {other.name!r} and {field.name!r} would have the same name",
                        hint="Names must differ in more than upper and lower case.",
                    )

    def _name_before(self, field_id: int) -> str:
        return self.schema.find_field(field_id).name

    def _fields(self, fields: Iterable[NestedField], parent_id: int) -> tuple[NestedField, ...]:
        kept = [self._field(f) for f in fields if f.field_id not in self.deletes]
        return _moved((*kept, *self.adds.get(parent_id, ())), self._moves.get(parent_id, ()))

    def _field(self, field: NestedField) -> NestedField:
        changed = self.updates.get(field.field_id, field)
        if field.field_type.is_primitive:
            return changed
        return replace(changed, field_type=self._type(field.field_type, field.field_id))

    def _type(self, field_type: IcebergType, owner_id: int) -> IcebergType:
        if isinstance(field_type, StructType):
            return replace(field_type, fields=self._fields(field_type.fields, owner_id))
        return with_children(field_type, map(self._field, children(field_type)))

    def _union(self, old: StructType, new: StructType, path: tuple[str, ...]) -> None:
        pairs = [
            (f, old.field_by_name(f.name, case_sensitive=self.case_sensitive)) for f in new.fields
        ]
        for field, known in pairs:
            if known is not None:
                self._union_type(known, field, (*path, known.name))
        for field, known in pairs:
            if known is None:
                self.add(
                    (*path, field.name),
                    field.field_type,
                    field.doc,
                    required=field.required,
                    default=field.initial_default,
                    write_default=field.write_default,
                )
            else:
                self._union_field(known, field, (*path, known.name))

    def _union_type(self, known: NestedField, new: NestedField, path: tuple[str, ...]) -> None:
        old_type, new_type = known.field_type, new.field_type
        if isinstance(old_type, UnknownType) or isinstance(new_type, UnknownType):
            return
        if old_type.is_primitive and new_type.is_primitive:
            return
        if type(old_type) is not type(new_type):
            name = ".".join(path)
            raise SchemaError(
                f"Cannot change the type of column {name!r} from {old_type} to {new_type}",
                hint="Give the new column another name.",
            )
        if isinstance(old_type, StructType) and isinstance(new_type, StructType):
            self._union(old_type, new_type, path)
            return
        for old_child, new_child in zip(children(old_type), children(new_type), strict=True):
            inner = (*path, old_child.name)
            self._union_type(old_child, new_child, inner)
            self._union_field(old_child, new_child, inner)

    def _union_field(self, known: NestedField, new: NestedField, path: tuple[str, ...]) -> None:
        wider = (
            new.field_type
            if (new.field_type.is_primitive or isinstance(known.field_type, UnknownType))
            and not can_promote(new.field_type, known.field_type)
            and self._coarser.get(type(new.field_type)) is not type(known.field_type)
            else None
        )
        doc = new.doc if new.doc != known.doc else None
        loosened = False if known.required and not new.required else None
        if wider is not None or doc is not None or loosened is not None:
            self.update(path, wider, doc, required=loosened)
        if new.write_default is not None and new.write_default != known.write_default:
            self.set_default(path, new.write_default)


def _checked_path(path: Path) -> Path:
    if isinstance(path, str):
        return checked_text("name of a column", path, SchemaError)
    parts = checked_members("path of a column", path, str, SchemaError)
    if not parts:
        raise SchemaError(
            "The path of a column is empty",
            hint="Name a column, such as 'address.city' or ('address', 'city').",
        )
    return parts


def _midnight(days: int | None, field_type: IcebergType) -> int | None:
    return None if days is None else promoted_date(days, field_type)


def _check_names_inside(field_type: IcebergType, full: str) -> None:
    for field in (NestedField(0, full, field_type), *walk(field_type)):
        seen: set[str] = set()
        for child in children(field.field_type):
            if child.name.lower() in seen:
                raise SchemaError(
                    f"Cannot add column {full!r}: it has {child.name!r} twice",
                    hint="Names must differ in more than upper and lower case.",
                )
            seen.add(child.name.lower())


def _moved(fields: tuple[NestedField, ...], moves: Iterable[Move]) -> tuple[NestedField, ...]:
    order = list(fields)
    for move in moves:
        if all(field.field_id != move.field_id for field in order):
            continue
        field = order.pop(_position(order, move.field_id))
        if move.other_id is None:
            order.insert(0, field)
        else:
            order.insert(_position(order, move.other_id) + (move.where == "after"), field)
    return tuple(order)


def _position(fields: list[NestedField], field_id: int) -> int:
    return next(n for n, field in enumerate(fields) if field.field_id == field_id)


@dataclass(frozen=True, slots=True)
class DeletedColumn:
    """A column as it was when it was dropped, with the fields inside it.

    Attributes:
        written_since: Whether rows may have been written without it: a snapshot of the table
            may be newer than the drop.
    """

    field: NestedField
    was_identifier: bool
    written_since: bool


def find_deleted_column(
    metadata: TableMetadata, parent_id: int | None, name: str, *, case_sensitive: bool = True
) -> DeletedColumn:
    """Find the column that had a name last, in the schemas that metadata still has."""
    found = None
    for schema in metadata.schemas:
        for field in _siblings(schema, parent_id):
            if _same(field.name, name, case_sensitive=case_sensitive):
                found = field
    if found is None:
        raise SchemaError(
            f"Cannot undelete column {name!r}: no schema of the table has it there",
            hint="Check the name; expiration may have removed schemas that no snapshot needs.",
        )
    # a later definition may have a wider type, or no longer forbid nulls
    last = next(s for s in reversed(metadata.schemas) if s.contains(found.field_id))
    field = last.find_field(found.field_id)
    if not _same(field.name, name, case_sensitive=case_sensitive):
        now = metadata.schema().contains(field.field_id)
        raise SchemaError(
            f"Cannot undelete column {name!r}: it {'is' if now else 'was'} called {field.name!r} "
            f"{'now' if now else 'later'}",
            hint="Rename it." if now else f"Undelete {field.name!r}, and rename it then.",
        )
    return DeletedColumn(
        field,
        field.field_id in last.identifier_field_ids,
        _written_since(metadata, field.field_id),
    )


def _siblings(schema: Schema, parent_id: int | None) -> tuple[NestedField, ...]:
    if parent_id is None:
        return schema.fields
    if not schema.contains(parent_id):
        return ()
    kind = schema.find_field(parent_id).field_type
    return kind.fields if isinstance(kind, StructType) else ()


def _same(name: str, other: str, *, case_sensitive: bool) -> bool:
    return name == other if case_sensitive else name.lower() == other.lower()


def _written_since(metadata: TableMetadata, field_id: int) -> bool:
    """Return whether the newest snapshot was made with a schema that may lack a field."""
    snapshots = metadata.snapshots
    if not snapshots:
        return False
    written: Schema | None = schema_of(metadata, snapshots[-1])
    return written is None or not written.contains(field_id)


def given_default(field_type: IcebergType, value: Any, path: str) -> Any:
    """Return the internal value of a default that a caller gives.

    Dates, times, decimals and UUIDs may be those of Python, NumPy, pandas and Arrow, or text; a
    struct's default is ``{}`` or None.
    """
    try:
        found = _internal(field_type, value)
    except (KeyError, TypeError, ValueError) as error:
        raise ValidationError(
            f"Column {path!r} of type {field_type} cannot have the default {value!r}: "
            f"{reason_of(error)}",
            hint="Give a value of the column's type.",
            column=path,
        ) from error
    return checked_default(field_type, found, path)


def with_given_defaults(schema: Schema) -> Schema:
    """Return the schema with the defaults that a caller gives as internal values."""
    if not any(map(_has_default, walk(schema.as_struct()))):
        return schema
    fields = tuple(field_with_given_defaults(f) for f in schema.fields)
    return Schema(fields, schema.schema_id, schema.identifier_field_ids, schema.extra)


def field_with_given_defaults(field: NestedField, prefix: str = "") -> NestedField:
    """Return a field with its defaults, and those of the fields inside it, as internal values."""
    path = f"{prefix}{field.name}"
    kind = field.field_type
    if inside := children(kind):
        kind = with_children(kind, [field_with_given_defaults(f, f"{path}.") for f in inside])
    return replace(
        field,
        field_type=kind,
        initial_default=given_default(kind, field.initial_default, path),
        write_default=given_default(kind, field.write_default, path),
    )


def _has_default(field: NestedField) -> bool:
    return field.initial_default is not None or field.write_default is not None


def _internal(field_type: IcebergType, value: Any) -> Any:
    value = python_value(value)
    if value is None:
        return None
    if isinstance(field_type, StructType):
        given = _of(dict, value)
        types = {f.field_id: f.field_type for f in field_type.fields}
        return {field_id: _internal(types[field_id], each) for field_id, each in given.items()}
    if isinstance(field_type, ListType):
        return [_internal(field_type.element_type, each) for each in _of((list, tuple), value)]
    if isinstance(field_type, MapType):
        return {
            _internal(field_type.key_type, key): _internal(field_type.value_type, each)
            for key, each in _of(dict, value).items()
        }
    found = convert_literal(value, field_type)
    if not found.exact or found.above_all:
        raise ValueError("it is not exactly a value of the type")
    return found.floor


def _of(kind: type | tuple[type, ...], value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"it is of type {type(value).__name__}")
    return value
