"""What PyIceberg's users write and hold, given to a catalog: taken, or refused by both names."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyiceberg import expressions as their_expressions, partitioning, schema, transforms, types
from pyiceberg.table import sorting

from icecomb import format as ours
from icecomb.catalog import Table
from icecomb.format.errors import ExpressionError, IcecombError, SchemaError, ValidationError


def bids(module: Any) -> Any:
    """The first example of PyIceberg's documentation: the id 4 is there twice."""
    field = module.NestedField
    return (ours if module is ours else schema).Schema(
        field(field_id=1, name="datetime", field_type=module.TimestampType(), required=True),
        field(field_id=2, name="symbol", field_type=module.StringType(), required=True),
        field(field_id=3, name="bid", field_type=module.FloatType(), required=False),
        field(field_id=4, name="ask", field_type=module.DoubleType(), required=False),
        field(
            field_id=5,
            name="details",
            field_type=module.StructType(
                field(
                    field_id=4, name="created_by", field_type=module.StringType(), required=False
                ),
            ),
            required=False,
        ),
    )


OUR_SPEC = ours.PartitionSpec(
    ours.PartitionField(source_id=1, field_id=1000, transform="day", name="datetime_day")
)
OUR_ORDER = ours.SortOrder(ours.SortField(source_id=2, transform="identity"))
THEIR_SPEC = partitioning.PartitionSpec(
    partitioning.PartitionField(source_id=1, field_id=1000, transform="day", name="datetime_day")
)
THEIR_ORDER = sorting.SortOrder(
    sorting.SortField(source_id=2, transform="identity"),
    sorting.SortField(
        3, transforms.IdentityTransform(), sorting.SortDirection.DESC, sorting.NullOrder.NULLS_LAST
    ),
)


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize(
    ("given", "spec", "order"),
    [(bids(ours), OUR_SPEC, OUR_ORDER), (bids(types), THEIR_SPEC, THEIR_ORDER)],
    ids=["of icecomb", "of pyiceberg"],
)
def test_the_first_example_of_pyiceberg_makes_the_table_that_it_makes_there(
    lake: Any, given: Any, spec: Any, order: Any, version: str
) -> None:
    made = lake.create_table(
        "db.bids",
        schema=given,
        partition_spec=spec,
        sort_order=order,
        properties={"format-version": version},
    )
    expected = schema.assign_fresh_schema_ids(bids(types))
    assert made.schema().to_json()["fields"] == json.loads(expected.model_dump_json())["fields"]
    assert [(f.source_id, str(f.transform), f.name) for f in made.spec().fields] == [
        (1, "day", "datetime_day")
    ]
    assert made.sort_order().fields[0].source_id == 2
    assert len(made.sort_order().fields) == len(order.fields)


def test_an_id_that_two_fields_have_is_refused_where_it_is_named(lake: Any) -> None:
    repeated = bids(ours)
    both = r"field id 4 is used by 'ask' and 'details.created_by'"
    spec = ours.PartitionSpec(ours.PartitionField(4, 1000, "identity", "ask"))
    asks: dict[str, Callable[[], Any]] = {
        "a partition spec": lambda: lake.create_table("db.t", repeated, partition_spec=spec),
        "a sort order": lambda: lake.create_table(
            "db.t", repeated, sort_order=ours.SortOrder(ours.SortField(4))
        ),
        "an identifier": lambda: ours.Schema(*repeated.fields, identifier_field_ids=(4,)),
        "metadata": lambda: ours.Schema.from_json(repeated.to_json()),
        "a look-up by id": lambda: repeated.find_field(4),
        "a look-up by name": lambda: repeated.find_field("details.created_by"),
        "a name": lambda: repeated.find_column_name(4),
        "a parent": lambda: repeated.find_parent_id(4),
        "the highest id": lambda: repeated.highest_field_id,
        "all ids": lambda: repeated.field_ids,
    }
    for what, ask in asks.items():
        with pytest.raises(SchemaError, match=both):
            pytest.fail(f"{what}: {ask()}")
    assert not lake.table_exists("db.t")
    assert repeated.find_field("bid").field_id == 3


@pytest.fixture
def table(lake: Any) -> Table:
    made: Table = lake.create_table("db.t", pa.schema([("id", pa.int64()), ("day", pa.date32())]))
    return made


