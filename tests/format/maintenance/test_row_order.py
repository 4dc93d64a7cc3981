"""Orders of rows as text."""

from __future__ import annotations

import pytest

from icecomb.format.errors import ValidationError
from icecomb.format.maintenance.row_order import parse_order
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    ListType,
    LongType,
    NestedField,
    StructType,
    VariantType,
)

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "v", VariantType()),
    NestedField(3, "l", ListType(4, LongType())),
    NestedField(5, "s", StructType(NestedField(6, "a", LongType()))),
)


def test_columns_and_fields_of_structs_are_in_order():
    fields = parse_order("s.a DESC, id", SCHEMA).fields
    assert [(f.source_id, f.direction.name) for f in fields] == [(6, "DESC"), (1, "ASC")]


@pytest.mark.parametrize(
    ("column", "kind"), [("v", "variant"), ("l", "list<long>"), ("s", "struct<")]
)
def test_values_without_order_are_refused(column, kind):
    with pytest.raises(ValidationError, match=rf"{column} is a {kind}.*which has no order"):
        parse_order(f"id, {column}", SCHEMA)
