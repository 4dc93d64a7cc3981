"""Aggregates from manifests against the rows themselves: exact, or not known."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from icecomb.catalog import load_catalog
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.operation.append import FastAppend
from icecomb.format.scan.file_aggregates import Aggregate, AggregateFunction
from icecomb.format.scan.incremental_scan import IncrementalAppendScan
from icecomb.format.spec.transform import IdentityTransform
from icecomb.format.spec.types import DecimalType, LongType
from tests.catalog.random_table import changed_table
from tests.rings import sampled

COUNT, MIN, MAX = AggregateFunction.COUNT, AggregateFunction.MIN, AggregateFunction.MAX
ROWS = Aggregate(COUNT)


def internal(array):
    """The values of a column as icecomb has them inside."""
    if pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    elif pa.types.is_timestamp(array.type):
        array = array.cast(pa.int64())
    return array.to_pylist()


def expected(function, values):
    present = [value for value in values if value is not None]
    if function is COUNT:
        return len(present)
    if any(isinstance(value, float) and math.isnan(value) for value in present):
        return "unknown"
    return (min if function is MIN else max)(present) if present else None


def check(scan, known=()):
    """Every aggregate of every column, alone and by every group, is what the rows say, or unknown."""
    table, schema = scan.to_arrow(), scan.schema()
    rows = {f.field_id: internal(table[f.name].combine_chunks()) for f in schema.fields}
    found = scan.known_aggregates([ROWS])
    answered = 0
    if found is not None:
        answered += 1
        assert found == [(len(table),)]
    plain = [f.field_id for f in schema.fields if f.field_type.is_primitive]
    for field_id in plain:
        for function in AggregateFunction:
            found = scan.known_aggregates([Aggregate(function, field_id)])
            if found is not None:
                answered += 1
                assert found == [(expected(function, rows[field_id]),)], (function, field_id)
    for key in plain:
        asked = [ROWS, *(Aggregate(COUNT, i) for i in plain[:2]), Aggregate(MAX, 1)]
        found = scan.known_aggregates(asked, [key])
        if found is not None:
            answered += 1
            check_groups(
                found, rows, key, [COUNT, *[COUNT] * len(plain[:2]), MAX], [None, *plain[:2], 1]
            )
    return answered


def check_groups(found, rows, key, functions, columns):
    merged = {}
    for group, *values in found:
        merged.setdefault(repr(group), []).append(values)
    assert set(merged) == {repr(value) for value in rows[key]}
    for group, parts in merged.items():
        chosen = [at for at, value in enumerate(rows[key]) if repr(value) == group]
        for at, (function, column) in enumerate(zip(functions, columns, strict=True)):
            values = [True if column is None else rows[column][row] for row in chosen]
            got = [part[at] for part in parts if part[at] is not None]
            whole = sum(got) if function is COUNT else max(got, default=None)
            assert whole == expected(function, values)


@pytest.mark.gate("random tables")
@pytest.mark.parametrize("file_format", sampled(["parquet", "avro", "orc"], keep=2))
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(random=st.randoms(use_true_random=False), steps=st.integers(1, 8))
def test_aggregates_of_random_tables_are_those_of_their_rows_or_not_known(
    file_format, random, steps
):
    with changed_table(random, steps, file_format) as made:
        table = made.table
        check(table.scan())
        for snapshot_id, _ in made.history[-2:]:
            check(table.scan(snapshot_id=snapshot_id))
        check(IncrementalAppendScan(table.metadata, table.io))
        low = random.randint(0, 20)
        check(table.scan(f"id >= {low}"))
        for spec in table.specs().values():
            for field in spec.fields:
                if isinstance(field.transform, IdentityTransform):
                    name = table.schema().find_column_name(field.source_id)
                    if name is not None:
                        check(table.scan(f"{name} is null"))


KINDS = {
    "id": pa.int64(), "i": pa.int32(), "b": pa.bool_(), "d": pa.float64(), "dec": pa.decimal128(9, 2),
    "day": pa.date32(), "ts": pa.timestamp("us"), "tz": pa.timestamp("us", "UTC"), "s": pa.string(),
    "bin": pa.binary(), "st": pa.struct([("x", pa.int32())]), "country": pa.string(),
}  # fmt: skip
UTC = timezone.utc
FIRST = {
    "id": [1, 2, 3], "i": [None, -5, 7], "b": [True, False, None], "d": [1.5, -2.5, None],
    "dec": [Decimal("-1.50"), None, Decimal("9999999.99")], "day": [date(1969, 12, 31), date(2024, 2, 29), None],
    "ts": [None, datetime(2024, 2, 29, 1, 2, 3, 456789, UTC), datetime(1969, 12, 31, tzinfo=UTC)],
    "tz": [datetime(2024, 2, 29, 1, 2, 3, 456789, UTC), None, None], "s": ["a", "b", None],
    "bin": [b"a", None, None], "st": [{"x": 1}, {"x": None}, None], "country": ["de", "de", None],
}  # fmt: skip


@pytest.fixture
def lake(tmp_path):
    found = load_catalog("lake", type="hadoop", warehouse=str(tmp_path / "lake"))
    found.create_namespace("db")
    yield found
    found.close()


@pytest.fixture
def make(lake):
    def made(rows=(FIRST,), **properties):
        schema = pa.schema(list(KINDS.items()))
        table = lake.create_table(f"db.t{uuid4().hex[:8]}", schema, properties=properties)
        with table.update_spec() as spec:
            spec.add_identity("country")
        for part in rows:
            table.append(
                pa.table(part, schema=pa.schema([(n, schema.field(n).type) for n in part]))
            )
        return table

    return made


def asked(table, *functions, group_by=(), **scan):
    """Functions such as ``max st.x``, or ``count``."""
    schema = table.schema()
    aggregates = []
    for text in functions:
        name, _, column = text.partition(" ")
        field_id = schema.find_field(column).field_id if column else None
        aggregates.append(Aggregate(AggregateFunction(name), field_id))
    keys = [schema.find_field(name).field_id for name in group_by]
    return table.scan(**scan).known_aggregates(aggregates, keys)


KNOWN = {
    "count": 3, "count id": 3, "count i": 2, "count s": 2, "count country": 2, "count bin": 1,
    "min id": 1, "max id": 3, "min i": -5, "max i": 7, "min b": False, "max b": True,
    "min d": -2.5, "max d": 1.5, "min dec": Decimal("-1.50"), "max dec": Decimal("9999999.99"),
    "min day": -1, "max day": 19782, "min ts": -86_400_000_000, "max ts": 1_709_168_523_456_789,
    "max tz": 1_709_168_523_456_789, "min country": "de", "max country": "de", "max st.x": 1,
    "count st.x": 1,
}  # fmt: skip


def test_what_manifests_of_parquet_files_say_exactly_is_known(make):
    table = make()
    assert {text: asked(table, text) for text in KNOWN} == {t: [(v,)] for t, v in KNOWN.items()}
    assert asked(table, *KNOWN) == [tuple(KNOWN.values())]


@pytest.mark.parametrize("text", ["min s", "max bin", "count st"])
def test_cut_off_bounds_are_not_trusted_and_structs_are_not_counted(make, text):
    assert asked(make(), text) is None


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_counts_inside_structs_are_trusted_in_parquet_files_alone(make, file_format):
    assert asked(make(**{"write.format.default": file_format}), "count st.x") is None


def test_groups_are_partitions_of_columns_themselves(make):
    second = {"id": [9], "country": ["de"], "i": [8]}
    table = make(rows=(FIRST, second))
    assert sorted(asked(table, "count", "max i", group_by=["country"]), key=repr) == [
        ("de", 3, 8),
        (None, 1, 7),
    ]
    assert sorted(asked(table, group_by=["country"]), key=repr) == [("de",), (None,)]
    assert asked(table, "count", group_by=["country", "id"]) is None
    with table.update_spec() as spec:
        spec.remove_field("country")
    assert asked(table, "count", group_by=["country"]) is not None
    table.append(pa.table({"id": [1], "country": ["fr"]}))
    assert asked(table, "count", group_by=["country"]) is None
    assert asked(table, "count", "count country") == [(5, 4)]


def test_a_table_without_files_has_one_group_of_nothing_and_no_other(make):
    table = make(rows=())
    assert asked(table, "count", "count i", "max i", "max s") == [(0, 0, None, None)]
    assert asked(table, "count", group_by=["country"]) == []


def test_files_with_deleted_rows_are_not_counted_and_others_are(make):
    table = make(**{"write.delete.mode": "merge-on-read", "format-version": "2"})
    table.delete("id = 1")
    assert asked(table, "count") is None
    assert asked(table, "max i", row_filter="country is null") == [(7,)]
    table.delete("country = 'de'")
    assert asked(table, "count") == [(1,)]


def test_files_of_which_a_filter_may_leave_out_rows_are_not_counted(make):
    table = make()
    assert asked(table, "count", row_filter="id > 1") is None
    assert asked(table, "count", row_filter="country = 'de'") == [(2,)]
    assert asked(table, "count", row_filter="country = 'de' and id > 0") is None
    assert asked(table, "count", "max id", row_filter="country = 'fr'") == [(0, None)]
    assert asked(table, "count", limit=1) is None


def test_a_column_that_files_do_not_speak_of_is_not_taken_for_null(make):
    table = make()
    with table.update_schema() as update:
        update.add_column("new", LongType())
    assert asked(table, "count new") is None
    assert asked(table, "max new") is None
    assert asked(table, "count") == [(3,)]


def test_promoted_columns_keep_their_minima(make):
    table = make()
    with table.update_schema() as update:
        update.update_column("i", LongType())
        update.update_column("dec", DecimalType(20, 2))
    assert asked(table, "min i", "max dec") == [(-5, Decimal("9999999.99"))]


@pytest.mark.parametrize(
    ("values", "known"),
    [([1.0, math.nan], False), ([0.0, 1.0], False), ([0.0, -1.0], True), ([None, None], True)],
)
def test_nan_and_the_sign_of_zero_are_left_to_the_rows(make, values, known):
    table = make(rows=({"id": [1, 2], "d": values},))
    assert (asked(table, "min d") is not None) is known
    assert asked(table, "count d") == [(sum(value is not None for value in values),)]


def test_metrics_that_were_not_kept_tell_nothing(make):
    counts = make(**{"write.metadata.metrics.default": "counts"})
    assert asked(counts, "count i") == [(2,)]
    assert asked(counts, "max i") is None
    assert asked(counts, "max country") == [("de",)]
    none = make(**{"write.metadata.metrics.default": "none"})
    assert asked(none, "count i") is None
    assert asked(none, "count", "count country") == [(3, 2)]


def test_orc_keeps_times_in_milliseconds(make):
    whole = {
        **FIRST,
        "ts": [None, datetime(2024, 2, 29, tzinfo=UTC), datetime(2000, 1, 1, tzinfo=UTC)],
        "tz": [None] * 3,
    }
    table = make(rows=(whole,), **{"write.format.default": "orc"})
    assert asked(table, "max ts") is None
    assert asked(table, "min i", "max day", "max dec") == [(-5, 19782, Decimal("9999999.99"))]


def test_files_of_other_tables_are_trusted_for_whole_numbers_only(make):
    table = make()
    with table.transaction() as change:
        names = [{"field-id": f.field_id, "names": [f.name]} for f in table.schema().fields]
        change.set_properties({"schema.name-mapping.default": json.dumps(names)})
    assert asked(table, "min i", "max id", "count s") == [(-5, 3, 2)]
    assert {text: asked(table, text) for text in ("max day", "min ts", "min dec", "max d")} == (
        dict.fromkeys(("max day", "min ts", "min dec", "max d"))
    )


def test_every_state_of_a_table_is_asked_for_itself(make):
    table = make(rows=({"id": [1, 2]}, {"id": [3]}))
    first, second = (one.snapshot_id for one in table.snapshots())
    assert asked(table, "count", "max id", snapshot_id=first) == [(2, 2)]
    appended = IncrementalAppendScan(table.metadata, table.io, from_snapshot_id=first)
    assert appended.known_aggregates([ROWS]) == [(1,)]
    assert asked(table, "count", snapshot_id=second) == [(3,)]


ROWS_OF_TWO = ({"id": [1, 2], "country": ["de", "de"]}, {"id": [7, 9], "country": ["fr", "fr"]})
ALL = {"rewrite-all": "true"}


def copied(table):
    with table.transaction() as change:
        change.set_properties({"commit.manifest.min-count-to-merge": "2"})
    table.append(pa.table({"id": pa.array([3], pa.int64()), "country": ["de"]}))


@pytest.mark.parametrize(
    "change",
    [
        copied,
        lambda table: table.maintenance.rewrite_manifests(),
        lambda table: table.maintenance.rewrite_data_files(options=ALL),
        lambda table: table.maintenance.rewrite_data_files(options={**ALL, "copy": "never"}),
    ],
    ids=["merged manifests", "rewritten manifests", "compacted", "rewritten files"],
)  # fmt: skip
def test_bounds_of_files_that_icecomb_wrote_stay_exact(make, change):
    table = make(rows=ROWS_OF_TWO)
    change(table)
    assert asked(table, "min id", "max id") == [(1, 9)]


def test_bounds_that_others_stated_are_taken_for_values_only_where_they_leave_one(make):
    table = make(rows=ROWS_OF_TWO)
    [first, second] = sorted(
        (entry.data_file for m in read_manifests(table.io, table.current_snapshot())
         for entry in m.fetch_manifest_entry(table.io)),
        key=lambda file: file.partition,
    )  # fmt: skip
    assert all(file.has_exact_bounds for file in (first, second))
    for file in (first, replace(first, upper_bounds=second.upper_bounds)):
        other = make(rows=())
        of_others = replace(file, has_exact_bounds=False)
        other.commit(FastAppend(other.io).append_data_file(of_others))
        assert asked(other, "max id") is None
        assert asked(other, "max country", "count id", "count") == [("de", 2, 2)]
        # one manifest may hold files of both
        copied(other)
        assert asked(other, "max id") is None
    one_value = replace(first, has_exact_bounds=False, upper_bounds=first.lower_bounds)
    other = make(rows=())
    other.commit(FastAppend(other.io).append_data_file(one_value))
    assert asked(other, "min id", "max id") == [(1, 1)]


def test_bounds_from_footers_of_added_files_are_not_taken_for_values(make, tmp_path):
    table = make(rows=())
    path = tmp_path / "country=de" / "added.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int64())}), path)
    table.add_files([str(path)])
    assert asked(table, "max id") is None
    assert asked(table, "max country", "count id") == [("de", 2)]
