"""Scans: files planned, deletes matched, parts packed, time travelled."""

import dataclasses
import datetime as dt
import itertools
import pickle
import random
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from pyiceberg.table import StaticTable

from icecomb.format.errors import (
    CorruptFileError,
    ExpressionError,
    NoSuchSnapshotError,
    ValidationError,
)
from icecomb.format.expressions.expression import AlwaysTrue, EqualTo
from icecomb.format.expressions.manifest_metrics import BOUNDS, METRICS
from icecomb.format.manifests.cache import manifest_cache
from icecomb.format.manifests.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
)
from icecomb.format.manifests.manifest_list import write_manifest_list
from icecomb.format.manifests.writer import ManifestWriter
from icecomb.format.rows.values.scan_task import MOST_PARTS, FileScanTask, plan_task_groups
from icecomb.format.scan.delete_index import comparable_columns
from icecomb.format.scan.scan_planner import ScanPlanner
from icecomb.format.scan.table_scan import TableScan
from icecomb.format.spec.metadata import TableMetadata, new_table_metadata
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.snapshot import Snapshot, SnapshotLogEntry, SnapshotRef, SnapshotRefType
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import (
    DoubleType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    UUIDType,
)
from icecomb.format.storage.file_io import FileIO
from tests.format.expressions.row_filters import matches

SCHEMA = Schema(
    (
        NestedField(1, "id", LongType()),
        NestedField(2, "ts", TimestampType()),
        NestedField(3, "s", StringType()),
    )
)
DAY = 86_400_000_000
SPECS = (
    PartitionSpec(0, ()),
    PartitionSpec(1, (PartitionField(2, 1000, parse_transform("day"), "ts_day"),)),
    PartitionSpec(
        2,
        (
            PartitionField(1, 1001, parse_transform("bucket[4]"), "id_bucket"),
            PartitionField(3, 1002, parse_transform("identity"), "s"),
        ),
    ),
)


class CountingIO(FileIO):
    """A FileIO that remembers what was read."""

    def __init__(self):
        super().__init__()
        self.reads = []

    def read(self, location):
        self.reads.append(location)
        return super().read(location)


class TableMaker:
    """Writes manifests, lists and metadata of a table that has no data files."""

    def __init__(self, folder, specs=SPECS, schema=SCHEMA):
        self.io = CountingIO()
        self.folder = folder
        self.schema = schema
        base = new_table_metadata(schema, PartitionSpec(0, ()), UNSORTED_SORT_ORDER, str(folder))
        self.metadata = dataclasses.replace(
            base, partition_specs=tuple(specs), last_partition_id=1002
        )
        self.sequence = 0
        self.manifests = []

    def manifest(self, files, spec, content=ManifestContent.DATA, deleted=()):
        """One commit that adds these files in a manifest of their own."""
        self.sequence += 1
        writer = ManifestWriter(2, spec, self.schema, 1000 + self.sequence, content=content)
        for file in files:
            writer.add(file)
        for file in deleted:
            writer.delete(_entry(file, self.sequence))
        written = writer.finish(self.io, f"{self.folder}/m{self.sequence}.avro")
        number = self.sequence
        self.manifests.append(
            dataclasses.replace(written, sequence_number=number, min_sequence_number=number)
        )
        return number

    def commit(self, timestamp_ms=None):
        """A snapshot of all manifests so far."""
        number, earlier = self.sequence, self.metadata.snapshots
        location = f"{self.folder}/snap-{number}.avro"
        parent = earlier[-1].snapshot_id if earlier else None
        write_manifest_list(
            self.io, location, self.manifests, format_version=2, snapshot_id=1000 + number,
            parent_snapshot_id=parent, sequence_number=number,
        )  # fmt: skip
        now = timestamp_ms or 1_700_000_000_000 + number
        snapshot = Snapshot(
            1000 + number, parent, number, now, location, {"operation": "append"}, 0
        )
        self.metadata = dataclasses.replace(
            self.metadata,
            snapshots=(*earlier, snapshot),
            current_snapshot_id=snapshot.snapshot_id,
            last_sequence_number=number,
            last_updated_ms=now,
            snapshot_log=(*self.metadata.snapshot_log, SnapshotLogEntry(snapshot.snapshot_id, now)),
            refs={**self.metadata.refs, "main": SnapshotRef(snapshot.snapshot_id)},
        )
        return self.metadata

    def scan(self, *args, **kwargs):
        return TableScan(self.metadata, self.io, *args, **kwargs)


