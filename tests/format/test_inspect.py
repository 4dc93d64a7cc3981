"""The metadata tables: columns of Iceberg Java, rows as PyIceberg shows them, and nothing read in vain."""

from __future__ import annotations

import datetime as dt
import uuid
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

from icecomb.format.errors import (
    CorruptFileError,
    ExpressionError,
    NoSuchFileError,
    NoSuchSnapshotError,
    ValidationError,
)
from icecomb.format.expressions.expression import EqualTo
from icecomb.format.inspect import Inspect
from icecomb.format.inspect.inspection import NAMES, TIME_TRAVELLING
from icecomb.format.manifests.cache import manifest_cache
from icecomb.format.manifests.manifest import DataFile, DataFileContent, FileFormat
from icecomb.format.manifests.manifest_list import read_manifests, write_manifest_list
from icecomb.format.operation.append import FastAppend
from icecomb.format.operation.overwrite import DeleteFiles
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.rows.values.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POS
from icecomb.format.spec.arrow_schema import field_id
from icecomb.format.spec.change.update import update_table_metadata
from icecomb.format.spec.metadata import TableMetadata, new_table_metadata
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.single_value import to_bytes
from icecomb.format.spec.snapshot import SnapshotRef, SnapshotRefType
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
    UUIDType,
)
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.local import LocalFileSystem

SCHEMA = Schema(
    (
        NestedField(1, "id", LongType()),
        NestedField(2, "day", DateType()),
        NestedField(3, "s", StringType()),
        NestedField(4, "price", DecimalType(9, 2)),
        NestedField(5, "at", TimestamptzType()),
        NestedField(6, "x", DoubleType()),
        NestedField(7, "st", StructType((NestedField(10, "a", IntegerType()),))),
        NestedField(8, "tags", ListType(11, StringType())),
        NestedField(9, "u", UUIDType()),
    )
)
BY_DAY = PartitionSpec(0, (PartitionField(2, 1000, parse_transform("identity"), "day"),))
BY_ID = PartitionSpec(
    1,
    (
        PartitionField(1, 1001, parse_transform("bucket[4]"), "id_bucket"),
        PartitionField(9, 1002, parse_transform("identity"), "u"),
    ),
)
MON, TUE, WED = 19723, 19724, 19725
SOME_UUID = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")


class CountingIO(FileIO):
    """A FileIO that remembers what was read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []

    def read(self, location):
        self.reads.append(location)
        return super().read(location)

    def open_input(self, location, size=None):
        self.reads.append(location)
        return super().open_input(location, size)


class Story:
    """A table that was appended to, deleted from in three ways, and partitioned anew."""

    def __init__(self, folder, version=2, schema=SCHEMA):
        self.folder = folder
        self.io = CountingIO()
        properties = {"format-version": str(version), "commit.manifest-merge.enabled": "false"}
        self.metadata = new_table_metadata(
            schema, BY_DAY, UNSORTED_SORT_ORDER, str(folder), properties
        )
        self.location = f"{folder}/v9.metadata.json"

    def commit(self, operation) -> TableMetadata:
        changes = operation.apply(self.metadata)
        self.metadata = update_table_metadata(
            self.metadata, changes.updates, base_location=f"{self.folder}/v{self.count}.json"
        )
        return self.metadata

    @property
    def count(self) -> int:
        return len(self.metadata.snapshots)

    def append(self, *files) -> TableMetadata:
        operation = FastAppend(self.io)
        for file in files:
            operation.append_data_file(file)
        return self.commit(operation)

    def delete_rows(self, *files) -> TableMetadata:
        operation = RowDelta(self.io)
        for file in files:
            operation.add_deletes(file)
        return self.commit(operation)

    @property
    def inspect(self) -> Inspect:
        return Inspect(self.metadata, self.io, self.location)

    def peer(self) -> StaticTable:
        with open(self.location, "w") as file:  # noqa: PTH123 - a location is text
            file.write(self.metadata.to_json())
        return StaticTable.from_metadata(self.location)

    def reads(self, question) -> list[str]:
        """What answering a question reads, by the kind of file, with nothing in memory."""
        manifest_cache({}).clear()
        self.io.reads.clear()
        question(self.inspect)
        return sorted(path.rpartition("/")[2] for path in self.io.reads)


def data_file(name, partition=(MON,), low=0, high=9, **fields) -> DataFile:
    values = {
        1: (low, high),
        2: (MON, WED),
        3: ("aa", "zz"),
        4: (Decimal("-1.28"), Decimal("3.00")),
        5: (0, 1_700_000_000_123_456),
        6: (-0.5, 2.25),
        10: (1, 2),
        9: (SOME_UUID, SOME_UUID),
    }
    kinds = {number: SCHEMA.find_type(number) for number in values}
    return DataFile(
        **{
            "file_path": f"/t/data/{name}.parquet",
            "partition": partition,
            "record_count": 10,
            "file_size_in_bytes": 100,
            "column_sizes": {1: 50, 11: 7},
            "value_counts": {1: 10, 3: 10, 11: 25},
            "null_value_counts": {1: 0, 3: 4},
            "nan_value_counts": {6: 3},
            "lower_bounds": {i: to_bytes(kinds[i], v[0]) for i, v in values.items()},
            "upper_bounds": {i: to_bytes(kinds[i], v[1]) for i, v in values.items()},
            "split_offsets": (4,),
            "sort_order_id": 0,
            **fields,
        }
    )


def position_deletes(folder, name, rows, partition=(MON,), **fields) -> DataFile:
    path = folder / f"{name}.parquet"
    kinds = ((DELETE_FILE_PATH, pa.string()), (DELETE_FILE_POS, pa.int64()))
    schema = pa.schema(
        [pa.field(f.name, k, False, {"PARQUET:field_id": str(f.field_id)}) for f, k in kinds]
    )
    pq.write_table(
        pa.Table.from_pylist([{"file_path": p, "pos": n} for p, n in rows], schema), path
    )
    paths = sorted(p for p, _ in rows)
    return DataFile(
        content=DataFileContent.POSITION_DELETES,
        file_path=str(path),
        partition=partition,
        record_count=len(rows),
        file_size_in_bytes=path.stat().st_size,
        lower_bounds={DELETE_FILE_PATH.field_id: paths[0].encode()},
        upper_bounds={DELETE_FILE_PATH.field_id: paths[-1].encode()},
        **fields,
    )


def equality_deletes(name, partition=(MON,)) -> DataFile:
    return DataFile(
        content=DataFileContent.EQUALITY_DELETES,
        file_path=f"/t/data/{name}.parquet",
        partition=partition,
        record_count=2,
        file_size_in_bytes=7,
        equality_ids=(1, 3),
    )


@pytest.fixture(scope="module")
def story(tmp_path_factory) -> Story:
    return tell(Story(tmp_path_factory.mktemp("story")), BY_ID, (3, SOME_UUID))


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Story:
    """The same without the UUID, of which PyIceberg's metadata tables can make no Arrow array."""
    schema = Schema((*SCHEMA.fields[:-1], NestedField(9, "u", BinaryType())))
    made = Story(tmp_path_factory.mktemp("plain"), schema=schema)
    return tell(made, PartitionSpec(1, BY_ID.fields[:1]), (3,))


