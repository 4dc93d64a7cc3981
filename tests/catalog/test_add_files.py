"""Existing files taken into tables; PyIceberg reads the results where it can."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyiceberg.table import StaticTable

from icecomb.format.errors import (
    CorruptFileError,
    NoSuchFileError,
    SchemaError,
    ValidationError,
)
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import LongType
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("ts", pa.timestamp("us"))])
DAY = dt.datetime(2024, 1, 31)  # noqa: DTZ001 - the column has no zone


@pytest.fixture
def new_table(lake):
    def create(*partition, schema=SCHEMA, **properties):
        fields = tuple(
            PartitionField(schema.get_field_index(c) + 1, 1000 + i, parse_transform(t), name)
            for i, (c, t, name) in enumerate(partition)
        )
        return lake.create_table(
            "db.t", schema, partition_spec=PartitionSpec(0, fields), properties=properties
        )

    return create


def frame(*ids, city="a", ts=DAY) -> pa.Table:
    cities = city if isinstance(city, list) else [city] * len(ids)
    return pa.table([list(ids), cities, [ts] * len(ids)], schema=SCHEMA)


def file(folder: Path, data: pa.Table, name="x.parquet", **options) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(data, folder / name, **options)
    return str(folder / name)


def torn_file(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def ids(table) -> list[int]:
    ours = table.scan().to_arrow()
    peers = StaticTable.from_metadata(table.metadata_location).scan().to_arrow()
    assert sorted(ours["id"].to_pylist()) == sorted(peers["id"].to_pylist())
    return sorted(ours["id"].to_pylist())


def test_files_become_part_of_the_table_where_they_are(new_table, tmp_path):
    table = new_table()
    table.append(frame(1))
    path = file(tmp_path / "in", frame(2, 3))
    table.add_files([path, file(tmp_path / "in", frame(4), "y.parquet")], {"by": "me"})
    assert ids(table) == [1, 2, 3, 4]
    summary = dict(table.current_snapshot().summary)
    assert (summary["added-data-files"], summary["added-records"], summary["by"]) == (
        "2",
        "3",
        "me",
    )
    (task,) = table.scan("id = 2").plan_files()
    assert task.file.file_path == path
    assert task.file.file_size_in_bytes == Path(path).stat().st_size
    assert "schema.name-mapping.default" in table.properties


def test_the_partition_is_what_the_statistics_prove(new_table, tmp_path):
    table = new_table(("city", "identity", "city"), ("ts", "day", "day"), ("id", "bucket[4]", "b"))
    table.add_files([file(tmp_path, frame(7, 7, city="x" * 40))])
    table.add_files([file(tmp_path, frame(7, city=None, ts=None), "null.parquet")])
    bucket = parse_transform("bucket[4]").apply(7, table.schema().find_type("id"))
    found = {task.file.partition for task in table.scan().plan_files()}
    assert found == {("x" * 40, 19753, bucket), (None, None, bucket)}
    assert table.scan("city is null").count() == 1


def test_a_column_that_only_the_path_has_is_the_partition(new_table, tmp_path):
    table = new_table(("city", "identity", "city"))
    rows = frame(1).drop_columns(["city"])
    for folder in ("city=New%2FYork", "city=__HIVE_DEFAULT_PARTITION__", "city=a+b"):
        table.add_files([file(tmp_path / folder, rows)])
    cities = table.scan().to_arrow()["city"].to_pylist()
    assert sorted(cities, key=str) == ["New/York", None, "a+b"]


def test_a_file_without_statistics_is_where_its_folder_says(new_table, tmp_path):
    table = new_table(("city", "identity", "city"))
    path = file(tmp_path / "city=a", frame(1), write_statistics=False)
    table.add_files([path])
    assert table.scan("city = 'a'").count() == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (frame(1, 2, city=["a", "b"]), "several partitions"),
        (frame(1, 2, city=["a", None]), "several partitions"),
        (frame(1).drop_columns(["city"]), "not known"),
    ],
    ids=str,
)
def test_a_file_of_no_one_partition_is_refused(new_table, tmp_path, data, message):
    table = new_table(("city", "identity", "city"))
    with pytest.raises(ValidationError, match=message):
        table.add_files([file(tmp_path, data)])
    assert table.refresh().current_snapshot() is None


def test_a_folder_that_contradicts_the_rows_is_refused(new_table, tmp_path):
    table = new_table(("city", "identity", "city"))
    with pytest.raises(ValidationError, match="its rows have 'a'"):
        table.add_files([file(tmp_path / "city=b", frame(1))])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, 5.0], "several partitions"),
        ([1.0, None], "several partitions"),
        ([5.0], "its rows have 5.0"),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize("is_given", [False, True], ids=["by folder", "given"])
def test_floating_point_numbers_that_contradict_their_partition_are_refused(
    new_table, tmp_path, kind, values, message, is_given
):
    rows = pa.table({"x": pa.array(values, kind)})
    table = new_table(("x", "identity", "x"), schema=rows.schema)
    path = file(tmp_path if is_given else tmp_path / "x=1.0", rows)
    with pytest.raises(ValidationError, match=message):
        table.add_files([path], partition={"x": 1.0} if is_given else None)


@pytest.mark.parametrize("text", ["1.0", "-0.0", "0.1", "NaN", "3.4028235E38"])
def test_floating_point_numbers_are_where_their_folder_says(new_table, tmp_path, text):
    rows = pa.table({"x": pa.array([float(text)], pa.float32())})
    table = new_table(("x", "identity", "x"), schema=rows.schema)
    table.add_files([file(tmp_path / f"x={text}", rows)])
    assert table.scan(f"x is nan or x = {text.replace('NaN', '0')}").count() == 1


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (frame(1).drop_columns(["id"]), SchemaError),
        (frame(1).set_column(0, "id", [["one"]]), SchemaError),
        (frame(None), ValidationError),
    ],
    ids=["required column missing", "wrong type", "null in a required column"],
)
def test_a_file_that_does_not_fit_is_refused_and_kept(new_table, tmp_path, data, error):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), *list(SCHEMA)[1:]])
    table = new_table(schema=schema)
    good, bad = file(tmp_path, frame(1), "good.parquet"), file(tmp_path, data)
    with pytest.raises(error, match="Cannot add"):
        table.add_files([good, bad])
    assert table.refresh().current_snapshot() is None
    assert Path(good).exists()
    assert Path(bad).exists()


@pytest.mark.parametrize(("unit", "name"), [("ms", "milliseconds"), ("ns", "nanoseconds")])
def test_times_in_parquet_that_are_no_microseconds_are_refused(new_table, tmp_path, unit, name):
    # filters of Iceberg Java read the statistics of a row group as microseconds
    table = new_table()
    other = frame(1).set_column(2, "ts", pa.array([DAY], pa.timestamp(unit)))
    with pytest.raises(SchemaError, match=f"column 'ts': it holds {name}"):
        table.add_files([file(tmp_path, other)])
    assert table.refresh().current_snapshot() is None
    table.add_files([file(tmp_path, other, use_deprecated_int96_timestamps=True)])
    assert ids(table) == [1]


def test_an_optional_column_may_be_missing_and_a_narrower_type_is_promoted(new_table, tmp_path):
    table = new_table()
    table.add_files([file(tmp_path, pa.table({"id": pa.array([5], pa.int32())}))])
    assert table.scan().to_arrow().to_pylist() == [{"id": 5, "city": None, "ts": None}]


FORMATS = ("parquet", "orc", "avro")


def other_file(path: Path, kind: str, data: pa.Table) -> str:
    """A file of a format, without field ids, written by another library."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "parquet":
        pq.write_table(data, path)
    elif kind == "orc":
        orc.write_table(data, path)
    else:
        fields = [{"name": f.name, "type": ["null", AVRO_TYPES[f.type]]} for f in data.schema]
        if "ts" in data.schema.names:
            # fastavro takes times without a zone for those of this machine
            instants = data["ts"].cast(pa.timestamp("us", "UTC"))
            data = data.set_column(data.schema.get_field_index("ts"), "ts", instants)
        with path.open("wb") as out:
            fastavro.writer(
                out, {"type": "record", "name": "r", "fields": fields}, data.to_pylist()
            )
    return str(path)


