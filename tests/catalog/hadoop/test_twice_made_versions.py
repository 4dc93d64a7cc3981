"""Two metadata files of one version, as of two writers of which one compresses."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest

from icecomb.catalog import cli, load_catalog, open_table
from icecomb.catalog.hadoop.pointer import HadoopPointer
from icecomb.format.errors import CorruptFileError
from icecomb.format.storage.file_io import FileIO

ROWS = pa.table({"id": [1, 2]})
OTHERS = ("v3.gz.metadata.json", "v3.metadata.json.gz")


@pytest.fixture
def lake(tmp_path):
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    table = lake.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    table.append(ROWS)
    assert table.metadata_location.endswith("/v3.metadata.json")
    return lake


@pytest.fixture
def metadata(tmp_path) -> Path:
    return tmp_path / "db" / "t" / "metadata"


def twin(metadata: Path, name: str, **changed: str) -> str:
    found = json.loads((metadata / "v3.metadata.json").read_text())
    found["properties"] |= changed
    text = json.dumps(found) if changed else (metadata / "v3.metadata.json").read_text()
    (metadata / name).write_bytes(gzip.compress(text.encode()))
    return str(metadata / name)


@pytest.mark.parametrize("name", OTHERS)
def test_versions_that_differ_are_refused_with_both_names(lake, metadata, name):
    idle = lake.load_table("db.t")
    other = twin(metadata, name, by="somebody else")
    location = str(metadata.parent)
    for load in (
        lambda: lake.load_table("db.t"),
        lambda: open_table(location),
        idle.refresh,
        lambda: idle.append(ROWS),
        lambda: idle.maintenance.remove_orphan_files(dry_run=True),
    ):
        with pytest.raises(CorruptFileError) as refused:
            load()
        assert str(metadata / "v3.metadata.json") in refused.value.message
        assert other in refused.value.message
    assert {file.name for file in metadata.glob("v?.*")} == {
        "v1.metadata.json", "v2.metadata.json", "v3.metadata.json", name,
    }  # fmt: skip
    # what is named can be looked at, and what stays is the table
    assert open_table(other).properties["by"] == "somebody else"
    assert lake.list_tables("db") == [("db", "t")]
    Path(other).unlink()
    idle.append(ROWS)
    assert lake.load_table("db.t").scan().count() == 6


@pytest.mark.parametrize("name", OTHERS)
def test_versions_that_say_the_same_are_one(lake, metadata, name):
    twin(metadata, name)
    table = lake.load_table("db.t")
    table.append(ROWS)
    assert lake.load_table("db.t").scan().count() == 6


def test_an_older_version_of_which_there_are_two_hinders_nobody(lake, metadata):
    twin(metadata, "v2.gz.metadata.json", by="somebody else")
    lake.load_table("db.t").append(ROWS)
    assert lake.load_table("db.t").scan().count() == 6


def test_a_command_names_both(lake, metadata, capsys):
    other = twin(metadata, OTHERS[0], by="somebody else")
    assert cli.main(["describe", str(metadata.parent)]) == 1
    said = capsys.readouterr().err
    assert f"{metadata}/v3.metadata.json and {other}" in said
    assert "move one out of the folder" in said


def test_a_table_of_which_there_are_two_can_be_purged(lake, metadata):
    twin(metadata, OTHERS[0], by="somebody else")
    lake.purge_table("db.t")
    assert not metadata.exists()


class Imagining(FileIO):
    """Says once of a file that it is there, and reads another once."""

    def __init__(self, imagined: str, instead: dict[str, str]) -> None:
        super().__init__()
        self.imagined = {imagined}
        self.instead = instead

    def exists(self, location: str) -> bool:
        if location in self.imagined:
            self.imagined.remove(location)
            return True
        return super().exists(location)

    def read(self, location: str) -> bytes:
        return super().read(self.instead.pop(location, location))


@pytest.mark.parametrize("name", ["v3.gz.metadata.json", "v4.metadata.json", "v4.gz.metadata.json"])
def test_a_version_that_is_there_once_and_then_not_is_looked_for_again(lake, metadata, name):
    io = Imagining(f"{metadata}/{name}", {})
    found = HadoopPointer(io, str(metadata.parent), "db.t", {}).load()
    assert (found.location, io.imagined) == (f"{metadata}/v3.metadata.json", set())


def test_a_twin_that_reads_otherwise_once_is_read_again(lake, metadata):
    place = twin(metadata, OTHERS[0])
    (metadata / "v2.gz.metadata.json").write_bytes(
        gzip.compress((metadata / "v2.metadata.json").read_bytes())
    )
    io = Imagining("", {place: f"{metadata}/v2.gz.metadata.json"})
    found = HadoopPointer(io, str(metadata.parent), "db.t", {}).load()
    assert (found.location, io.instead) == (f"{metadata}/v3.metadata.json", {})