def _entry(file, number):
    return ManifestEntry(
        status=ManifestEntryStatus.DELETED, snapshot_id=1, sequence_number=number,
        file_sequence_number=number, data_file=file,
    )  # fmt: skip


def partition_of(spec, row):
    values = dict(zip((1, 2, 3), row, strict=True))
    return tuple(
        f.transform.apply(values[f.source_id], SCHEMA.find_type(f.source_id)) for f in spec.fields
    )


def data_file(path, rows, spec, *, stats=True, **kwargs):
    """A file of rows (id, ts, s) with the metrics a writer states."""
    columns = dict(zip((1, 2, 3), zip(*rows, strict=True), strict=True))
    real = {c: [v for v in values if v is not None] for c, values in columns.items()}
    return DataFile(
        file_path=path,
        partition=partition_of(spec, rows[0]),
        record_count=len(rows),
        file_size_in_bytes=kwargs.pop("size", 1000),
        spec_id=spec.spec_id,
        value_counts={c: len(rows) for c in columns} if stats else None,
        null_value_counts={c: len(rows) - len(real[c]) for c in columns} if stats else None,
        lower_bounds={c: _bytes(min(v)) for c, v in real.items() if v} if stats else None,
        upper_bounds={c: _bytes(max(v)) for c, v in real.items() if v} if stats else None,
        **kwargs,
    )


def _bytes(value):
    return value.encode() if isinstance(value, str) else struct.pack("<q", value)