AVRO_TYPES = {
    pa.int64(): "long",
    pa.int32(): "int",
    pa.string(): "string",
    pa.float64(): "double",
    pa.timestamp("us"): {"type": "long", "logicalType": "timestamp-micros"},
}


@pytest.mark.parametrize("kind", FORMATS)
def test_files_of_every_format_are_told_by_their_content(new_table, tmp_path, kind):
    table = new_table(("city", "identity", "city"), ("ts", "day", "day"))
    path = other_file(tmp_path / "000000_0", kind, frame(3, 4, city="x" * 40))
    table.add_files([path])
    narrow = frame(7).drop_columns(["city", "ts"]).cast(pa.schema([("id", pa.int32())]))
    path = other_file(tmp_path / "city=b%3Dc" / "f", kind, narrow)
    table.add_files([path], partition={"day": None})
    tasks = {t.file.file_path: t.file for t in table.scan().plan_files()}
    assert {f.partition for f in tasks.values()} == {("x" * 40, 19753), ("b=c", None)}
    added = tasks[path]
    assert (added.file_format.value.lower(), added.record_count) == (kind, 1)
    assert added.file_size_in_bytes == Path(path).stat().st_size
    stated = table.inspect.files().filter(pc.field("file_path") == path)["readable_metrics"]
    assert stated[0].as_py()["id"]["lower_bound"] == (None if kind == "avro" else 7)
    assert table.scan("id = 7").to_arrow().to_pylist() == [{"id": 7, "city": "b=c", "ts": None}]
    assert table.scan("id < 4").to_arrow().to_pylist() == frame(3, city="x" * 40).to_pylist()
    table.delete("id = 3")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [4, 7]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (frame(1).rename_columns(["ID", "city", "ts"]), SchemaError, "no column 'ID', but 'id'"),
        (frame(1).drop_columns(["id"]), SchemaError, "id"),
        (frame(1).set_column(0, "id", [["one"]]), SchemaError, "id"),
        (frame(1, None), ValidationError, "'id' is required"),
        (frame(1, 2, city=["a", "b"]), ValidationError, "several partitions"),
    ],
    ids=["spelling", "required column missing", "wrong type", "null", "partitions"],
)
def test_a_file_of_any_format_that_does_not_fit_is_refused(
    new_table, tmp_path, kind, data, error, message
):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), *list(SCHEMA)[1:]])
    table = new_table(("city", "identity", "city"), schema=schema)
    path = other_file(tmp_path / "x", kind, data)
    with pytest.raises(error, match=message):
        table.add_files([path])
    assert table.refresh().current_snapshot() is None
    assert Path(path).exists()


