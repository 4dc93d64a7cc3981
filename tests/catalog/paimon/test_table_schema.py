"""Schema files as Paimon's specification describes them; the example is that of its page Spec / Schema."""

import json

import pytest

from icecomb.catalog.paimon.data_type import nested_fields
from icecomb.catalog.paimon.snapshot import read_snapshot
from icecomb.catalog.paimon.source import SchemaFiles
from icecomb.catalog.paimon.table_schema import read_table_schema
from icecomb.catalog.paimon.type_parser import parse_type
from icecomb.format.errors import CorruptFileError, NoSuchTableError, UnsupportedError
from icecomb.format.storage.file_io import FileIO

EXAMPLE = """{
  "version" : 3,
  "id" : 0,
  "fields" : [ {
    "id" : 0,
    "name" : "order_id",
    "type" : "BIGINT NOT NULL"
  }, {
    "id" : 1,
    "name" : "order_name",
    "type" : "STRING"
  }, {
    "id" : 2,
    "name" : "order_user_id",
    "type" : "BIGINT"
  }, {
    "id" : 3,
    "name" : "order_shop_id",
    "type" : "BIGINT"
  } ],
  "highestFieldId" : 3,
  "partitionKeys" : [ ],
  "primaryKeys" : [ "order_id" ],
  "options" : {
    "bucket" : "5"
  },
  "comment" : "",
  "timeMillis" : 1720496663041
}"""


def example(**changes):
    return {**json.loads(EXAMPLE), **changes}


def field(field_id, name, kind="INT", **more):
    return {"id": field_id, "name": name, "type": kind, **more}


def test_the_specifications_example_is_written_as_it_was_read():
    schema = read_table_schema(EXAMPLE, "schema-0")
    assert schema.to_text() == EXAMPLE
    assert [f.field_type.nullable for f in schema.fields] == [False, True, True, True]


def test_more_values_than_any_schema_has_are_not_parsed(monkeypatch):
    monkeypatch.setenv("ICECOMB_MAX_JSON_VALUES", "3")
    for text in (EXAMPLE, EXAMPLE.encode()):
        with pytest.raises(CorruptFileError, match="more values than the limit"):
            read_table_schema(text, "schema-0")


def test_more_values_than_any_snapshot_has_are_not_parsed(monkeypatch, tmp_path):
    monkeypatch.setenv("ICECOMB_MAX_JSON_VALUES", "3")
    (tmp_path / "snapshot-1").write_text('{"version": 3, "x": [0, 0, 0, 0]}')
    with pytest.raises(CorruptFileError, match="more values than the limit"):
        read_snapshot(FileIO(), f"{tmp_path}/snapshot-1")


def test_unknown_members_are_kept_at_every_depth():
    row = {"type": "ROW NOT NULL", "fields": [field(1, "x", future=1)], "future": 2}
    listed = {"type": "ARRAY", "element": row, "future": 3}
    raw = example(fields=[field(0, "order_id", "INT"), field(2, "a", listed, future=4)], future=[5])
    assert json.loads(read_table_schema(json.dumps(raw), "s").to_text()) == raw


@pytest.mark.parametrize(
    ("version", "options", "expected"),
    [
        (1, {}, {"bucket": "1", "file.format": "orc"}),
        (None, {}, {"bucket": "1", "file.format": "orc"}),
        (1, {"bucket": "4", "file.format": "avro"}, {"bucket": "4", "file.format": "avro"}),
        (2, {}, {"file.format": "orc"}),
        (3, {}, {}),
    ],
)
def test_older_versions_have_the_options_they_leave_out(version, options, expected):
    raw = example(version=version, options=options)
    if version is None:
        del raw["version"]
    assert read_table_schema(json.dumps(raw), "s").options == expected


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("INTEGER", "INT"),
        ("VARCHAR(2147483647)", "STRING"),
        ("VARBINARY(2147483647)  NOT NULL", "BYTES NOT NULL"),
        ("CHAR", "CHAR(1)"),
        ("VARCHAR(20) NULL", "VARCHAR(20)"),
        ("BINARY(16)", "BINARY(16)"),
        ("DECIMAL", "DECIMAL(10, 0)"),
        ("DEC(5)", "DECIMAL(5, 0)"),
        ("numeric(38,18) not null", "DECIMAL(38, 18) NOT NULL"),
        ("DOUBLE PRECISION", "DOUBLE"),
        ("TIME", "TIME(0)"),
        ("TIME(3) WITHOUT TIME ZONE", "TIME(3)"),
        ("TIMESTAMP", "TIMESTAMP(6)"),
        ("TIMESTAMP(9)", "TIMESTAMP(9)"),
        ("TIMESTAMP_LTZ(3)", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
        (
            "TIMESTAMP(6) WITH LOCAL TIME ZONE NOT NULL",
            "TIMESTAMP(6) WITH LOCAL TIME ZONE NOT NULL",
        ),
        ("VARIANT", "VARIANT"),
        ("BLOB", "BLOB"),
        ("MULTISET<INT>", "MULTISET<INT>"),
        ("VECTOR<FLOAT, 3>", "VECTOR<FLOAT, 3>"),
        ("map<string not null, array<int>>", "MAP<STRING NOT NULL, ARRAY<INT>>"),
        (
            "ROW<`a b` INT NOT NULL, c: STRING 'it''s'>",
            "ROW<a b INT NOT NULL, c STRING COMMENT 'it's'>",
        ),
    ],
)
def test_types_are_read_in_every_spelling_and_written_in_paimons(written, canonical):
    assert str(parse_type(written)) == canonical