def tell(made: Story, spec: PartitionSpec, partition) -> Story:
    folder = made.folder
    made.append(data_file("m1"), data_file("m2", low=100, high=199))
    made.append(data_file("t1", (TUE,)), data_file("null", (None,)))
    made.delete_rows(
        position_deletes(folder, "p1", [("/t/data/m1.parquet", 3), ("/t/data/m1.parquet", 5)]),
        position_deletes(folder, "p2", [("/t/data/t1.parquet", 0)], (TUE,)),
        equality_deletes("e1"),
    )
    made.metadata = replace(
        made.metadata, partition_specs=(BY_DAY, spec), default_spec_id=1, last_partition_id=1002
    )
    made.append(data_file("b3", partition, spec_id=1, record_count=4))
    made.commit(DeleteFiles(made.io).delete_data_file("/t/data/m2.parquet"))
    made.metadata = replace(
        made.metadata,
        refs={
            **made.metadata.refs,
            "first": SnapshotRef(
                made.metadata.snapshots[0].snapshot_id, SnapshotRefType.TAG, max_ref_age_ms=5
            ),
        },
    )
    return made


def names(table: pa.Table) -> list[str]:
    return [
        path.rpartition("/")[2].removesuffix(".parquet") for path in table["file_path"].to_pylist()
    ]


FILE_COLUMNS = (
    "content file_path file_format spec_id partition record_count file_size_in_bytes column_sizes value_counts "
    "null_value_counts nan_value_counts lower_bounds upper_bounds key_metadata split_offsets equality_ids "
    "sort_order_id first_row_id referenced_data_file content_offset content_size_in_bytes readable_metrics"
)
MANIFEST_COLUMNS = (
    "content path length partition_spec_id added_snapshot_id added_data_files_count existing_data_files_count "
    "deleted_data_files_count added_delete_files_count existing_delete_files_count deleted_delete_files_count "
    "partition_summaries"
)
COLUMNS = {
    "entries": "status snapshot_id sequence_number file_sequence_number data_file readable_metrics",
    "files": FILE_COLUMNS,
    "manifests": MANIFEST_COLUMNS,
    "partitions": "partition spec_id record_count file_count total_data_file_size_in_bytes "
    "position_delete_record_count position_delete_file_count equality_delete_record_count "
    "equality_delete_file_count last_updated_at last_updated_snapshot_id",
    "position_deletes": "file_path pos row partition spec_id delete_file_path",
    "history": "made_current_at snapshot_id parent_id is_current_ancestor",
    "metadata_log_entries": "timestamp file latest_snapshot_id latest_schema_id latest_sequence_number",
    "snapshots": "committed_at snapshot_id parent_id operation manifest_list summary",
    "refs": "name type snapshot_id max_reference_age_in_ms min_snapshots_to_keep max_snapshot_age_in_ms",
    "all_manifests": f"{MANIFEST_COLUMNS} reference_snapshot_id key_metadata",
}
COLUMNS |= {
    f"{kind}_files": FILE_COLUMNS for kind in ("data", "delete", "all", "all_data", "all_delete")
}
COLUMNS["all_entries"] = COLUMNS["entries"]