@pytest.mark.parametrize("kind", FORMATS)
def test_columns_that_the_table_lacks_are_never_read(new_table, tmp_path, kind):
    """Iceberg Java adds such files, too, and gives a later column of the name their values."""
    table = new_table()
    for number in (1, 2):  # the second time the name mapping knows the name
        data = frame(number).append_column("more", [["x"]])
        path = other_file(tmp_path / f"{number}", kind, data)
        table.add_files([path])
    assert table.refresh().scan().to_arrow().sort_by("id").to_pylist() == frame(1, 2).to_pylist()
    if kind == "parquet":
        assert ids(table) == [1, 2]  # PyIceberg's answer, too
    before = table.metadata.last_column_id
    assert before == len(SCHEMA) + 1
    assert [f.field_id for f in table.name_mapping().fields] == [1, 2, 3, before]
    table.update_schema().add_column("more", LongType()).commit()
    table.update_schema().add_column("other", LongType()).commit()
    table.refresh()
    assert table.schema().find_field("more").field_id == before + 1
    assert sorted(table.scan("more IS NULL").to_arrow()["id"].to_pylist()) == [1, 2]
    assert table.scan("other IS NULL").to_arrow()["more"].to_pylist() == [None, None]
    table.append(frame(3).append_column("more", [[7]]).append_column("other", [[8]]))
    assert table.refresh().scan("more = 7").to_arrow()["id"].to_pylist() == [3]


def test_what_a_struct_of_a_file_has_more_is_never_read(new_table, tmp_path):
    held = pa.struct([("x", pa.int64()), ("y", pa.int64()), ("z", pa.struct([("q", pa.int64())]))])
    wide = pa.table({"s": pa.array([{"x": 1, "y": 2, "z": {"q": 3}}], held)})
    table = new_table(schema=pa.schema([("s", pa.struct([("x", pa.int64())]))]))
    table.add_files([file(tmp_path, wide)])
    with table.update_schema() as update:
        update.add_column(("s", "z"), LongType()).add_column(("s", "new"), LongType())
    found = table.refresh().scan().to_arrow()["s"].to_pylist()
    assert found == [{"x": 1, "z": None, "new": None}]


