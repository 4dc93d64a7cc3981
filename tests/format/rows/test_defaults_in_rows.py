"""Columns that data files lack: read with their initial default at every depth, filtered, pruned, counted and deleted by it."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from uuid import UUID, uuid4

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.avro.schema import avro_schema
from icecomb.format.errors import CorruptFileError, SchemaError, ValidationError
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.scan.file_aggregates import Aggregate, AggregateFunction
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import IdentityTransform
from icecomb.format.spec.types import (
    BinaryType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter

FORMATS = ("parquet", "orc", "avro")
ID = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "s", StructType(NestedField(3, "a", LongType()))),
    NestedField(4, "l", ListType(5, StructType(NestedField(6, "p", LongType())))),
    NestedField(7, "m", MapType(8, StringType(), 9, StructType(NestedField(10, "q", LongType())))),
)
OLD = pa.table(
    {
        "id": [1, 2, 3],
        "s": [{"a": 1}, None, {"a": None}],
        "l": [[{"p": 1}, None], [], None],
        "m": pa.array([[("k", {"q": 1})], [("k", None)], None], SCHEMA.as_arrow().field("m").type),
    }
)
TIME = dt.datetime(2024, 1, 31, 12, 0, 0, 1)  # noqa: DTZ001
ADDED = {
    "b": ("boolean", True),
    "i": ("int", -7),
    "n": ("long", 1 << 40),
    "f": ("float", 0.5),
    "d": ("double", 0.1),
    "dec": ("decimal(20, 3)", Decimal("1.500")),
    "day": ("date", dt.date(2024, 1, 31)),
    "t": ("time", dt.time(12, 0, 0, 1)),
    "ts": ("timestamp", TIME),
    "tz": ("timestamptz", TIME.replace(tzinfo=dt.timezone.utc)),
    "t_x": ("string", "ä"),
    "u": ("uuid", ID),
    "fx": ("fixed[2]", b"\x00\xff"),
    "bin": ("binary", b"\xfe"),
    "days": (ListType(1, StringType()), ["a", None]),
    "by": (MapType(1, StringType(), 2, BinaryType()), {"k": b"v"}),
    "st": (
        StructType(
            NestedField(1, "k", LongType(), initial_default=4, write_default=5),
            NestedField(2, "none", LongType()),
        ),
        {},
    ),
}
"""The type and the default of each added column."""


@pytest.fixture
def catalog(tmp_path):
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    return catalog


def created(catalog, file_format="parquet", schema=SCHEMA, rows=OLD, **options):
    properties = {"format-version": "3", "write.format.default": file_format}
    table = catalog.create_table("db.t", schema, properties=properties, **options)
    table.append(rows)
    return table


def added(table, **columns):
    with table.update_schema() as update:
        for name, (kind, default) in columns.items():
            update.add_column(tuple(name.split("__")), kind, default_value=default)
    return table


def rows_of(table, where=None):
    scan = table.scan() if where is None else table.scan(where)
    return sorted(scan.to_arrow().to_pylist(), key=lambda row: row["id"])


def ids(table, where):
    found = table.scan(where)
    kept = sorted(found.to_arrow()["id"].to_pylist())
    assert found.count() == len(kept)
    return kept


@pytest.mark.parametrize("file_format", FORMATS)
def test_old_rows_have_the_initial_default_of_every_type(catalog, file_format):
    table = added(created(catalog, file_format), **ADDED)
    shown = {name: default for name, (_, default) in ADDED.items()}
    shown |= {"by": [("k", b"v")], "st": {"k": 4, "none": None}}
    assert [{n: row[n] for n in shown} for row in rows_of(table)] == [shown] * 3


@pytest.mark.parametrize("file_format", FORMATS)
def test_old_rows_have_the_defaults_of_fields_inside_structs_lists_and_maps(catalog, file_format):
    table = added(
        created(catalog, file_format), s__x=("long", 7), l__y=("date", 1), m__z=("string", "z")
    )
    day = dt.date(1970, 1, 2)
    assert [[row[n] for n in ("s", "l", "m")] for row in rows_of(table)] == [
        [{"a": 1, "x": 7}, [{"p": 1, "y": day}, None], [("k", {"q": 1, "z": "z"})]],
        [None, [], [("k", None)]],
        [{"a": None, "x": 7}, None, None],
    ]
    # old files have none of the fields that are left, but tell where a struct is null
    with table.update_schema() as update:
        update.delete_column("s.a").delete_column("l.element.p").delete_column("m.value.q")
    assert [[row[n] for n in ("s", "l", "m")] for row in rows_of(table)] == [
        [{"x": 7}, [{"y": day}, None], [("k", {"z": "z"})]],
        [None, [], [("k", None)]],
        [{"x": 7}, None, None],
    ]
    assert ids(table, "s.x = 7") == [1, 3]
    assert ids(table, "s.x is null") == [2]


@pytest.mark.parametrize("file_format", FORMATS)
def test_rows_without_a_value_get_the_write_default_and_null_stays_null(catalog, file_format):
    table = added(created(catalog, file_format), **ADDED, s__x=("long", 7))
    with table.update_schema() as update:
        update.set_default_value("i", 8).set_default_value("day", None).set_default_value("s.x", 9)
    table.append(pa.table({"id": [4], "s": [{"a": 1}]}))
    nulls = table.schema().as_arrow().empty_table().schema
    table.append(pa.Table.from_pylist([{"id": 5}], schema=nulls))
    *_, without, null = rows_of(table)
    expected = {name: default for name, (_, default) in ADDED.items()}
    expected |= {"i": 8, "day": None, "by": [("k", b"v")], "st": {"k": 5, "none": None}}
    assert {n: without[n] for n in expected} == expected
    assert without["s"] == {"a": 1, "x": 9}
    assert null == dict.fromkeys(null) | {"id": 5}


FILTERS = {
    "x = 7": [1, 2, 3],
    "x = 8": [4],
    "x <> 7": [4, 6],
    "x < 8": [1, 2, 3, 6],
    "x <= 6": [6],
    "x >= 7": [1, 2, 3, 4],
    "x in (6, 7)": [1, 2, 3, 6],
    "x not in (6, 7)": [4],
    "x is null": [5],
    "x is not null": [1, 2, 3, 4, 6],
    "x is null or x = 7": [1, 2, 3, 5],
    "not (x = 7)": [4, 6],
    "x = 7 and id > 1": [2, 3],
    "t like 'pre%'": [1, 2, 3],
    "t not like 'pre%'": [4, 6],
    "t is null": [5],
    "f is nan": [1, 2, 3],
    "f is not nan": [4, 5, 6],
    "s.x = 7": [1, 3],
    "s.x is null": [2, 4, 5, 6],
    "s.x > 7": [],
}


@pytest.mark.parametrize("file_format", FORMATS)
def test_filters_find_old_rows_by_the_default_and_not_as_null(catalog, file_format):
    table = added(
        created(catalog, file_format), x=("long", 7), t=("string", "prefix"), s__x=("long", 7)
    )
    new = {"id": [4, 5, 6], "x": [8, None, 6], "t": ["q", None, "r"]}
    table.append(pa.table(new))
    wrong = {
        where: found
        for where, expected in FILTERS.items()
        if not where.startswith("f ") and (found := ids(table, where)) != expected
    }
    assert wrong == {}


def test_aggregates_of_a_column_that_a_file_lacks_are_read_from_its_rows(catalog):
    table = added(created(catalog), x=("long", 7))
    (x,) = (f.field_id for f in table.schema().fields if f.name == "x")
    scan = table.scan()
    for function in AggregateFunction:
        assert scan.known_aggregates([Aggregate(function, x)]) is None
    assert scan.known_aggregates([Aggregate(AggregateFunction.COUNT)]) == [(3,)]


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize(("value", "left"), [(7, [4]), (8, [1, 2, 3]), (None, [1, 2, 3, 4])])
def test_equality_deletes_compare_the_default_of_files_without_the_column(
    catalog, file_format, value, left
):
    table = added(created(catalog, file_format), x=("long", 7))
    table.append(pa.table({"id": [4], "x": [8]}))
    writer = EqualityDeleteWriter(table.io, table.metadata, str(uuid4()), ["x"])
    writer.write(pa.record_batch({"x": pa.array([value], pa.int64())}))
    (deletes,) = writer.close()
    table.commit(RowDelta(table.io).add_deletes(deletes))
    assert [row["id"] for row in rows_of(table)] == left
    table.maintenance.convert_equality_deletes()
    assert [row["id"] for row in rows_of(table.refresh())] == left
    # a column that was dropped keeps its default in the schemas that had it
    with table.update_schema() as update:
        update.delete_column("x")
    assert [row["id"] for row in rows_of(table)] == left


def test_the_default_in_an_avro_file_is_that_of_the_column(catalog):
    """Fastavro resolves an old file with the schema in a new one."""
    table = created(catalog, "avro")
    (old,) = (Path(task.file.file_path) for task in table.scan().plan_files())
    added(table, **ADDED, s__x=("long", 7), l__y=("long", 8), m__z=("string", "z"))
    record = avro_schema(table.schema().as_struct(), "table")
    with old.open("rb") as file:
        found = list(fastavro.reader(file, reader_schema=record))
    plain = ("b", "i", "n", "f", "d", "t_x", "days", "s", "l")
    for theirs, ours in zip(found, rows_of(table), strict=True):
        assert {n: theirs[n] for n in plain} == {n: ours[n] for n in plain}
        # defaults of logical types stay what they are stored as
        assert theirs["day"] == dt.date(2024, 1, 31).toordinal() - dt.date(1970, 1, 1).toordinal()
        assert theirs["t"] == 12 * 3600 * 1_000_000 + 1
        assert theirs["ts"] == theirs["tz"] == pa.scalar(TIME).cast(pa.int64()).as_py()
        assert int.from_bytes(theirs["dec"].encode("latin-1"), "big") == 1500
        texts = [theirs[n].encode("latin-1") for n in ("u", "fx", "bin")]
        assert texts == [ID.bytes, b"\x00\xff", b"\xfe"]
        assert (theirs["by"], theirs["st"]) == ({"k": "v"}, ours["st"])
    table.append(pa.table({"id": [4], "i": pa.array([None], pa.int32())}))
    (new,) = table.scan("id = 4").plan_files()
    with Path(new.file.file_path).open("rb") as file:
        reader = fastavro.reader(file)
        (row,) = reader
        schema = reader.writer_schema
    assert (row["i"], row["n"], row["u"]) == (None, 1 << 40, ID.bytes)
    defaults = {f["name"]: f["default"] for f in schema["fields"] if "default" in f}
    assert (defaults["id"], defaults["i"], defaults["bin"]) == (None, -7, "\xfe")


def test_a_required_column_is_read_by_its_default_or_not_at_all(catalog):
    table = created(catalog)
    with table.update_schema() as update:
        update.add_column("x", "long", required=True, default_value=7)
    assert [row["x"] for row in rows_of(table)] == [7, 7, 7]
    assert ids(table, "x is null") == []
    assert ids(table, "x is not null") == [1, 2, 3]
    table.append(pa.table({"id": [4]}))
    assert rows_of(table)[-1]["x"] == 7
    with pytest.raises(ValidationError, match="'x' is required"):
        table.append(pa.table({"id": [5], "x": pa.array([None], pa.int64())}))
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.set_default_value("x", None)
    with pytest.raises(SchemaError, match="x: required long in the table, missing in the data"):
        table.append(pa.table({"id": [5]}))
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.add_column("y", "long", required=True)
    with pytest.raises(CorruptFileError, match=r"'y'.* has no initial default"):
        table.scan().to_arrow()


def test_the_default_of_a_struct_may_lack_a_required_value_only_in_metadata_of_others(catalog):
    """Neither old rows are read without it, nor new ones written."""
    struct = StructType(
        NestedField(1, "k", LongType(), required=True, initial_default=4, write_default=4)
    )
    table = created(catalog)
    with table.update_schema() as update:
        update.add_column("st", struct, default_value={})
    file = Path(table.metadata_location)
    content = json.loads(file.read_text())
    (column,) = content["schemas"][-1]["fields"][-1]["type"]["fields"]
    del column["initial-default"], column["write-default"]
    file.write_text(json.dumps(content))
    table = catalog.load_table("db.t")
    with pytest.raises(CorruptFileError, match=r"'st.k'.* has no initial default"):
        table.scan().to_arrow()
    with pytest.raises(SchemaError, match=r"st\.k: required long in the table, missing"):
        table.append(pa.table({"id": [4]}))


def test_a_default_fills_partitions_and_orders_of_new_rows(catalog):
    table = added(created(catalog), x=("long", 7))
    with table.update_spec() as update:
        update.add_field("x", "bucket[16]", "bucket").add_identity("x")
    with table.update_sort_order() as update:
        update.asc("x")
    table.append(pa.table({"id": [4]}))
    (task,) = table.scan("id = 4").plan_files()
    # the hash of 7L in the specification's way, of PyIceberg's
    from pyiceberg.transforms import BucketTransform
    from pyiceberg.types import LongType as PeerLongType

    assert tuple(task.file.partition) == (BucketTransform(16).transform(PeerLongType())(7), 7)
    assert ids(table, "x = 7") == [1, 2, 3, 4]
    assert ids(table, "x = 8") == []


def test_a_missing_column_is_its_partition_then_its_name_then_its_default(catalog, tmp_path):
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "x", LongType()))
    table = catalog.create_table("db.t", schema, properties={"format-version": "3"})
    with table.update_schema() as update:
        update.add_column("y", "long", default_value=7)
        update.add_column("z", "long", required=True, default_value=8)
    with table.update_spec() as update:
        update.add_identity("y")
        update.add_field("z", "bucket[16]", "bucket")
    for folder, columns in {
        "y=3": {"id": [1]},
        "y=__HIVE_DEFAULT_PARTITION__": {"id": [2]},
        "plain": {"id": [3]},
        "named": {"id": [4], "y": [5], "z": [6]},
    }.items():
        path = tmp_path / folder / "f.parquet"
        path.parent.mkdir()
        pq.write_table(pa.table(columns), path)
        table.add_files([str(path)])
    assert [(row["id"], row["y"], row["z"]) for row in rows_of(table)] == [
        (1, 3, 8),
        (2, None, 8),
        (3, 7, 8),
        (4, 5, 6),
    ]
    for where, kept in {"y = 7": [3], "y is null": [2], "z = 8": [1, 2, 3], "z = 6": [4]}.items():
        assert ids(table, where) == kept, where


def test_inserts_of_some_columns_get_the_write_default(catalog):
    table = added(created(catalog), x=("long", 7))
    with table.update_schema() as update:
        update.set_default_value("x", 8)
    table.upsert(pa.table({"id": [4]}), ["id"], when_matched_update_all=False)
    assert [(row["id"], row["x"]) for row in rows_of(table)][-1] == (4, 8)
    (
        table.merge(pa.table({"id": [5]}), "t.id = s.id")
        .when_not_matched_insert({"id": "s.id"})
        .execute()
    )
    (
        table.merge(pa.table({"id": [6]}), "t.id = s.id")
        .when_not_matched_insert({"id": "s.id", "x": "NULL"})
        .execute()
    )
    assert [(row["id"], row["x"]) for row in rows_of(table)][-2:] == [(5, 8), (6, None)]


def test_a_default_is_read_after_a_rename_a_promotion_and_a_replacement(catalog):
    table = added(created(catalog), x=("int", 7), f=("float", 0.1), d=("decimal(5, 2)", "1.5"))
    with table.update_schema() as update:
        update.rename_column("x", "y").update_column("x", "long").update_column("f", "double")
        update.update_column("d", "decimal(9, 2)")
    found = rows_of(table)[0]
    as_double = pa.scalar(0.1, pa.float32()).as_py()
    assert (found["y"], found["f"], found["d"]) == (7, as_double, Decimal("1.50"))
    assert ids(table, "y = 7") == ids(table, "d = 1.5") == [1, 2, 3]
    branch = table.current_snapshot().snapshot_id
    table.manage_snapshots().create_branch(branch, "old").commit()
    plain = Schema(
        tuple(replace(f, initial_default=None, write_default=None) for f in table.schema().fields)
    )
    with catalog.replace_table_transaction("db.t", plain) as new:
        new.append(pa.table({"id": [9]}))
    table = catalog.load_table("db.t")
    assert [(row["id"], row["y"]) for row in rows_of(table)] == [(9, None)]
    assert table.scan().use_ref("old").to_arrow()["y"].to_pylist() == [7, 7, 7]


def test_a_column_added_while_rows_are_written_has_its_default_in_them(catalog):
    slow = created(catalog)
    fast = catalog.load_table("db.t")
    with fast.update_schema() as update:
        update.add_column("x", "long", required=True, default_value=7)
    slow.append(pa.table({"id": [4]}))
    assert [row["x"] for row in rows_of(slow)] == [7, 7, 7, 7]


@pytest.mark.parametrize(
    ("file_format", "mode"),
    [
        ("parquet", "copy-on-write"),
        ("parquet", "merge-on-read"),
        ("orc", "copy-on-write"),
        ("avro", "merge-on-read"),
    ],
)
def test_changes_of_rows_and_rewritten_files_keep_what_the_default_was(catalog, file_format, mode):
    table = created(catalog, file_format, rows=OLD.select(["id"]))
    modes = {f"write.{each}.mode": mode for each in ("delete", "update", "merge")}
    with table.transaction() as change:
        change.set_properties(modes)
    table.append(pa.table({"id": [11, 12]}))
    added(table, x=("long", 7))
    with table.update_schema() as update:
        update.set_default_value("x", 8)
    table.append(pa.table({"id": [4]}))

    def values():
        return {row["id"]: row["x"] for row in rows_of(table)}

    table.delete("x = 7 and id = 2")
    assert values() == {1: 7, 3: 7, 4: 8, 11: 7, 12: 7}
    every = {f.name: [None, None] for f in table.schema().fields}
    nulls = table.schema().as_arrow()
    table.upsert(pa.Table.from_pydict(every | {"id": [1, 5], "x": [9, 9]}, nulls), ["id"])
    assert values() == {1: 9, 3: 7, 4: 8, 5: 9, 11: 7, 12: 7}
    (
        table.merge(pa.table({"id": [3, 6]}), "t.id = s.id")
        .when_matched_update({"id": "t.id + 100"})
        .when_not_matched_insert({"id": "s.id"})
        .execute()
    )
    changed = {1: 9, 4: 8, 5: 9, 6: 8, 11: 7, 12: 7, 103: 7}
    assert values() == changed
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    table.refresh()
    assert len(list(table.scan().plan_files())) == 1
    assert values() == changed
    # what rows have is in the files now: another write default changes nothing
    with table.update_schema() as update:
        update.set_default_value("x", 1)
    assert values() == changed
    assert ids(table, "x = 7") == [11, 12, 103]


LONG = "x" * (1 << 20)


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_long_default_takes_no_more_memory_than_a_long_value_of_a_file(catalog, file_format):
    """256 MiB is what a batch of a dictionary's long values has, too."""
    rows = OLD.slice(0, 1).take([0] * 300)
    table = added(created(catalog, file_format, rows=rows), text=("string", LONG))
    batches = list(table.scan().select("id", "text").to_arrow_batch_reader())
    assert [batch.num_rows for batch in batches] == [255, 45]
    assert {text for batch in batches for text in batch["text"].unique().to_pylist()} == {LONG}