@pytest.mark.parametrize("name", NAMES)
def test_columns_have_the_names_and_the_order_of_iceberg_java(story, name):
    assert getattr(story.inspect, name)().column_names == COLUMNS[name].split()


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_is_a_valid_arrow_table_of_the_announced_schema(story, name):
    scan = story.inspect.scan(name)
    table = scan.to_arrow()
    table.validate(full=True)
    assert table.schema.equals(scan.arrow_schema, check_metadata=True)
    assert table.num_rows > 0
    streamed = scan.to_arrow_batch_reader().read_all()
    assert streamed.to_pylist() == table.to_pylist()


def test_fields_carry_the_ids_of_iceberg_java(story):
    files = story.inspect.scan("files").arrow_schema
    ids = {f.name: field_id(f) for f in files}
    assert (ids["content"], ids["file_path"], ids["partition"], ids["spec_id"]) == (
        134,
        100,
        102,
        141,
    )
    partition = files.field("partition").type
    assert [(f.name, field_id(f)) for f in partition] == [
        ("day", 1000),
        ("id_bucket", 1001),
        ("u", 1002),
    ]
    deletes = story.inspect.scan("position_deletes").arrow_schema
    assert [field_id(f) for f in deletes] == [
        2147483546, 2147483545, 2147483544, 2147483642, 2147483643, 2147483646,
    ]  # fmt: skip
    # no column of the table ever had these
    assert [field_id(f) for f in deletes.field("partition").type] == [12, 13, 14]


PEER_TABLES = [name for name in NAMES if name not in ("position_deletes", "all_entries")]


@pytest.mark.parametrize("name", PEER_TABLES)
def test_pyiceberg_shows_the_same_rows(plain, name):
    # its entries cannot be of delete files, which state no statistics
    at = (plain.metadata.snapshots[1].snapshot_id,) if name == "entries" else ()
    ours = getattr(plain.inspect, name)(*at)
    theirs = getattr(plain.peer().inspect, name)(*at)
    common = [column for column in theirs.column_names if column in ours.column_names]
    assert set(theirs.column_names) <= set(ours.column_names)
    inside = theirs.schema.field("data_file").type.names if name == "entries" else []
    assert _comparable(ours, common, inside) == _comparable(theirs, common, inside)


def _comparable(table, columns, inside):
    rows = table.select(columns).to_pylist()
    for row in rows:
        if inside:
            row["data_file"] = {key: row["data_file"][key] for key in inside}
    return sorted(sorted((k, repr(_plain(v))) for k, v in row.items()) for row in rows)


def _plain(value):
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, dict):
        # PyIceberg leaves out what a struct does not say, and in readable_metrics all but columns
        return {
            key: _plain(item)
            for key, item in sorted(value.items())
            if item is not None and not (isinstance(item, dict) and key.startswith(("st", "tags")))
        }
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def test_entries_tell_of_deleted_files_and_files_do_not(story):
    entries = story.inspect.entries().to_pylist()
    deleted = [e for e in entries if e["status"] == 2]
    assert [e["data_file"]["file_path"] for e in deleted] == ["/t/data/m2.parquet"]
    assert deleted[0]["snapshot_id"] == story.metadata.current_snapshot_id
    assert sorted(names(story.inspect.files())) == ["b3", "e1", "m1", "null", "p1", "p2", "t1"]
    assert sorted(names(story.inspect.data_files())) == ["b3", "m1", "null", "t1"]
    assert sorted(names(story.inspect.delete_files())) == ["e1", "p1", "p2"]


def test_partitions_of_all_specs_are_structs_of_one_type(story):
    rows = story.inspect.files().to_pylist()
    found = {r["file_path"]: (r["spec_id"], r["partition"]) for r in rows}
    monday = dt.date(2024, 1, 1)
    assert found["/t/data/m1.parquet"] == (0, {"day": monday, "id_bucket": None, "u": None})
    assert found["/t/data/b3.parquet"] == (1, {"day": None, "id_bucket": 3, "u": SOME_UUID})
    assert found["/t/data/null.parquet"] == (0, {"day": None, "id_bucket": None, "u": None})