@pytest.mark.parametrize(
    ("held", "refused"), [(7, False), (40, False), (3, True)], ids=["free", "far", "nested"]
)
def test_a_column_with_an_id_of_its_own_never_becomes_a_later_one(
    new_table, tmp_path, held, refused
):
    """Id 3 is that of a field inside a struct: the file's bounds would be taken for that one's."""
    inside = pa.struct([("x", pa.int64())])
    table = new_table(schema=pa.schema([("id", pa.int64()), ("s", inside)]))
    fields = [("id", pa.int64(), 1), ("more", pa.int64(), held)]
    schema = pa.schema(
        [pa.field(n, t, metadata={"PARQUET:field_id": str(i)}) for n, t, i in fields]
    )
    path = file(tmp_path, pa.table({"id": [1], "more": [2]}, schema))
    if refused:
        with pytest.raises(SchemaError, match=r"field id 3 is in it, .* field of the table \(x\)"):
            table.add_files([path])
        return
    table.add_files([path])
    for name in "abcdefgh":
        table.refresh().update_schema().add_column(name, LongType()).commit()
    later = table.refresh().schema().fields[2:]
    assert [f.field_id for f in later] == list(range(held + 1, held + 9))
    assert table.scan("s.x IS NULL").to_arrow().drop_columns(["s"]).to_pylist() == [
        {"id": 1, **dict.fromkeys("abcdefgh")}
    ]


def test_columns_that_are_added_meanwhile_take_nothing_of_added_files(lake, new_table, tmp_path):
    table = new_table()
    path = file(tmp_path, frame(1).append_column("more", [["x"]]))
    other = lake.load_table(table.identifier)
    other.update_schema().add_column("more", LongType()).commit()
    with pytest.raises(ValidationError, match="columns changed while files were added"):
        table.add_files([path])
    table.refresh()
    with pytest.raises(SchemaError):
        table.add_files([path])


PAIR = pa.struct([("x", pa.int64()), ("y", pa.int64())])
NESTED = pa.schema([("id", pa.int64()), ("s", PAIR), ("l", pa.list_(PAIR))])


@pytest.mark.parametrize(
    ("kind", "names", "message"),
    [
        ("parquet", ["id", "city", "id"], "column 'id': it has columns id and id, which are one"),
        ("orc", ["id", "city", "id"], "column 'id': it has columns id and id, which are one"),
        *((kind, ["id", "city", "CITY"], "columns city and CITY") for kind in FORMATS),
    ],
)
def test_columns_of_one_name_are_refused(new_table, tmp_path, kind, names, message):
    table = new_table()
    texts = [["a"] if name.lower() == "city" else [1] for name in names]
    path = other_file(tmp_path / "x", kind, pa.table([pa.array(t) for t in texts], names))
    with pytest.raises(SchemaError, match=message):
        table.add_files([path])
    assert table.refresh().current_snapshot() is None


def test_changes_of_a_transactional_table_are_no_rows(new_table, tmp_path):
    names = ["operation", "originalTransaction", "bucket", "rowId", "currentTransaction"]
    rows = pa.table({**{name: [0] for name in names}, "row": [{"id": 1}]})
    table = new_table()
    with pytest.raises(SchemaError, match="changes of a transactional table"):
        table.add_files([other_file(tmp_path / "bucket_00000", "orc", rows)])
    assert table.refresh().current_snapshot() is None


def test_fields_of_one_name_inside_a_column_are_refused(new_table, tmp_path):
    table = new_table(schema=NESTED)
    kind = pa.struct([("x", pa.int64()), ("X", pa.int64())])
    rows = pa.table({"id": [1], "s": pa.array([None], kind)})
    with pytest.raises(SchemaError, match=r"column 's\.X'"):
        table.add_files([file(tmp_path, rows)])
    rows = pa.table({"id": [1], "l": pa.array([[]], pa.list_(kind))})
    with pytest.raises(SchemaError, match=r"column 'l\.element\.X'"):
        table.add_files([file(tmp_path, rows)])
    assert table.refresh().current_snapshot() is None


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (pa.int64(), pa.array([2**63], pa.uint64())),
        (pa.int64(), pa.array([7], pa.uint32())),
        (pa.int32(), pa.array([7], pa.uint8())),
        (pa.float32(), pa.array([7], pa.float16())),
        (pa.list_(pa.int64()), pa.array([[7]], pa.list_(pa.uint64()))),
    ],
    ids=str,
)
def test_types_that_iceberg_does_not_have_are_refused(new_table, tmp_path, column, values):
    # Iceberg Java reads none of them, small numbers neither
    table = new_table(schema=pa.schema([("id", pa.int64()), ("c", column)]))
    rows = pa.table({"id": [1], "c": values})
    with pytest.raises(SchemaError, match=r"column 'c.*': it holds .*, which is not an Iceb"):
        table.add_files([file(tmp_path, rows)])
    assert table.refresh().current_snapshot() is None


