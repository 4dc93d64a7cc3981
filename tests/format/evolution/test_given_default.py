"""Defaults of columns through the schema update: given as Python values, kept by evolution, refused where they cannot be."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.schema import Schema as PeerSchema
from pyiceberg.types import DateType as PeerDateType, NestedField as PeerNestedField

from icecomb.format.errors import SchemaError, UnsupportedError, ValidationError
from icecomb.format.evolution.schema_edit import given_default, with_given_defaults
from icecomb.format.evolution.schema_update import UpdateSchema
from icecomb.format.spec.change.update import update_table_metadata
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema, as_schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

NOON = dt.datetime(2017, 11, 16, 12)  # noqa: DTZ001
MICROS = 1510833600000000
POINT = StructType((NestedField(2, "x", IntegerType()), NestedField(3, "y", IntegerType())))
SCHEMA = Schema((NestedField(1, "id", LongType()), NestedField(2, "place", POINT)))
ID = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")


def table(version=3, schema=SCHEMA):
    properties = {"format-version": str(version)}
    return new_table_metadata(schema, PartitionSpec(), UNSORTED_SORT_ORDER, "/t", properties)


def evolved(base, change, **options):
    update = UpdateSchema(base, **options)
    change(update)
    return update_table_metadata(base, update.apply(base).updates)


@pytest.mark.parametrize(
    ("kind", "given", "internal"),
    [
        (BooleanType(), True, True),
        (IntegerType(), np.int64(7), 7),
        (LongType(), "7", 7),
        (FloatType(), 0.5, 0.5),
        (DoubleType(), 3, 3.0),
        (DecimalType(9, 2), "1.5", Decimal("1.50")),
        (DecimalType(9, 2), Decimal("1.500"), Decimal("1.50")),
        (DateType(), dt.date(2017, 11, 16), 17486),
        (DateType(), 17486, 17486),
        (TimeType(), dt.time(0, 0, 1), 1000000),
        (TimestampType(), NOON, MICROS),
        (TimestampType(), pa.scalar(NOON), MICROS),
        (TimestamptzType(), NOON.replace(tzinfo=dt.timezone.utc), MICROS),
        (TimestamptzType(), "2017-11-16T13:00:00+01:00", MICROS),
        (StringType(), "x", "x"),
        (UUIDType(), str(ID), ID),
        (FixedType(2), bytearray(b"ab"), b"ab"),
        (BinaryType(), b"", b""),
        (POINT, {}, {}),
        (ListType(2, DateType()), [dt.date(1970, 1, 2), None], [1, None]),
        (MapType(2, StringType(), 3, LongType()), {"a": "1"}, {"a": 1}),
        (LongType(), None, None),
    ],
    ids=str,
)
def test_a_default_is_given_as_a_python_value(kind, given, internal):
    found = given_default(kind, given, "c")
    assert found == internal
    assert type(found) is type(internal)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (IntegerType(), 1 << 31),
        (IntegerType(), 1.5),
        (LongType(), "many"),
        (FloatType(), 1e39),
        (DoubleType(), float("inf")),
        (DecimalType(3, 2), "12.34"),
        (DecimalType(9, 2), "1.234"),
        (DateType(), NOON),
        (TimestamptzType(), NOON),
        (StringType(), 1),
        (FixedType(2), b"abc"),
        (POINT, {2: 1}),
        (POINT, {"x": 1}),
        (POINT, [1, 2]),
        (ListType(2, StringType()), "ab"),
        (MapType(2, StringType(), 3, LongType()), [("a", 1)]),
    ],
    ids=str,
)
def test_what_is_not_exactly_a_value_of_the_column_is_refused(kind, given):
    with pytest.raises(ValidationError, match=r"Column 'c' .*cannot have the default"):
        given_default(kind, given, "c")


def test_a_column_is_added_with_a_default_for_older_and_later_rows():
    after = evolved(
        table(),
        lambda u: (
            u.add_column("day", "date", default_value=dt.date(1970, 1, 2))
            .add_column("need", "int", required=True, default_value=5)
            .add_column("place.z", "int", default_value=6)
        ),
    ).schema()
    defaults = {n: after.find_field(n) for n in ("day", "need", "place.z")}
    assert {n: f.initial_default for n, f in defaults.items()} == {
        "day": 1,
        "need": 5,
        "place.z": 6,
    }
    assert {n: f.write_default for n, f in defaults.items()} == {"day": 1, "need": 5, "place.z": 6}
    assert after.find_field("need").required


def test_a_struct_is_added_with_the_defaults_of_its_fields():
    inner = NestedField(9, "day", DateType(), initial_default=dt.date(1970, 1, 2))
    base = evolved(table(), lambda u: u.add_column("s", StructType((inner,)), default_value={}))
    assert base.schema().find_field("s").write_default == {}
    assert base.schema().find_field("s.day").initial_default == 1


def test_the_write_default_changes_and_the_initial_default_stays():
    base = evolved(table(), lambda u: u.add_column("x", "int", default_value=5))
    later = evolved(base, lambda u: u.set_default_value("x", 6)).schema().find_field("x")
    assert (later.initial_default, later.write_default) == (5, 6)
    none = evolved(base, lambda u: u.set_default_value("x", None)).schema().find_field("x")
    assert (none.initial_default, none.write_default) == (5, None)
    with pytest.raises(ValidationError, match="'x'"):
        UpdateSchema(base).set_default_value("x", "many")
    lists = table(schema=Schema((NestedField(1, "li", ListType(2, LongType())),)))
    with pytest.raises(SchemaError, match="fixed parts"):
        UpdateSchema(lists).set_default_value("li.element", 1)


def test_a_column_added_in_the_same_update_gets_another_write_default():
    """As by Iceberg Java's SchemaUpdate.updateColumnDefault, which finds added columns, too."""

    def change(update):
        update.add_column("x", "int", default_value=5).add_column(("place", "z"), "int")
        update.set_default_value("x", 6).set_default_value("place.z", 7).set_default_value("id", 8)

    place = NestedField(2, "place", StructType((NestedField(3, "y", LongType()),)))
    base = table(schema=Schema((NestedField(1, "id", LongType()), place)))
    after = evolved(base, change).schema()
    defaults = {
        name: (after.find_field(name).initial_default, after.find_field(name).write_default)
        for name in ("x", "place.z", "id", "place.y")
    }
    assert defaults == {"x": (5, 6), "place.z": (None, 7), "id": (None, 8), "place.y": (None, None)}
    with pytest.raises(SchemaError, match="default of required column 'y'"):
        evolved(
            base,
            lambda u: u.add_column("y", "int", required=True, default_value=1).set_default_value(
                "y", None
            ),
        )
    with pytest.raises(ValidationError, match="'y'"):
        evolved(base, lambda u: u.add_column("y", "int").set_default_value("y", "many"))


