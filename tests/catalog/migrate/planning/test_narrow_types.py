"""Types of Hive's that hold less than the files: `varchar(n)`, `char(n)`, `tinyint`, `smallint`.

Hive 3.1 shows the first n characters, and null for integers out of range.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyorc
import pytest
from pyarrow import orc

from icecomb.catalog import migrate
from icecomb.catalog.hive.thrift.entity import FieldSchema, HiveTable
from icecomb.catalog.migrate.applying.existing_files import files_of_hive_table
from icecomb.catalog.migrate.choices import Choices
from icecomb.catalog.migrate.journal.context import MigrationContext
from icecomb.catalog.migrate.planning.survey import plan_source
from icecomb.catalog.migrate.source.hive_type import NarrowType, parse_hive_type
from icecomb.catalog.migrate.verifying.comparison import as_hive_reads
from icecomb.catalog.report.progress import SILENT
from icecomb.format.errors import ValidationError
from icecomb.format.spec.arrow_schema import type_to_pyarrow
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import IntegerType, NestedField, StringType
from icecomb.format.storage.file_io import FileIO
from tests.catalog.migrate.conftest import ORC, PARQUET


def planned(folder: Path, kind: str, storage: Any = PARQUET) -> dict[str, str]:
    """Severities of the findings about narrow types, of a table of one column."""
    whole = replace(storage, columns=(FieldSchema("v", kind),), location=folder.as_uri())
    plan = plan_source(FileIO(), HiveTable("made", "t", storage=whole), [], Choices(), SILENT)
    found = {f.code: str(f.severity) for f in plan.findings}
    return {code: found[code] for code in found if code in {"narrow-type", "orc-case"}}


@pytest.mark.parametrize("write", [pq.write_table, orc.write_table], ids=["Parquet", "ORC"])
@pytest.mark.parametrize(
    ("kind", "values", "found"),
    [
        ("tinyint", [1, -128, 127, None], {}),
        ("tinyint", [1, 128], {"narrow-type": "blocker"}),
        ("smallint", [-32769, 1], {"narrow-type": "blocker"}),
        ("smallint", [None, None], {}),
        ("struct<a:tinyint>", [{"a": 300}], {"narrow-type": "blocker"}),
        ("array<tinyint>", [[300]], {"narrow-type": "warning"}),
    ],
)
def test_bounds_tell_integers_that_hive_shows_as_null(
    tmp_path: Path, write: Any, kind: str, values: list[Any], found: dict[str, str]
) -> None:
    wide = {
        "struct<a:tinyint>": pa.struct([("a", pa.int32())]),
        "array<tinyint>": pa.list_(pa.int32()),
    }
    write(pa.table({"v": pa.array(values, wide.get(kind, pa.int32()))}), tmp_path / "f")
    storage = PARQUET if write is pq.write_table else ORC
    assert planned(tmp_path, kind, storage) == found


def test_a_files_own_type_proves_what_bounds_do_not(tmp_path: Path) -> None:
    plain = {"write_statistics": False}
    pq.write_table(pa.table({"v": pa.array([1], pa.int8())}), tmp_path / "f", **plain)
    assert planned(tmp_path, "tinyint") == {}
    pq.write_table(pa.table({"v": pa.array([1], pa.int32())}), tmp_path / "g", **plain)
    assert planned(tmp_path, "tinyint") == {"narrow-type": "warning"}


@pytest.mark.parametrize(
    ("kind", "text", "found"),
    [
        ("varchar(3)", "abcd", "blocker"),
        ("varchar(3)", "ab ", "warning"),
        ("varchar(3)", "äöü", "warning"),
        ("char(3)", "abc  ", "warning"),
        ("char(3)", "abcd ", "blocker"),
    ],
)
def test_a_text_in_bounds_that_is_too_long_blocks(
    tmp_path: Path, kind: str, text: str, found: str
) -> None:
    pq.write_table(pa.table({"v": [text, None]}), tmp_path / "f")
    assert planned(tmp_path, kind) == {"narrow-type": found}


@pytest.mark.parametrize(("length", "found"), [(3, {}), (4, {"narrow-type": "warning"})])
@pytest.mark.parametrize("form", ["varchar({})", "array<varchar({})>"])
def test_lengths_of_orcs_types_prove_texts(
    tmp_path: Path, form: str, length: int, found: dict[str, str]
) -> None:
    stored = f"struct<v:{form.format(length)}>"
    with (tmp_path / "f").open("wb") as file, pyorc.Writer(file, stored) as writer:
        writer.write((["abc"] if "array" in form else "abc",))
    assert planned(tmp_path, form.format(3), ORC) == found


def test_lengths_that_spark_notes_in_parquet_prove_texts(tmp_path: Path) -> None:
    for length, found in ((3, {}), (5, {"narrow-type": "warning"})):
        note = (
            '{"type":"struct","fields":[{"name":"v","type":"string","nullable":true,'
            f'"metadata":{{"__CHAR_VARCHAR_TYPE_STRING":"varchar({length})"}}}}]}}'
        )
        schema = pa.schema({"v": pa.string()}, {"org.apache.spark.sql.parquet.row.metadata": note})
        pq.write_table(pa.table({"v": ["abc"]}, schema=schema), tmp_path / "f")
        assert planned(tmp_path, "varchar(3)") == found


def test_names_of_orc_that_hive_3_does_not_find_are_told(tmp_path: Path) -> None:
    orc.write_table(pa.table({"V": [1]}), tmp_path / "f")
    assert planned(tmp_path, "bigint", ORC) == {"orc-case": "warning"}


def test_narrow_types_are_found_at_any_depth() -> None:
    text = "map<char(2),struct<A:array<varchar(3)>,b:smallint,c:string>>"
    assert parse_hive_type(text).narrow == {
        ("key",): NarrowType("char(2)", length=2),
        ("value", "a", "element"): NarrowType("varchar(3)", length=3),
        ("value", "b"): NarrowType("smallint", bits=16),
    }


@pytest.mark.parametrize(
    ("kind", "values", "shown"),
    [
        (
            "varchar(3)",
            ["abcdef", "äöüß", "😀😀😀😀", "ab", None],
            ["abc", "äöü", "😀😀😀", "ab", None],
        ),
        ("char(3)", ["abcdef", "ab    ", "a"], ["abc", "ab    ", "a"]),
        ("tinyint", [300, -128, -129, None], [None, -128, None, None]),
        ("smallint", [100_000, 32_767], [None, 32_767]),
        ("array<varchar(3)>", [["abcdef", None], None, []], [["abc", None], None, []]),
        ("map<char(1),tinyint>", [[("ab", 300)]], [[("a", None)]]),
        ("struct<A:varchar(1)>", [{"a": "xy"}, None], [{"A": "x"}, None]),
    ],
)
def test_values_are_compared_as_hive_shows_them(
    kind: str, values: list[Any], shown: list[Any]
) -> None:
    converted = parse_hive_type(kind)
    target = type_to_pyarrow(converted.type, include_field_ids=False)
    given = pa.struct([("a", pa.string())]) if kind.startswith("struct") else target
    found = as_hive_reads(pa.array(values, given), converted.type, target, converted.narrow)
    assert found.to_pylist() == shown


def test_values_that_hive_does_not_show_are_not_added(make_hive_table: Any) -> None:
    rows = pa.table({"V": ["abcd"], "n": pa.array([1], pa.int32())})
    table = make_hive_table({"v": "varchar(3)", "n": "tinyint"}, rows=rows)
    context = MigrationContext(table.catalog, *table.name.split("."), SILENT)
    schema = Schema(NestedField(1, "v", StringType()), NestedField(2, "n", IntegerType()))
    with pytest.raises(ValidationError, match=r"column v: it holds 'abcd', which Hive shows cut"):
        files_of_hive_table(context, schema, {})
    assert len(files_of_hive_table(context, Schema(schema.fields[1]), {})) == 1


def test_what_footers_do_not_tell_is_found_by_the_comparison(make_hive_table: Any) -> None:
    rows = pa.table(
        {"v": ["a", "mmmm", "z"], "n": pa.array([[1], [300], None], pa.list_(pa.int32()))}
    )
    table = make_hive_table({"v": "varchar(3)", "n": "array<tinyint>"}, rows=rows)
    (told,) = (
        f for f in migrate.plan(table.catalog, table.name).findings if f.code == "narrow-type"
    )
    assert told.message.startswith("n.element tinyint, v varchar(3): 1 files")
    migrate.apply(table.catalog, table.name)
    found = migrate.verify(table.catalog, table.name)
    assert [one.rpartition("column ")[2] for one in found.differences] == [
        "v: 1 of 3 values differ",
        "n: 1 of 3 values differ",
    ]