@pytest.mark.parametrize(("held", "wanted"), [(None, "UTC"), ("UTC", None)])
def test_zones_that_java_cannot_read_in_orc_are_refused(new_table, tmp_path, held, wanted):
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", wanted))])
    table = new_table(schema=schema)
    rows = pa.table({"id": [1], "at": pa.array([0], pa.timestamp("us", held))})
    with pytest.raises(SchemaError, match=r"column 'at': it holds .*, the table says timestamp"):
        table.add_files([other_file(tmp_path / "x", "orc", rows)])
    assert table.refresh().current_snapshot() is None
    table.add_files([other_file(tmp_path / "y", "orc", rows.cast(schema))])
    # in Parquet Iceberg Java reads both, as UTC
    table.add_files([other_file(tmp_path / "z", "parquet", rows)])
    assert ids(table) == [1, 1]


@pytest.mark.parametrize(
    ("column", "good", "bad"),
    [
        (pa.string(), "é".encode(), b"\xff"),
        (pa.binary(4), b"abcd", b"abc"),
        (pa.uuid(), b"x" * 16, b"x"),
        (pa.list_(pa.struct([("x", pa.string())])), [{"x": b"a"}], [{"x": b"a"}, {"x": b"\xff"}]),
    ],
)
def test_bytes_that_are_no_values_of_the_column_are_refused(new_table, tmp_path, column, good, bad):
    table = new_table(schema=pa.schema([("id", pa.int64()), ("c", column)]))
    plain = pa.list_(pa.struct([("x", pa.binary())])) if isinstance(good, list) else pa.binary()
    rows = pa.table({"id": [1, 2], "c": pa.array([good, bad], plain)})
    with pytest.raises(SchemaError, match="a value does not fit"):
        table.add_files([file(tmp_path, rows)])
    assert table.refresh().current_snapshot() is None
    table.add_files([file(tmp_path, rows.slice(0, 1))])
    assert table.scan().count() == len(table.scan().to_arrow()) == 1


@pytest.mark.parametrize("kind", FORMATS)
def test_files_of_another_iceberg_table_are_refused_unless_ids_and_names_agree(
    lake, new_table, kind
):
    table = new_table(schema=NESTED)
    others = {
        "s": pa.schema([("s", PAIR), ("id", pa.int64())]),
        "other": pa.schema([("other", pa.int64()), ("s", PAIR)]),
        "s.x": pa.schema([("id", pa.int64()), ("s", PAIR)]),
    }
    for number, (column, schema) in enumerate(others.items()):
        other = lake.create_table(
            f"db.o{number}", schema, properties={"write.format.default": kind}
        )
        data = {f.name: [1] if f.type == pa.int64() else [{"x": 1, "y": 2}] for f in schema}
        other.append(pa.table(data, schema=schema))
        (task,) = other.scan().plan_files()
        with pytest.raises(SchemaError, match=f"'{column}': it carries field id") as error:
            table.add_files([task.file.file_path])
        assert "rewrite it without field ids" in error.value.hint
    assert table.refresh().current_snapshot() is None


@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_of_the_table_itself_comes_back_under_the_names_of_its_time(new_table, kind):
    table = new_table(schema=NESTED, **{"write.format.default": kind})
    table.append(pa.table({"id": [1], "s": [{"x": 1, "y": 2}], "l": [[]]}, schema=NESTED))
    (task,) = table.scan().plan_files()
    table.delete()
    with table.update_schema() as update:
        update.rename_column("s", "t").rename_column("s.x", "u")
    table.add_files([task.file.file_path])
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "t": {"u": 1, "y": 2}, "l": []}]
    table.delete()
    with table.update_schema() as update:
        update.add_column("s", "long")
    with pytest.raises(SchemaError, match="'s': it carries field id"):
        table.add_files([task.file.file_path])


