"""Row groups are copied: the same rows, order and metrics as by decoding, or a reason why not."""

from __future__ import annotations

import datetime as dt
import math
import struct
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from agreed_rows import ordered, rows

from icecomb.format import variants_from_arrow, variants_to_arrow
from icecomb.format.errors import (
    ConfigurationError,
    CorruptFileError,
    IcecombError,
    ValidationError,
)
from icecomb.format.manifests.manifest import DataFile, FileFormat
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_manifest
from icecomb.format.operation.overwrite import OverwriteFiles, RewriteFiles
from icecomb.format.rows.parquet.compact_protocol import I32, I64, STRUCT, read_struct
from icecomb.format.rows.parquet.raw_footer import enclosed
from icecomb.format.spec.arrow_schema import schema_to_pyarrow
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import IdentityTransform
from icecomb.format.spec.types import (
    ListType,
    LongType,
    NestedField,
    UnknownType,
    VariantType,
)

pytestmark = pytest.mark.gate("86 tables; in fast are those of test_compaction")
SCHEMA = pa.schema(
    [("id", pa.int64()), ("x", pa.float64()), ("s", pa.string()), ("l", pa.list_(pa.int32()))]
)
REQUIRE = {"copy": "require", "rewrite-all": "true"}
AUTO = {"copy": "auto", "rewrite-all": "true"}
NEVER = {"copy": "never", "rewrite-all": "true"}
SMALL = {
    "icecomb.maintenance.copy-min-row-group-bytes": "0",
    "write.delete.mode": "merge-on-read",
    "format-version": "2",
}


def frame(start: int, count: int = 10) -> pa.Table:
    numbers = range(start, start + count)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "x": [math.nan if n % 7 == 3 else n / 2 for n in numbers],
            "s": [None if n % 5 == 1 else f"s{n}" for n in numbers],
            "l": pa.array([[n, None] * (n % 3) for n in numbers], pa.list_(pa.int32())),
        },
        SCHEMA,
    )


def new_table(lake, *parts, name="db.t", schema=SCHEMA, **properties):
    given = SMALL | {key.replace("_", "."): value for key, value in properties.items()}
    table = lake.create_table(name, schema, properties=given)
    for part in parts:
        table.append(part)
    return table


def in_order(table) -> list[int]:
    return table.refresh().scan(selected_fields=("id",)).to_arrow()["id"].to_pylist()


def described(table) -> list:
    """The data files with all their metrics."""
    found = [
        entry.data_file
        for manifest in read_manifests(table.io, table.refresh().current_snapshot())
        for entry in read_manifest(table.io, manifest, discard_deleted=True)
    ]
    return sorted(
        (file for file in found if file.content.name == "DATA"), key=lambda f: f.file_path
    )


def local(file) -> Path:
    return Path(file.file_path.removeprefix("file:"))


def row_groups(table) -> list[int]:
    return [pq.read_metadata(local(file)).num_row_groups for file in described(table)]


def all_on_disk(table) -> set[str]:
    folder = Path(table.location().removeprefix("file:")) / "data"
    return {str(path) for path in folder.rglob("*.parquet")}


