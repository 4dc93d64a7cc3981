"""Sort orders: the order of rows within files (spec: Sorting)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar, overload

from icecomb.format.argument import checked_int, checked_members, members_or_named
from icecomb.format.errors import ValidationError
from icecomb.format.spec.partition import source_id, source_members, source_name, transform_of
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import (
    IdentityTransform,
    Transform,
    as_transform,
)
from icecomb.format.spec.values.json_object import extra_field, required, unknown_members

UNSORTED_SORT_ORDER_ID = 0
INITIAL_SORT_ORDER_ID = 1
_FIELD = frozenset(("transform", "source-id", "direction", "null-order"))
_ORDER = frozenset(("order-id", "fields"))


class SortDirection(Enum):
    """The direction of a sort field: ascending or descending."""

    ASC = "asc"
    DESC = "desc"


class NullOrder(Enum):
    """The position of nulls in a sort order."""

    NULLS_FIRST = "nulls-first"
    NULLS_LAST = "nulls-last"


@dataclass(frozen=True, slots=True)
class SortField:
    """One key of a sort order.

    Args:
        source_id: The id of the column, the first one if `extra` has several `source-ids`.
        transform: The transform of the values before they are compared, or its text.
        direction: Ascending or descending, or ``"asc"``, ``"desc"``.
        null_order: The position of nulls; None means first if ascending, last if descending.
        extra: Members that icecomb does not know; they are written back.

    Raises:
        ValidationError: If a member is of the wrong type.
    """

    source_id: int
    transform: Transform = IdentityTransform()  # noqa: RUF009
    direction: SortDirection = SortDirection.ASC
    null_order: NullOrder | None = None
    extra: Mapping[str, Any] = extra_field()

    if TYPE_CHECKING:  # transform, direction and null order may also be given by their texts

        def __init__(
            self,
            source_id: int,
            transform: Transform | str = ...,
            direction: SortDirection | str = ...,
            null_order: NullOrder | str | None = ...,
            extra: Mapping[str, Any] = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "source_id", checked_int("source_id of a sort field", self.source_id))
        put(self, "transform", as_transform(self.transform))
        put(self, "direction", _one_of(SortDirection, self.direction))
        if self.null_order is not None:
            put(self, "null_order", _one_of(NullOrder, self.null_order))
        else:
            upwards = self.direction is SortDirection.ASC
            natural = NullOrder.NULLS_FIRST if upwards else NullOrder.NULLS_LAST
            put(self, "null_order", natural)

    def __str__(self) -> str:
        nulls = (self.null_order or NullOrder.NULLS_FIRST).value.replace("-", " ")
        return f"{self.transform}({self.source_id}) {self.direction.value} {nulls}"

    def to_json(self) -> dict[str, Any]:
        """Return the field as in metadata files."""
        return {
            "transform": self.transform.to_json(),
            **source_members(self),
            "direction": self.direction.value,
            "null-order": (self.null_order or NullOrder.NULLS_FIRST).value,
            **self.extra,
        }

    @classmethod
    def from_json(cls, raw: Any) -> SortField:
        """Read a field.

        Raises:
            ValidationError: If a member is missing or has the wrong shape.
        """
        transform = required(raw, "transform", str, "sort field")
        return cls(
            source_id(raw, "sort field"),
            transform_of(raw, transform),
            _one_of(SortDirection, raw.get("direction")),
            _one_of(NullOrder, raw.get("null-order")),
            unknown_members(raw, _FIELD),
        )


@dataclass(frozen=True, slots=True, init=False)
class SortOrder:
    """The order of rows within files.

    The keys can also be given one by one: `SortOrder(first, second)` is an order of id 1.

    Args:
        order_id: The number of this order among the table's orders; 0 is always unsorted.
        fields: The keys, most significant first.
        extra: Members that icecomb does not know; they are written back.

    Raises:
        ValidationError: If an argument is of the wrong type.
    """

    order_id: int = UNSORTED_SORT_ORDER_ID
    fields: tuple[SortField, ...] = ()
    extra: Mapping[str, Any] = extra_field()

    @overload
    def __init__(self, *fields: SortField, order_id: int = INITIAL_SORT_ORDER_ID) -> None: ...

    @overload
    def __init__(
        self,
        order_id: int = UNSORTED_SORT_ORDER_ID,
        fields: Iterable[SortField] = (),
        extra: Mapping[str, Any] | None = None,
    ) -> None: ...

    def __init__(self, *args: Any, **more: Any) -> None:
        names = ("order_id", "fields", "extra")
        given = members_or_named("SortOrder", names, SortField, args, more)
        one_by_one = "order_id" not in given and "fields" not in more and bool(args)
        default = INITIAL_SORT_ORDER_ID if one_by_one else UNSORTED_SORT_ORDER_ID
        order_id, fields = given.get("order_id", default), given.get("fields", ())
        put = object.__setattr__
        put(self, "order_id", checked_int("id of a sort order", order_id))
        put(self, "fields", checked_members("fields of a sort order", fields, SortField))
        put(self, "extra", given.get("extra") or {})

    def __str__(self) -> str:
        return "[" + "".join(f"\n  {f}" for f in self.fields) + ("\n]" if self.fields else "]")

    @property
    def is_sorted(self) -> bool:
        """True if there is any key."""
        return bool(self.fields)

    @property
    def is_unsorted(self) -> bool:
        """True if there is no key."""
        return not self.fields

    def satisfies(self, other: SortOrder) -> bool:
        """Return whether rows in this order are also in the other."""
        if len(other.fields) > len(self.fields):
            return False
        return all(
            mine.source_id == theirs.source_id
            and mine.direction is theirs.direction
            and mine.null_order is theirs.null_order
            and mine.transform.satisfies_order_of(theirs.transform)
            for mine, theirs in zip(self.fields, other.fields, strict=False)
        )

    def check(self, schema: Schema) -> None:
        """Validate the order for a schema.

        Raises:
            ValidationError: If a source is missing, or a transform does not fit its type.
        """
        if self.order_id == UNSORTED_SORT_ORDER_ID and self.fields:
            raise ValidationError(
                "Sort order 0 is the unsorted order and has no fields",
                hint="Give another order id, or no fields.",
            )
        for f in self.fields:
            source_name(schema, f.source_id, f"Sort field {f}")
            f.transform.check(schema.find_type(f.source_id), schema.find_column_name(f.source_id))

    def to_json(self) -> dict[str, Any]:
        """Return the order as in metadata files."""
        fields = [f.to_json() for f in self.fields]
        return {"order-id": self.order_id, "fields": fields, **self.extra}

    @classmethod
    def from_json(cls, raw: Any) -> SortOrder:
        """Read an order.

        Raises:
            ValidationError: If a member is missing or has the wrong shape.
        """
        order_id = required(raw, "order-id", int, "sort order")
        fields = required(raw, "fields", list, "sort order")
        return cls(order_id, map(SortField.from_json, fields), unknown_members(raw, _ORDER))


UNSORTED_SORT_ORDER = SortOrder()
_E = TypeVar("_E", bound=Enum)


def _one_of(kind: type[_E], given: Any) -> _E:
    """Return a member of an enumeration, given itself, by its value, or as PyIceberg's."""
    if isinstance(given, Enum) and not isinstance(given, kind):
        given = given.value
    try:
        return kind(given.lower() if isinstance(given, str) else given)
    except ValueError:
        known = ", ".join(str(one.value) for one in kind)
        raise ValidationError(
            f"Invalid sort field: {given!r} is none of {known}", hint="Use one of these."
        ) from None


def assign_fresh_sort_order_ids(
    order: SortOrder, old_schema: Schema, fresh_schema: Schema
) -> SortOrder:
    """Return the sort order for a new table: sources by name in the new schema, with id 1.

    An unsorted order keeps its id 0.
    """
    if order.is_unsorted:
        return UNSORTED_SORT_ORDER
    fields = []
    for f in order.fields:
        name = source_name(old_schema, f.source_id, f"Sort field {f}")
        fields.append(replace(f, source_id=fresh_schema.find_field(name).field_id))
    return SortOrder(INITIAL_SORT_ORDER_ID, tuple(fields))