def test_nested_types_are_read_with_their_ids_and_nullability():
    row = {"type": "ROW NOT NULL", "fields": [field(2, "x", "INT NOT NULL"), field(3, "y")]}
    kinds = [
        {"type": "ARRAY", "element": row},
        {"type": "MAP NOT NULL", "key": "STRING NOT NULL", "value": "DECIMAL(5, 2)"},
        {"type": "MULTISET", "element": "STRING"},
        {"type": "VECTOR", "element": "FLOAT", "length": 3},
    ]
    raw = example(
        fields=[
            field(0, "order_id"),
            *(field(10 + at, f"c{at}", kind) for at, kind in enumerate(kinds)),
        ],
        highestFieldId=13,
    )
    schema = read_table_schema(json.dumps(raw), "s")
    assert [str(f.field_type) for f in schema.fields[1:]] == [
        "ARRAY<ROW<x INT NOT NULL, y INT> NOT NULL>",
        "MAP<STRING NOT NULL, DECIMAL(5, 2)> NOT NULL",
        "MULTISET<STRING>",
        "VECTOR<FLOAT, 3>",
    ]
    assert [f.field_id for f in nested_fields(schema.row_type)] == [0, 10, 2, 3, 11, 12, 13]
    assert json.loads(schema.to_text()) == raw


NESTED_TWICE = {"type": "ROW", "fields": [field(0, "deep")]}
TOO_HIGH = {"type": "ARRAY", "element": {"type": "ROW", "fields": [field(9, "deep")]}}


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (
            example(fields=[field(0, "order_id"), field(0, "b")]),
            "fields: id 0 is given 2 times (order_id, b)",
        ),
        (
            example(fields=[field(0, "order_id"), field(1, "b", NESTED_TWICE)]),
            "id 0 is given 2 times (order_id, deep)",
        ),
        (
            example(fields=[field(0, "order_id"), field(4, "b")]),
            "fields.b: id 4 is above highestFieldId 3",
        ),
        (
            example(fields=[field(0, "order_id"), field(1, "b", TOO_HIGH)]),
            "fields.deep: id 9 is above",
        ),
        (
            example(fields=[field(0, "order_id", "BIGGINT")]),
            "fields.order_id: unknown type 'BIGGINT'",
        ),
        (
            example(fields=[field(0, "order_id", "DECIMAL(39, 1)")]),
            "fields.order_id: DECIMAL(39, 1)",
        ),
        (
            example(fields=[field(0, "order_id", {"type": "HEAP"})]),
            "fields.order_id: unknown type 'HEAP'",
        ),
        (
            example(fields=[field(0, "order_id", {"type": "ARRAY", "element": "X"})]),
            "fields.order_id.element: unknown type 'X'",
        ),
        (
            example(fields=[field(0, "order_id"), field(1, "order_id")]),
            "the name 'order_id' is given twice",
        ),
        (
            example(fields=[{"name": "order_id", "type": "INT"}]),
            "fields.order_id: id is not a number",
        ),
        (example(fields=[]), "at least one column"),
        (example(primaryKeys=["missing"]), "primaryKeys: there is no column 'missing'"),
        (example(options={"bucket": 5}), "options.bucket: not text: 5"),
        (example(highestFieldId="3"), "highestFieldId: expected int"),
        (example(id=7), "id: 7, but the file is named schema-0"),
        ([], "not an object"),
    ],
)
def test_a_schema_file_that_contradicts_itself_is_refused_with_file_and_field(raw, said):
    with pytest.raises(CorruptFileError) as caught:
        read_table_schema(json.dumps(raw), "/t/schema/schema-0", 0)
    assert caught.value.message.startswith("/t/schema/schema-0: ")
    assert said in caught.value.message


@pytest.mark.parametrize("version", [0, 4, "3", True])
def test_an_unknown_version_is_refused(version):
    with pytest.raises(UnsupportedError, match=r"schema-0: version .* is unknown"):
        read_table_schema(json.dumps(example(version=version)), "schema-0", 0)


@pytest.mark.parametrize("length", [0, 1, 40, len(EXAMPLE) - 1])
def test_a_schema_file_that_is_cut_short_is_refused(length):
    with pytest.raises(CorruptFileError, match="schema-0 is truncated or not JSON"):
        read_table_schema(EXAMPLE[:length], "schema-0", 0)


def store(folder, *numbers):
    (folder / "schema").mkdir(exist_ok=True)
    for number in numbers:
        (folder / "schema" / f"schema-{number}").write_text(json.dumps(example(id=number)))
    return SchemaFiles(FileIO(), str(folder))


def test_the_latest_schema_is_that_of_the_highest_number_not_of_the_last_name(tmp_path):
    files = store(tmp_path, *range(11))
    (tmp_path / "schema" / ".schema-99.tmp").write_text("{")
    assert files.latest().schema_id == 10
    assert [s.schema_id for s in files.history()] == list(range(11))


@pytest.mark.parametrize(("numbers", "missing"), [([1], 0), ([0, 1, 3], 2), ([2, 3], 0)])
def test_a_missing_schema_file_is_named(tmp_path, numbers, missing):
    with pytest.raises(
        CorruptFileError, match=f"schema-{missing} is missing, though there is schema-{numbers[-1]}"
    ):
        store(tmp_path, *numbers).latest()


def test_a_folder_without_schemas_is_no_table(tmp_path):
    with pytest.raises(NoSuchTableError, match="no Paimon table"):
        SchemaFiles(FileIO(), str(tmp_path)).latest()
