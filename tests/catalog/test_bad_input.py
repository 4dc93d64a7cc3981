"""Damaged files and impossible requests: an error with the name, and nothing changed on disk."""

import json
import re
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog, open_table
from icecomb.format.errors import (
    CorruptFileError,
    ExpressionError,
    IcecombError,
    NoSuchFileError,
    SchemaError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.manifests.manifest_list import read_manifests

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "day": ["a", "b", "b"]})


@pytest.fixture
def catalog(tmp_path):
    # Nothing read before may answer for a file that was damaged since.
    catalog = load_catalog(
        "files",
        **{"type": "hadoop", "warehouse": str(tmp_path), "io.manifest.cache-enabled": "false"},
    )
    catalog.create_namespace("db")
    return catalog


@pytest.fixture
def table(catalog):
    table = catalog.create_table("db.t", ROWS.schema)
    with table.update_spec() as spec:
        spec.add_identity("day")
    table.append(ROWS)
    table.append(ROWS)
    return table


def other_avro(file):
    schema = {"type": "record", "name": "r", "fields": [{"name": "x", "type": "int"}]}
    with file.open("wb") as out:
        fastavro.writer(out, schema, [{"x": 1}])


DAMAGES = {
    "truncated": lambda file: file.write_bytes(file.read_bytes()[:-30]),
    "header only": lambda file: file.write_bytes(file.read_bytes()[:40]),
    "empty": lambda file: file.write_bytes(b""),
    "not Avro": lambda file: file.write_bytes(b"PAR1" + b"x" * 5000),
    "another schema": other_avro,
    "missing": lambda file: file.unlink(),
}
READERS = {
    "scan": lambda table: table.scan().to_arrow(),
    "delete": lambda table: table.delete("id = 2"),
    "overwrite": lambda table: table.overwrite(ROWS, "day = 'b'"),
    "upsert": lambda table: table.upsert(ROWS, ["id"]),
    "rewrite": lambda table: table.rewrite_manifests(),
    "inspect": lambda table: table.inspect.files(),
}


def files(catalog):
    root = Path(catalog.properties["warehouse"])
    return {p: p.read_bytes() for p in root.rglob("*") if p.is_file()}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("what", ["manifest", "manifest list"])
def test_a_damaged_file_is_named_by_whoever_reads_it_and_nothing_is_written(
    catalog, table, what, damage
):
    snapshot = table.current_snapshot()
    path = Path(snapshot.manifest_list)
    if what == "manifest":
        path = Path(read_manifests(table.io, snapshot)[0].manifest_path)
    DAMAGES[damage](path)
    before = files(catalog)
    expected = NoSuchFileError if damage == "missing" else CorruptFileError
    for use in READERS.values():
        with pytest.raises(expected, match=re.escape(path.name)):
            use(load_catalog("files", **catalog.properties).load_table("db.t"))
        assert files(catalog) == before


def edit(change):
    def damage(file):
        content = json.loads(file.read_text())
        change(content)
        file.write_text(json.dumps(content))

    return damage


@pytest.mark.parametrize(
    ("damage", "error", "named"),
    [
        (edit(lambda d: d.pop("location")), CorruptFileError, "'location' is missing"),
        (edit(lambda d: d["schemas"].append(d["schemas"][0])), CorruptFileError, "0 occurs twice"),
        (edit(lambda d: d.update({"current-schema-id": 9})), CorruptFileError, "id 9 does not"),
        (edit(lambda d: d.update({"format-version": 4})), UnsupportedError, "version 4 .v4."),
        (edit(lambda d: d.update({"format-version": 3})), CorruptFileError, "'next-row-id' is"),
        (lambda f: f.write_bytes(b'{"location": "\xff"}'), CorruptFileError, "can't decode"),
        (lambda f: f.write_bytes(f.read_bytes()[:-7]), CorruptFileError, "in the middle"),
        (lambda f: f.write_bytes(b""), CorruptFileError, "it is empty"),
    ],
)
def test_damaged_metadata_is_named_and_nothing_is_written(catalog, table, damage, error, named):
    file = Path(table.metadata_location)
    damage(file)
    before = files(catalog)
    for use in (
        lambda: catalog.load_table("db.t"),
        lambda: open_table(str(file)),
        lambda: catalog.replace_table("db.t", ROWS.schema),
        lambda: catalog.register_table("db.copy", str(file)),
    ):
        with pytest.raises(error, match=named) as caught:
            use()
        assert file.name in caught.value.message
        assert files(catalog) == before
    with pytest.raises(IcecombError):
        catalog.create_table("db.t", ROWS.schema)
    assert files(catalog) == before


@pytest.mark.parametrize(
    ("request_", "error", "named"),
    [
        (lambda t: t.scan("nowhere = 1").to_arrow(), ExpressionError, "'nowhere'"),
        (lambda t: t.scan("id = 'one'").to_arrow(), ExpressionError, r"id \(long\) with 'one'"),
        (lambda t: t.scan("day > 5").to_arrow(), ExpressionError, "day"),
        (lambda t: t.delete("nowhere = 1"), ExpressionError, "'nowhere'"),
        (lambda t: t.delete("id = 'one'"), ExpressionError, r"id \(long\)"),
        (lambda t: t.overwrite(ROWS, "id = 'one'"), ExpressionError, r"id \(long\)"),
        (lambda t: t.scan("id = ").to_arrow(), ExpressionError, "ends too early"),
        (lambda t: t.append(pa.table({"id": ["x"], "day": ["a"]})), ValidationError, "id"),
        (lambda t: t.append(pa.table({"who": ["x"]})), ValidationError, "who"),
        (lambda t: t.update_schema().add_column("ID", "int"), SchemaError, "'ID'"),
        (lambda t: t.update_schema().update_column("id", "int"), SchemaError, "long to int"),
        (lambda t: t.update_schema().delete_column("day").commit(), ValidationError, "partition"),
        (lambda t: t.update_spec().add_field("day", "hour"), ValidationError, "hour"),
        (lambda t: t.update_spec().remove_field("week"), ValidationError, "'week'"),
        (lambda t: t.update_sort_order().asc("nowhere", "identity"), ValidationError, "nowhere"),
        (lambda t: t.manage_snapshots().create_tag(9, "t").commit(), IcecombError, "9"),
        (lambda t: t.scan(snapshot_id=9).to_arrow(), IcecombError, "9"),
    ],
)
def test_what_cannot_be_done_is_named_and_nothing_is_written(
    catalog, table, request_, error, named
):
    before = files(catalog)
    with pytest.raises(error, match=named):
        request_(table)
    assert files(catalog) == before