def test_partition_values_may_be_given(new_table, tmp_path):
    table = new_table(("city", "identity", "city"), ("ts", "day", "day"), ("id", "bucket[4]", "b"))
    rows = frame(1).drop_columns(["city"])
    given = {"city": "a/b", "day": "2024-01-31"}
    without = {"write_statistics": ["id"]}
    table.add_files([file(tmp_path, rows, **without)], partition=given)
    table.add_files(
        [file(tmp_path, rows, "y.parquet", **without)], partition={"CITY": None, "day": DAY.date()}
    )
    bucket = parse_transform("bucket[4]").apply(1, table.schema().find_type("id"))
    found = {task.file.partition for task in table.scan().plan_files()}
    assert found == {("a/b", 19753, bucket), (None, 19753, bucket)}
    for wrong, message in (
        ({"town": "a"}, "no partition field 'town'"),
        (given | {"day": "soon"}, "'soon' is not a date"),
        (given | {"b": 3 - bucket}, f"you say b={3 - bucket}, its rows have {bucket}"),
    ):
        with pytest.raises(ValidationError, match=message):
            table.add_files([file(tmp_path, rows, "z.parquet")], partition=wrong)


def test_a_value_that_rows_would_not_show_is_refused(new_table, tmp_path):
    """Only identity gives rows a column that their file lacks; else they would be null there."""
    table = new_table(("ts", "day", "day"), ("id", "bucket[4]", "b"))
    rows = frame(1)
    with pytest.raises(ValidationError, match="says CITY=a, but the file has no column 'city'"):
        table.add_files([file(tmp_path / "CITY=a", rows.drop_columns(["city"]))])
    with pytest.raises(ValidationError, match="you say day=19753, its rows have None"):
        table.add_files(
            [file(tmp_path, rows.drop_columns(["ts"]))], partition={"day": "2024-01-31"}
        )
    assert table.refresh().current_snapshot() is None
    for folder in ("city=b", "town=a", "city=__HIVE_DEFAULT_PARTITION__/ts=x"):
        data = rows if folder == "city=b" else rows.drop_columns(["city"])
        table.add_files([file(tmp_path / folder, data)])
    assert ids(table) == [1, 1, 1]


def test_folders_of_hive_name_columns_in_small_letters(new_table, tmp_path):
    schema = SCHEMA.set(1, pa.field("ciTy", pa.string()))
    table = new_table(("ciTy", "identity", "ciTy"), schema=schema)
    table.add_files([file(tmp_path / "city=a", frame(1).drop_columns(["city"]))])
    assert table.scan("ciTy = 'a'").to_arrow()["ciTy"].to_pylist() == ["a"]


def test_what_is_no_data_file_is_refused_by_name(new_table, tmp_path):
    table = new_table()
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(b"PAR1 and no more")
    for path, error in [
        (str(tmp_path / "none.parquet"), NoSuchFileError),
        (str(torn), CorruptFileError),
        (str(tmp_path / "none.orc"), NoSuchFileError),
        (str(torn_file(tmp_path / "torn.orc", b"ORC and no more")), CorruptFileError),
        (str(torn_file(tmp_path / "torn.avro", b"Obj\x01 and no more")), CorruptFileError),
        (str(torn_file(tmp_path / "empty", b"")), CorruptFileError),
    ]:
        with pytest.raises(error, match=Path(path).name):
            table.add_files([path])
    assert table.refresh().current_snapshot() is None


def test_a_file_that_the_table_has_is_refused_or_skipped(new_table, tmp_path):
    table = new_table()
    path, late = file(tmp_path, frame(1)), file(tmp_path, frame(2), "late.parquet")
    table.add_files([path])
    with pytest.raises(ValidationError, match="already"):
        table.add_files([late, f"file://{path}"])
    for again in (late, f"file:{late}"):
        with pytest.raises(ValidationError, match="given twice"):
            table.add_files([late, again])
    table.add_files([late, path, late], on_duplicate="skip")
    table.add_files([late, path], on_duplicate="skip")
    assert ids(table) == [1, 2]
    assert len(table.snapshots()) == 2
    with pytest.raises(ValidationError, match="on_duplicate"):
        table.add_files([path], on_duplicate="replace")
    table.add_files([path], check_duplicate_files=False)
    assert ids(table) == [1, 1, 2]
    table.delete("id = 1")
    table.add_files([path])
    assert ids(table) == [1, 2]


