"""Parquet files as table properties ask for them, looked at with pyarrow."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.format.errors import ConfigurationError
from icecomb.format.rows.parquet.writer import BloomFilter, ParquetOptions
from icecomb.format.rows.write.data_writer import write_data
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.types import (
    BooleanType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)
from icecomb.format.storage.file_io import FileIO

IO = FileIO()
SCHEMA = Schema(
    (
        NestedField(1, "id", LongType()),
        NestedField(2, "s", StringType()),
        NestedField(3, "b", BooleanType()),
        NestedField(4, "st", StructType((NestedField(7, "x", StringType()),))),
        NestedField(5, "ls", ListType(8, LongType())),
        NestedField(6, "m", MapType(9, StringType(), 10, LongType())),
    )
)
PATHS = ["id", "s", "b", "st.x", "ls.list.element", "m.key_value.key", "m.key_value.value"]


def write(folder, rows=1000, **properties):
    metadata = new_table_metadata(
        SCHEMA, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, str(folder), {}
    )
    source = random.Random(5)
    data = pa.table(
        {
            "id": range(rows),
            "s": [source.randbytes(8).hex() for _ in range(rows)],
            "b": [i % 2 == 0 for i in range(rows)],
            "st": pa.array([{"x": f"x{i % 9}"} for i in range(rows)]),
            "ls": [[i] for i in range(rows)],
            "m": pa.array([[("k", i)] for i in range(rows)], pa.map_(pa.string(), pa.int64())),
        }
    )
    return write_data(IO, metadata, data, options=properties)


def chunks(file, group=0):
    row_group = pq.read_metadata(file.file_path).row_group(group)
    found = [row_group.column(i) for i in range(row_group.num_columns)]
    assert [c.path_in_schema for c in found] == PATHS
    return found


def test_bloom_filters_are_written_for_the_columns_named_at_any_depth(tmp_path):
    names = ("id", "st.x", "ls.element", "m.key", "b", "gone")
    asked = {f"write.parquet.bloom-filter-enabled.column.{n}": "true" for n in names}
    (file,) = write(tmp_path, **asked, **{"write.parquet.bloom-filter-enabled.column.s": "false"})
    with_filter = [c.path_in_schema for c in chunks(file) if c.bloom_filter_offset]
    assert with_filter == ["id", "st.x", "ls.list.element", "m.key_value.key"]


@pytest.mark.parametrize(
    ("properties", "length"),
    [
        # 1000 values at 1 %: 1000 * -8 / ln(1 - 0.01 ** (1/8)) bits, up to a power of two of bytes
        ({}, 2048),
        ({"fpp": "0.5"}, 512),
        ({"ndv": "100"}, 128),
        ({"max": "1024"}, 1024),
        ({"max": "1500"}, 1024),
    ],
    ids=str,
)
def test_bloom_filters_are_as_long_as_the_rows_and_the_properties_ask(tmp_path, properties, length):
    names = {
        "fpp": "write.parquet.bloom-filter-fpp.column.id",
        "ndv": "write.parquet.bloom-filter-ndv.column.id",
        "max": "write.parquet.bloom-filter-max-bytes",
    }
    asked = {names[key]: value for key, value in properties.items()}
    (file,) = write(tmp_path, **{"write.parquet.bloom-filter-enabled.column.id": "true", **asked})
    # A short Thrift header stands before the filter itself.
    assert length <= chunks(file)[0].bloom_filter_length < length + 64


def test_bloom_filters_never_exceed_their_limit():
    bloom = BloomFilter(0.01)
    assert bloom.values(1000, 1 << 20) == 1000
    assert bloom.values(10**9, 1 << 20) < 10**9
    assert bloom.values(10**9, 1) >= 1


def test_dictionaries_and_statistics_can_be_switched_off_by_column(tmp_path):
    (file,) = write(
        tmp_path,
        **{
            "write.parquet.dict-encoding-enabled.column.st.x": "false",
            "write.parquet.dict-encoding-enabled.column.id": "true",
            "write.parquet.stats-enabled.column.s": "false",
        },
    )
    by_path = {c.path_in_schema: c for c in chunks(file)}
    assert by_path["id"].has_dictionary_page
    assert not by_path["st.x"].has_dictionary_page
    assert by_path["m.key_value.key"].has_dictionary_page
    assert not by_path["s"].is_stats_set
    assert by_path["id"].is_stats_set
    assert 2 not in file.lower_bounds
    assert 1 in file.lower_bounds


def test_row_groups_have_about_the_bytes_that_are_asked_for(tmp_path):
    limit = 400_000
    (file,) = write(tmp_path, 60_000, **{"write.parquet.row-group-size-bytes": str(limit)})
    footer = pq.read_metadata(file.file_path)
    sizes = [
        sum(footer.row_group(g).column(i).total_compressed_size for i in range(footer.num_columns))
        for g in range(footer.num_row_groups)
    ]
    assert len(sizes) > 2
    assert max(sizes) < limit * 1.3
    assert min(sizes[1:-1]) > limit * 0.7


def test_pages_have_the_rows_and_the_version_that_are_asked_for(tmp_path):
    few = {"write.parquet.page-row-limit": "100", "write.parquet.page-version": "v2"}
    (small,), (large,) = write(tmp_path / "a", 20_000, **few), write(tmp_path / "b", 20_000)
    assert small.file_size_in_bytes > large.file_size_in_bytes
    assert pq.read_table(small.file_path).equals(pq.read_table(large.file_path))
    assert all(c.has_offset_index for c in chunks(small))


@pytest.mark.parametrize(
    ("codec", "level", "name"),
    [("gzip", "9", "GZIP"), ("zstd", "19", "ZSTD"), ("snappy", "9", "SNAPPY"), ("lz4", None, "LZ4"), ("lz4_raw", None, "LZ4"),
     ("brotli", "5", "BROTLI"), ("none", "3", "UNCOMPRESSED")],
)  # fmt: skip
def test_a_level_counts_where_the_codec_has_levels(tmp_path, codec, level, name):
    properties = {"write.parquet.compression-codec": codec}
    if level is not None:
        properties["write.parquet.compression-level"] = level
    (file,) = write(tmp_path, **properties)
    assert {c.compression for c in chunks(file)} == {name}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("compression-codec", "lzo"),
        ("compression-level", "23"),
        ("compression-level", "high"),
        ("page-version", "v3"),
        ("page-size-bytes", "0"),
        ("bloom-filter-max-bytes", "-1"),
        ("bloom-filter-ndv.column.id", "none"),
        ("bloom-filter-fpp.column.id", "1.5"),
        ("dict-size-bytes", "1 MB"),
    ],
)
def test_options_that_make_no_sense_are_refused_by_name(name, value):
    with pytest.raises(ConfigurationError, match=f"write.parquet.{name}"):
        ParquetOptions.from_properties({f"write.parquet.{name}": value})


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_the_only_row_of_a_list_is_there_whatever_the_size_of_pages(tmp_path, version):
    metadata = new_table_metadata(
        SCHEMA, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, str(tmp_path), {}
    )
    pages = {"write.parquet.page-size-bytes": "1", "write.parquet.page-version": version}
    data = pa.table({"id": [1], "ls": pa.array([None], pa.list_(pa.int64()))})
    (file,) = write_data(IO, metadata, data, options=pages)
    assert pq.read_table(file.file_path)["ls"].to_pylist() == [None]
