"""Columns of variants: written to Parquet and Avro, read from files of others, shredded or not."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from datetime import date, datetime, time, timezone
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from icecomb.catalog import load_catalog
from icecomb.format import Variant, variants_from_arrow, variants_to_arrow
from icecomb.format.errors import (
    CorruptFileError,
    IcecombError,
    SchemaError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.rows.values.arrow_projection import Projection, file_fields
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    VariantType,
)

WRITTEN = ("parquet", "avro")
NESTED = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "v", VariantType()),
    NestedField(3, "s", StructType(NestedField(4, "w", VariantType(), required=True))),
    NestedField(5, "l", ListType(6, VariantType())),
    NestedField(7, "m", MapType(8, StringType(), 9, VariantType())),
)
VARIANT = pa.struct([pa.field("metadata", pa.binary()), pa.field("value", pa.binary())])
NONE, TRUE = (
    {"metadata": b"\x01\x00\x00", "value": b"\x00"},
    {"metadata": b"\x01\x00\x00", "value": b"\x04"},
)
"""A variant null, and true (Parquet: Variant Binary Encoding)."""
VALUES = [1, None, Variant.of(None), {"a": [1, "x"]}, Decimal("2.50")]


@pytest.fixture
def create(tmp_path):
    """Makes tables of version 3 in a folder."""
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")

    def make(schema=NESTED, **properties):
        known = {"format-version": "3", **{k.replace("_", "."): v for k, v in properties.items()}}
        return catalog.create_table("db.t", schema, properties=known)

    return make


def rows():
    """Variants at every depth: nulls around them, variant nulls in them."""
    inside = pa.StructArray.from_arrays(
        [variants_to_arrow([1, 1, Variant.of(None), [], "text"])],
        ["w"],
        mask=pa.array([True, False, False, False, True]),
    )
    lists = pa.ListArray.from_arrays(
        pa.array([0, 1, None, 3, 4, 4]), variants_to_arrow([1, None, {"b": 1}, 2])
    )
    maps = pa.MapArray.from_arrays(
        [0, 1, 1, 2, 2, 3], ["k", "l", "m"], variants_to_arrow([1, None, {"z": [1]}])
    )
    columns = {"id": range(5), "v": variants_to_arrow(VALUES), "s": inside, "l": lists, "m": maps}
    return pa.table(columns)


def by_id(table, **options):
    return table.scan(**options).to_arrow().sort_by("id").to_pylist()


def values(table, row_filter="true"):
    found = table.scan(row_filter).to_arrow().sort_by("id")
    return [v and v.to_python() for v in variants_from_arrow(found["v"])]


@pytest.mark.parametrize("file_format", WRITTEN)
def test_variants_of_every_depth_come_back(create, file_format):
    table = create(write_format_default=file_format)
    table.append(rows())
    assert by_id(table) == rows().to_pylist()
    assert table.scan().to_arrow().schema.equals(NESTED.as_arrow(), check_metadata=False)


@pytest.mark.parametrize("file_format", WRITTEN)
def test_rows_with_variants_are_changed_like_others(create, file_format):
    table = create(write_format_default=file_format)
    table.append(rows())
    before = by_id(table)
    table.delete("id = 3")
    changed = rows().slice(1, 1).set_column(1, "v", variants_to_arrow([{"new": True}]))
    assert table.upsert(changed, join_cols=["id"]).rows_updated == 1
    assert table.upsert(changed, join_cols=["id"]).rows_updated == 0
    table.overwrite(rows().slice(0, 1), "id = 0")
    expected = [before[0], changed.to_pylist()[0], before[2], before[4]]
    assert by_id(table) == expected
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    assert by_id(table) == expected
    with table.update_schema() as update:
        update.rename_column("v", "value")
    assert table.scan("value is not null").count() == 4


def test_rows_with_variants_are_merged(create):
    table = create(Schema(*NESTED.fields[:2]))
    table.append(pa.table({"id": [1, 2], "v": variants_to_arrow([1, {"a": 2}])}))
    before = table.current_snapshot().snapshot_id
    source = pa.table({"id": [2, 3], "v": variants_to_arrow(["new", None])})
    merge = table.merge(source, on="t.id = s.id").when_matched_update_all("t.id > 1")
    merge.when_not_matched_insert_all().execute()
    assert values(table) == [1, "new", None]
    changes = (
        table.changes(before)
        .to_arrow()
        .sort_by([("id", "ascending"), ("_change_type", "ascending")])
    )
    found = [v and v.to_python() for v in variants_from_arrow(changes["v"])]
    kinds = changes["_change_type"].to_pylist()
    assert list(zip(kinds, found, strict=True)) == [
        ("UPDATE_AFTER", "new"),
        ("UPDATE_BEFORE", {"a": 2}),
        ("INSERT", None),
    ]


def test_a_file_says_that_its_groups_are_variants(create):
    table = create()
    table.append(rows())
    table.append(rows().slice(0, 0))
    (path,) = table.inspect.files()["file_path"].to_pylist()
    parsed = pq.ParquetFile(path)
    text = str(parsed.schema)
    assert text.count("(Variant(1))") == 4
    assert text.count("required binary field_id=-1 metadata;") == 4
    assert parsed.metadata.num_rows == 5
    assert parsed.read(["id"]).num_rows == 5
    assert parsed.metadata.row_group(0).column(1).has_column_index


@pytest.mark.parametrize("file_format", WRITTEN)
def test_variants_are_tested_for_null_and_nothing_else(create, file_format):
    table = create(write_format_default=file_format)
    table.append(rows())
    assert [row["id"] for row in by_id(table, row_filter="v is null")] == [1]
    assert [row["id"] for row in by_id(table, row_filter="v is not null and id > 1")] == [2, 3, 4]
    assert [row["id"] for row in by_id(table, row_filter="s.w is null")] == [0, 4]
    (file,) = table.inspect.files().to_pylist()
    counts = {name: dict(file[name]) for name in ("value_counts", "null_value_counts")}
    inner = table.schema().find_field("s.w").field_id
    assert [(each[2], each[inner]) for each in counts.values()] == [(5, 5), (1, 2)]
    assert [i for i, _ in file["lower_bounds"] + file["upper_bounds"]] == [1, 1]
    table.append(rows().slice(1, 1))
    assert len(list(table.scan("v is not null").plan_files())) == 1
    for text in ("v = 'x'", "v in (1, 2)", "v is nan", "v like 'a%'", "s.w > 1"):
        with pytest.raises(UnsupportedError, match=r"values of type variant cannot be compared"):
            table.scan(text).to_arrow()
    table.delete("v is null")
    assert table.scan().count() == 4


def test_orc_files_hold_no_variants(create):
    table = create(write_format_default="orc")
    with pytest.raises(UnsupportedError, match="'v' is of type variant, which ORC files"):
        table.append(rows())
    assert table.current_snapshot() is None


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        (pa.array(['{"a": 1}']), "v: variant in the table, string in the data .*variants_to_arrow"),
        (pa.array([{"metadata": b"\1\0\0"}]), "v: variant in the table, struct<metadata"),
        (pa.array([{"metadata": b"", "value": b"\0"}]), "1 of its variants have no metadata"),
        (
            pa.array([{"metadata": b"\1\0\0", "value": None}], VARIANT),
            "1 of its variants have no value",
        ),
        (pa.array([{"value": b"\1\0\0", "metadata": b"\0"}]), "metadata of version 0, not 1"),
    ],
)
def test_what_is_not_a_variant_is_not_written(create, column, problem):
    table = create(Schema(NestedField(1, "v", VariantType())))
    with pytest.raises(SchemaError, match=problem):
        table.append(pa.table({"v": column}))


def test_other_binary_types_and_orders_of_the_parts_are_written(create):
    table = create(Schema(NestedField(1, "v", VariantType())))
    for kind in (pa.large_binary(), pa.binary_view()):
        parts = pa.array([{"value": b"\0", "metadata": b"\1\0\0"}, None])
        fields = [pa.field("value", kind), pa.field("metadata", pa.binary())]
        column = pa.StructArray.from_arrays(
            [parts.field(f.name).cast(f.type) for f in fields], fields=fields, mask=parts.is_null()
        )
        table.append(pa.table({"v": column}))
    plain = {"metadata": b"\1\0\0", "value": b"\0"}
    assert table.scan().to_arrow()["v"].to_pylist() == [plain, None, plain, None]


def read(column, name="v"):
    """A column of a file as the variants that it holds."""
    field = pa.field(name, column.type, metadata={"PARQUET:field_id": "2"})
    source = file_fields(pa.schema([field]), None, "/file")
    projection = Projection([NestedField(2, "v", VariantType())], source, {})
    found = projection.apply(pa.record_batch([column], [name]), 0).column(0)
    found.validate(full=True)
    return variants_from_arrow(found)


def test_files_of_other_writers_are_read_as_they_are_encoded(create, tmp_path):
    column = pa.array([NONE, None, TRUE], VARIANT)
    fields = [
        pa.field("before", pa.int64(), metadata={"PARQUET:field_id": "1"}),
        pa.field("v", column.type, metadata={"PARQUET:field_id": "2"}),
        pa.field("after", pa.int64(), metadata={"PARQUET:field_id": "3"}),
    ]
    numbers = pa.array(range(3), pa.int64())
    path = str(tmp_path / "given.parquet")
    pq.write_table(pa.table([numbers, column, numbers], schema=pa.schema(fields)), path)
    before, after = NestedField(1, "before", LongType()), NestedField(3, "after", LongType())
    table = create(Schema(before, NestedField(2, "v", VariantType()), after))
    table.add_files([path], check_duplicate_files=False)
    found = table.scan().to_arrow()
    assert found["v"].to_pylist() == [NONE, None, TRUE]
    assert found["after"].to_pylist() == found["before"].to_pylist() == [0, 1, 2]
    assert table.scan("after > 1", selected_fields=("v",)).to_arrow()["v"].to_pylist() == [TRUE]
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    assert table.scan().to_arrow().equals(found)


UTC = timezone.utc
SHREDDED = [
    (pa.bool_(), True),
    (pa.int8(), -5),
    (pa.int16(), 300),
    (pa.int32(), 70_000),
    (pa.int64(), -(1 << 40)),
    (pa.float64(), 1.5),
    (pa.string(), "ä" * 40),
    (pa.string(), "n/a"),
    (pa.binary(), b"\x00\x01"),
    (pa.decimal128(9, 2), Decimal("1234567.89")),
    (pa.decimal128(18, 4), Decimal("-12345678901234.5678")),
    (pa.decimal128(38, 10), Decimal("-1234567890123456789012345678.0123456789")),
    (pa.date32(), date(2024, 2, 29)),
    (pa.time64("us"), time(1, 2, 3, 4)),
    (pa.timestamp("us"), datetime.fromisoformat("2024-02-29T01:02:03")),
    (pa.timestamp("us", "UTC"), datetime(1969, 1, 1, tzinfo=UTC)),
    (pa.timestamp("ns"), pa.scalar(-1, pa.timestamp("ns"))),
    (pa.timestamp("ns", "UTC"), pa.scalar(1, pa.timestamp("ns", "UTC"))),
    (pa.uuid(), uuid.UUID(int=7)),
]


@pytest.mark.parametrize(("kind", "value"), SHREDDED, ids=str)
def test_shredded_values_of_every_type_are_put_together(kind, value):
    raw = value.bytes if kind == pa.uuid() else value
    typed = pa.array([raw, None, None, None], kind.storage_type if kind == pa.uuid() else kind)
    if kind == pa.uuid():
        typed = pa.ExtensionArray.from_storage(kind, typed)
    column = pa.StructArray.from_arrays(
        [pa.array([b"\1\0\0"] * 4), pa.array([None, b"\x04", b"\x00", None], pa.binary()), typed],
        ["metadata", "value", "typed_value"],
        mask=pa.array([False, False, False, True]),
    )
    for sliced in (column, column[1:], column[:1]):
        expected = [value, True, None, None][4 - len(column) + (len(sliced) == 3) :][: len(sliced)]
        assert [v and v.to_python() for v in read(sliced)] == expected
    assert read(column[2:])[0] == Variant.of(None)
    if not isinstance(value, (str, bytes)):
        narrow = Variant.of(pa.scalar(value, kind) if pa.types.is_integer(kind) else value)
        assert read(column)[0] == narrow
    missing = column.filter(pa.array([False] * 4))
    assert read(missing) == []


def group(kind):
    """The type of a shredded field."""
    return pa.struct([("value", pa.binary()), ("typed_value", kind)])


EVENT = pa.struct(
    [
        ("metadata", pa.binary()),
        ("value", pa.binary()),
        (
            "typed_value",
            pa.struct(
                [("event_type", group(pa.string())), ("event_ts", group(pa.timestamp("us", "UTC")))]
            ),
        ),
    ]
)
NOOP = {"event_type": {"typed_value": "noop"}}
MOMENT = datetime(2024, 10, 24, tzinfo=UTC)


def event(value, typed, *names):
    made = Variant.of(dict.fromkeys(("event_type", "event_ts", *names)))
    inner = None if value is None else Variant.of({**value, "event_type": 0, "event_ts": 0})
    assert inner is None or inner.metadata == made.metadata
    raw = None
    if inner is not None:
        # the object without the two fields, with the numbers of the whole dictionary
        order = sorted({"event_type", "event_ts", *names})
        parts = [Variant.of(value[name]).value for name in sorted(value)]
        ends = [sum(map(len, parts[:n])) for n in range(len(parts) + 1)]
        raw = bytes((2, len(parts), *(order.index(n) for n in sorted(value)), *ends)) + b"".join(
            parts
        )
    return {"metadata": made.metadata, "value": raw, "typed_value": typed}


def test_objects_are_put_together_as_the_tables_of_the_specification_say():
    """Parquet: Variant Shredding, Objects."""
    null = Variant.of(None).value
    text = Variant.of("malformed: not an object").value
    late = {"event_ts": {"typed_value": MOMENT}}
    rows_and_values = [
        (event(None, NOOP | late), {"event_type": "noop", "event_ts": MOMENT}),
        (
            event({"email": "user@example.com"}, NOOP | late, "email"),
            {"event_type": "noop", "event_ts": MOMENT, "email": "user@example.com"},
        ),
        (event({"error_msg": "malformed"}, {}, "error_msg"), {"error_msg": "malformed"}),
        ({**event(None, None), "value": text}, "malformed: not an object"),
        (event({"click": "_button"}, late, "click"), {"click": "_button", "event_ts": MOMENT}),
        (
            event(None, {"event_type": {"value": null}} | late),
            {"event_type": None, "event_ts": MOMENT},
        ),
        (
            event(None, NOOP | {"event_ts": {"value": Variant.of("2024-10-24").value}}),
            {"event_type": "noop", "event_ts": "2024-10-24"},
        ),
        (event(None, {}), {}),
        ({**event(None, None), "value": null}, None),
        (None, None),
    ]
    full = [
        row
        and row
        | {
            "typed_value": row["typed_value"]
            if row["typed_value"] is None
            else {"event_type": {}, "event_ts": {}} | row["typed_value"]
        }
        for row, _ in rows_and_values
    ]
    found = read(pa.array(full, EVENT))
    assert [v and v.to_python() for v in found] == [value for _, value in rows_and_values]
    assert found[8].value == null
    assert found[9] is None


TAGS = pa.struct(
    [
        ("metadata", pa.binary()),
        ("value", pa.binary()),
        ("typed_value", pa.list_(group(pa.string()))),
    ]
)


def test_arrays_are_put_together_as_the_table_of_the_specification_says():
    """Parquet: Variant Shredding, Arrays."""
    empty, null = b"\1\0\0", b"\0"

    def tag(text):
        return {"typed_value": text}

    given_rows = [
        {"metadata": empty, "typed_value": [tag("comedy"), tag("drama")]},
        {"metadata": empty, "typed_value": [tag("horror"), {"value": null}]},
        {"metadata": empty, "value": null},
        None,
        {"metadata": empty, "typed_value": []},
        {"metadata": empty, "typed_value": [{}]},
    ]
    column = pa.array(given_rows, TAGS)
    expected = [["comedy", "drama"], ["horror", None], None, None, [], [None]]
    assert [v and v.to_python() for v in read(column)] == expected
    assert [v and v.to_python() for v in read(column[1:5])] == expected[1:5]


def refused(metadata=b"\1\1\0\1a", value=None, typed=None, kind=None):
    kind = kind or pa.int64()
    fields = [("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", kind)]
    row = {"metadata": metadata, "value": value, "typed_value": typed}
    return pa.array([row], pa.struct(fields))


FIELD = pa.struct([("a", group(pa.int64()))])
BOTH = b"\x02\x01\x00\x00\x01\x00"
"""The object {"a": null}."""


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        (refused(value=b"\0", typed=5), "a value and a typed value that is not an object"),
        (refused(value=b"\0", typed={}, kind=FIELD), "shredded fields and a value that is not an"),
        (refused(value=BOTH, typed={"a": {}}, kind=FIELD), "the field 'a' is shredded, and in its"),
        (refused(b"\1\0\0", typed={"a": {"typed_value": 1}}, kind=FIELD), "lacks the name 'a'"),
        (refused(b"\1\2\0", value=b"\0"), "metadata of 3 bytes is too short for 2 names"),
        (refused(b"", value=b"\0"), "without metadata"),
        (refused(value=b"\x02\x02\x00\x00", typed={}, kind=FIELD), "reach beyond its end"),
        (refused(typed=5, kind=pa.uint32()), "uint32 is not a type of shredded values"),
        (refused(typed=b"1234", kind=pa.binary(4)), r"fixed_size_binary\[4\] is not a type"),
        (refused(typed={"a": 1}, kind=pa.struct([("a", pa.int64())])), "shredded field is int64"),
        (pa.array([{"metadata": b"x"}], pa.struct([VARIANT[0]])), "not a variant"),
        (pa.array([b"x"]), "is binary in the file, not a variant"),
        (pa.array([TRUE | {"value": None}], VARIANT), "without metadata or value"),
        (pa.array([TRUE | {"more": 1}]), "not a variant"),
    ],
)
def test_what_is_no_variant_in_a_file_is_refused_by_name(column, problem):
    with pytest.raises(CorruptFileError, match=rf"'v'.*?{problem}"):
        read(column)


def test_shredded_metadata_of_another_version_is_refused_by_name():
    with pytest.raises(UnsupportedError, match=r"'v'.*metadata of version 2"):
        read(refused(b"\2\0\0", value=b"\0"))


def test_a_shredded_variant_that_a_null_struct_hides_is_not_looked_at(tmp_path):
    inside = pa.struct([pa.field("metadata", pa.binary(), nullable=False), ("value", pa.binary()), ("typed_value", pa.int64())])  # fmt: skip
    kind = pa.struct([pa.field("w", inside, nullable=False, metadata={"PARQUET:field_id": "3"})])
    column = pa.array([None, {"w": {"metadata": b"\1\0\0", "typed_value": 5}}], kind)
    schema = pa.schema([pa.field("s", kind, metadata={"PARQUET:field_id": "2"})])
    pq.write_table(pa.table([column], schema=schema), tmp_path / "a.parquet")
    batch = pq.read_table(tmp_path / "a.parquet").to_batches()[0]
    source = file_fields(batch.schema, None, "/file")
    inner = StructType(NestedField(3, "w", VariantType(), required=True))
    found = Projection([NestedField(2, "s", inner)], source, {}).apply(batch, 0).column(0)
    assert found.is_valid().to_pylist() == [False, True]
    assert variants_from_arrow(found.field("w"))[1] == Variant.of(pa.scalar(5, pa.int64()))


def test_shredded_variants_in_lists_and_maps_are_put_together(tmp_path):
    inside = pa.struct([pa.field("metadata", pa.binary(), nullable=False), ("value", pa.binary()), ("typed_value", pa.int64())])  # fmt: skip
    typed, free = Variant.of(pa.scalar(5, pa.int64())), Variant.of({"a": "x"})
    five = {"metadata": typed.metadata, "typed_value": 5}
    rest = {"metadata": free.metadata, "value": free.value}

    def own(name, kind, number, **more):
        return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)}, **more)

    lists = pa.list_(own("element", inside, 3))
    maps = pa.map_(own("key", pa.string(), 5, nullable=False), own("value", inside, 6))
    structs = pa.struct([own("w", lists, 8)])
    schema = pa.schema([own("l", lists, 2), own("m", maps, 4), own("s", structs, 7)])
    rows = {
        "l": [[five, None, rest], None, []],
        "m": [[("a", rest), ("b", five)], [], None],
        "s": [{"w": [rest]}, {"w": None}, None],
    }
    structs = pa.struct([own("w", pa.list_(own("element", inside, 9)), 8)])
    schema = schema.set(2, own("s", structs, 7))
    columns = [pa.array(rows[field.name], field.type) for field in schema]
    pq.write_table(pa.table(columns, schema=schema), tmp_path / "a.parquet")
    batch = pq.read_table(tmp_path / "a.parquet").to_batches()[0]
    variants = ListType(9, VariantType())
    asked = [
        NestedField(2, "l", ListType(3, VariantType())),
        NestedField(4, "m", MapType(5, StringType(), 6, VariantType())),
        NestedField(7, "s", StructType((NestedField(8, "w", variants),))),
    ]
    source = file_fields(batch.schema, None, "/file")
    found = Projection(asked, source, {}).apply(batch, 0)
    for array, nulls in zip(found.columns, ([1], [2], [2]), strict=True):
        array.validate(full=True)
        assert pc.indices_nonzero(array.is_null()).to_pylist() == nulls
    assert variants_from_arrow(found["l"].flatten()) == [typed, None, free]
    assert variants_from_arrow(found["m"].items) == [free, typed]
    assert variants_from_arrow(found["s"].field("w").flatten()) == [free]


SHAPES = st.recursive(
    st.sampled_from([pa.int8(), pa.int64(), pa.string(), pa.bool_(), pa.float64(), None]),
    lambda inside: (
        st.dictionaries(st.sampled_from("abc"), inside, min_size=1, max_size=3)
        | st.lists(inside, min_size=1, max_size=1)
    ),
    max_leaves=5,
)
"""How a column is shredded: a type, none, fields, or the elements of a list."""
FREE = st.recursive(
    st.none() | st.integers(-3, 300) | st.text("xy", max_size=2) | st.booleans() | st.floats(-1, 1),
    lambda inside: (
        st.lists(inside, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inside, max_size=4)
    ),
    max_leaves=8,
)


def oracle_type(shape):
    """The Arrow type of a shredded field, by the definitions of the specification."""
    if shape is None:
        return pa.struct([("value", pa.binary())])
    if isinstance(shape, dict):
        kind = pa.struct([(name, oracle_type(inner)) for name, inner in shape.items()])
    else:
        kind = pa.list_(oracle_type(shape[0])) if isinstance(shape, list) else shape
    return group(kind)


def encoded(value, names):
    """The bytes of a value with the numbers of a dictionary of these names."""
    if isinstance(value, dict):
        parts = [encoded(value[name], names) for name in sorted(value)]
        ends = [sum(map(len, parts[:n])) for n in range(len(parts) + 1)]
        numbers = b"".join(end.to_bytes(4, "little") for end in ends)
        head = bytes((0b001110, len(parts), *(names.index(n) for n in sorted(value))))
        return head + numbers + b"".join(parts)
    if isinstance(value, list):
        parts = [encoded(each, names) for each in value]
        ends = [sum(map(len, parts[:n])) for n in range(len(parts) + 1)]
        numbers = b"".join(end.to_bytes(4, "little") for end in ends)
        return bytes((0b001111, len(parts))) + numbers + b"".join(parts)
    return Variant.of(value).value


def shred(value, shape, names):
    """A value in the columns of a shape, naively by the text of the specification."""
    if isinstance(shape, dict) and isinstance(value, dict):
        rest = {name: each for name, each in value.items() if name not in shape}
        typed = {
            name: shred(value[name], inner, names) if name in value else {"value": None}
            for name, inner in shape.items()
        }
        return {"value": encoded(rest, names) if rest else None, "typed_value": typed}
    if isinstance(shape, list) and isinstance(value, list):
        return {"value": None, "typed_value": [shred(each, shape[0], names) for each in value]}
    fits = {
        pa.int8(): type(value) is int and -128 <= value < 128,
        pa.int64(): type(value) is int,
        pa.string(): isinstance(value, str),
        pa.bool_(): isinstance(value, bool),
        pa.float64(): isinstance(value, float),
    }
    if isinstance(shape, pa.DataType) and fits[shape]:
        return {"value": None, "typed_value": value}
    return {"value": encoded(value, names)}


@given(SHAPES.filter(lambda shape: shape is not None), st.lists(FREE, min_size=1, max_size=6))
def test_values_shredded_in_any_shape_are_put_together(shape, given_values):
    names = list("abcd")
    metadata = bytes((1, 4, 0, 1, 2, 3, 4)) + b"abcd"
    inside = oracle_type(shape)
    kind = pa.struct([("metadata", pa.binary()), *inside])
    column = pa.array(
        [{"metadata": metadata, **shred(v, shape, names)} for v in given_values], kind
    )
    found = [v.to_python() for v in read(column)]
    assert repr_of(found) == repr_of(given_values)


def repr_of(value):
    """A text in which 1, True and 1.0 differ and names are sorted."""
    if isinstance(value, dict):
        return str(sorted((name, repr_of(each)) for name, each in value.items()))
    return str([repr_of(v) for v in value]) if isinstance(value, list) else repr(value)


def test_a_variant_is_no_value_for_a_partition(create):
    table = create()
    with pytest.raises((UnsupportedError, ValidationError), match="variant"), table.update_spec() as update:  # fmt: skip
        update.add_field("s.w", "bucket[4]", "w_bucket")


DUCKDB = """
select i as id, case
    when i %% 3 = 1 then ('text ' || i)::variant
    when i %% 3 = 2 then null
    else {'a': i, 'b': [i, null], 'd': date '2024-01-01', 'e': 1.5::decimal(9, 2), 'n': {'q': i * 0.5::double}}::variant