def test_a_required_column_keeps_a_default_unless_that_is_allowed():
    base = evolved(table(), lambda u: u.add_column("x", "int", required=True, default_value=5))
    with pytest.raises(SchemaError, match="'x'"):
        UpdateSchema(base).set_default_value("x", None)
    free = evolved(base, lambda u: u.set_default_value("x", None), allow_incompatible_changes=True)
    assert free.schema().find_field("x").write_default is None
    with pytest.raises(SchemaError, match="with a default value"):
        UpdateSchema(base).add_column("y", "int", required=True)


def test_renaming_moving_and_promoting_keep_the_defaults():
    base = evolved(
        table(),
        lambda u: (
            u.add_column("i", "int", default_value=7)
            .add_column("f", "float", default_value=0.1)
            .add_column("d", "decimal(5, 2)", default_value="1.5")
        ),
    )
    after = evolved(
        base,
        lambda u: (
            u.update_column("i", "long")
            .rename_column("i", "j")
            .update_column("f", "double")
            .update_column("d", "decimal(9, 2)")
            .move_first("d")
        ),
    ).schema()
    assert (after.find_field("j").field_type, after.find_field("j").initial_default) == (
        LongType(),
        7,
    )
    # a file with the float has this double in it, too
    assert after.find_field("f").write_default == float(np.float32(0.1))
    assert after.find_field("d").initial_default == Decimal("1.50")
    assert Schema.from_json(after.to_json()) == after


@pytest.mark.parametrize("version", [1, 2])
def test_versions_before_3_refuse_defaults_and_say_how_to_get_them(version):
    for change in (
        lambda u: u.add_column("x", "int", default_value=5),
        lambda u: u.set_default_value("id", 5),
        lambda u: u.union_by_name(Schema((NestedField(9, "x", IntegerType(), write_default=5),))),
    ):
        with pytest.raises(UnsupportedError, match=f"has version {version}") as caught:
            change(UpdateSchema(table(version)))
        assert "format-version" in caught.value.hint


def test_a_union_by_name_brings_defaults():
    new = Schema(
        (
            NestedField(7, "id", LongType(), initial_default=1, write_default=2),
            NestedField(8, "x", DateType(), initial_default=dt.date(1970, 1, 2), write_default=3),
        )
    )
    after = evolved(table(), lambda u: u.union_by_name(new)).schema()
    assert (after.find_field("id").initial_default, after.find_field("id").write_default) == (
        None,
        2,
    )
    assert (after.find_field("x").initial_default, after.find_field("x").write_default) == (1, 3)


def test_a_schema_of_pyiceberg_brings_its_defaults():
    peer = PeerSchema(
        PeerNestedField(1, "d", PeerDateType(), required=False, initial_default=dt.date(1970, 1, 2))
    )
    assert with_given_defaults(as_schema(peer, 2)).fields[0].initial_default == 1