def random_table(folder, seed=7):
    """Files with real rows in every spec; returns the maker and path -> rows of the live ones."""
    chance = random.Random(seed)
    table, live = TableMaker(folder), {}
    for n in range(9):
        spec = SPECS[n % 3]
        files = []
        for k in range(chance.randint(1, 12)):
            base = (chance.choice([None, *range(-5, 30)]), chance.choice([None, *range(-3 * DAY, 5 * DAY, DAY // 3)]),
                    chance.choice([None, "", "a", "ab", "b", "é"]))  # fmt: skip
            rows = [base]
            for _ in range(chance.randint(0, 3)):
                other = (
                    chance.choice([None, *range(-5, 30)]),
                    chance.randrange(-3 * DAY, 5 * DAY),
                    chance.choice("abc"),
                )
                if partition_of(spec, other) == partition_of(spec, base):
                    rows.append(other)
            path = f"{folder}/data/f{n}-{k}.parquet"
            files.append(data_file(path, rows, spec, stats=chance.random() > 0.1))
            live[path] = rows
        gone = [data_file(f"{folder}/data/gone{n}.parquet", [(1, 0, "a")], spec)]
        table.manifest(files, spec, deleted=gone)
    table.commit()
    return table, live


FILTERS = [
    "id = 5", "id < 0", "id >= 20", "id != 5", "id in (1, 2, 29)", "id not in (1, 2)", "id is null", "id is not null",
    "id > 3 and id <= 7", "ts >= '1970-01-02' and ts < '1970-01-03'", "ts < '1970-01-01'", "ts = '1970-01-01T08:00:00'",
    "ts is null", "s = 'a'", "s like 'a%'", "s not like 'a%'", "s in ('a', 'é')", "s > 'a'", "s is null or id = 7",
    "id = 5 and s = 'ab'", "not (id = 5 or s = 'b')", "id = 5 and ts >= '1970-01-03' or s = 'b'", "id < 1000", "id > 1000",
    "ts > '1970-01-01T12:00:00' and s <> 'a'", "id < 1.5",
]  # fmt: skip


def kept(expression, row):
    return matches(expression, dict(enumerate(row, 1))) is True


@pytest.fixture(scope="module")
def table_and_rows(tmp_path_factory, first_seed):
    return random_table(tmp_path_factory.mktemp("table"), 7 + first_seed)


@pytest.fixture(scope="module")
def peer_table(table_and_rows):
    table, _ = table_and_rows
    path = table.folder / "v1.metadata.json"
    path.write_text(table.metadata.to_json())
    return StaticTable.from_metadata(str(path))


@pytest.mark.parametrize("text", FILTERS)
def test_planned_files_hold_all_matches_and_residuals_find_them(
    table_and_rows, peer_table, text, first_seed
):
    table, live = table_and_rows
    scan = table.scan(text)
    bound = scan.bound_filter()
    planned = {task.file.file_path: task for task in scan.plan_files()}
    wanted = {path for path, rows in live.items() if any(kept(bound, row) for row in rows)}
    assert wanted <= planned.keys()
    for path, task in planned.items():
        for row in live[path]:
            assert kept(task.residual, row) == kept(bound, row)
    peer_filter = re.sub(r"(\d-\d\d)'", r"\1T00:00:00'", text).replace("<>", "!=")
    if "1.5" not in text:
        try:
            theirs = {
                task.file.file_path for task in peer_table.scan(row_filter=peer_filter).plan_files()
            }
        except TypeError:
            assert first_seed, "it compares a null partition with a number: not in the pinned table"
            return
        early = "1970-01-01'" in text  # files named after the day before 1970 are kept, as in Java
        assert planned.keys() <= theirs or early
        assert len(planned) < len(live) or len(theirs) == len(live)


def test_without_a_filter_every_live_file_is_planned_once(table_and_rows):
    table, live = table_and_rows
    tasks = list(table.scan().plan_files())
    assert sorted(task.file.file_path for task in tasks) == sorted(live)
    assert all(task.residual == AlwaysTrue() and task.delete_files == () for task in tasks)
    assert {task.spec.spec_id for task in tasks} == {0, 1, 2}
    assert all(
        task.file.partition == partition_of(task.spec, live[task.file.file_path][0])
        for task in tasks
    )


def test_planned_twice_the_files_are_the_same(table_and_rows):
    table, _ = table_and_rows
    assert list(table.scan("id > 3").plan_files()) == list(table.scan("id > 3").plan_files())


def test_an_empty_table_plans_nothing_but_still_checks_the_filter(tmp_path):
    table = TableMaker(tmp_path)
    assert list(table.scan("id = 1").plan_files()) == []
    assert list(table.scan().use_ref("main").plan_files()) == []
    with pytest.raises(ExpressionError, match="Did you mean id"):
        table.scan("idd = 1").plan_files()


def test_manifests_whose_partitions_cannot_match_are_not_read(tmp_path):
    table = TableMaker(tmp_path)
    for day in range(5):
        table.manifest([data_file(f"d{day}", [(1, day * DAY, "a")], SPECS[1])], SPECS[1])
    table.commit()
    table.io.reads.clear()
    tasks = list(table.scan("ts >= '1970-01-03' and ts < '1970-01-04'").plan_files())
    assert [task.file.file_path for task in tasks] == ["d2"]
    assert table.io.reads == [f"{tmp_path}/snap-5.avro", f"{tmp_path}/m3.avro"]
    assert tasks[0].residual == AlwaysTrue()


def test_files_without_bounds_are_judged_by_their_counts(tmp_path):
    table = TableMaker(tmp_path)
    spec = SPECS[0]
    table.manifest(
        [data_file("low", [(1, 0, "a")], spec), data_file("high", [(9, 0, "a")], spec)], spec
    )
    table.manifest(
        [data_file("nulls", [(None, 0, "a")], spec), data_file("some", [(9, 0, "a")], spec)], spec
    )
    table.manifest([data_file("unknown", [(1, 0, "a")], spec, stats=False)], spec)
    table.commit()
    scan = table.scan("id > 5")
    assert [task.file.file_path for task in scan.plan_files()] == ["high", "some", "unknown"]
    scan = table.scan("id is null")
    assert [task.file.file_path for task in scan.plan_files()] == ["nulls", "unknown"]


def test_counts_are_not_decoded_for_files_with_bounds(tmp_path):
    table = TableMaker(tmp_path)
    table.manifest([data_file("f", [(1, 0, "a")], SPECS[0])], SPECS[0])
    table.commit()
    manifest = table.manifests[0]
    assert len(list(table.scan("id = 1 and s like 'a%'").plan_files())) == 1
    assert manifest_cache({}).find(manifest, frozenset()).statistics == set(BOUNDS)
    assert list(table.scan("id is null").plan_files()) == []
    assert manifest_cache({}).find(manifest, frozenset()).statistics == set(METRICS)


def test_tasks_come_before_all_manifests_are_read(tmp_path):
    manifest_cache({}).clear()
    table = TableMaker(tmp_path)
    for n in range(40):
        table.manifest([data_file(f"f{n}", [(n, n, "a")], SPECS[0])], SPECS[0])
    table.commit()
    table.io.reads.clear()
    planned = table.scan().plan_files()
    first = next(planned)
    assert first.file.file_path == "f0"
    planned.close()
    assert len(table.io.reads) < 20


def test_a_limit_stops_planning_when_enough_rows_are_sure(tmp_path):
    table = TableMaker(tmp_path)
    for n in range(10):
        table.manifest([data_file(f"f{n}", [(n, n * DAY, "a")] * 5, SPECS[1])], SPECS[1])
    table.commit()
    assert len(list(table.scan(limit=7).plan_files())) == 2
    assert list(table.scan(limit=0).plan_files()) == []
    for seven in (np.int32(7), pa.scalar(7)):
        assert table.scan(limit=seven) == table.scan(limit=7)
    assert len(list(table.scan("id >= 0", limit=7).plan_files())) == 10
    assert len(list(table.scan("ts >= '1970-01-03'", limit=7).plan_files())) == 2


def test_a_truncated_manifest_is_named(tmp_path):
    manifest_cache({}).clear()
    table = TableMaker(tmp_path)
    table.manifest([data_file("f", [(1, 1, "a")], SPECS[0])], SPECS[0])
    table.commit()
    manifest = tmp_path / "m1.avro"
    manifest.write_bytes(manifest.read_bytes()[:-20])
    with pytest.raises(CorruptFileError, match=r"m1\.avro"):
        list(table.scan().plan_files())


def test_planning_does_not_import_pandas(tmp_path):
    table = TableMaker(tmp_path)
    for day in range(3):
        table.manifest([data_file(f"d{day}", [(1, day * DAY, "a")], SPECS[1])], SPECS[1])
    table.commit()
    (tmp_path / "v1.metadata.json").write_text(table.metadata.to_json())
    code = """
import sys
from icecomb.format import FileIO
from icecomb.format.spec.metadata_file import read_metadata
from icecomb.format.scan.table_scan import TableScan
metadata = read_metadata(FileIO(), sys.argv[1])
filter = "ts >= '1970-01-02' and ts < '1970-01-03' and id in (1, 2)"
print(len(list(TableScan(metadata, FileIO(), filter).plan_files())), "pandas" in sys.modules)
"""
    command = [sys.executable, "-c", code, str(tmp_path / "v1.metadata.json")]
    found = subprocess.run(command, check=True, capture_output=True, text=True, cwd="/")
    assert found.stdout.split() == ["1", "False"]


def position_delete(path, spec, partition=(), lower=None, upper=None, **kwargs):
    bounds = (
        {"lower_bounds": {2147483546: lower.encode()}, "upper_bounds": {2147483546: upper.encode()}}
        if lower
        else {}
    )
    return DataFile(
        content=DataFileContent.POSITION_DELETES, file_path=path, partition=partition, record_count=1,
        file_size_in_bytes=10, spec_id=spec.spec_id, **bounds, **kwargs,
    )  # fmt: skip


def equality_delete(path, spec, partition=()):
    return DataFile(
        content=DataFileContent.EQUALITY_DELETES, file_path=path, partition=partition, record_count=1,
        file_size_in_bytes=10, spec_id=spec.spec_id, equality_ids=(1,),
    )  # fmt: skip


def deletes_of(scan):
    return {t.file.file_path: [d.file_path for d in t.delete_files] for t in scan.plan_files()}


def test_position_deletes_apply_to_files_that_are_not_newer_and_equality_deletes_to_older_ones(
    tmp_path,
):
    table = TableMaker(tmp_path)
    for name, deletes in (("old", ()), ("same", "pe"), ("new", ())):
        table.manifest([data_file(name, [(1, 1, "a")], SPECS[0])], SPECS[0])
        if deletes:
            table.sequence -= 1
            files = [position_delete("pos", SPECS[0]), equality_delete("eq", SPECS[0])]
            number = table.sequence + 1
            table.sequence = 900
            table.manifest(files, SPECS[0], ManifestContent.DELETES)
            table.manifests[-1] = dataclasses.replace(
                table.manifests[-1], sequence_number=number, min_sequence_number=number
            )
            table.sequence = number
    table.commit()
    assert deletes_of(table.scan()) == {"old": ["eq", "pos"], "same": ["pos"], "new": []}


def test_deletes_apply_in_their_partition_and_spec_but_unpartitioned_equality_deletes_everywhere(
    tmp_path,
):
    table = TableMaker(tmp_path)
    table.manifest(
        [data_file("day0", [(1, 0, "a")], SPECS[1]), data_file("day1", [(1, DAY, "a")], SPECS[1])],
        SPECS[1],
    )
    table.manifest([data_file("bucket", [(1, 0, "a")], SPECS[2])], SPECS[2])
    table.manifest([data_file("plain", [(1, 0, "a")], SPECS[0])], SPECS[0])
    table.manifest(
        [position_delete("p0", SPECS[1], (0,)), equality_delete("e1", SPECS[1], (1,))],
        SPECS[1],
        ManifestContent.DELETES,
    )
    table.manifest(
        [position_delete("plain-pos", SPECS[0]), equality_delete("global", SPECS[0])],
        SPECS[0],
        ManifestContent.DELETES,
    )
    table.commit()
    assert deletes_of(table.scan()) == {
        "day0": ["global", "p0"], "day1": ["global", "e1"], "bucket": ["global"], "plain": ["global", "plain-pos"],
    }  # fmt: skip
    assert deletes_of(table.scan("ts >= '1970-01-02'"))["day1"] == ["global", "e1"]


def test_position_deletes_that_name_files_apply_to_those_files_only(tmp_path):
    table = TableMaker(tmp_path)
    table.manifest(
        [data_file(name, [(1, 0, "a")], SPECS[0]) for name in ("a", "b", "c", "d")], SPECS[0]
    )
    table.manifest(
        [
            position_delete("exact", SPECS[0], lower="b", upper="b"),
            position_delete("range", SPECS[0], lower="b", upper="c"),
            position_delete("referenced", SPECS[0], lower="a", upper="z", referenced_data_file="d"),
            position_delete("any", SPECS[0]),
        ],
        SPECS[0],
        ManifestContent.DELETES,
    )
    table.commit()
    found = deletes_of(table.scan())
    assert {path: sorted(deletes) for path, deletes in found.items()} == {
        "a": ["any"], "b": ["any", "exact", "range"], "c": ["any", "range"], "d": ["any", "referenced"],
    }  # fmt: skip


def test_the_index_of_deletes_is_kept_for_the_same_deletes_only(tmp_path):
    table = TableMaker(tmp_path)
    days = [(SPECS[1], [(day, day * DAY, "a")]) for day in (0, 1)]
    table.manifest([data_file(f"f{rows[0][0]}", rows, spec) for spec, rows in days], SPECS[1])
    table.manifest(
        [equality_delete(f"e{rows[0][0]}", spec, partition_of(spec, rows[0])) for spec, rows in days],
        SPECS[1], ManifestContent.DELETES,
    )  # fmt: skip
    table.commit()

    def index(row_filter=None, io=table.io):
        scan = TableScan(table.metadata, io, row_filter)
        planner = ScanPlanner(scan.metadata, io, scan.schema(), scan.bound_filter())
        return planner.live(scan.snapshot())[1]

    assert index() is index()
    assert {file.file_path for file in index("ts < '1970-01-02'").files} == {"e0"}
    assert {file.file_path for file in index("ts >= '1970-01-02'").files} == {"e1"}
    uncached = FileIO({"io.manifest.cache-enabled": "false"})
    assert index(io=uncached) is not index(io=uncached)
    before = index()
    table.manifest([equality_delete("later", SPECS[0])], SPECS[0], ManifestContent.DELETES)
    table.commit()
    assert {file.file_path for file in index().files} == {"e0", "e1", "later"}
    assert {file.file_path for file in before.files} == {"e0", "e1"}


def test_many_deletes_are_matched_as_the_specification_says(tmp_path):
    chance = random.Random(3)
    table = TableMaker(tmp_path)
    data, deletes = [], []
    for n in range(24):
        spec = SPECS[n % 3]
        rows = [
            (chance.randrange(4), chance.randrange(3) * DAY, chance.choice("ab")) for _ in range(4)
        ]
        if n % 2:
            files = [data_file(f"f{n}-{k}", [row], spec) for k, row in enumerate(rows)]
            number = table.manifest(files, spec)
            data += [(number, spec, file) for file in files]
        else:
            files = []
            for k, row in enumerate(rows):
                partition = partition_of(spec, row)
                if chance.random() < 0.5:
                    files.append(equality_delete(f"e{n}-{k}", spec, partition))
                else:
                    bounds = chance.choice(
                        [{}, {"lower": "f1-0", "upper": "f7-2"}, {"lower": "f3-1", "upper": "f3-1"}]
                    )
                    files.append(position_delete(f"p{n}-{k}", spec, partition, **bounds))
            number = table.manifest(files, spec, ManifestContent.DELETES)
            deletes += [(number, spec, file) for file in files]
    table.commit()

    def applies(data_entry, delete_entry):
        (data_number, data_spec, file), (number, spec, delete) = data_entry, delete_entry
        same_partition = data_spec is spec and file.partition == delete.partition
        if delete.content is DataFileContent.EQUALITY_DELETES:
            return data_number < number and (not spec.fields or same_partition)
        if delete.lower_bounds:
            low, high = (b[2147483546].decode() for b in (delete.lower_bounds, delete.upper_bounds))
            if not low <= file.file_path <= high:
                return False
            same_partition = same_partition or low == high
        return data_number <= number and same_partition

    expected = {
        entry[2].file_path: sorted(d[2].file_path for d in deletes if applies(entry, d))
        for entry in data
    }
    assert {path: sorted(found) for path, found in deletes_of(table.scan()).items()} == expected
    assert any(expected.values())


IDS = st.none() | st.integers(-3, 3) | st.integers(-(2**40), 2**40)
TEXTS = st.none() | st.sampled_from(["", "a", "ab", "b", "é", "\U0001f600", "\uffff"])
ROWS = st.lists(st.tuples(IDS, st.none() | st.integers(0, 3 * DAY), TEXTS), min_size=1, max_size=3)


@given(
    st.lists(st.tuples(ROWS, st.booleans()), min_size=1, max_size=6),
    st.lists(
        st.tuples(ROWS, st.booleans(), st.sampled_from([(1,), (3,), (1, 3)])),
        min_size=1,
        max_size=6,
    ),
)
@settings(max_examples=60, deadline=None)
def test_equality_deletes_apply_where_the_ranges_of_their_values_meet(data, deletes):
    def ranges_meet(rows, deleted, columns):
        for column in columns:
            there = [row[column - 1] for row in rows if row[column - 1] is not None]
            gone = [row[column - 1] for row in deleted]
            if there and None not in gone and (max(there) < min(gone) or max(gone) < min(there)):
                return False
        return True

    with tempfile.TemporaryDirectory() as folder:
        table = TableMaker(Path(folder))
        files = [
            data_file(f"f{n}", rows, SPECS[0], stats=stats) for n, (rows, stats) in enumerate(data)
        ]
        table.manifest(files, SPECS[0])
        removals = [
            dataclasses.replace(
                data_file(f"e{n}", rows, SPECS[0], stats=stats),
                content=DataFileContent.EQUALITY_DELETES, equality_ids=columns,
            )
            for n, (rows, stats, columns) in enumerate(deletes)
        ]  # fmt: skip
        table.manifest(removals, SPECS[0], ManifestContent.DELETES)
        table.commit()
        found = deletes_of(table.scan())
    for n, (rows, stats) in enumerate(data):
        matching, meeting = set(), set()
        for k, (deleted, delete_stats, columns) in enumerate(deletes):
            keys = {tuple(row[c - 1] for c in columns) for row in deleted}
            if keys & {tuple(row[c - 1] for c in columns) for row in rows}:
                matching.add(f"e{k}")
            if not (stats and delete_stats) or ranges_meet(rows, deleted, columns):
                meeting.add(f"e{k}")
        assert matching <= set(found[f"f{n}"]) == meeting


def test_ranges_of_nan_and_of_uuids_leave_out_no_equality_delete(tmp_path):
    schema = Schema((NestedField(1, "f", DoubleType()), NestedField(2, "u", UUIDType())))
    table = TableMaker(tmp_path, schema=schema)
    for path, number, column, content in (
        ("data", 1.0, 1, DataFileContent.DATA),
        ("nan", 9.0, 1, DataFileContent.EQUALITY_DELETES),
        ("uuid", 9.0, 2, DataFileContent.EQUALITY_DELETES),
    ):
        bounds = {1: struct.pack("<d", number), 2: bytes([int(number)] * 16)}
        is_data = content is DataFileContent.DATA
        file = DataFile(
            content=content, file_path=path, record_count=2, file_size_in_bytes=10,
            value_counts={1: 2, 2: 2}, null_value_counts={1: 0, 2: 0}, nan_value_counts={1: 1},
            lower_bounds=bounds, upper_bounds=bounds, equality_ids=None if is_data else (column,),
        )  # fmt: skip
        kind = ManifestContent.DATA if is_data else ManifestContent.DELETES
        table.manifest([file], SPECS[0], kind)
    table.commit()
    assert deletes_of(table.scan()) == {"data": ["nan", "uuid"]}


@pytest.fixture
def history(tmp_path):
    table = TableMaker(tmp_path)
    for n in range(3):
        table.manifest([data_file(f"f{n}", [(n, 0, "a")], SPECS[0])], SPECS[0])
        table.commit(timestamp_ms=1000 * (n + 1))
    return table


def paths(scan):
    return [task.file.file_path for task in scan.plan_files()]


def test_a_snapshot_is_read_by_id_time_branch_and_tag(history):
    ids = [s.snapshot_id for s in history.metadata.snapshots]
    history.metadata = dataclasses.replace(
        history.metadata,
        refs={
            **history.metadata.refs,
            "first": SnapshotRef(ids[0], SnapshotRefType.TAG),
            "dev": SnapshotRef(ids[1]),
        },
    )
    scan = history.scan()
    assert paths(scan) == ["f0", "f1", "f2"]
    assert paths(history.scan(snapshot_id=ids[1])) == ["f0", "f1"]
    assert paths(scan.as_of(1000)) == ["f0"]
    assert paths(scan.as_of(1999)) == ["f0"]
    assert paths(scan.as_of(dt.datetime(1970, 1, 1, 0, 0, 2, tzinfo=dt.timezone.utc))) == [
        "f0",
        "f1",
    ]
    assert paths(scan.as_of(99_999)) == ["f0", "f1", "f2"]
    assert paths(scan.use_ref("first")) == ["f0"]
    assert paths(scan.use_ref("dev")) == ["f0", "f1"]
    assert paths(scan.use_ref("main")) == ["f0", "f1", "f2"]


def test_what_does_not_exist_is_named(history):
    with pytest.raises(NoSuchSnapshotError, match=r"no snapshot at 1970-01-01T00:00:00\.999"):
        history.scan().as_of(999)
    with pytest.raises(NoSuchSnapshotError, match="no branch or tag 'nope'"):
        history.scan().use_ref("nope")
    with pytest.raises(NoSuchSnapshotError, match="no snapshot 5"):
        history.scan(snapshot_id=5)
    with pytest.raises(ValidationError, match="needs a zone"):
        history.scan().as_of(dt.datetime(2024, 1, 1))  # noqa: DTZ001
    with pytest.raises(ValidationError, match="must be 0 or more"):
        history.scan(limit=-1)
    for wrong in ("7", 1.5, True):
        with pytest.raises(ValidationError, match="must be a whole number"):
            history.scan(limit=wrong)
    for wrong in ("7", 1.5, np.datetime64("2024-01-01")):
        with pytest.raises(ValidationError, match="must be a point in time"):
            history.scan().as_of(wrong)
    with pytest.raises(ExpressionError, match="Not a row filter"):
        history.scan(5)


def test_an_old_snapshot_is_read_with_its_own_schema_a_branch_with_the_current_one(history):
    renamed = Schema((NestedField(1, "number", LongType()), *SCHEMA.fields[1:]), schema_id=1)
    history.metadata = dataclasses.replace(
        history.metadata, schemas=(*history.metadata.schemas, renamed), current_schema_id=1,
        refs={**history.metadata.refs, "old": SnapshotRef(1001, SnapshotRefType.TAG), "dev": SnapshotRef(1001)},
    )  # fmt: skip
    assert paths(history.scan("number = 0")) == ["f0"]
    assert paths(history.scan("id = 0", snapshot_id=1001)) == ["f0"]
    assert paths(history.scan().use_ref("old").filter("id = 0")) == ["f0"]
    assert paths(history.scan().use_ref("dev").filter("number = 0")) == ["f0"]


def test_columns_are_selected_by_name_with_metadata_columns(history):
    assert history.scan().projection() == SCHEMA
    assert history.scan(selected_fields=("s", "_file", "id")).projection().column_names == [
        "id",
        "s",
        "_file",
    ]
    assert history.scan().select("S", "ID").select("ID").selected_fields == ("ID",)
    assert history.scan(
        selected_fields=("ID",), case_sensitive=False
    ).projection().column_names == ["id"]
    with pytest.raises(ValidationError, match="nope"):
        history.scan().select("nope").projection()


def test_filters_add_up(history):
    scan = history.scan("id >= 1").filter(EqualTo("s", "a")).filter("id < 2")
    assert paths(scan) == ["f1"]


def task_of(size, offsets=None, deletes=(), file_format=FileFormat.PARQUET):
    file = DataFile(
        file_path=f"f{size}",
        record_count=1,
        file_size_in_bytes=size,
        split_offsets=offsets,
        file_format=file_format,
    )
    return FileScanTask(file, deletes)


def spans(tasks):
    return [(task.start, task.length) for task in tasks]


def test_files_are_split_where_they_say_else_at_the_target_size():
    assert spans(task_of(100, (4, 40, 80)).split(1000)) == [(4, 36), (40, 40), (80, 20)]
    assert spans(task_of(100).split(30)) == [(0, 30), (30, 30), (60, 30), (90, 10)]
    assert spans(task_of(100).split(100)) == [(0, 100)]
    # offsets that make no sense are not used
    assert spans(task_of(100, (4, 200)).split(60)) == [(0, 60), (60, 40)]
    assert spans(task_of(100, (50, 4)).split(60)) == [(0, 60), (60, 40)]
    assert spans(task_of(100, file_format=FileFormat.PUFFIN).split(10)) == [(0, 100)]


def test_a_file_has_a_bounded_number_of_parts():
    size = 1 << 53
    parts = spans(task_of(size).split(1))
    assert len(parts) <= MOST_PARTS
    assert sum(length for _, length in parts) == size
    # more offsets than row groups of any file
    parts = spans(task_of(size, tuple(range(4, MOST_PARTS + 5))).split(size // 2))
    assert parts == [(0, size // 2), (size // 2, size // 2)]


def test_the_parts_of_a_file_cover_it_once():
    for size, target in itertools.product((1, 7, 100), (1, 3, 64, 1000)):
        parts = spans(task_of(size).split(target))
        assert parts[0][0] == 0
        assert sum(length for _, length in parts) == size
        assert all(a + n == b for (a, n), (b, _) in itertools.pairwise(parts))


def test_small_files_are_packed_together_and_neighboring_parts_joined():
    groups = list(plan_task_groups([task_of(100, (4, 40, 80))], 1000, 10, 1))
    assert [spans(group.tasks) for group in groups] == [[(4, 96)]]
    groups = list(plan_task_groups([task_of(10) for _ in range(10)], 40, 10, 1))
    assert [len(group.tasks) for group in groups] == [4, 4, 2]
    # opening a file costs as much as reading 20 bytes
    groups = list(plan_task_groups([task_of(10) for _ in range(10)], 40, 10, 20))
    assert [len(group.tasks) for group in groups] == [2] * 5


def test_the_heaviest_group_is_given_out_when_too_many_are_open():
    sizes = [30, 36, 25, 5]
    groups = [[t.length for t in g.tasks] for g in plan_task_groups(map(task_of, sizes), 40, 2, 1)]
    assert groups == [[36], [30, 5], [25]]


def test_deletes_weigh_as_their_files_do():
    deletes = (position_delete("p", SPECS[0]),)
    assert task_of(100, deletes=deletes).weight(1) == 110
    assert task_of(1, deletes=deletes).weight(50) == 100


def test_group_sizes_come_from_the_table_unless_given(tmp_path):
    table = TableMaker(tmp_path)
    table.manifest(
        [data_file(f"f{n}", [(1, 0, "a")], SPECS[0], size=60) for n in range(6)], SPECS[0]
    )
    table.commit()
    assert [len(g.tasks) for g in table.scan().plan_tasks()] == [6]
    properties = {"read.split.target-size": "120", "read.split.open-file-cost": "1"}
    table.metadata = dataclasses.replace(table.metadata, properties=properties)
    assert [len(g.tasks) for g in table.scan().plan_tasks()] == [2, 2, 2]
    assert [len(g.tasks) for g in table.scan().plan_tasks(target_size=60)] == [1] * 6
    table.metadata = dataclasses.replace(
        table.metadata, properties={"read.split.target-size": "much"}
    )
    with pytest.raises(ValidationError, match=r"read\.split\.target-size"):
        table.scan().plan_tasks()


def test_tasks_can_be_sent_to_another_process(table_and_rows):
    table, _ = table_and_rows
    tasks = list(table.scan("id > 3").plan_files())
    assert pickle.loads(pickle.dumps(tasks)) == tasks  # noqa: S301 - our own bytes


def test_metadata_read_back_plans_the_same(table_and_rows):
    table, _ = table_and_rows
    again = TableMetadata.from_json(table.metadata.to_json())
    assert paths(TableScan(again, table.io, "id = 5")) == paths(table.scan("id = 5"))


def test_bounds_of_an_id_that_was_used_again_for_another_type_are_not_compared():
    def schema(**columns):
        fields = (NestedField(int(n[1:]), n, kind) for n, kind in columns.items())
        return Schema(tuple(fields))

    long = schema(c1=LongType(), c2=LongType(), c3=StringType(), c4=IntegerType())
    other = schema(c1=StringType(), c2=IntegerType(), c3=DoubleType(), c4=LongType())
    wide = {2: LongType(), 4: LongType()}
    assert comparable_columns([long, other]) == comparable_columns([other, long]) == wide
    assert comparable_columns([long]) == {f.field_id: f.field_type for f in long.fields}
