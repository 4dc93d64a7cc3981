"""Names that Avro does not allow: escaped in manifests and data files, and the tables read as ever."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.avro import schema as avro_schema
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.spec.transform import IdentityTransform

NAMES = ["größe", "größe-1", "名前", "m²", "1st", "a b"]
STRUCT = pa.struct([("größe", pa.int32()), ("名-前", pa.string())])
ROWS = pa.table(
    {
        **{name: pa.array([f"{name}1", f"{name}2"]) for name in NAMES},
        "straße": pa.array([{"größe": 1, "名-前": "x"}, None], STRUCT),
        "tag": pa.array([date(2020, 1, 1), None], pa.date32()),
    }
)
ALLOWED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def names_in(schema):
    """All names of fields and types in an Avro schema."""
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "name":
                yield value
            elif isinstance(value, dict | list):
                yield from names_in(value)
    elif isinstance(schema, list):
        for each in schema:
            yield from names_in(each)


def schema_of(path):
    with Path(path.removeprefix("file:")).open("rb") as file:
        return fastavro.reader(file).writer_schema


def table_of(folder, version):
    catalog = load_catalog("files", type="hadoop", warehouse=str(folder))
    catalog.create_namespace("db")
    properties = {"format-version": version, "write.format.default": "avro"}
    table = catalog.create_table("db.t", ROWS.schema, properties=properties)
    with table.update_spec() as update:
        for name in ("größe-1", "m²"):
            update.add_field(name, IdentityTransform())
    table.append(ROWS)
    return table


@pytest.mark.parametrize("version", ["1", "2"])
def test_no_file_has_a_name_that_avro_does_not_allow(tmp_path, version):
    table = table_of(tmp_path, version)
    manifests = read_manifests(table.io, table.current_snapshot())
    files = [task.file.file_path for task in table.scan().plan_files()]
    for path in [*(m.manifest_path for m in manifests), *files]:
        schema = schema_of(path)
        found = [name.rpartition(".")[2] for name in names_in(schema)]
        assert [name for name in found if not ALLOWED.fullmatch(name)] == []
        assert "größe" in str(schema), "the true name is kept beside"
    assert table.scan("`m²` = 'm²1'").to_arrow().to_pylist() == ROWS.slice(0, 1).to_pylist()


def test_tables_whose_files_have_such_names_are_read_and_changed(tmp_path, monkeypatch):
    """As icecomb wrote them before."""
    monkeypatch.setattr(avro_schema, "avro_name", lambda name: re.sub(r"\W|^(?=\d)", "_", name))
    old = table_of(tmp_path, "2")
    monkeypatch.undo()
    table = load_catalog("files", type="hadoop", warehouse=str(tmp_path)).load_table("db.t")
    assert table.scan().to_arrow().sort_by("größe").to_pylist() == ROWS.to_pylist()
    table.append(ROWS)
    table.delete("`größe` = 'größe2'")
    assert old.refresh().scan().to_arrow().to_pylist() == ROWS.slice(0, 1).to_pylist() * 2
