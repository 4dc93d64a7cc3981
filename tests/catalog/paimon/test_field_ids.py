"""Field ids in Parquet files, as Paimon's Java writer puts them there and as it must not."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog.paimon.data_type import DataField
from icecomb.catalog.paimon.iceberg import iceberg_schema
from icecomb.catalog.paimon.table_schema import TableSchema
from icecomb.catalog.paimon.type_parser import parse_type
from icecomb.catalog.table.definition import TableDefinition
from icecomb.format.errors import SchemaError
from icecomb.format.rows.files.added_file import AddedFiles
from icecomb.format.storage.file_io import FileIO

BASE = 2147483647 // 4
ELEMENT = f"{BASE + 1024 + 1} (element)"
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


def examine(path, schema):
    """Whether a file has ids, and what is wrong with it."""
    describer = AddedFiles(FileIO(), TableDefinition(schema, last_column_id=0).metadata("/t"))
    try:
        describer.describe(str(path))
    except SchemaError as error:
        return not describer.by_name, error.message.partition(": ")[2]
    return not describer.by_name, None


def numbered(name, kind, field_id):
    metadata = None if field_id is None else {"PARQUET:field_id": str(field_id)}
    return pa.field(name, kind, metadata=metadata)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ((0, 1, BASE + 1024 + 1, 2, 3), (True, None)),
        ((None, None, None, None, None), (False, None)),
        (
            (0, 1, BASE + 1024 + 1, 2, 4),
            (True, "column 'spot.x': it carries field id 4 where the table has 3 (x)"),
        ),
        (
            (1, 0, BASE + 1024 + 1, 2, 3),
            (True, "column 'id': it carries field id 1 where the table has 0 (id)"),
        ),
        (
            (0, 1, None, 2, 3),
            (True, f"column 'tags.element': it carries no field id where the table has {ELEMENT}"),
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
    identified, fault = examine(path, SCHEMA)
    assert (identified, fault and fault.partition(";")[0]) == expected


def test_a_column_that_its_schema_lacks_is_named(tmp_path):
    path = tmp_path / "data-0.parquet"
    pq.write_table(pa.schema([numbered("other", pa.int32(), 0)]).empty_table(), path)
    identified, fault = examine(path, SCHEMA)
    assert identified
    assert fault.startswith("column 'other': it carries field id 0 where the table has 0 (id)")


@pytest.mark.parametrize(
    ("kind", "column", "fine"),
    [
        (pa.timestamp("us"), "TIMESTAMP(6)", True),
        (pa.timestamp("us", "UTC"), "TIMESTAMP(6) WITH LOCAL TIME ZONE", True),
        (pa.time64("us"), "TIME(6)", True),
        (pa.timestamp("ms"), "TIMESTAMP(3)", False),
        (pa.timestamp("ms", "UTC"), "TIMESTAMP(3) WITH LOCAL TIME ZONE", False),
        (pa.timestamp("ns"), "TIMESTAMP(6)", False),
        (pa.time32("ms"), "TIME(3)", False),
        (pa.list_(pa.list_(pa.timestamp("ms"))), "ARRAY<ARRAY<TIMESTAMP(3)>>", False),
        (pa.map_(pa.string(), pa.timestamp("ms")), "MAP<STRING, TIMESTAMP(3)>", False),
    ],
)
def test_times_that_are_no_microseconds_are_named(tmp_path, kind, column, fine):
    columns = (DataField(0, "id", parse_type("INT")), DataField(1, "at", parse_type(column)))
    path = tmp_path / "data-0.parquet"
    pq.write_table(pa.schema([("id", pa.int32()), ("at", kind)]).empty_table(), path)
    identified, fault = examine(path, iceberg_schema(TableSchema(0, columns, 1)))
    assert not identified
    assert fine is (fault is None)
    assert fine or (fault.startswith("column 'at") and "seconds, Iceberg has microseconds" in fault)
