"""JSON of others is parsed by one function, and nested however deeply, it ends in an error of icecomb or in nothing."""

from __future__ import annotations

import ast
import base64
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from icecomb.catalog.hive.thrift.entity import FieldSchema, HiveTable, StorageDescriptor
from icecomb.catalog.migrate.planning.planner import named_tables
from icecomb.catalog.migrate.source.avro_schema import LITERAL, URL, declared_schema
from icecomb.catalog.migrate.source.column_default import column_defaults
from icecomb.catalog.migrate.source.source_schema import source_schema
from icecomb.catalog.migrate.source.spark_type import collations, spark_schema
from icecomb.format.avro.container import MAGIC
from icecomb.format.errors import (
    ConfigurationError,
    CorruptFileError,
    ValidationError,
)
from icecomb.format.input_limit import TOO_DEEP, VALUES, bounded_json
from icecomb.format.manifests.decoder import manifest_schema
from icecomb.format.property.table_property import FORMER_FOLDERS
from icecomb.format.spec.view import view_from_json
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.hdfs.web_hdfs import transfer_address
from icecomb.spark.planner.streams import StreamOffset

ROOT = Path(__file__).parents[2]
DEEP = "[" * 100_000 + "]" * 100_000
SPARK = "spark.sql.sources.schema"

OWN = {
    "catalog/migrate/source/footer_row.py": (3, "text of this process, in memory"),
    "format/argument.py": (1, "what PyIceberg makes of its own value"),
    "format/expressions/forms/polars_form.py": (1, "what polars makes of the caller's expression"),
    "format/input_limit.py": (1, "the function itself"),
    "format/relocation/relocation.py": (1, "text that `read_metadata_json` bounded"),
    "format/rows/values/statistics.py": (1, "what pyarrow makes of a type"),
    "format/rows/write/data_writer.py": (1, "what pandas makes of the caller's frame"),
    "format/spec/metadata_file.py": (
        2,
        "text that `read_metadata_json` bounded, or this process wrote",
    ),
    "format/spec/metadata_json.py": (1, "text that `read_metadata_json` bounded"),
    "format/statistics/statistics_update.py": (1, "the caller's value, copied"),
    "format/storage/hdfs/session.py": (3, "an answer that `check_json` was asked about"),
    "format/storage/hdfs/web_hdfs.py": (2, "an answer that `check_json` was asked about"),
    "format/variant/variant_array.py": (1, "a value, parsed by the rules of variants"),
    "spark/planner/procedures/signature.py": (1, "a default in icecomb's own signatures"),
    "spark/planner/session/session_work.py": (1, "rows of the session's own query"),
    "spark/planner/transport.py": (2, "messages of the bridge, which has the planner's token"),
    "spark/planner/write/written_files.py": (1, "messages of the bridge's own tasks"),
}
"""How often other modules parse JSON, and why that needs no bounds."""

ANY = re.compile(r"\bimport json|\bfrom json|\.json\(\)")


def parsings(path: Path) -> int:
    text = path.read_text()
    if not ANY.search(text):
        return 0
    names = {"loads", "load", "JSONDecoder"}
    return sum(
        (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "json"
            and node.attr in names
        )
        or (isinstance(node, ast.ImportFrom) and node.module == "json")
        or (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and (node.func.attr, node.args, node.keywords) == ("json", [], [])
        )
        for node in ast.walk(ast.parse(text))
    )


def test_json_of_others_is_parsed_by_one_function() -> None:
    files = [
        path for room in ("format", "catalog", "spark") for path in (ROOT / room).rglob("*.py")
    ]
    found = Counter({str(path.relative_to(ROOT)): parsings(path) for path in files})
    assert {name: count for name, count in found.items() if count} == {
        name: count for name, (count, _) in OWN.items()
    }


def test_json_is_bounded_before_and_while_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bounded_json('{"a": "é"}') == bounded_json('{"a": "é"}'.encode()) == {"a": "é"}
    with pytest.raises(ValueError, match=TOO_DEEP):
        bounded_json(DEEP)
    for wrong in (b"\xff", "[1", '"\\ud83d"', b"[\0]\0", '"\ud83d"'):
        with pytest.raises(ValueError, match=r"\w"):
            bounded_json(wrong)
    monkeypatch.setenv(VALUES.name, "3")
    with pytest.raises(ValueError, match=VALUES.name):
        bounded_json(b"[0,0,0,0]")


def trino(text: str) -> HiveTable:
    view = f"/* Presto View: {base64.b64encode(text.encode()).decode()} */"
    return HiveTable("d", "v", table_type="VIRTUAL_VIEW", view_original_text=view)


@pytest.mark.parametrize(
    "text",
    [DEEP, '{"originalSql": [1], "schema": "d"}', '{"originalSql": "FROM t", "schema": [1]}',
     f'{{"originalSql": {"[" * 600 + "]" * 600}}}', "[]", "no JSON"],
)  # fmt: skip
def test_a_view_of_trino_that_cannot_be_parsed_names_no_table(text: str) -> None:
    assert named_tables(trino(text)) == set()


@pytest.mark.parametrize("piece", ["/* ", "/*", r"\'", "'\\", r"\"", '"\\', "`", "--"])
def test_quotes_and_comments_that_never_end_take_no_time_without_end(piece: str) -> None:
    """Of 200,000 a search from each took an hour: one view held up the plan of all tables."""
    said = f"SELECT 1 FROM a.b x, {piece * 200_000}"
    assert ("a", "b") in named_tables(HiveTable("d", "v", view_original_text=said))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT '\\' FROM a.b", {("a", "b")}),
        ("SELECT 'it\\'s' FROM `a`.\"b\" -- c.d\nJOIN /* e.f */ g", {("a", "b"), ("d", "g")}),
        ('SELECT 1 FROM "a"."b" /* JOIN c.d', {("a", "b"), ("c", "d")}),
    ],
)
def test_a_view_names_what_stands_between_quotes_that_end(
    text: str, names: set[tuple[str, str]]
) -> None:
    assert named_tables(HiveTable("d", "v", view_original_text=text)) >= names