def written(table, path: Path, arrow: pa.Table, **options) -> str:
    """A file as pyarrow writes it, with the table's field ids."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fields = schema_to_pyarrow(table.schema())
    given = {"write_page_index": True, "write_page_checksum": True, **options}
    pq.write_table(arrow.cast(fields), path, **given)
    return f"file:{path}"


def test_row_groups_are_copied_with_their_rows_in_order(lake):
    table = new_table(lake, *(frame(n, 10) for n in range(0, 60, 10)))
    before = in_order(table)
    result = table.maintenance.rewrite_data_files()
    assert (result.rewritten_data_files_count, result.added_data_files_count) == (6, 1)
    assert row_groups(table) == [6]
    assert in_order(table) == before
    found = duckdb.sql(f"SELECT id, s FROM '{local(described(table)[0])}'").fetchall()
    assert found == [(n, None if n % 5 == 1 else f"s{n}") for n in before]
    assert [row[0] for row in rows(table)] == sorted(before, key=repr)


@pytest.mark.parametrize("version", ["2", "3"])
def test_metrics_are_those_of_decoding(lake, version):
    parts, given = (frame(0), frame(10), frame(20, 3)), {"format-version": version}
    tables = [new_table(lake, *parts, name=f"db.{n}", **given) for n in "ab"]
    for table, options in zip(tables, (REQUIRE, NEVER), strict=True):
        table.maintenance.rewrite_data_files(options=options)
    (copied,), (decoded,) = map(described, tables)
    assert copied.nan_value_counts == {2: 3}
    for name in ("record_count", "value_counts", "null_value_counts", "nan_value_counts"):
        assert getattr(copied, name) == getattr(decoded, name)
    assert copied.lower_bounds == decoded.lower_bounds
    assert copied.upper_bounds == decoded.upper_bounds
    assert copied.column_sizes.keys() == decoded.column_sizes.keys()
    footer = pq.read_metadata(local(copied))
    starts = [footer.row_group(n).column(0).dictionary_page_offset for n in range(3)]
    assert list(copied.split_offsets) == starts
    assert copied.file_size_in_bytes == local(copied).stat().st_size


@pytest.mark.parametrize("mode", ["none", "counts", "truncate(2)", "full"])
def test_metrics_are_as_long_as_the_table_asks_for(lake, mode):
    properties = {"write.metadata.metrics.default": mode}
    long = pa.table({"id": [1, 2], "s": ["a longer text", "zzzz"]})
    schema = long.schema
    tables = [
        new_table(lake, long, long, name=f"db.{n}", schema=schema, **properties) for n in "ab"
    ]
    for table, options in zip(tables, (REQUIRE, NEVER), strict=True):
        table.maintenance.rewrite_data_files(options=options)
    (copied,), (decoded,) = map(described, tables)
    for name in ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds"):
        assert getattr(copied, name) == getattr(decoded, name)


def test_what_a_footer_does_not_tell_manifests_do(lake):
    """Without statistics in files, as parquet-mr leaves them out for columns with NaN."""
    off = {f"write.parquet.stats-enabled.column.{name}": "false" for name in ("x", "s")}
    table = new_table(lake, frame(0), frame(10), **off)
    known = new_table(lake, frame(0), frame(10), name="db.known")
    wanted = {f.record_count: f for f in described(known)}
    assert len(described(table)) == 2
    assert all(2 not in (f.lower_bounds or {}) for f in described(table))
    _describe_again(table, described(known))
    table.maintenance.rewrite_data_files(options=REQUIRE)
    known.maintenance.rewrite_data_files(options=NEVER)
    (copied,), (decoded,) = described(table), described(known)
    assert copied.null_value_counts == decoded.null_value_counts
    assert copied.nan_value_counts == decoded.nan_value_counts == {2: 3}
    assert copied.lower_bounds == decoded.lower_bounds
    assert copied.upper_bounds == decoded.upper_bounds
    assert wanted


@pytest.mark.parametrize("first", [-0.0, 0.0])
def test_zeros_of_both_signs_are_between_the_bounds_that_manifests_told(lake, first):
    """The order of zeros is Java's: `x = 0.0` finds nothing below an upper bound of -0.0."""
    schema = pa.schema([("x", pa.float64())])
    parts = [pa.table({"x": [zero, 1.0 * math.copysign(1, zero)]}) for zero in (first, -first)]
    low, high = struct.pack("<d", -0.0), struct.pack("<d", 0.0)
    for bound in ("lower_bounds", "upper_bounds"):
        table = new_table(
            lake,
            *parts,
            name=f"db.{bound}",
            schema=schema,
            **{"write.parquet.stats-enabled.column.x": "false"},
        )
        told = []
        for file in described(table):
            copy = local(file).with_name(f"again-{local(file).name}")
            copy.write_bytes(local(file).read_bytes())
            zero = {1: struct.pack("<d", pq.read_table(copy)["x"][0].as_py())}
            told.append(replace(file, file_path=f"file:{copy}", **{bound: zero}))
        told.sort(key=lambda file: getattr(file, bound)[1], reverse=math.copysign(1, first) < 0)
        table.commit(RewriteFiles(table.io).rewrite_files(described(table), told))
        table.maintenance.rewrite_data_files(options=REQUIRE)
        (copied,) = described(table)
        assert getattr(copied, bound) == {1: low if bound == "lower_bounds" else high}


def _describe_again(table, others) -> None:
    """Take over the metrics of others for the files of a table."""
    own = described(table)
    by_rows = {file.lower_bounds[1]: file for file in others}
    again = []
    for file in own:
        copy = local(file).with_name(f"again-{local(file).name}")
        copy.write_bytes(local(file).read_bytes())
        metrics = by_rows[file.lower_bounds[1]]
        again.append(
            replace(metrics, file_path=f"file:{copy}", file_size_in_bytes=copy.stat().st_size)
        )
    table.commit(RewriteFiles(table.io).rewrite_files(own, again))


def test_never_decodes_and_other_strategies_do_so_by_themselves(lake):
    table = new_table(lake, frame(0), frame(10))
    table.maintenance.rewrite_data_files(options=NEVER)
    assert row_groups(table) == [1]
    table = new_table(lake, frame(0), frame(10), name="db.u")
    table.maintenance.rewrite_data_files(sort_order="id DESC", options=AUTO)
    assert (row_groups(table), in_order(table)) == ([1], list(range(19, -1, -1)))
    for order in ("id", "zorder(id, x)"):
        with pytest.raises(ValidationError, match="cannot be require with"):
            table.maintenance.rewrite_data_files(sort_order=order, options=REQUIRE)
    with pytest.raises(ConfigurationError, match="auto, never or require"):
        table.maintenance.rewrite_data_files(options={"copy": "yes"})


def test_columns_that_no_file_has_do_not_move_the_others(lake):
    schema = Schema((NestedField(1, "u", UnknownType()), NestedField(2, "id", LongType())))
    asked = {"write.parquet.bloom-filter-enabled.column.id": "true", "format-version": "3"}
    table = lake.create_table("db.t", schema, properties=SMALL | asked)
    for part in ([3, 1], [2]):
        table.append(pa.table({"id": pa.array(part, pa.int64())}))
    table.maintenance.rewrite_data_files(options=REQUIRE)
    assert sorted(in_order(table)) == [1, 2, 3]
    assert row_groups(table) == [2]


def add_column(table):
    with table.update_schema() as update:
        update.add_column("new", LongType())


def promote(table):
    with table.update_schema() as update:
        update.update_column("i", LongType())


def move(table):
    with table.update_schema() as update:
        update.move_first("s")


def delete(table):
    table.delete("id = 2")