end as v from range(9) as t(i) where i %% 3 = 0 or not %s
"""


@pytest.mark.parametrize("uniform", [False, True], ids=["mixed", "uniform"])
def test_what_duckdb_shredded_is_read(create, tmp_path, uniform):
    path = str(tmp_path / "duckdb.parquet")
    duckdb.connect().execute(f"copy ({DUCKDB % uniform}) to '{path}' (format parquet)")
    assert "typed_value" in str(pq.ParquetFile(path).schema)
    table = create(Schema(*NESTED.fields[:2]))
    table.add_files([path])
    found = table.scan().to_arrow()
    expected = [
        {"a": i, "b": [i, None], "d": date(2024, 1, 1), "e": Decimal("1.50"), "n": {"q": i * 0.5}}
        if i % 3 == 0
        else f"text {i}"
        if i % 3 == 1
        else None
        for i in range(9)
        if i % 3 == 0 or not uniform
    ]
    assert [v and v.to_python() for v in variants_from_arrow(found["v"])] == expected
    # DuckDB 1.5 writes a null as a variant null
    nulls = 0 if duckdb.__version__ < "2" else expected.count(None)
    assert table.scan("v is null").count() == nulls


def test_variants_are_written_whole_whatever_the_table_says(create):
    """Iceberg Java shreds where this property says so; readers take either."""
    table = create()
    with table.update_properties() as update:
        update.set("write.parquet.shred-variants", "true")
    table.append(rows())
    (path,) = table.inspect.files()["file_path"].to_pylist()
    assert "typed_value" not in str(pq.ParquetFile(path).schema)


def test_members_that_overlap_are_refused():
    column = refused(value=b"\x02\x02\x00\x01\x00\x00\x02\x0c\x01", typed={"c": {}}, metadata=b"\1\3\0\1\2\3abc", kind=pa.struct([("c", group(pa.int64()))]))  # fmt: skip
    with pytest.raises(CorruptFileError, match="share bytes"):
        read(column)


def outcome(operation, argument):
    """Whether it was read, or refused by a named error."""
    try:
        operation(argument)
    except IcecombError:
        return "refused"
    return "read"


ROUNDS = [500, pytest.param(100_000, marks=pytest.mark.full("takes minutes"))]


@pytest.mark.parametrize("rounds", ROUNDS)
def test_mutated_columns_are_values_or_named_errors(rounds):
    draw = random.Random(11)
    objects = [
        {"a": 1, "b": ["x", {"c": Decimal("1.5")}], "d": {"e": None}},
        [1, "y", {"a": 2}],
        "text",
    ]
    names = list("abcde")
    metadata = bytes((1, 5, 0, 1, 2, 3, 4, 5)) + b"abcde"
    seeds = [encoded(value, names) for value in objects]
    kind = {"a": pa.int64(), "d": {"e": pa.string()}}
    outcomes = Counter()
    for _ in range(rounds):
        value = bytearray(draw.choice(seeds))
        known = bytearray(metadata)
        for data in (value, known) if draw.random() < 0.2 else (value,):
            for _ in range(draw.randint(1, 3)):
                data[draw.randrange(len(data))] = draw.choice([0, 1, 255, draw.randrange(256)])
        row = {"metadata": bytes(known), "value": bytes(value)}
        typed = {"a": {"typed_value": 5}, "d": {"typed_value": {"e": {"typed_value": "z"}}}}
        column = pa.array(
            [row | {"typed_value": typed if draw.random() < 0.3 else None}],
            pa.struct([("metadata", pa.binary()), *oracle_type(kind)]),
        )
        outcomes[outcome(read, column)] += 1
    assert outcomes["read"] > rounds / 10
    assert outcomes["refused"] > rounds / 10