def test_readable_metrics_say_what_the_maps_say(story):
    table = story.inspect.files(row_filter=EqualTo("file_path", "/t/data/b3.parquet"))
    metrics = table["readable_metrics"].to_pylist()[0]
    assert list(metrics) == ["at", "day", "id", "price", "s", "st.a", "tags.element", "u", "x"]
    assert metrics["id"] == {
        "column_size": 50, "value_count": 10, "null_value_count": 0, "nan_value_count": None,
        "lower_bound": 0, "upper_bound": 9,
    }  # fmt: skip
    assert metrics["price"]["lower_bound"] == Decimal("-1.28")
    assert metrics["price"]["upper_bound"] == Decimal("3.00")
    assert metrics["day"]["upper_bound"] == dt.date(2024, 1, 3)
    utc = dt.timezone.utc
    assert metrics["at"]["upper_bound"] == dt.datetime(2023, 11, 14, 22, 13, 20, 123456, utc)
    assert metrics["x"] | {"column_size": 0} == {
        "column_size": 0, "value_count": None, "null_value_count": None, "nan_value_count": 3,
        "lower_bound": -0.5, "upper_bound": 2.25,
    }  # fmt: skip
    assert metrics["st.a"]["lower_bound"] == 1
    assert metrics["tags.element"]["value_count"] == 25
    assert metrics["s"]["upper_bound"] == "zz"
    assert metrics["u"]["lower_bound"] == SOME_UUID


def test_counts_of_a_partition_add_up(story):
    rows = {tuple(r["partition"].values()): r for r in story.inspect.partitions().to_pylist()}
    monday, third = rows[dt.date(2024, 1, 1), None, None], story.metadata.snapshots[2]
    assert {k: v for k, v in monday.items() if "count" in k or "size" in k} == {
        "record_count": 10,
        "file_count": 1,
        "total_data_file_size_in_bytes": 100,
        "position_delete_record_count": 2,
        "position_delete_file_count": 1,
        "equality_delete_record_count": 2,
        "equality_delete_file_count": 1,
    }
    assert monday["last_updated_snapshot_id"] == third.snapshot_id
    assert monday["last_updated_at"].timestamp() * 1000 == third.timestamp_ms
    assert rows[None, 3, SOME_UUID]["spec_id"] == 1
    assert len(rows) == 4


def test_a_partition_last_changed_by_an_expired_snapshot_does_not_say_when(story):
    metadata = replace(story.metadata, snapshots=story.metadata.snapshots[-1:])
    rows = Inspect(metadata, story.io).partitions().to_pylist()
    assert {r["last_updated_snapshot_id"] for r in rows} == {None}
    assert {r["last_updated_at"] for r in rows} == {None}


def test_position_deletes_are_the_rows_of_the_delete_files(story):
    rows = story.inspect.position_deletes().to_pylist()
    found = {(r["file_path"], r["pos"], r["spec_id"], r["delete_file_path"]) for r in rows}
    assert found == {
        ("/t/data/m1.parquet", 3, 0, f"{story.folder}/p1.parquet"),
        ("/t/data/m1.parquet", 5, 0, f"{story.folder}/p1.parquet"),
        ("/t/data/t1.parquet", 0, 0, f"{story.folder}/p2.parquet"),
    }
    assert {r["row"] for r in rows} == {None}
    assert rows[-1]["partition"] == {"day": dt.date(2024, 1, 2), "id_bucket": None, "u": None}


def _partition(row):
    return row["partition"]


FILTERS = [
    ("files", "partition.day = '2024-01-02'", lambda r: r["partition"]["day"] == dt.date(2024, 1, 2)),
    ("files", "partition.day is null", lambda r: r["partition"]["day"] is None),
    ("files", "partition.day is not null", lambda r: r["partition"]["day"] is not None),
    ("files", "partition.id_bucket = 3 or content = 2", lambda r: r["partition"]["id_bucket"] == 3 or r["content"] == 2),
    ("files", "not (partition.day = '2024-01-01')", lambda r: r["partition"]["day"] not in (None, dt.date(2024, 1, 1))),
    ("files", "content in (1, 2) and record_count > 1", lambda r: r["content"] in (1, 2) and r["record_count"] > 1),
    ("files", "spec_id = 1", lambda r: r["spec_id"] == 1),
    ("files", "spec_id = 7", lambda _: False),
    ("files", "file_path like '/t/data/m%'", lambda r: r["file_path"].startswith("/t/data/m")),
    ("files", "equality_ids is not null", lambda r: r["equality_ids"] is not None),
    ("data_files", "content = 1", lambda _: False),
    ("delete_files", "partition.day = '2024-01-02'", lambda r: r["partition"]["day"] == dt.date(2024, 1, 2)),
    ("entries", "status = 2", lambda r: r["status"] == 2),
    ("entries", "data_file.partition.day = '2024-01-01' and status != 2", lambda r: r["data_file"]["partition"]["day"] == dt.date(2024, 1, 1) and r["status"] != 2),
    ("all_entries", "data_file.content = 0 and sequence_number = 1", lambda r: r["data_file"]["content"] == 0 and r["sequence_number"] == 1),
    ("all_files", "readable_metrics.id.lower_bound >= 100", lambda r: (r["readable_metrics"]["id"]["lower_bound"] or 0) >= 100),
    ("partitions", "partition.day is null and file_count = 1", lambda r: r["partition"]["day"] is None and r["file_count"] == 1),
    ("partitions", "spec_id = 1", lambda r: r["spec_id"] == 1),
    ("manifests", "content = 1", lambda r: r["content"] == 1),
    ("manifests", "added_delete_files_count > 0", lambda r: r["added_delete_files_count"] > 0),
    ("position_deletes", "pos > 3", lambda r: r["pos"] > 3),
    ("position_deletes", "partition.day = '2024-01-02'", lambda r: r["partition"]["day"] == dt.date(2024, 1, 2)),
    ("position_deletes", "file_path = '/t/data/m1.parquet' and pos < 4", lambda r: r["file_path"] == "/t/data/m1.parquet" and r["pos"] < 4),
    ("position_deletes", "partition.id_bucket is null and spec_id = 0", lambda _: True),
    ("snapshots", "operation = 'append'", lambda r: r["operation"] == "append"),
    ("refs", "type = 'TAG'", lambda r: r["type"] == "TAG"),
    ("history", "parent_id is null", lambda r: r["parent_id"] is None),
    ("metadata_log_entries", "latest_sequence_number >= 2", lambda r: (r["latest_sequence_number"] or 0) >= 2),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "wanted"), FILTERS)
