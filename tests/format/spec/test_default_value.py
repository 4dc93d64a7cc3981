"""Defaults of a schema: values of their types, in versions that have them, and never changed for older rows."""

import pytest

from icecomb.format.errors import SchemaError, UnsupportedError, ValidationError
from icecomb.format.spec.default_value import check_defaults
from icecomb.format.spec.schema import Schema, assign_fresh_schema_ids
from icecomb.format.spec.types import (
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
)

POINT = StructType((NestedField(2, "x", IntegerType()),))


def schema(kind, initial=None, write=None):
    return Schema((NestedField(1, "c", kind, initial_default=initial, write_default=write),))


def test_a_default_is_shown_in_text():
    assert (
        str(schema(LongType(), 7, 8).fields[0]) == "1: c: optional long default 8, in older rows 7"
    )
    assert str(schema(DateType(), 0, 0).fields[0]) == '1: c: optional date default "1970-01-01"'
    assert (
        str(schema(LongType(), 7).fields[0]) == "1: c: optional long default null, in older rows 7"
    )
    assert str(schema(LongType()).fields[0]) == "1: c: optional long"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (IntegerType(), 1 << 31),
        (IntegerType(), True),
        (LongType(), "1"),
        (DoubleType(), float("nan")),
        (DecimalType(3, 2), 1.5),
        (DateType(), "2024-01-01"),
        (FixedType(2), b"abc"),
        (StringType(), b"a"),
        (POINT, {2: 1}),
        (ListType(2, IntegerType(), element_required=True), [None]),
        (ListType(2, IntegerType()), 5),
    ],
    ids=str,
)
def test_a_default_that_is_no_value_of_its_type_is_refused_by_the_name_of_the_column(kind, value):
    for one in (schema(kind, initial=value), schema(kind, write=value)):
        with pytest.raises(ValidationError, match=r"Column 'c' of type .* cannot have the default"):
            check_defaults(one, 3)


def test_metadata_with_values_in_the_default_of_a_struct_is_refused():
    raw = schema(POINT).to_json()
    raw["fields"][0]["initial-default"] = {}
    assert Schema.from_json(raw).fields[0].initial_default == {}
    raw["fields"][0]["initial-default"] = {"2": 1}
    with pytest.raises(SchemaError, match="values of fields"):
        Schema.from_json(raw)


def test_the_default_of_a_struct_is_made_of_those_of_its_required_fields():
    inner = NestedField(2, "x", IntegerType(), required=True, initial_default=1)
    check_defaults(schema(StructType((inner,)), {}), 3)
    with pytest.raises(ValidationError, match=r"'c' cannot .* 'x' is required"):
        check_defaults(schema(StructType((inner,)), {}, {}), 3)


@pytest.mark.parametrize("version", [1, 2])
def test_versions_before_3_keep_the_defaults_of_others_and_get_no_new_ones(version):
    old = schema(LongType(), 7, 8)
    check_defaults(old, version, old)
    for new in (schema(LongType(), 7, 9), schema(LongType(), 7)):
        with pytest.raises(UnsupportedError, match=r"'c'.*version 3") as caught:
            check_defaults(new, version, old)
        assert "format-version" in caught.value.hint
    check_defaults(old, 3)


def test_an_initial_default_never_changes_and_a_write_default_may():
    old = schema(IntegerType(), 7, 7)
    check_defaults(schema(IntegerType(), 7, 8), 3, old)
    check_defaults(schema(LongType(), 7, None), 3, old)
    for initial in (8, None):
        with pytest.raises(ValidationError, match="initial default of column 'c' cannot change"):
            check_defaults(schema(IntegerType(), initial, 7), 3, old)
    with pytest.raises(ValidationError, match="cannot change from None to 7"):
        check_defaults(schema(IntegerType(), 7, 7), 3, schema(IntegerType()))


def test_the_columns_of_a_replaced_table_keep_their_initial_defaults():
    old = schema(IntegerType(), 7, 7)
    kept = assign_fresh_schema_ids(schema(LongType(), write=9), old, 5)
    assert kept.fields == schema(LongType(), 7, 9).fields
    assert assign_fresh_schema_ids(schema(LongType(), 7), old, 5).fields[0].field_id == 1
    (other,) = assign_fresh_schema_ids(schema(LongType(), 8, 8), old, 5).fields
    assert (other.field_id, other.initial_default) == (6, 8)