def partition(table):
    with table.update_spec() as update:
        update.add_field("id", "identity", "p")


def ask_for_bloom_filters(table):
    with table.update_properties() as update:
        update.set("write.parquet.bloom-filter-enabled.column.s", "true")


def write_avro(table):
    with table.update_properties() as update:
        update.set("write.format.default", "avro")


def ask_for_more(table):
    with table.update_properties() as update:
        update.remove("icecomb.maintenance.copy-min-row-group-bytes")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (add_column, "its columns are not the table's current columns"),
        (promote, "column i is INT32"),
        (move, "its columns are not the table's current columns"),
        (delete, "rows of it are deleted"),
        (partition, "of partition spec 0, new files of 1"),
        (ask_for_bloom_filters, "no bloom filter of column s"),
        (write_avro, "new files are AVRO"),
        (ask_for_more, "copy-min-row-group-bytes is 8388608"),
    ],
)
def test_what_cannot_be_copied_is_decoded_or_refused(lake, change, reason):
    schema = pa.schema(
        [pa.field("id", pa.int64(), nullable=False), ("i", pa.int32()), ("s", pa.string())]
    )
    table = new_table(lake, schema=schema)
    for at in (0, 3):
        table.append(
            pa.table(
                [[at, at + 1, at + 2], pa.array([1, 2, 3], pa.int32()), ["a", "b", "c"]], schema
            )
        )
    change(table)
    table.refresh()
    expected = ordered(table.scan().to_arrow())
    state, disk = table.metadata_location, all_on_disk(table)
    with pytest.raises(ValidationError, match=reason):
        table.maintenance.rewrite_data_files(options=REQUIRE)
    assert (table.refresh().metadata_location, all_on_disk(table)) == (state, disk)
    table.maintenance.rewrite_data_files(options=AUTO)
    assert ordered(table.refresh().scan().to_arrow()) == expected
    assert len(table.snapshots()) == 3 + (change is delete)


@pytest.mark.parametrize(
    ("arrow", "options", "reason"),
    [
        ({}, {"compression": "snappy"}, None),
        ({}, {"data_page_version": "2.0"}, None),
        ({}, {"use_dictionary": False, "write_page_index": False}, None),
        ({"id": pa.int32()}, {}, "column id is INT32"),
        ({}, {"use_deprecated_int96_timestamps": True}, "column t is INT96"),
        ({"t": pa.timestamp("us", "UTC")}, {}, "column t is"),
        ({}, {"use_compliant_nested_type": False}, None),
    ],
)
def test_files_of_others_are_copied_where_they_are_exact(lake, tmp_path, arrow, options, reason):
    schema = pa.schema([("id", pa.int64()), ("t", pa.timestamp("us")), ("l", pa.list_(pa.int32()))])
    table = new_table(lake, schema=schema)
    with_ids = schema_to_pyarrow(table.schema())
    kinds = [f.with_type(arrow.get(f.name, f.type)) for f in with_ids]
    for at in range(2):
        moment = dt.datetime.fromisoformat(f"2020-01-01T0{at}:00:00")
        rows_ = pa.table([[at, None], [moment, None], [[1], None]], names=schema.names)
        path = tmp_path / f"{at}.parquet"
        pq.write_table(rows_.cast(schema).cast(pa.schema(kinds)), path, **options)
        try:
            table.add_files([f"file:{path}"])
        except IcecombError:
            assert reason == "column id is INT32"  # such a file is not even added
            return
    expected = rows(table.refresh())
    if reason is not None:
        with pytest.raises(ValidationError, match=reason):
            table.maintenance.rewrite_data_files(options=REQUIRE)
        table.maintenance.rewrite_data_files(options=AUTO)
    else:
        table.maintenance.rewrite_data_files(options=REQUIRE)
    assert rows(table.refresh()) == expected
    assert len(described(table)) == 1


def test_columns_that_became_optional_are_copied(lake):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("s", pa.string())])
    table = new_table(lake, schema=schema)
    for n in range(2):
        table.append(pa.table([[n], [None]], schema))
    with table.update_schema() as update:
        update.make_column_optional("id")
    table.maintenance.rewrite_data_files(options=REQUIRE)
    assert rows(table.refresh()) == [(0, None), (1, None)]
    table.append(pa.table([[2], ["two"]], schema.set(0, pa.field("id", pa.int64()))))
    with pytest.raises(ValidationError, match="written differently from the file before"):
        table.maintenance.rewrite_data_files(options=REQUIRE)
    table.maintenance.rewrite_data_files(options=AUTO)
    assert rows(table.refresh()) == [(0, None), (1, None), (2, "two")]