def test_a_filter_selects_what_it_says(story, name, text, wanted):
    everything = getattr(story.inspect, name)().to_pylist()
    found = getattr(story.inspect, name)(row_filter=text).to_pylist()
    assert found == [row for row in everything if wanted(row)]


@pytest.mark.parametrize("name", ["files", "entries", "partitions", "position_deletes"])
def test_a_filter_on_a_column_that_is_not_selected_still_filters(story, name):
    column = {"files": "content", "entries": "status", "partitions": "file_count"}.get(name, "pos")
    text = f"{column} = 0" if name != "partitions" else "file_count = 1"
    other = {"entries": "snapshot_id", "partitions": "record_count"}.get(name, "file_path")
    scan = story.inspect.scan(name, row_filter=text, selected_fields=(other,))
    whole = story.inspect.scan(name, row_filter=text).to_arrow()
    assert scan.to_arrow().column_names == [other]
    assert scan.to_arrow()[other].to_pylist() == whole[other].to_pylist()


def test_a_filter_on_the_partition_skips_manifests(story):
    lists = story.metadata.current_snapshot().manifest_list.rpartition("/")[2]
    everything = story.reads(lambda i: i.files())
    tuesday = story.reads(lambda i: i.files(row_filter="partition.day = '2024-01-02'"))
    # of the data manifests one, of the delete manifests one; the bucketed one cannot match
    assert len(everything) == 5
    assert len(tuesday) == 3
    assert lists in tuesday
    assert story.reads(lambda i: i.files(row_filter="partition.day > '2030-01-01'")) == [lists]
    assert len(story.reads(lambda i: i.partitions(row_filter="partition.day = '2024-01-02'"))) == 3
    assert (
        len(story.reads(lambda i: i.entries(row_filter="data_file.partition.id_bucket = 3"))) == 2
    )


def test_a_filter_on_content_or_spec_or_status_skips_manifests(story):
    assert len(story.reads(lambda i: i.files(row_filter="content = 1"))) == 2
    assert len(story.reads(lambda i: i.files(row_filter="content = 0"))) == 4
    assert len(story.reads(lambda i: i.files(row_filter="spec_id = 1"))) == 2
    assert len(story.reads(lambda i: i.entries(row_filter="status = 2"))) == 2
    assert len(story.reads(lambda i: i.delete_files())) == 2


def test_a_filter_on_the_snapshot_reads_one_manifest_list(story):
    wanted = story.metadata.snapshots[1]
    text = f"reference_snapshot_id = {wanted.snapshot_id}"
    reads = story.reads(lambda i: i.all_manifests(row_filter=text))
    assert reads == [wanted.manifest_list.rpartition("/")[2]]
    assert len(story.inspect.all_manifests(row_filter=text)) == 2


def test_position_deletes_open_only_files_that_can_match(story):
    def opened(text):
        reads = story.reads(lambda i: i.position_deletes(row_filter=text))
        return [name for name in reads if name.endswith(".parquet")]

    assert opened("pos >= 0") == ["p1.parquet", "p2.parquet"]
    assert opened("partition.day = '2024-01-02'") == ["p2.parquet"]
    assert opened(f"delete_file_path = '{story.folder}/p1.parquet'") == ["p1.parquet"]
    assert opened("file_path = '/t/data/t1.parquet'") == ["p2.parquet"]
    assert opened("spec_id = 1") == []


