from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.format.arrow.plain_layout import without_hidden_nulls

POINT = pa.struct([pa.field("q", pa.int64(), nullable=False), ("u", pa.uuid())])


def required(kind):
    return pa.struct([pa.field("v", kind, nullable=False)])


@pytest.mark.parametrize(
    "kind",
    [
        POINT,
        required(pa.string()),
        required(pa.uuid()),
        required(pa.bool_()),
        required(pa.decimal128(5, 2)),
        required(POINT),
        required(pa.list_(POINT)),
        required(pa.map_(pa.string(), required(pa.int32()))),
        pa.list_(pa.field("element", POINT, nullable=False)),
        pa.map_(pa.string(), pa.field("value", POINT, nullable=False)),
    ],
    ids=str,
)
def test_null_structs_with_required_fields_can_be_written(kind):
    schema = pa.schema([("id", pa.int64()), ("c", kind)])
    batch = pa.record_batch([pa.array([1, 2, 3]), pa.nulls(3, kind)], schema)
    for rows in (batch, batch.slice(1)):
        out = io.BytesIO()
        pq.write_table(pa.Table.from_batches([without_hidden_nulls(rows)], schema), out)
        assert pq.read_table(out)["c"].to_pylist() == [None] * rows.num_rows


@pytest.mark.parametrize("cut", [0, 1, 2])
def test_all_that_can_be_seen_stays(cut):
    point = pa.struct([pa.field("q", pa.string(), nullable=False), ("u", pa.int8())])
    fields = [("p", point), ("l", pa.list_(point)), ("m", pa.map_(pa.string(), point))]
    kind = pa.struct([*fields, pa.field("s", pa.string(), nullable=False)])
    values = [
        {"p": {"q": "1", "u": None}, "l": [None, {"q": "2", "u": 0}], "m": [("a", None)], "s": "a"},
        None,
        {"p": None, "l": None, "m": None, "s": "bc"},
        {"p": {"q": "3", "u": 1}, "l": [], "m": [("b", {"q": "4", "u": None})], "s": ""},
    ]
    batch = pa.record_batch([pa.array(values, kind)], ["c"]).slice(cut)
    found = without_hidden_nulls(batch)
    found.validate(full=True)
    assert found.to_pylist() == batch.to_pylist()
