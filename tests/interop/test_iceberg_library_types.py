"""Values of every type in every format: what Iceberg Java's library, icecomb and PyIceberg write, all read unchanged."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from icecomb.format.spec.arrow_schema import schema_to_pyarrow
from tests.interop.conftest import row_values
from tests.interop.test_types import ROWS, SCHEMA, metrics, rows_of
from tests.rings import sampled

TABLES = {"v1": "parquet", "parquet": "parquet", "orc": "orc", "avro": "avro"}
READ_BY_PEER = ("v1", "parquet")
SECONDS = ("ts", "tz")


@pytest.fixture(scope="module", params=sampled(TABLES, keep=2))
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def given(kind):
    """The rows; pyarrow writes only whole seconds before 1970 to ORC."""
    if kind != "orc":
        return ROWS
    return [
        row | {name: row[name] and row[name].replace(microsecond=0) for name in SECONDS}
        for row in ROWS
    ]


@pytest.fixture(scope="module")
def written(kind, given, library):
    """A table that all have appended the same rows to."""
    name = f"types_{kind}"
    version = "1" if kind == "v1" else "2"
    properties = {"format-version": version, "write.format.default": TABLES[kind]}
    table = library.catalog.create_table(library.own(name), SCHEMA, properties=properties)
    table.append(arrow(given, "python"))
    rows = [row_values({"id": i, "writer": "java", **r}, SCHEMA) for i, r in enumerate(given)]
    library.iceberg.append(library.name(name), rows)
    if kind in READ_BY_PEER:
        peer = library.load_peer(name)
        peer.append(arrow(given, "peer").cast(peer.schema().as_arrow()))
    return name


def arrow(rows, writer):
    full = rows_of(writer)
    if rows is ROWS:
        return full
    for name in SECONDS:
        place = full.schema.get_field_index(name)
        values = pa.array([row[name] for row in rows], full.schema.field(place).type)
        full = full.set_column(place, full.schema.field(place), values)
    return full


def but(kind):
    return [] if kind in READ_BY_PEER else ["peer"]


def test_what_any_one_writes_all_read_unchanged(kind, given, written, library):
    rows = library.agree(written, but=but(kind))
    by_writer = {w: [[r[0], *r[2:]] for r in rows if r[1] == w] for w in {r[1] for r in rows}}
    expected = [[r[0], *r[2:]] for r in library.arrow_rows(arrow(given, "python"))]
    assert expected[2][-1] is None
    assert len(by_writer) == (3 if kind in READ_BY_PEER else 2)
    for writer, found in by_writer.items():
        # text tells 0.0 from -0.0, and 1 from 1.0
        assert json.dumps(found, sort_keys=True) == json.dumps(expected, sort_keys=True), writer


def test_single_columns_are_read_alike(kind, written, library):
    for field in SCHEMA.fields[2:]:
        columns = f"id, writer, {field.name}"
        library.agree(written, columns=columns, but=[] if kind == "parquet" else ["peer"])


FILTERS = {
    "b = false": 1,
    "i < 0": 1,
    "i >= 2147483647": 1,
    "l = 0": 1,
    "l in (-9223372036854775808, 9223372036854775807)": 2,
    "f < -1.5": 1,
    "d is nan": 1,
    "d is not nan": 4,
    "d < 0.5": 2,
    "dec9 = 0.00": 1,
    "dec9 < -9999999.98": 1,
    "dec18 > 0.999999999999999998": 1,
    "day < '1970-01-01'": 1,
    "day > '9999-12-30'": 1,
    "ts < '1970-01-01T00:00:00'": 1,
    "ts >= '2262-04-11T23:47:16'": 1,
    "tz < '1970-01-01T00:00:00+00:00'": 1,
    "tz > '9999-12-30T23:59:58+00:00'": 1,
    "s = ''": 1,
    "s is null": 1,
    "s > 'x'": 2,
    "s like 'xxxxxxxxxxxxxxxxxxxxxxxx%'": 1,
    "s not like 'xxxxxxxxxxxxxxxxxxxxxxxx%'": 3,
    "not (l = 0) and (s is not null or b = true)": 2,
    "i > 2147483646 and i < 0": 0,
    "s = 'xxx'": 0,
    "day > '9999-12-31'": 0,
}
"""Filters, and how many of the rows of one writer they are true for."""
NOT_OF_PEER = ("is nan", "is not nan", "st ", "not like")


@pytest.mark.parametrize("where", sampled(FILTERS, keep=5))
def test_a_filter_finds_the_same_rows_in_the_same_files(kind, written, library, where):
    able = kind == "parquet" and not any(each in where for each in NOT_OF_PEER)
    rows = library.agree(written, where, "id, writer", but=[] if able else ["peer"])
    assert len(rows) == FILTERS[where] * (3 if kind in READ_BY_PEER else 2)


@pytest.mark.parametrize(
    "where", ["u = '00000000-0000-0000-0000-000000000000'", "st.d is not null", "st.p.y is null"]
)
def test_a_filter_that_iceberg_java_does_not_answer(kind, given, written, library, where):
    """It orders uuids as signed numbers, and its rows have no fields in structs to compare."""
    found = library.python(written, where, "id, writer")
    writers = ["java", "peer", "python"] if kind in READ_BY_PEER else ["java", "python"]
    matching = [0] if "not null" in where or "u" in where.split() else [0, 2, 3, 4]
    assert found == [[i, writer] for i in matching for writer in writers]


def test_what_files_are_skipped_by_is_what_iceberg_java_writes(kind, written, library):
    if kind in READ_BY_PEER:
        files = {f.lower_bounds[2].decode(): f for f in library.files(written)}
        assert sorted(files) == ["java", "peer", "python"]
        assert metrics(files["python"]) == metrics(files["java"])
    expected = {f["path"]: f for f in library.iceberg.files(library.name(written))}
    for file in library.files(written):
        shown = expected[file.file_path]
        assert file.record_count == shown["rows"]
        lower = {str(k): v.hex() for k, v in (file.lower_bounds or {}).items()}
        upper = {str(k): v.hex() for k, v in (file.upper_bounds or {}).items()}
        assert (lower, upper) == (shown["lower_bounds"], shown["upper_bounds"])


def test_columns_may_have_any_name(library):
    """Dots, quotes, emoji, spaces, digits and letters of any case."""
    columns = ["A.b", "1", "é\U0001f9ca", "x y", "'\"`", "select", "a" * 200, "_x5F"]
    schema = pa.schema([(name, pa.int64()) for name in columns])
    for file_format in ("parquet", "avro"):
        name = f"names_{file_format}"
        properties = {"write.format.default": file_format}
        table = library.catalog.create_table(library.own(name), schema, properties=properties)
        table.append(pa.table([[i] for i in range(len(columns))], schema))
        library.iceberg.append(library.name(name), [list(range(10, 10 + len(columns)))])
        peer = [] if file_format == "parquet" else ["peer"]
        assert len(library.agree(name, but=peer)) == 2
        assert library.java(name, {"type": "eq", "term": "x y", "value": 3}) == [
            [*range(len(columns))]
        ]


def test_the_arrow_schema_of_both_is_the_same(written, library):
    theirs = library.iceberg.metadata(library.name(written))["schema"]
    assert theirs == library.load(written).schema().to_json()
    assert schema_to_pyarrow(library.load(written).schema()) == schema_to_pyarrow(SCHEMA)
