"""A file of a table that is a FIFO: refused by its name, by whoever would wait for it for ever."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from icecomb.catalog import Table, cli, load_catalog, open_table
from icecomb.format.errors import ConfigurationError, FileIOError

pytestmark = pytest.mark.timeout(120)
UNKNOWN = {"io.manifest.cache-enabled": "false"}
ROWS = pa.table({"id": [1, 2, 3]})


def table_of(folder: Path, file_format: str = "parquet") -> Table:
    lake = load_catalog("lake", type="hadoop", warehouse=str(folder))
    lake.create_namespace("db")
    properties = {"write.format.default": file_format, "write.delete.mode": "merge-on-read"}
    table = lake.create_table("db.t", ROWS.schema, properties=properties)
    table.append(ROWS)
    table.delete("id = 2")
    return table


def fifo_instead(location: str) -> str:
    path = location.removeprefix("file:")
    Path(path).unlink()
    os.mkfifo(path)
    return path


def piece_of(table: Table, piece: str) -> str:
    snapshot = table.current_snapshot()
    if piece == "metadata":
        return table.metadata_location
    if piece == "manifest list":
        return snapshot.manifest_list
    if piece == "manifest":
        return table.inspect.manifests().to_pylist()[0]["path"]
    content = 1 if piece == "delete file" else 0
    files = table.inspect.files().to_pylist()
    return next(one["file_path"] for one in files if one["content"] == content)


@pytest.mark.parametrize(
    "piece", ["metadata", "manifest list", "manifest", "delete file", "data file"]
)
def test_a_scan_names_the_piece_that_is_a_fifo(tmp_path, piece):
    at = fifo_instead(piece_of(table_of(tmp_path), piece))
    with pytest.raises(FileIOError, match="it is a FIFO") as refused:
        open_table(str(tmp_path / "db" / "t"), **UNKNOWN).scan().to_arrow()
    assert at in str(refused.value)


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("verb", ["scan", "delete", "rewrite"])
def test_data_files_of_each_format_are_refused_by_each_reader(tmp_path, file_format, verb):
    table = table_of(tmp_path, file_format)
    verbs = {
        "scan": lambda: table.scan("id > 1").to_arrow(),
        "delete": lambda: table.delete("id = 1"),
        "rewrite": lambda: table.maintenance.rewrite_data_files(options={"rewrite-all": "true"}),
    }
    fifo_instead(piece_of(table, "data file"))
    before = table.metadata_location
    with pytest.raises(FileIOError, match="it is a FIFO"):
        verbs[verb]()
    assert open_table(table.location()).metadata_location == before


def test_a_next_version_that_is_a_fifo_is_refused_instead_of_taken_for_another_writer(tmp_path):
    table = table_of(tmp_path)
    os.mkfifo(tmp_path / "db" / "t" / "metadata" / "v4.metadata.json")
    with pytest.raises(FileIOError, match=r"v4\.metadata\.json cannot be read: it is a FIFO"):
        table.append(ROWS)
    with pytest.raises(FileIOError, match=r"v4\.metadata\.json cannot be read: it is a FIFO"):
        open_table(table.location())


def test_a_version_hint_that_is_a_fifo_is_of_no_use_and_does_no_harm(tmp_path):
    table = table_of(tmp_path)
    fifo_instead(f"{table.location()}/metadata/version-hint.text")
    table = open_table(table.location())
    table.append(ROWS)
    assert open_table(table.location()).scan().count() == 5


def test_a_warehouse_that_is_a_fifo_is_refused_by_its_name(tmp_path):
    place = tmp_path / "lake"
    os.mkfifo(place)
    with pytest.raises(FileIOError, match="lake is a FIFO, not a folder"):
        load_catalog("lake", type="hadoop", warehouse=str(place)).create_namespace("db")
    with pytest.raises(ConfigurationError, match=f"{place} cannot be used"):
        load_catalog("local", warehouse=str(place))


def test_a_command_says_so_in_one_line(tmp_path, capsys):
    at = fifo_instead(piece_of(table_of(tmp_path), "data file"))
    assert cli.main(["head", str(tmp_path / "db" / "t")]) == 1
    assert capsys.readouterr().err.startswith(f"error: {at} cannot be read: it is a FIFO")