@pytest.mark.parametrize("inside", ["zz", "ab", None])
def test_files_with_other_values_than_their_partition_stay_to_be_found(lake, tmp_path, inside):
    """Readers show the partition's value: bounds of what is inside would hide the rows."""
    schema = pa.schema([("id", pa.int64()), ("p", pa.string())])
    spec = PartitionSpec(0, (PartitionField(2, 1000, IdentityTransform(), "p"),))
    table = lake.create_table("db.t", schema, partition_spec=spec, properties=SMALL)
    adding = OverwriteFiles(table.io)
    for at in (0, 2):
        arrow = pa.table([[at, at + 1], pa.array([inside] * 2, pa.string())], schema)
        path = tmp_path / f"{at}.parquet"
        location = written(table, path, arrow)
        adding.append_data_file(
            DataFile(
                file_path=location,
                file_format=FileFormat.PARQUET,
                partition=("a",),
                record_count=2,
                file_size_in_bytes=path.stat().st_size,
                spec_id=0,
            )
        )
    table.commit(adding)
    with pytest.raises(ValidationError, match="column p has just the value of its partition"):
        table.maintenance.rewrite_data_files(options=REQUIRE)
    table.maintenance.rewrite_data_files(options=AUTO)
    found = table.refresh().scan("p = 'a'").to_arrow()
    assert sorted(found["id"].to_pylist()) == [0, 1, 2, 3]
    assert table.scan("p is null or p > 'a'").to_arrow().num_rows == 0


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.int32(), 7),
        (pa.float64(), -0.0),
        (pa.bool_(), True),
        (pa.date32(), dt.date(1960, 1, 2)),
        (pa.timestamp("us"), dt.datetime(1960, 1, 2, 3, 4, 5, 6)),  # noqa: DTZ001
        (pa.timestamp("us", tz="UTC"), dt.datetime(2020, 1, 2, tzinfo=dt.timezone.utc)),
        (pa.time64("us"), dt.time(1, 2, 3)),
        (pa.decimal128(20, 3), Decimal("-1.234")),
        (pa.string(), "ü"),
        (pa.binary(), b"\xff\x00"),
        (pa.string(), None),
    ],
)
def test_files_of_a_partition_are_copied_whatever_its_value(lake, kind, value):
    schema = pa.schema([("id", pa.int64()), ("p", kind)])
    spec = PartitionSpec(0, (PartitionField(2, 1000, IdentityTransform(), "p"),))
    table = lake.create_table("db.t", schema, partition_spec=spec, properties=SMALL)
    for at in (0, 2):
        table.append(pa.table([[at, at + 1], pa.array([value] * 2, kind)], schema))
    table.maintenance.rewrite_data_files(options=REQUIRE)
    assert (sorted(in_order(table)), row_groups(table)) == ([0, 1, 2, 3], [2])


def test_columns_that_must_not_be_null_are_looked_at(lake, tmp_path):
    table = new_table(lake, schema=pa.schema([pa.field("id", pa.int64(), nullable=False)]))
    paths = [tmp_path / f"{at}.parquet" for at in range(2)]
    for at, path in enumerate(paths):
        pq.write_table(pa.table({"id": [at]}), path)
    try:
        table.add_files([f"file:{path}" for path in paths])
    except IcecombError as error:
        assert "id" in str(error)  # noqa: PT017 - such files are not even added
        return
    with pytest.raises(ValidationError, match="column id is not required in it"):
        table.maintenance.rewrite_data_files(options=REQUIRE)


def test_files_of_two_writers_are_decoded(lake, tmp_path):
    table = new_table(lake, frame(0))
    path = tmp_path / "duck.parquet"
    duckdb.sql(
        "COPY (SELECT 5::BIGINT AS id, 1.5::DOUBLE AS x, 'd' AS s, [1]::INT[] AS l) "
        f"TO '{path}' (FORMAT parquet, FIELD_IDS {{id: 1, x: 2, s: 3, l: {{__duckdb_field_id: 4, element: 5}}}})"
    )
    table.add_files([f"file:{path}"])
    expected = rows(table.refresh())
    with pytest.raises(ValidationError, match=r"parquet-cpp-arrow.*wrote it|DuckDB.*wrote it"):
        table.maintenance.rewrite_data_files(options=REQUIRE)
    table.maintenance.rewrite_data_files(options=AUTO)
    assert rows(table.refresh()) == expected


def test_files_of_duckdb_are_copied(lake, tmp_path):
    table = new_table(lake)
    for at in range(2):
        path = tmp_path / f"duck{at}.parquet"
        duckdb.sql(
            f"COPY (SELECT {at}::BIGINT + range AS id, range / 2 AS x, 's' || range AS s, "
            f"[1, NULL]::INT[] AS l FROM range(10000)) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 3000, "
            "FIELD_IDS {id: 1, x: 2, s: 3, l: {__duckdb_field_id: 4, element: 5}})"
        )
        table.add_files([f"file:{path}"])
    expected = rows(table.refresh())
    table.maintenance.rewrite_data_files(options=REQUIRE)
    assert rows(table.refresh()) == expected
    path = local(described(table)[0])
    assert duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE s = 's77'").fetchall() == [(2,)]
    assert duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE s = 'nowhere'").fetchall() == [(0,)]


def test_files_without_ids_get_those_of_the_name_mapping(lake, tmp_path):
    table = new_table(lake, schema=pa.schema([("id", pa.int64()), ("s", pa.string())]))
    paths = [tmp_path / f"{at}.parquet" for at in range(2)]
    for at, path in enumerate(paths):
        plain = pa.table(
            {"id": [at], "s": [f"s{at}"]}, pa.schema([("id", pa.int64()), ("s", pa.string())])
        )
        pq.write_table(plain.replace_schema_metadata({"pandas": "{}"}), path)
    table.add_files([f"file:{path}" for path in paths])
    with table.update_schema() as update:
        update.rename_column("s", "text")
    table.maintenance.rewrite_data_files(options=REQUIRE)
    footer = pq.read_metadata(local(described(table.refresh())[0]))
    arrow = footer.schema.to_arrow_schema()
    assert [(f.name, f.metadata[b"PARQUET:field_id"]) for f in arrow] == [
        ("id", b"1"),
        ("text", b"2"),
    ]
    assert footer.row_group(0).column(1).path_in_schema == "text"
    assert set(footer.metadata) == {b"iceberg.schema"}
    with table.update_properties() as update:
        update.remove("schema.name-mapping.default")
    assert rows(table.refresh()) == [(0, "s0"), (1, "s1")]