def test_statistics_are_decoded_only_for_columns_made_of_them(story):
    def decoded(**options):
        manifest_cache({}).clear()
        story.inspect.files(**options)
        manifests = read_manifests(story.io, story.metadata.current_snapshot())
        found = {manifest_cache({}).find(m, frozenset()).statistics for m in manifests}
        assert len(found) == 1
        return set(found.pop())

    assert decoded(selected_fields=("file_path", "partition")) == set()
    assert decoded(selected_fields=("readable_metrics.id.lower_bound",)) == {"lower_bounds"}
    assert decoded(
        selected_fields=("file_path",), row_filter="readable_metrics.s.value_count > 1"
    ) == {"value_counts"}
    assert decoded(selected_fields=("column_sizes",)) == {"column_sizes"}
    assert len(decoded()) == 6


@pytest.mark.parametrize(("text", "used"), [("pos >= 0", True), ("spec_id = 0", False)])
def test_bounds_of_delete_files_are_decoded_only_for_filters_on_their_rows(story, text, used):
    manifest_cache({}).clear()
    assert len(story.inspect.position_deletes(row_filter=text)) == 3
    manifests = read_manifests(story.io, story.metadata.current_snapshot())
    kept = [manifest_cache({}).find(m, frozenset()) for m in manifests]
    assert ["lower_bounds" in columns.statistics for columns in kept if columns] == [used]


def test_nested_fields_are_selected_with_the_structs_around_them(story):
    table = story.inspect.files(
        selected_fields=("readable_metrics.st.a.lower_bound", "partition.day", "file_path")
    )
    assert table.column_names == ["file_path", "partition", "readable_metrics"]
    assert table["partition"].type.names == ["day"]
    row = table.filter(pa.compute.equal(table["file_path"], "/t/data/m1.parquet")).to_pylist()[0]
    assert row["readable_metrics"] == {"st.a": {"lower_bound": 1}}
    summary = story.inspect.manifests(selected_fields=("partition_summaries.lower_bound",))
    assert {"lower_bound": "2024-01-01"} in summary[
        "partition_summaries"
    ].combine_chunks().flatten().to_pylist()
    deletes = story.inspect.position_deletes(selected_fields=("partition.day", "row.id"))
    assert deletes.to_pylist()[0] == {"row": None, "partition": {"day": dt.date(2024, 1, 1)}}


def test_columns_come_in_the_order_of_the_table_and_in_any_case(story):
    scan = story.inspect.scan("refs", selected_fields=("SNAPSHOT_ID", "Name"), case_sensitive=False)
    assert scan.to_arrow().column_names == ["name", "snapshot_id"]


@pytest.mark.parametrize("name", TIME_TRAVELLING)
def test_tables_of_one_snapshot_travel_in_time(story, name):
    first = story.metadata.snapshots[0].snapshot_id
    rows = getattr(story.inspect, name)(first).num_rows
    assert rows == {"manifests": 1, "partitions": 1, "position_deletes": 0, "delete_files": 0}.get(
        name, 2
    )


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(TIME_TRAVELLING)))
def test_other_tables_have_no_snapshot(story, name):
    with pytest.raises(ValidationError, match=f"{name!r} is not of one snapshot"):
        story.inspect.scan(name, snapshot_id=story.metadata.current_snapshot_id)


def test_what_does_not_exist_is_refused_by_name(story):
    with pytest.raises(NoSuchSnapshotError, match="no snapshot 7"):
        story.inspect.files(7)
    with pytest.raises(ValidationError, match="'filez'"):
        story.inspect.scan("filez")
    with pytest.raises(ExpressionError, match="nope"):
        story.inspect.files(row_filter="nope = 1")
    with pytest.raises(ValidationError, match="nope"):
        story.inspect.files(selected_fields=("nope",))
    with pytest.raises(ExpressionError, match="row filter"):
        story.inspect.files(row_filter=5)


def test_all_tables_show_every_manifest_once_and_its_snapshots_each(story):
    manifests = story.inspect.all_manifests()
    assert len(manifests) == sum(len(read_manifests(story.io, s)) for s in story.metadata.snapshots)
    assert set(manifests["reference_snapshot_id"].to_pylist()) == {
        s.snapshot_id for s in story.metadata.snapshots
    }
    # m1 was rewritten as an existing entry when its neighbor was deleted
    assert sorted(names(story.inspect.all_data_files())) == ["b3", "m1", "m1", "m2", "null", "t1"]
    assert sorted(names(story.inspect.all_delete_files())) == ["e1", "p1", "p2"]
    assert len(story.inspect.all_entries()) == 10


def test_a_rolled_back_snapshot_is_no_ancestor(story):
    second = story.metadata.snapshots[1].snapshot_id
    back = replace(story.metadata, current_snapshot_id=second)
    ancestors = Inspect(back, story.io).history()["is_current_ancestor"].to_pylist()
    assert ancestors == [True, True, False, False, False]


