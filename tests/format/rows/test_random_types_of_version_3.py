"""Random columns with nanoseconds and unknown values, and filters on them, against plain values."""

from __future__ import annotations

import operator
from itertools import count

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from icecomb.catalog import load_catalog
from icecomb.format.errors import UnsupportedError
from icecomb.format.expressions.expression import (
    And,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
    NotIn,
)
from icecomb.format.rows.write.partition_writer import StoredColumns
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema, assign_fresh_schema_ids
from icecomb.format.spec.single_value import to_json
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import (
    IcebergType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StructType,
    TimestampNanoType,
    TimestamptzNanoType,
    UnknownType,
)

FORMATS = ("parquet", "orc", "avro")
MOST = (1 << 63) - 1
LEAVES: list[IcebergType] = [
    TimestampNanoType(),
    TimestamptzNanoType(),
    LongType(),
    UnknownType(),
]
NUMBERS = iter(count(10_000))


def structs(inside):
    fields = st.lists(inside, min_size=1, max_size=4)
    return fields.map(
        lambda kinds: StructType(
            [NestedField(next(NUMBERS), f"f{i}", k) for i, k in enumerate(kinds)]
        )
    )


KINDS = st.recursive(
    st.sampled_from(LEAVES),
    lambda inside: (
        structs(inside)
        | inside.map(lambda kind: ListType(next(NUMBERS), kind))
        | inside.map(lambda kind: MapType(next(NUMBERS), "long", next(NUMBERS), kind))
    ),
    max_leaves=6,
)


def values(kind, least):
    """Values of a type: numbers for times, pairs for maps."""
    if isinstance(kind, UnknownType):
        return st.none()
    if isinstance(kind, StructType):
        parts = {f.name: values(f.field_type, least) for f in kind.fields}
        return st.none() | st.fixed_dictionaries(parts)
    if isinstance(kind, ListType):
        return st.none() | st.lists(values(kind.element_type, least), max_size=3)
    if isinstance(kind, MapType):
        keys = st.dictionaries(st.integers(0, 9), values(kind.value_type, least), max_size=3)
        return st.none() | keys.map(lambda found: list(found.items()))
    near = st.sampled_from([least, 0, 1, 999, 1000, 1001, 10**9, MOST])
    return st.none() | near | st.integers(least, MOST)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory):
    folder = tmp_path_factory.mktemp("random")
    catalog = load_catalog("files", type="hadoop", warehouse=str(folder))
    catalog.create_namespace("db")
    return catalog


@pytest.mark.parametrize("file_format", FORMATS)
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_random_columns_come_back(catalog, file_format, data):
    kinds = data.draw(st.lists(KINDS, min_size=1, max_size=3))
    fields = [NestedField(i + 2, f"c{i}", kind) for i, kind in enumerate(kinds)]
    schema = assign_fresh_schema_ids(Schema(NestedField(1, "id", LongType()), *fields))
    # pyarrow writes fractions of seconds before 1970 wrongly to ORC
    least = 0 if file_format == "orc" else -MOST - 1
    rows = data.draw(
        st.lists(
            st.fixed_dictionaries({f.name: values(f.field_type, least) for f in fields}), max_size=5
        )
    )
    given_rows = pa.Table.from_pylist(
        [{"id": n, **row} for n, row in enumerate(rows)], schema.as_arrow()
    )
    name = f"db.t{next(NUMBERS)}"
    properties = {"format-version": "3", "write.format.default": file_format}
    table = catalog.create_table(name, schema, properties=properties)
    try:
        StoredColumns(schema)
    except UnsupportedError:
        if rows:
            with pytest.raises(UnsupportedError, match="unknown"):
                table.append(given_rows)
        return
    table.append(given_rows)
    found = table.scan().to_arrow()
    assert found.schema.equals(given_rows.schema, check_metadata=False)
    assert found.sort_by("id").equals(given_rows)


OPERATORS = {
    EqualTo: operator.eq,
    NotEqualTo: operator.ne,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
}
SPECS = ("void", "identity", "bucket[3]", "hour", "day", "month", "year")


@pytest.mark.parametrize("kind", [TimestampNanoType(), TimestamptzNanoType()], ids=str)
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_filters_find_the_rows_that_plain_numbers_would(catalog, kind, data):
    hour = 3_600_000_000_000
    moments = st.integers(-3, 3).map(lambda n: n * hour) | st.integers(-2 * hour, 2 * hour)
    moments |= st.sampled_from([-MOST - 1, -1, 0, 1, 999, 1000, 1001, MOST])
    file_format = data.draw(st.sampled_from(FORMATS))
    if file_format == "orc":
        moments = moments.filter(lambda n: n >= 0 or n % 1_000_000_000 == 0)
    known = data.draw(st.lists(st.none() | moments, min_size=1, max_size=6))
    transform = parse_transform(data.draw(st.sampled_from(SPECS)))
    spec = PartitionSpec(PartitionField(1, 1000, transform, "p"))
    table = catalog.create_table(
        f"db.t{next(NUMBERS)}",
        Schema(NestedField(1, "t", kind)),
        partition_spec=spec,
        properties={"format-version": "3", "write.format.default": file_format},
    )
    arrow = pa.timestamp("ns", getattr(table.schema().as_arrow().field("t").type, "tz", None))
    for part in (known[::2], known[1::2]):
        table.append(pa.table({"t": pa.array(part, arrow)}))

    def found(row_filter):
        return sorted(table.scan(row_filter).to_arrow()["t"].cast(pa.int64()).to_pylist())

    pivots = data.draw(
        st.lists(
            moments | st.sampled_from([m for m in known if m is not None] or [0]),
            min_size=2,
            max_size=2,
        )
    )
    low, high = (to_json(kind, pivot) for pivot in pivots)
    there = [m for m in known if m is not None]
    for predicate, holds in OPERATORS.items():
        assert found(predicate("t", low)) == sorted(m for m in there if holds(m, pivots[0])), (
            predicate
        )
    both = And(GreaterThan("t", low), LessThanOrEqual("t", high))
    assert found(both) == sorted(m for m in there if pivots[0] < m <= pivots[1])
    assert found(In("t", [low, high])) == sorted(m for m in there if m in pivots)
    assert found(NotIn("t", [low, high])) == sorted(m for m in there if m not in pivots)
    table.delete(LessThan("t", low))
    kept = table.scan().to_arrow()["t"].cast(pa.int64()).to_pylist()
    assert sorted(kept, key=str) == sorted(
        (m for m in known if m is None or m >= pivots[0]), key=str
    )