def test_a_flipped_bit_under_a_checksum_is_named_and_nothing_committed(lake, tmp_path):
    table = new_table(lake)
    paths = [tmp_path / f"{at}.parquet" for at in range(2)]
    table.add_files([written(table, path, frame(at * 1000, 1000)) for at, path in enumerate(paths)])
    state, disk = table.refresh().metadata_location, all_on_disk(table)
    column = pq.read_metadata(paths[1]).row_group(0).column(0)
    data = bytearray(paths[1].read_bytes())
    data[column.data_page_offset + column.total_compressed_size // 2] ^= 4
    paths[1].write_bytes(data)
    for options in (AUTO, REQUIRE, NEVER):
        with pytest.raises(CorruptFileError, match=rf"{paths[1].name}.*checksum"):
            table.maintenance.rewrite_data_files(options=options)
    assert (table.refresh().metadata_location, all_on_disk(table)) == (state, disk)


def with_footer(path: Path, change) -> None:
    """Rewrite the footer of a file."""
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    footer, _ = read_struct(data[-8 - length : -8])
    change(footer)
    path.write_bytes(data[: -8 - length] + enclosed(footer.encoded())[4:])


def group_of(footer):
    return footer[4].values[0]


def meta_of(footer):
    return group_of(footer)[1].values[1][3]


def lie_about_rows(footer):
    footer.put(3, I64, footer[3] + 1)


def lie_about_all_rows(footer):
    lie_about_rows(footer)
    group_of(footer).put(3, I64, group_of(footer)[3] + 1)


def lie_about_values(footer):
    meta_of(footer).put(5, I64, meta_of(footer)[5] - 1)


def lie_about_length(footer):
    meta_of(footer).put(7, I64, meta_of(footer)[7] - 3)


def point_beyond_the_end(footer):
    meta_of(footer).put(7, I64, 1 << 40)


def point_elsewhere(footer):
    meta_of(footer).put(9, I64, meta_of(footer)[9] + 1)
    meta_of(footer).drop(11)


def drop_a_column(footer):
    group_of(footer)[1].values.pop()


UNHEARD = (lie_about_values,)
"""Who decodes asks row groups and pages, which tell the truth; of the footer only the number of rows."""


@pytest.mark.parametrize(
    "lie",
    [
        lie_about_rows,
        lie_about_all_rows,
        lie_about_values,
        lie_about_length,
        point_beyond_the_end,
        point_elsewhere,
        drop_a_column,
    ],
)
def test_a_lying_footer_is_named_and_nothing_committed(lake, tmp_path, lie):
    table = new_table(lake)
    paths = [tmp_path / f"{at}.parquet" for at in range(2)]
    table.add_files([written(table, path, frame(at * 100, 100)) for at, path in enumerate(paths)])
    state, disk = table.refresh().metadata_location, all_on_disk(table)
    size = paths[0].stat().st_size
    with_footer(paths[0], lie)
    with paths[0].open("ab") as file:  # no shorter than its manifest says, whatever the footer lost
        if (missing := size - paths[0].stat().st_size) > 0:
            data = paths[0].read_bytes()
            length = int.from_bytes(data[-8:-4], "little") + 8
            file.truncate(0)
            file.write(data[:-length] + bytes(missing) + data[-length:])
    with pytest.raises(CorruptFileError, match=paths[0].name):
        table.maintenance.rewrite_data_files(options=AUTO)
    assert (table.refresh().metadata_location, all_on_disk(table)) == (state, disk)
    if lie in UNHEARD:
        table.maintenance.rewrite_data_files(options=NEVER)
        found = table.refresh().scan().to_arrow().to_pylist()
        assert list(map(repr, found)) == list(map(repr, frame(0, 200).to_pylist()))
        return
    with pytest.raises(CorruptFileError, match=paths[0].name):
        table.maintenance.rewrite_data_files(options=NEVER)
    assert (table.refresh().metadata_location, all_on_disk(table)) == (state, disk)


@pytest.mark.parametrize("part", ["begin", "end", "cut"])
def test_a_file_that_is_no_parquet_is_named(lake, tmp_path, part):
    table = new_table(lake)
    paths = [tmp_path / f"{at}.parquet" for at in range(2)]
    table.add_files([written(table, path, frame(at * 100, 100)) for at, path in enumerate(paths)])
    state = table.refresh().metadata_location
    data = bytearray(paths[0].read_bytes())
    if part == "begin":
        data[0] = 0
    elif part == "end":
        data[-1] = 0
    else:
        del data[100:200]
    paths[0].write_bytes(data)
    with pytest.raises(CorruptFileError, match=paths[0].name):
        table.maintenance.rewrite_data_files(options=AUTO)
    assert table.refresh().metadata_location == state


def know_something_new(footer):
    footer.put(20, I32, 1)


def know_something_new_of_columns(footer):
    meta_of(footer).put(30, I32, 1)


def keep_columns_elsewhere(footer):
    group_of(footer)[1].values[0].put(1, 8, b"other.parquet")


def be_encrypted(footer):
    footer.put(8, STRUCT, b"\x00")


def encrypt_a_column(footer):
    group_of(footer)[1].values[0].put(8, STRUCT, b"\x00")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (be_encrypted, "it is encrypted"),
        (encrypt_a_column, "it is encrypted"),
        (know_something_new, "the footer has field 20"),
        (know_something_new_of_columns, "a column's metadata has field 30"),
        (keep_columns_elsewhere, "in other files"),
    ],
)
def test_footers_with_what_is_not_known_are_not_copied(lake, tmp_path, change, reason):
    table = new_table(lake)
    paths = [tmp_path / f"{at}.parquet" for at in range(2)]
    for at, path in enumerate(paths):
        written(table, path, frame(at * 100, 100))
        with_footer(path, change)
    table.add_files([f"file:{path}" for path in paths])
    with pytest.raises(ValidationError, match=reason):
        table.maintenance.rewrite_data_files(options=REQUIRE)