def test_the_log_ends_with_the_current_metadata_file(story):
    rows = story.inspect.metadata_log_entries().to_pylist()
    assert [r["file"].rpartition("/")[2] for r in rows] == [
        "v0.json", "v1.json", "v2.json", "v3.json", "v4.json", "v9.metadata.json",
    ]  # fmt: skip
    assert rows[0]["latest_snapshot_id"] is None
    assert rows[-1]["latest_snapshot_id"] == story.metadata.current_snapshot_id
    assert rows[-1]["latest_sequence_number"] == 5
    assert len(Inspect(story.metadata, story.io).metadata_log_entries()) == 5


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_table_has_no_rows_and_all_columns(tmp_path, name):
    empty = Story(tmp_path).inspect.scan(name).to_arrow()
    assert empty.column_names == COLUMNS[name].split()
    assert empty.num_rows == (1 if name == "metadata_log_entries" else 0)


def test_an_unpartitioned_table_has_one_partition_and_no_partition_column(tmp_path):
    table = Story(tmp_path)
    table.metadata = new_table_metadata(
        SCHEMA, PartitionSpec(0, ()), UNSORTED_SORT_ORDER, str(tmp_path)
    )
    table.append(data_file("a", ()), data_file("b", ()))
    table.delete_rows(position_deletes(tmp_path, "p", [("/t/data/a.parquet", 1)], ()))
    (row,) = table.inspect.partitions().to_pylist()
    assert (row["record_count"], row["file_count"], row["position_delete_record_count"]) == (
        20,
        2,
        1,
    )
    assert "partition" not in row
    assert "spec_id" not in row
    assert "partition" not in table.inspect.files().column_names
    assert "partition" not in table.inspect.position_deletes().column_names
    assert table.inspect.manifests()["partition_summaries"].to_pylist() == [[], []]


def test_a_dropped_partition_field_of_version_one_keeps_its_type(tmp_path):
    table = Story(tmp_path, version=1)
    table.append(data_file("m", (MON,)))
    void = PartitionSpec(1, (PartitionField(2, 1000, parse_transform("void"), "day"),))
    table.metadata = replace(table.metadata, partition_specs=(BY_DAY, void), default_spec_id=1)
    table.append(data_file("v", (None,), spec_id=1))
    files = table.inspect.files().to_pylist()
    assert {r["file_path"]: r["partition"]["day"] for r in files} == {
        "/t/data/m.parquet": dt.date(2024, 1, 1),
        "/t/data/v.parquet": None,
    }
    assert names(table.inspect.files(row_filter="partition.day is null")) == ["v"]
    assert len(table.reads(lambda i: i.files(row_filter="partition.day = '2024-01-01'"))) == 2


def test_a_partition_of_a_dropped_column_is_left_out(story):
    kept = Schema(tuple(f for f in SCHEMA.fields if f.name != "day"), 1)
    metadata = replace(story.metadata, schemas=(SCHEMA, kept), current_schema_id=1)
    files = Inspect(metadata, story.io).files()
    assert files["partition"].type.names == ["id_bucket", "u"]
    assert "day" not in files["readable_metrics"].type.names
    assert len(files) == 7


@pytest.mark.parametrize("says_schema", [True, False])
def test_bounds_of_a_dropped_partition_column_are_shown_by_its_type(story, says_schema):
    """The bytes of a date are no text."""
    shown = [story.inspect.manifests(), story.inspect.all_manifests()]
    kept = Schema(tuple(f for f in SCHEMA.fields if f.name != "day"), 1)
    metadata = replace(story.metadata, schemas=(SCHEMA, kept), current_schema_id=1)
    if not says_schema:
        unsaid = tuple(replace(snapshot, schema_id=None) for snapshot in metadata.snapshots)
        metadata = replace(metadata, snapshots=unsaid)
    after = Inspect(metadata, story.io)
    assert [after.manifests(), after.all_manifests()] == shown
    bounds = shown[0]["partition_summaries"].to_pylist()
    assert any(summary["lower_bound"] == "2024-01-01" for row in bounds for summary in row)


def test_specs_that_contradict_each_other_are_refused(story):
    other = PartitionSpec(2, (PartitionField(1, 1000, parse_transform("identity"), "day"),))
    metadata = replace(story.metadata, partition_specs=(BY_DAY, BY_ID, other))
    with pytest.raises(ValidationError, match="have one id"):
        Inspect(metadata, story.io).files()


def test_counts_that_a_list_omits_are_taken_from_the_manifest(tmp_path):
    table = Story(tmp_path, version=1)
    table.append(data_file("a"), data_file("b"))
    snapshot = table.metadata.current_snapshot()
    unstated = {
        f"{kind}_{what}_count": None
        for kind in ("added", "existing", "deleted")
        for what in ("files", "rows")
    }
    lazy = [replace(m, **unstated, partitions=None) for m in read_manifests(table.io, snapshot)]
    location = f"{tmp_path}/lazy.avro"
    write_manifest_list(
        table.io, location, lazy, format_version=1, snapshot_id=snapshot.snapshot_id, parent_snapshot_id=None
    )  # fmt: skip
    table.metadata = replace(table.metadata, snapshots=(replace(snapshot, manifest_list=location),))
    (row,) = table.inspect.manifests().to_pylist()
    assert (row["added_data_files_count"], row["existing_data_files_count"]) == (2, 0)
    assert row["partition_summaries"] == []
    assert table.inspect.all_manifests()["partition_summaries"].to_pylist() == [None]