@pytest.mark.parametrize("on_duplicate", ["error", "skip"])
def test_files_begin_a_branch_where_main_is(new_table, tmp_path, on_duplicate):
    table = new_table()
    path, late = file(tmp_path, frame(1)), file(tmp_path, frame(2), "late.parquet")
    table.add_files([path])
    if on_duplicate == "error":
        with pytest.raises(ValidationError, match="already"):
            table.add_files([path, late], branch="b")
    paths = [path, late] if on_duplicate == "skip" else [late]
    table.add_files(paths, branch="b", on_duplicate=on_duplicate)
    assert ids(table) == [1]
    assert sorted(table.scan().use_ref("b").to_arrow()["id"].to_pylist()) == [1, 2]


def test_a_file_that_another_writer_added_meanwhile_is_noticed(lake, new_table, tmp_path):
    table = new_table()
    path, late = file(tmp_path, frame(1)), file(tmp_path, frame(2), "late.parquet")
    stale, other = lake.load_table("db.t"), lake.load_table("db.t")
    table.add_files([path])
    with pytest.raises(ValidationError, match="already"):
        stale.add_files([path])
    stale.add_files([path, late], on_duplicate="skip")
    other.add_files([path], on_duplicate="skip")
    assert ids(stale) == [1, 2]
    assert len(other.refresh().snapshots()) == 2


def test_a_partition_column_that_was_dropped_has_its_values_in_older_snapshots(tmp_path, new_table):
    table = new_table(("city", "identity", "city"), **{"format-version": "2"})
    path = file(tmp_path / "city=b", frame(1, 2).drop_columns("city"))
    table.add_files([path])
    then = table.current_snapshot().snapshot_id
    with table.update_spec() as update:
        update.remove_field("city")
    keys = EqualityDeleteWriter(table.io, table.metadata, "keys", ["city"], spec_id=1)
    keys.write(pa.record_batch({"city": ["b"]}))
    (deletes,) = keys.close()
    with table.update_schema() as update:
        update.delete_column("city")
    assert ids(table) == [1, 2]
    old = table.scan(snapshot_id=then)
    assert old.to_arrow()["city"].to_pylist() == ["b", "b"]
    for row_filter, count in (("city = 'b'", 2), ("city > 'a'", 2), ("city is null", 0)):
        found = table.scan(row_filter, snapshot_id=then)
        assert (found.to_arrow().num_rows, found.count()) == (count, count)
    table.commit(RowDelta(table.io).add_deletes(deletes))
    assert table.scan().to_arrow().num_rows == 0


@pytest.mark.parametrize("spelling", ["{}/./x.parquet", "{}//x.parquet", "{}/../d/x.parquet"])
def test_a_file_is_added_once_however_its_location_is_spelled(tmp_path, new_table, spelling):
    table = new_table()
    path = file(tmp_path / "d", frame(1, 2))
    other = spelling.format(tmp_path / "d")
    with pytest.raises(ValidationError, match="given twice"):
        table.add_files([path, other])
    table.add_files([other])
    for again in (path, other, f"file:{path}", f"FILE://{other}", f"file://localhost{path}"):
        with pytest.raises(ValidationError, match="already"):
            table.add_files([again])
        table.add_files([again], on_duplicate="skip")
    assert ids(table) == [1, 2]


@pytest.mark.parametrize(
    "spelling", ["file:{}/x.parquet", "{}//x.parquet", "file://{}/./x.parquet"]
)
def test_a_file_that_is_needed_stays_when_another_spelling_of_it_expires(
    tmp_path, new_table, spelling
):
    table = new_table()
    path = file(tmp_path / "d", frame(1, 2))
    table.add_files([path])
    table.delete()
    table.add_files([spelling.format(tmp_path / "d")])
    soon = dt.datetime.now(dt.timezone.utc) + dt.timedelta(minutes=1)
    expire = table.expire_snapshots(dry_run=True).older_than(soon)
    expire.commit()
    assert expire.result is not None
    assert expire.result.files.data_files == ()
    table.expire_snapshots().older_than(soon).commit()
    assert len(table.snapshots()) == 1
    assert ids(table) == [1, 2]


def test_a_file_whose_name_is_not_a_text_is_refused_by_name(new_table, tmp_path):
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.parquet")
    with pytest.raises(ValidationError, match=r"\\udcff\.parquet' is not UTF-8"):
        new_table().add_files([odd])
