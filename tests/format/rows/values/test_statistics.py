"""Statistics of Parquet footers that cannot be are unknown."""

from __future__ import annotations

import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.format.rows.parquet.compact_protocol import read_struct
from icecomb.format.rows.values.statistics import ChunkStatistics, ColumnStatistics, merged
from icecomb.format.spec.types import LongType

# members of Parquet's thrift structures
ROW_GROUPS, COLUMNS, META_DATA, STATISTICS = 4, 1, 3, 12
NULL_COUNT, MAX_VALUE, MIN_VALUE, DEPRECATED_MAX, DEPRECATED_MIN = 3, 5, 6, 1, 2
I64, BINARY = 6, 8


def statistics(path, change):
    """The statistics of a column of two row groups, of which the first one's are changed."""
    pq.write_table(pa.table({"id": pa.array([1, None, 3, 4], pa.int64())}), path, row_group_size=2)
    content = path.read_bytes()
    (length,) = struct.unpack("<I", content[-8:-4])
    footer, _ = read_struct(content[-8 - length : -8])
    group = footer[ROW_GROUPS].values[0]
    change(group[COLUMNS].values[0][META_DATA][STATISTICS])
    written = footer.encoded()
    path.write_bytes(content[: -8 - length] + written + struct.pack("<I", len(written)) + b"PAR1")
    metadata = pq.read_metadata(path)
    reader = ColumnStatistics(metadata, 0, LongType())
    return [reader.chunk(number) for number in range(metadata.num_row_groups)]


@pytest.mark.parametrize("count", [-1, -(1 << 40), 3])
def test_a_number_of_nulls_that_cannot_be_is_unknown(tmp_path, count):
    """A writer stated -1, which added to the nulls of another row group made none."""
    chunks = statistics(tmp_path / "f", lambda found: found.put(NULL_COUNT, I64, count))
    assert [chunk.null_count for chunk in chunks] == [None, 0]
    assert merged(chunks).null_count is None


def test_bounds_upside_down_are_unknown(tmp_path):
    def change(found):
        found.drop(DEPRECATED_MAX, DEPRECATED_MIN)
        found.put(MIN_VALUE, BINARY, struct.pack("<q", 7))
        found.put(MAX_VALUE, BINARY, struct.pack("<q", 1))

    chunks = statistics(tmp_path / "f", change)
    assert [(c.lower, c.upper) for c in chunks] == [(None, None), (3, 4)]
    assert (merged(chunks).lower, merged(chunks).upper) == (None, None)


@pytest.mark.parametrize("pair", [("b", "a"), (b"\xff", b"\x00"), (2.0, 1.0), (1, 0)])
def test_bounds_of_any_reader_of_footers_are_ordered(pair):
    found = ChunkStatistics(3, 0, *pair)
    assert (found.lower, found.upper) == (None, None)
    assert ChunkStatistics(3, 0, *reversed(pair)).lower == pair[1]
    assert ChunkStatistics(3, 0, pair[0], None).lower == pair[0]