def test_former_folders_are_a_list_however_deep_its_text() -> None:
    for text in (DEEP, "[[]]", '"/a"'):
        with pytest.raises(ConfigurationError, match=r"icecomb\.former-folders"):
            FORMER_FOLDERS.of({FORMER_FOLDERS.key: text})


def test_a_manifest_with_a_deep_schema_has_none() -> None:
    def framed(text: bytes) -> bytes:
        size, out = len(text) << 1, b""
        while size > 127:
            out, size = out + bytes([size & 127 | 128]), size >> 7
        return out + bytes([size]) + text

    sound = b'{"type": "struct", "fields": []}'
    for text, fields in ((DEEP.encode(), None), (sound, ())):
        pairs = framed(b"schema") + framed(text)
        found = manifest_schema(MAGIC + b"\x02" + pairs + b"\x00" + bytes(16))
        assert (None if found is None else found.fields) == fields


def nested(levels: int) -> str:
    kind: Any = "int"
    for number in range(levels):
        kind = {"type": "array", "items": kind} if number % 2 else [kind, "null"]
    return json.dumps({"type": "record", "name": "r", "fields": [{"name": "a", "type": kind}]})


@pytest.mark.parametrize("levels", [0, 50, 100, 900, 100_000])
def test_an_avro_schema_of_any_depth_is_read_or_refused(levels: int, tmp_path: Path) -> None:
    text = {0: '{"type":"record","fields":[1]}', 100_000: DEEP}.get(levels) or nested(levels)
    (tmp_path / "a.avsc").write_text(text)
    for key, said in ((LITERAL, text), (URL, str(tmp_path / "a.avsc"))):
        table = HiveTable("d", "t", parameters={key: said})
        if levels in (50, 100):
            declared = declared_schema(FileIO(), table)
            assert declared is not None
            assert list(declared.differences(json.loads(text))) == []
            continue
        with pytest.raises(ValidationError, match="is not an Avro record"):
            declared_schema(FileIO(), table)


def column_type(text: str) -> str:
    storage = StorageDescriptor(columns=(FieldSchema("a", "int"),))
    table = HiveTable("d", "t", storage=storage, parameters={SPARK: text})
    return str(source_schema(table, "timestamptz").schema.fields[0].field_type)


SPARK_SCHEMAS = [
    DEEP, "1", "[]", '{"type": "struct"}', '{"type": "struct", "fields": 1}',
    '{"type": "struct", "fields": [1]}', '{"type": "struct", "fields": [{}]}',
    '{"type": "struct", "fields": [{"name": 1, "type": "int"}]}',
    '{"type": "struct", "fields": [{"name": "a", "type": "int", "metadata": [1]}]}',
]  # fmt: skip


@pytest.mark.parametrize("text", SPARK_SCHEMAS)
def test_a_schema_of_spark_that_is_none_is_refused_or_passed_over(text: str) -> None:
    parameters = {SPARK: text}
    with pytest.raises(ValidationError, match=r"spark\.sql\.sources\.schema is not"):
        spark_schema(parameters)
    assert collations(parameters) == []
    table = HiveTable("d", "t", parameters=parameters)
    assert not column_defaults(table).read
    assert column_type(text) == "int"


@pytest.mark.parametrize("count", ["", "x", "-1", "9" * 30, "999999999999", "2"])
def test_the_parts_of_a_schema_of_spark_are_those_that_are_there(count: str) -> None:
    parameters = {f"{SPARK}.numParts": count, f"{SPARK}.part.0": '{"type": "struct", "fields": []}'}
    if not count:
        assert spark_schema(parameters) is None
        return
    with pytest.raises(ValidationError, match="part of the table parameter"):
        spark_schema(parameters)
    assert spark_schema({**parameters, f"{SPARK}.numParts": "1"})


@pytest.mark.parametrize(
    "kind",
    [1, None, [], {}, {"type": "array"}, {"type": "map", "keyType": "string"}, {"type": ["array"]},
     {"type": "struct"}, {"type": "struct", "fields": [{"name": "x"}]}, "array", "foo", "decimal(99,1)",
     "char(x)", {"type": "array", "elementType": "map"}],
)  # fmt: skip
def test_a_column_of_spark_without_a_type_is_the_metastores(kind: Any) -> None:
    text = json.dumps({"type": "struct", "fields": [{"name": "a", "type": kind}]})
    assert column_type(text) == "int"


def test_a_column_of_spark_with_too_many_levels_is_the_metastores() -> None:
    kind: Any = "integer"
    for _ in range(200):
        kind = {"type": "array", "elementType": kind}
    text = json.dumps({"type": "struct", "fields": [{"name": "a", "type": kind}]})
    assert column_type(text) == "int"


def test_other_json_of_any_depth_is_refused_or_passed_over(tmp_path: Path) -> None:
    assert transfer_address("h:1", {"LiveNodes": DEEP}) == ""
    with pytest.raises(ValidationError, match="not of an Iceberg table"):
        StreamOffset.parse(DEEP)
    with pytest.raises(CorruptFileError, match=TOO_DEEP):
        view_from_json(DEEP)
