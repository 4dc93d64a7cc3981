"""Field ids in Parquet files, as Paimon's Java writer puts them there and as it must not."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.format.file_io import FileIO
from icecomb.format.paimon.data_file_identity import examine
from icecomb.format.paimon.data_type import DataField
from icecomb.format.paimon.iceberg import iceberg_schema
from icecomb.format.paimon.table_schema import TableSchema
from icecomb.format.paimon.type_parser import parse_type

BASE = 2147483647 // 4
INNER = DataField(3, "x", parse_type("INT"))
ROW = parse_type("ROW<x INT>")
SCHEMA = iceberg_schema(
    TableSchema(
        0,
        (
            DataField(0, "id", parse_type("INT")),
            DataField(1, "tags", parse_type("ARRAY<STRING>")),
            DataField(2, "spot", type(ROW)(True, (INNER,))),
        ),
        3,
    )
)


def numbered(name, kind, field_id):
    metadata = None if field_id is None else {"PARQUET:field_id": str(field_id)}
    return pa.field(name, kind, metadata=metadata)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ((0, 1, BASE + 1024 + 1, 2, 3), (True, None)),
        ((None, None, None, None, None), (False, None)),
        ((0, 1, BASE + 1024 + 1, 2, 4), (True, "column spot.x has the id 4, in its schema 3")),
        ((1, 0, BASE + 1024 + 1, 2, 3), (True, "column id has the id 1, in its schema 0")),
        (
            (0, 1, None, 2, 3),
            (True, f"column tags.element has the id None, in its schema {BASE + 1025}"),
        ),
    ],
)
def test_a_file_is_known_by_the_ids_of_its_schema_or_by_none(tmp_path, ids, expected):
    column, array, element, spot, x = ids
    schema = pa.schema(
        [
            numbered("id", pa.int32(), column),
            numbered("tags", pa.list_(numbered("element", pa.string(), element)), array),
            numbered("spot", pa.struct([numbered("x", pa.int32(), x)]), spot),
        ]
    )
    path = tmp_path / "data-0.parquet"
    pq.write_table(schema.empty_table(), path)
    assert examine(FileIO(), str(path), SCHEMA) == expected


def test_a_column_that_its_schema_lacks_is_named(tmp_path):
    path = tmp_path / "data-0.parquet"
    pq.write_table(pa.schema([numbered("other", pa.int32(), 0)]).empty_table(), path)
    assert examine(FileIO(), str(path), SCHEMA) == (True, "its schema has no column other")


@pytest.mark.parametrize(
    ("kind", "fine"),
    [
        (pa.timestamp("us"), True),
        (pa.timestamp("us", "UTC"), True),
        (pa.time64("us"), True),
        (pa.timestamp("ms"), False),
        (pa.timestamp("ms", "UTC"), False),
        (pa.timestamp("ns"), False),
        (pa.time32("ms"), False),
        (pa.struct([("deep", pa.list_(pa.timestamp("ms")))]), False),
    ],
)
def test_times_that_are_no_microseconds_are_named(tmp_path, kind, fine):
    path = tmp_path / "data-0.parquet"
    pq.write_table(pa.schema([("id", pa.int32()), ("at", kind)]).empty_table(), path)
    identified, fault = examine(FileIO(), str(path), SCHEMA)
    assert not identified
    assert fine is (fault is None)
    assert fine or fault.startswith("column at")