def test_row_groups_beyond_the_highest_number_have_none(lake, monkeypatch):
    """Parquet numbers them by 16 bits; a file of 34,000 was read by pyarrow and DuckDB, too."""
    monkeypatch.setattr("icecomb.format.rows.parquet.row_group_copy.MOST_NUMBERED", 1)
    table = new_table(lake, *(frame(n * 10) for n in range(5)))
    table.maintenance.rewrite_data_files(options=REQUIRE)
    (file,) = described(table)
    path = local(file)
    assert pq.read_metadata(path).num_row_groups == 5
    assert sorted(in_order(table)) == list(range(50))
    assert table.scan("id = 44").to_arrow()["id"].to_pylist() == [44]
    assert pq.read_table(path, filters=[("id", "=", 33)])["id"].to_pylist() == [33]
    assert duckdb.sql(f"SELECT id FROM '{path}' WHERE id > 48").fetchall() == [(49,)]


def test_a_wrong_page_index_is_not_copied(lake, tmp_path):
    """Readers go by it: who decodes the file makes a right one."""
    table = new_table(lake)
    paths = [tmp_path / f"{at}.parquet" for at in range(2)]
    for at, path in enumerate(paths):
        written(table, path, frame(at * 1000, 1000), data_page_size=100, max_rows_per_page=100)
    data = bytearray(paths[0].read_bytes())
    length = int.from_bytes(data[-8:-4], "little")
    footer, _ = read_struct(bytes(data[-8 - length : -8]))
    chunk = group_of(footer)[1].values[0]
    index, _ = read_struct(bytes(data[chunk[4] : chunk[4] + chunk[5]]))
    first = index[1].values[0]
    first.put(1, I64, first[1] ^ 1)
    data[chunk[4] : chunk[4] + chunk[5]] = index.encoded()
    paths[0].write_bytes(data)
    table.add_files([f"file:{path}" for path in paths])
    before, disk = rows(table.refresh()), all_on_disk(table)
    with pytest.raises(ValidationError, match="page index is not that of its pages"):
        table.maintenance.rewrite_data_files(options=REQUIRE)
    assert all_on_disk(table) == disk
    table.maintenance.rewrite_data_files(options=AUTO)
    assert (rows(table.refresh()), row_groups(table)) == (before, [1])