def test_a_damaged_manifest_is_named(tmp_path):
    table = Story(tmp_path)
    table.append(data_file("a"))
    (manifest,) = read_manifests(table.io, table.metadata.current_snapshot())
    with open(manifest.manifest_path, "r+b") as file:  # noqa: PTH123 - a location is text
        file.truncate(20)
    manifest_cache({}).clear()
    with pytest.raises(CorruptFileError, match="truncated"):
        table.inspect.files()


@pytest.mark.parametrize("at_once", [1, 4])
def test_a_missing_manifest_is_named_however_many_are_read_at_a_time(
    tmp_path, monkeypatch, at_once
):
    monkeypatch.setattr(LocalFileSystem, "at_once", at_once)
    table = Story(tmp_path)
    for name in ("a", "b", "c"):
        table.append(data_file(name))
    manifest_cache({}).clear()
    found = table.inspect.files()["file_path"].to_pylist()
    assert found == ["/t/data/c.parquet", "/t/data/b.parquet", "/t/data/a.parquet"]
    assert table.inspect.partitions()["file_count"].to_pylist() == [3]
    manifest = read_manifests(table.io, table.metadata.current_snapshot())[1].manifest_path
    table.io.delete(manifest)
    manifest_cache({}).clear()
    for ask in (table.inspect.files, table.inspect.entries, table.inspect.partitions):
        with pytest.raises(NoSuchFileError) as caught:
            ask()
        assert caught.value.context["path"] == manifest


def test_a_missing_delete_file_is_named(tmp_path):
    table = Story(tmp_path)
    table.append(data_file("m1"))
    table.delete_rows(position_deletes(tmp_path, "gone", [("/t/data/m1.parquet", 3)]))
    (tmp_path / "gone.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"gone\.parquet"):
        table.inspect.position_deletes()
    assert len(table.inspect.delete_files()) == 1


def test_a_delete_file_may_hold_the_deleted_rows(tmp_path):
    table = Story(tmp_path)
    table.append(data_file("m1"))
    file = position_deletes(tmp_path, "p", [("/t/data/m1.parquet", 3)])
    plain = pq.read_table(file.file_path)
    row = pa.field(
        "row",
        pa.struct([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})]),
        metadata={"PARQUET:field_id": "2147483544"},
    )
    pq.write_table(plain.append_column(row, pa.array([{"id": 42}], row.type)), file.file_path)
    size = (tmp_path / "p.parquet").stat().st_size
    table.delete_rows(replace(file, file_size_in_bytes=size))
    (found,) = table.inspect.position_deletes().to_pylist()
    assert found["row"]["id"] == 42
    assert found["row"]["s"] is None
    assert table.inspect.position_deletes(selected_fields=("row.id",)).to_pylist() == [
        {"row": {"id": 42}}
    ]


def test_columns_of_the_manifest_alone_need_rows_of_the_file(story):
    table = story.inspect.position_deletes(selected_fields=("delete_file_path",))
    assert sorted(path.rpartition("/")[2] for path in table["delete_file_path"].to_pylist()) == [
        "p1.parquet", "p1.parquet", "p2.parquet",
    ]  # fmt: skip


def test_files_of_version_3_show_their_row_ids_and_the_place_of_a_vector(tmp_path):
    story = Story(tmp_path, version=3)
    story.append(data_file("a"), data_file("b"))
    story.append(data_file("c"))
    vector = DataFile(
        content=DataFileContent.POSITION_DELETES,
        file_path="/t/data/d.puffin",
        file_format=FileFormat.PUFFIN,
        partition=(MON,),
        record_count=2,
        file_size_in_bytes=400,
        referenced_data_file="/t/data/a.parquet",
        content_offset=4,
        content_size_in_bytes=44,
    )
    story.delete_rows(vector)
    names = ["first_row_id", "referenced_data_file", "content_offset", "content_size_in_bytes"]
    expected = {
        "a.parquet": [0, None, None, None],
        "b.parquet": [10, None, None, None],
        "c.parquet": [20, None, None, None],
        "d.puffin": [None, "/t/data/a.parquet", 4, 44],
    }
    for rows in (
        story.inspect.files().to_pylist(),
        [row["data_file"] for row in story.inspect.entries().to_pylist()],
        story.inspect.scan("all_files").to_arrow().to_pylist(),
    ):
        assert expected == {
            row["file_path"].rpartition("/")[2]: [row[name] for name in names] for row in rows
        }