def test_a_long_partition_value_takes_no_more_memory_either(catalog):
    schema = Schema(NestedField(1, "p", StringType()), NestedField(2, "id", LongType()))
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "p"))
    rows = pa.table({"p": ["short"] * 300, "id": range(300)})
    table = created(catalog, schema=schema, partition_spec=spec, rows=rows)
    [task] = table.scan().plan_files()
    long = FileScanTask(replace(task.file, partition=(LONG,)), spec=task.spec)
    batches = list(ArrowScan(table.metadata, table.io, schema).to_record_batches([long]))
    assert [batch.num_rows for batch in batches] == [255, 45]


def test_a_default_of_more_elements_than_memory_is_for_is_refused(catalog, monkeypatch):
    rows = (
        OLD.select(["id"])
        .slice(0, 1)
        .append_column(
            OLD.schema.field("l"), pa.array([[{"p": 1}] * 100], OLD.schema.field("l").type)
        )
    )
    schema = Schema(*(field for field in SCHEMA.fields if field.name in {"id", "l"}))
    table = added(created(catalog, schema=schema, rows=rows), l__element__text=("string", LONG))
    assert table.scan().count() == 1
    monkeypatch.setenv("ICECOMB_MAX_UNPACKED_MIB", "50")
    with pytest.raises(CorruptFileError, match="would be repeated 100 times"):
        table.scan().to_arrow()