def test_types_and_transforms_of_pyiceberg_are_taken(table: Table) -> None:
    with table.update_schema() as update:
        update.union_by_name(schema.Schema(types.NestedField(9, "day", types.DateType())))
        update.add_column("price", types.DecimalType(9, 2))
        update.add_column("tags", types.ListType(7, types.StringType(), element_required=False))
        update.add_column("place", types.StructType(types.NestedField(1, "x", types.LongType())))
    with table.update_spec() as spec:
        spec.add_field("day", transforms.MonthTransform(), "m")
        spec.add_field("id", transforms.BucketTransform(4), "b")
    with table.update_sort_order() as order:
        order.desc("day", transforms.YearTransform(), sorting.NullOrder.NULLS_FIRST)
    assert [str(f.field_type) for f in table.schema().fields[2:]] == [
        "decimal(9, 2)",
        "list<string>",
        "struct<7: x: optional long>",
    ]
    assert [str(f.transform) for f in table.spec().fields] == ["month", "bucket[4]"]
    assert table.sort_order().fields[0].null_order is ours.NullOrder.NULLS_FIRST


def test_what_format_version_3_has_is_refused_from_pyiceberg_too(lake: Any) -> None:
    given = schema.Schema(types.NestedField(1, "t", types.TimestampNanoType()))
    with pytest.raises(ours.UnsupportedError, match="timestamp_ns"):
        lake.create_table("db.n", given)


THEIRS = their_expressions.EqualTo("id", 1)


@pytest.mark.parametrize(
    "use",
    [
        lambda table: table.scan(THEIRS).to_arrow(),
        lambda table: table.scan(row_filter=their_expressions.AlwaysTrue()).count(),
        lambda table: table.delete(THEIRS),
        lambda table: table.inspect.files(row_filter=THEIRS),
        lambda table: table.maintenance.rewrite_data_files(where=THEIRS),
        lambda _: ours.And(ours.IsNull("a"), THEIRS),
        lambda _: ours.IsNull("a") | THEIRS,
        lambda _: ours.Not(THEIRS),
    ],
)
def test_an_expression_of_pyiceberg_is_refused_with_the_names_of_both(
    table: Table, use: Callable[[Table], Any]
) -> None:
    with pytest.raises(ExpressionError) as caught:
        use(table)
    told = f"{caught.value.message} {caught.value.hint}"
    assert "pyiceberg.expressions" in told
    assert "icecomb.format" in told


@pytest.mark.parametrize(
    ("make", "theirs"),
    [
        (lambda: ours.Schema(types.NestedField(1, "a", types.LongType())), "pyiceberg.types"),
        (lambda: ours.StructType(types.NestedField(1, "a", types.LongType())), "pyiceberg.types"),
        (lambda: ours.PartitionSpec(*THEIR_SPEC.fields), "pyiceberg.partitioning"),
        (lambda: ours.SortOrder(*THEIR_ORDER.fields), "pyiceberg.table.sorting"),
        (lambda: ours.EqualTo(their_expressions.Reference("a"), 1), "pyiceberg.expressions"),
    ],
)
def test_a_part_of_pyiceberg_in_a_value_of_ours_is_refused_with_the_names_of_both(
    make: Callable[[], Any], theirs: str
) -> None:
    with pytest.raises(IcecombError) as caught:
        make()
    told = f"{caught.value.message} {caught.value.hint}"
    assert theirs in told
    assert "icecomb.format" in told


@pytest.mark.parametrize(
    ("frame", "hint"),
    [
        (pd.DataFrame({"a": [1]}), "pa.Schema.from_pandas"),
        (pl.DataFrame({"a": [1]}), "to_arrow"),
        (pa.table({"a": [1]}), ".schema"),
    ],
    ids=["pandas", "polars", "pyarrow"],
)
def test_the_schema_of_a_frame_is_asked_for(lake: Any, frame: Any, hint: str) -> None:
    with pytest.raises(SchemaError) as caught:
        lake.create_table("db.t", frame)
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize("given", ["a", 1, object()])
def test_a_spec_or_order_that_is_none_is_refused_by_its_type(lake: Any, given: Any) -> None:
    shape = pa.schema([("a", pa.int64())])
    with pytest.raises(ValidationError, match=r"is PartitionSpec\(\.\.\.\), not "):
        lake.create_table("db.t", shape, partition_spec=given)
    with pytest.raises(ValidationError, match=r"is SortOrder\(\.\.\.\), not "):
        lake.create_table("db.t", shape, sort_order=given)
    with pytest.raises(SchemaError, match="not "):
        lake.create_table("db.t", given)