def test_large_files_are_cut_between_row_groups(lake, meanwhile):
    """Deletes that others add meanwhile find the rows wherever these went."""
    table = new_table(lake, **{"write.parquet.row-group-limit": "1000"})
    random = Random(5)
    for start in (0, 10_000, 20_000):
        ids = range(start, start + 10_000)
        noise = [random.random() for _ in ids]
        noise[0] = math.nan if start == 0 else noise[0]
        table.append(pa.table({"id": pa.array(ids, pa.int64()), "x": noise}))
    before, size = in_order(table), sum(f.file_size_in_bytes for f in described(table))
    other = lake.load_table("db.t")
    gone = {5, 9_999, 10_000, 17_777, 29_999}
    meanwhile(lambda: other.refresh().delete(f"id in ({', '.join(map(str, gone))})"))
    options = {**REQUIRE, "target-file-size-bytes": str(size // 5)}
    table.maintenance.rewrite_data_files(options=options)
    assert in_order(table) == [n for n in before if n not in gone]
    found = described(table)
    assert 5 <= len(found) <= 6
    assert max(f.file_size_in_bytes for f in found) <= size / 5 * 1.4
    assert sum(row_groups(table)) == 30
    # parts of a file with a NaN do not know whether it is theirs
    known = [f.nan_value_counts for f in found]
    assert known.count({2: 0}) >= 3
    assert {} in known or None in known
    for file in found:
        ids = pq.read_table(local(file), columns=["id"])["id"]
        assert int.from_bytes(file.lower_bounds[1], "little") == pc.min(ids).as_py()
        assert int.from_bytes(file.upper_bounds[1], "little") == pc.max(ids).as_py()


def test_a_row_group_longer_than_new_files_is_decoded(lake):
    table = new_table(lake, frame(0, 50_000))
    size = described(table)[0].file_size_in_bytes
    options = {**REQUIRE, "target-file-size-bytes": str(size // 5)}
    with pytest.raises(ValidationError, match="it has a row group of"):
        table.maintenance.rewrite_data_files(options=options)


def test_rows_that_others_delete_meanwhile_stay_deleted(lake, meanwhile):
    table = new_table(lake, frame(0), frame(10), frame(20))
    other = lake.load_table("db.t")
    meanwhile(lambda: other.refresh().delete("id = 3 or id = 29 or id = 10"))
    result = table.maintenance.rewrite_data_files(options=REQUIRE)
    assert (result.rewritten_data_files_count, result.failed_data_files_count) == (3, 0)
    assert row_groups(table) == [3]
    assert sorted(in_order(table)) == [n for n in range(30) if n not in {3, 10, 29}]
    assert [s.summary["operation"] for s in table.snapshots()][-1] == "replace"


def test_required_copies_fail_for_their_group_only_with_partial_progress(lake):
    from icecomb.format.spec.partition import PartitionField, PartitionSpec
    from icecomb.format.spec.transform import IdentityTransform

    schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
    spec = PartitionSpec(0, [PartitionField(2, 1000, IdentityTransform(), "s")])
    table = lake.create_table("db.t", schema, partition_spec=spec, properties=SMALL)
    for n in range(4):
        table.append(pa.table({"id": [n, n + 10, n + 20], "s": ["a", "b", "b"]}))
    table.delete("id = 12")
    options = {**REQUIRE, "partial-progress.enabled": "true"}
    result = table.maintenance.rewrite_data_files(options=options)
    assert (result.rewritten_data_files_count, result.failed_data_files_count) == (4, 4)
    assert sorted(in_order(table)) == [0, 1, 2, 3, 10, 11, 13, 20, 21, 22, 23]


def _value(kind: pa.DataType, random: Random):
    if random.random() < 0.15:
        return None
    if pa.types.is_list(kind):
        return [_value(kind.value_type, random) for _ in range(random.randrange(4))]
    if pa.types.is_map(kind):
        return [(f"k{n}", _value(kind.item_type, random)) for n in range(random.randrange(3))]
    if pa.types.is_struct(kind):
        return {f.name: _value(f.type, random) for f in kind}
    return _SCALARS[kind](random)


_SCALARS = {
    pa.bool_(): lambda r: r.random() < 0.5,
    pa.int32(): lambda r: r.randint(-(1 << 31), (1 << 31) - 1),
    pa.int64(): lambda r: r.choice([r.randint(-9, 9), r.randint(-(1 << 63), (1 << 63) - 1)]),
    pa.float32(): lambda r: r.choice(
        [math.nan, 0.0, -0.0, -1.5, math.inf, float(r.randint(-99, 99))]
    ),
    pa.float64(): lambda r: r.choice([math.nan, 0.0, -0.0, 1e300, -math.inf, r.random()]),
    pa.decimal128(9, 2): lambda r: Decimal(r.randint(-999999999, 999999999)).scaleb(-2),
    pa.decimal128(18, 4): lambda r: Decimal(r.randint(-(10**17), 10**17)).scaleb(-4),
    pa.decimal128(38, 10): lambda r: Decimal(r.randint(-(10**30), 10**30)).scaleb(-10),
    pa.date32(): lambda r: dt.date(r.randint(1, 9999), 1, r.randint(1, 28)),
    pa.time64("us"): lambda r: dt.time(r.randrange(24), 1, 2, r.randrange(1000000)),
    pa.timestamp("us"): lambda r: dt.datetime.fromisoformat(
        f"{r.randint(1, 9999):04}-01-02T03:04:05.{r.randrange(1000000):06}"
    ),
    pa.timestamp("us", "UTC"): lambda r: dt.datetime(
        r.randint(1000, 3000), 1, 2, 3, tzinfo=dt.timezone.utc
    ),
    pa.string(): lambda r: r.choice(["", "a", "é" * 20, "\U0010ffff" * 17, f"s{r.randrange(99)}"]),
    pa.binary(): lambda r: r.choice([b"", b"\xff" * 20, r.randbytes(r.randrange(30))]),
    pa.binary(5): lambda r: r.randbytes(5),
}


def _kind(random: Random, depth: int = 0, *, v2: bool) -> pa.DataType:
    choice = random.random()
    if depth < 3 and choice < 0.35:
        inner = _kind(random, depth + 1, v2=v2)
        return random.choice(
            [
                pa.list_(inner),
                pa.map_(pa.string(), inner),
                pa.struct([("a", inner), ("b", _kind(random, depth + 1, v2=v2))]),
            ]
        )
    # pyarrow 26 reads few rows of truth values in lists, in pages of version 2, as none
    kinds = list(_SCALARS)
    return random.choice(kinds[1:] if v2 and depth else kinds)


@pytest.mark.seeds(40, gate=8)
def test_whatever_the_files_are_a_copy_is_as_what_is_decoded(lake, seed, tmp_path):
    random = Random(seed)
    version = random.choice(["1.0", "2.0"])
    number = random.randint(1, 6)
    more = [(f"c{n}", _kind(random, v2=version == "2.0")) for n in range(number)]
    kinds = [("id", pa.int64()), *more]
    schema = pa.schema(kinds)
    tables = [new_table(lake, schema=schema, name=f"db.{n}") for n in ("copied", "decoded")]
    options = {
        "use_dictionary": random.choice([True, False]),
        "data_page_version": version,
        "compression": random.choice(["none", "snappy", "zstd", "gzip", "lz4"]),
        "write_page_index": random.choice([True, False]),
        "write_page_checksum": random.choice([True, False]),
        "write_statistics": random.choice([True, True, False]),
        "row_group_size": random.choice([7, 50, 1000]),
        "data_page_size": random.choice([50, 1 << 20]),
        "store_decimal_as_integer": random.choice([True, False]),
        "store_schema": random.choice([True, False]),
    }
    if random.random() < 0.5:
        options["bloom_filter_options"] = {"id": {"ndv": 100, "fpp": 0.01}}
    with_ids = schema_to_pyarrow(tables[0].schema())
    if random.random() < 0.3:
        with_ids = schema  # as Hive's, by a name mapping
    paths, number = [], 0
    for at in range(random.randint(1, 4)):
        count = random.choice([0, 1, 30, 120])
        found = []
        for _ in range(count):
            found.append({"id": number} | {name: _value(kind, random) for name, kind in kinds[1:]})
            number += 1
        path = tmp_path / f"{at}.parquet"
        pq.write_table(pa.Table.from_pylist(found, schema).cast(with_ids), path, **options)
        paths.append(f"file:{path}")
    for table in tables:
        table.add_files(paths)
    target = random.choice([None, None, "2000", "20000"])
    more = {} if target is None else {"target-file-size-bytes": target}
    if number == 0:
        with pytest.raises(ValidationError, match="no rows"):
            tables[0].maintenance.rewrite_data_files(options=REQUIRE)
        return
    before = list(map(repr, tables[0].refresh().scan().to_arrow().to_pylist()))
    tables[0].maintenance.rewrite_data_files(options=AUTO | more)
    tables[1].maintenance.rewrite_data_files(options=NEVER | more)
    copied = list(map(repr, tables[0].refresh().scan().to_arrow().to_pylist()))
    assert copied == before == list(map(repr, tables[1].refresh().scan().to_arrow().to_pylist()))
    _same_metrics(tables, exact=options["write_statistics"] and target is None)
    for wanted in random.sample(range(number), min(number, 5)):
        assert tables[0].scan(f"id = {wanted}").to_arrow()["id"].to_pylist() == [wanted]
    for file in described(tables[0]):
        path = local(file)
        ids = pq.read_table(path, columns=["id"])["id"].to_pylist()
        assert pq.read_metadata(path).num_rows == len(ids) == file.record_count
        assert duckdb.sql(f"SELECT id FROM '{path}'").fetchall() == [(n,) for n in ids]
        for wanted in random.sample(ids, min(len(ids), 3)):
            found = duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE id = {wanted}").fetchall()
            assert found == [(1,)]
            assert pq.read_table(path, filters=[("id", "=", wanted)]).num_rows == 1
        chunks = duckdb.sql(
            f"SELECT sum(num_values) FROM parquet_metadata('{path}') WHERE path_in_schema = 'id'"
        ).fetchall()
        assert chunks == [(len(ids),)]


def _same_metrics(tables, *, exact: bool) -> None:
    if not exact:
        return
    (copied,), (decoded,) = map(described, tables)
    for name in ("record_count", "value_counts", "null_value_counts"):
        assert getattr(copied, name) == getattr(decoded, name)
    assert not copied.nan_value_counts  # nobody counted them in files that were added
    schema = tables[0].schema()
    floating = {i for i in schema.field_ids if str(schema.find_type(i)) in {"float", "double"}}
    for name in ("lower_bounds", "upper_bounds"):
        known, wanted = getattr(copied, name) or {}, getattr(decoded, name) or {}
        assert known.items() <= wanted.items()
        # of a row group that has nothing but NaN no footer tells that
        assert wanted.keys() - known.keys() <= floating


VARIANTS = Schema(
    NestedField(1, "v", VariantType()),
    NestedField(2, "l", ListType(3, VariantType())),
    NestedField(4, "id", LongType()),
)


def variants(start: int) -> pa.Table:
    numbers = range(start, start + 10)
    values = variants_to_arrow([None if n % 4 == 1 else {"n": n, "s": [str(n)]} for n in numbers])
    lists = pa.ListArray.from_arrays(pa.array(range(11)), values)
    return pa.table({"v": values, "l": lists, "id": numbers})


def test_row_groups_with_variants_are_copied_unless_others_shredded_them(lake, tmp_path):
    given = {"format-version": "3", "write.parquet.bloom-filter-enabled.column.id": "true"}
    table = new_table(lake, schema=VARIANTS, **given)
    numbers = range(0, 30, 10)
    for start in numbers:
        table.append(variants(start))
    before = table.scan().to_arrow()
    table.maintenance.rewrite_data_files(options=REQUIRE)
    assert table.scan().to_arrow().equals(before)
    (file,) = described(table)
    parsed = pq.ParquetFile(local(file))
    assert parsed.num_row_groups == 3
    assert str(parsed.schema).count("(Variant(1))") == 2
    kind = pa.struct(
        [(f, pa.binary()) for f in ("metadata", "value")] + [("typed_value", pa.int64())]
    )
    whole = pa.array([{"metadata": b"\1\0\0", "typed_value": n} for n in range(10)], kind)
    others = variants(30).set_column(0, "v", whole)
    pq.write_table(others, tmp_path / "others.parquet")
    table.add_files([f"{tmp_path}/others.parquet"])
    with pytest.raises(ValidationError, match="column v is shredded in it"):
        table.maintenance.rewrite_data_files(options=REQUIRE)
    table.maintenance.rewrite_data_files(options=AUTO)
    found = table.scan("id >= 30").to_arrow().sort_by("id")["v"]
    assert [v.to_python() for v in variants_from_arrow(found)] == list(range(10))
